// The functions of CUDA and cuBLAS that enqueue work, on the CPU: with their binary interfaces, and done at once; under
// other names, as a process that has the real libraries binds names to whatever has them.
//
// What would be wrong on a GPU fails here: unknown handles, sizes that CUDA refuses, barriers that not all threads of a
// block reach, shuffles that not all threads of a warp reach, numbers of types and modes that cuBLAS does not know.
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

struct Three {
    unsigned x, y, z;
};
extern "C" {
Three blockIdx, blockDim, gridDim, threadIdx;
}

namespace {

struct Kernel {
    void (*call)(void** parameters);
    const unsigned* sizes;
    unsigned parameters;
};

using Work = std::vector<std::function<int()>>;

struct Stream {
    long long launches = 0, products = 0, recorded = 0, replayed = 0;  // read by driver.py
    int device = 0;
    Work* recording = nullptr;
};

// Of each thread: the device whose context is current (at first there is none), and the stream that it records.
thread_local int current = -1;
thread_local Stream* recorded = nullptr;

// Why the thread may not enqueue on a stream. (CUDA would run at once what a thread enqueues elsewhere while it records:
// here nobody wants that.)
int refusal(const Stream* stream) {
    if (current != stream->device) return current < 0 ? 201 : 400;  // CUDA_ERROR_INVALID_CONTEXT, _INVALID_HANDLE
    return recorded && recorded != stream ? 900 : 0;                // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
}

std::mutex one_at_a_time;
std::set<const Kernel*> kernels;
std::set<Stream*> streams;

// Threads of a block. A fiber runs threads one after the other, as a plain loop; where one has to wait, its fiber stays
// with it, and another fiber begins the next threads. A warp that may go on goes as far as it can, before others move;
// every second launch runs blocks, warps and threads from the last to the first: so that missing barriers show.

enum Wait { NO, BLOCK, WARP };
constexpr size_t STACK = 64 * 1024;
constexpr unsigned WARP_SIZE = 32;

struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK]};
    ucontext_t start;
    jmp_buf here;
    bool begun = false;
    unsigned thread = 0;
    Wait wait = NO;
    int line = 0;
};

struct Lane {
    char values[2][8];
    unsigned turn;
};

jmp_buf scheduler;
Fiber* running;
std::vector<std::unique_ptr<Fiber>> idle;
std::vector<Lane> lanes;
const Kernel* kernel;
void** parameters;
unsigned begun, threads;
bool backwards;
int failed;  // a number of CUDA's

void enter(unsigned thread) {
    running->thread = thread;
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

void leave() {  // _setjmp and _longjmp, as those of ucontext.h ask the system twice a switch
    if (_setjmp(running->here) == 0) _longjmp(scheduler, 1);
}

void work() {
    for (;;) {
        while (begun < threads) {
            const unsigned thread = begun++;
            enter(backwards ? threads - 1 - thread : thread);
            kernel->call(parameters);
        }
        running->wait = NO;
        leave();
    }
}

void resume(Fiber* fiber) {
    running = fiber;
    enter(fiber->thread);
    if (_setjmp(scheduler) != 0) return;
    if (running->begun) _longjmp(running->here, 1);
    running->begun = true;
    getcontext(&running->start);
    running->start.uc_stack.ss_sp = running->stack.get();
    running->start.uc_stack.ss_size = STACK;
    running->start.uc_link = nullptr;
    makecontext(&running->start, work, 0);
    setcontext(&running->start);
}

void wait_for(Wait what, int line) {
    running->wait = what;
    running->line = line;
    leave();
}

std::vector<std::unique_ptr<Fiber>> waiting;  // by thread

// Whether all of the threads [begin, end) wait for the same at the same line.
bool together(Wait what, unsigned begin, unsigned end) {
    for (unsigned thread = begin; thread < end; thread++) {
        const Fiber* fiber = waiting[thread].get();
        if (!fiber || fiber->wait != what || fiber->line != waiting[begin]->line) return false;
    }
    return true;
}

void resume_and_keep(std::unique_ptr<Fiber> fiber) {
    resume(fiber.get());
    if (fiber->wait == NO) {
        idle.push_back(std::move(fiber));
    } else {
        const unsigned thread = fiber->thread;
        waiting[thread] = std::move(fiber);
    }
}

void run_block() {
    begun = 0;
    lanes.assign(threads, Lane());
    waiting.clear();
    waiting.resize(threads);
    while (begun < threads) {
        std::unique_ptr<Fiber> fiber(idle.empty() ? new Fiber : idle.back().release());
        if (!idle.empty()) idle.pop_back();
        resume_and_keep(std::move(fiber));
    }
    const unsigned warps = (threads + WARP_SIZE - 1) / WARP_SIZE;
    const auto numbered = [](unsigned count, unsigned at) { return backwards ? count - 1 - at : at; };
    std::vector<bool> ready(warps);
    while (!failed && std::any_of(waiting.begin(), waiting.end(), [](auto& fiber) { return !!fiber; })) {
        bool moved = false;
        for (unsigned at = 0; at < warps; at++) {
            const unsigned warp = numbered(warps, at), begin = warp * WARP_SIZE;
            const unsigned end = std::min(begin + WARP_SIZE, threads);
            const bool whole = end == begin + WARP_SIZE;
            while (!failed && (ready[warp] || (whole && together(WARP, begin, end)))) {
                ready[warp] = false;
                moved = true;
                for (unsigned lane = 0; lane < end - begin; lane++) {
                    auto& fiber = waiting[begin + numbered(end - begin, lane)];
                    if (fiber) resume_and_keep(std::move(fiber));
                }
            }
        }
        if (!moved && together(BLOCK, 0, threads)) {
            ready.assign(warps, true);
        } else if (!moved && !failed) {
            failed = 719;  // CUDA_ERROR_LAUNCH_FAILED
            for (unsigned thread = 0; thread < threads; thread++) {
                if (!waiting[thread]) continue;
                fprintf(stderr, "emulated CUDA: thread %u waits at line %d of the source for others that never come\n",
                        thread, waiting[thread]->line);
                break;
            }
        }
    }
}

int run(const Kernel* what, Three grid, Three block, void** given) {
    kernel = what;
    parameters = given;
    gridDim = grid;
    blockDim = block;
    threads = block.x * block.y * block.z;
    failed = 0;
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t at = 0; at < blocks && !failed; at++) {
        const uint64_t number = backwards ? blocks - 1 - at : at;
        blockIdx.x = number % grid.x;
        blockIdx.y = number / grid.x % grid.y;
        blockIdx.z = number / grid.x / grid.y;
        run_block();
    }
    backwards = !backwards;
    return failed;
}

// Parameters are copied at once, as CUDA does.
std::function<int()> copied(const Kernel* what, Three grid, Three block, void** given) {
    std::vector<std::vector<uint64_t>> copies;
    for (unsigned at = 0; at < what->parameters; at++) {
        copies.emplace_back((what->sizes[at] + 7) / 8);
        memcpy(copies.back().data(), given[at], what->sizes[at]);
    }
    return [=]() mutable {
        std::vector<void*> addresses;
        for (auto& copy : copies) addresses.push_back(copy.data());
        return run(what, grid, block, addresses.data());
    };
}

// Products

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { CUDA_R_32F = 0, CUDA_R_64F = 1 };
enum { COMPUTE_32F = 68, PEDANTIC_32F, COMPUTE_64F, PEDANTIC_64F, FAST_16F = 74, FAST_16BF = 75, FAST_TF32 = 77 };

struct Matrix {
    const void* data;
    long long distance;  // between columns
    long long stride;    // between matrices
    bool turned;
};

float rounded(float x, int bits_lost) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7f800000) != 0x7f800000) bits += (1u << (bits_lost - 1)) - 1 + (bits >> bits_lost & 1);
    bits &= ~0u << bits_lost;
    float y;
    memcpy(&y, &bits, 4);
    return x != x ? x : y;
}

// [rows, columns], by columns, of a matrix that is stored by columns, or by rows where it is turned.
template <typename T> std::vector<T> by_columns(const Matrix& x, int number, int rows, int columns, int bits_lost) {
    const T* from = static_cast<const T*>(x.data) + number * x.stride;
    std::vector<T> all((size_t)rows * columns);
    for (int j = 0; j < columns; j++) {
        for (int i = 0; i < rows; i++) {
            const T value = x.turned ? from[j + i * x.distance] : from[i + j * x.distance];
            all[(size_t)j * rows + i] = bits_lost ? rounded(value, bits_lost) : value;
        }
    }
    return all;
}

// A sum has up to four parts, which are added at its end: how many, and so how it is rounded, depends on the sizes, as
// in cuBLAS. The same product in a batch of another size is not the same to the last bit.
template <typename T>
void multiply(int m, int n, int k, T alpha, Matrix a, Matrix b, T beta, T* c, long long ldc, long long stride, int count,
              int bits_lost) {
    unsigned mixed = 0;
    for (const int x : {m, n, k, count, (int)a.turned, (int)b.turned}) mixed = (mixed ^ x) * 0x9e3779b1u;
    const int parts = 1 + (mixed >> 30);
    for (int number = 0; number < count; number++, c += stride) {
        const std::vector<T> left = by_columns<T>(a, number, m, k, bits_lost);
        const std::vector<T> right = by_columns<T>(b, number, k, n, bits_lost);
        std::vector<T> column(m), part(m);
        for (int j = 0; j < n; j++) {
            std::fill(column.begin(), column.end(), 0);
            for (int first = 0; first < parts; first++) {
                std::fill(part.begin(), part.end(), 0);
                for (int l = first; l < k; l += parts) {
                    const T factor = right[(size_t)j * k + l];
                    const T* of_left = left.data() + (size_t)l * m;
                    for (int i = 0; i < m; i++) part[i] += of_left[i] * factor;
                }
                for (int i = 0; i < m; i++) column[i] += part[i];
            }
            T* out = c + j * ldc;
            for (int i = 0; i < m; i++) {  // what is there is not read if beta is 0
                out[i] = beta == 0 ? alpha * column[i] : alpha * column[i] + beta * out[i];
            }
        }
    }
}

template <typename T> bool aligned(const void* address) { return (uintptr_t)address % sizeof(T) == 0; }

template <typename T>
int product(Stream* stream, int transa, int transb, int m, int n, int k, const void* alpha, const void* a, int lda,
            long long stride_a, const void* b, int ldb, long long stride_b, const void* beta, void* c, int ldc,
            long long stride_c, int count, int bits_lost) {
    const Matrix left = {a, lda, stride_a, transa != 0}, right = {b, ldb, stride_b, transb != 0};
    if (!aligned<T>(a) || !aligned<T>(b) || !aligned<T>(c)) return INVALID_VALUE;
    T factor, kept;
    memcpy(&factor, alpha, sizeof(T));
    memcpy(&kept, beta, sizeof(T));
    auto doing = [=]() {
        multiply<T>(m, n, k, factor, left, right, kept, static_cast<T*>(c), ldc, stride_c, count, bits_lost);
        return 0;
    };
    if (stream->recording) {
        stream->recorded++;
        stream->recording->push_back(doing);
        return SUCCESS;
    }
    stream->products++;
    return doing();
}

}  // namespace

extern "C" {

void emulated_barrier(int line) { wait_for(BLOCK, line); }

void emulated_exchange(void* value, unsigned size, unsigned mask, unsigned distance, int line) {
    const unsigned thread = running->thread, from = thread ^ distance;
    if (mask != 0xffffffffu || distance >= WARP_SIZE || size > 8) {
        failed = 719;
        fprintf(stderr, "emulated CUDA: a shuffle that is not known here, at line %d\n", line);
    }
    // Two places in turn: nobody is two shuffles ahead of a thread of its warp.
    const unsigned turn = lanes[thread].turn++ % 2;
    memcpy(lanes[thread].values[turn], value, size);
    wait_for(WARP, line);
    memcpy(value, lanes[from % threads].values[turn], size);
}

void emulated_aligned(const void* address, unsigned bytes) {
    if ((uintptr_t)address % bytes) failed = 716;  // CUDA_ERROR_MISALIGNED_ADDRESS
}

int emulated_launch(const Kernel* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, Stream* stream, void** given, void** extra) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    if (!kernels.count(function) || !streams.count(stream)) return 400;  // CUDA_ERROR_INVALID_HANDLE
    if (const int status = refusal(stream)) return status;
    if (!function->call) return 0;
    const bool grid = gx && gy && gz && gx <= 0x7fffffff && gy <= 65535 && gz <= 65535;
    const bool block = bx && by && bz && bx <= 1024 && by <= 1024 && bz <= 64 && bx * by * bz <= 1024;
    if (!grid || !block || shared || !given || extra) return 1;  // CUDA_ERROR_INVALID_VALUE
    const auto doing = copied(function, {gx, gy, gz}, {bx, by, bz}, given);
    if (stream->recording) {
        stream->recorded++;
        stream->recording->push_back(doing);
        return 0;
    }
    stream->launches++;
    return doing();
}

int emulated_gemm_strided(Stream* handle, int transa, int transb, int m, int n, int k, const void* alpha, const void* a,
                          int atype, int lda, long long stride_a, const void* b, int btype, int ldb, long long stride_b,
                          const void* beta, void* c, int ctype, int ldc, long long stride_c, int count, int compute,
                          int algorithm) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    if (!streams.count(handle)) return NOT_INITIALIZED;
    if (refusal(handle)) return EXECUTION_FAILED;
    const bool sizes = m >= 0 && n >= 0 && k >= 0 && count >= 0;
    const bool modes = transa >= 0 && transa <= 2 && transb >= 0 && transb <= 2;
    const bool distances = lda >= std::max(1, transa ? k : m) && ldb >= std::max(1, transb ? n : k) &&
        ldc >= std::max(1, m);
    const bool given = alpha && beta && ((a && b) || !m || !n || !k || !count) && (c || !m || !n || !count);
    if (!sizes || !modes || !distances || !given || (algorithm != -1 && algorithm != 99)) return INVALID_VALUE;
    if (atype != btype || atype != ctype) return NOT_SUPPORTED;
    if (atype == CUDA_R_64F && (compute == COMPUTE_64F || compute == PEDANTIC_64F)) {
        return product<double>(handle, transa, transb, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
                               stride_c, count, 0);
    }
    const std::map<int, int> bits_lost = {{COMPUTE_32F, 0}, {PEDANTIC_32F, 0}, {FAST_16BF, 16}, {FAST_TF32, 13}};
    if (atype != CUDA_R_32F || !bits_lost.count(compute)) return INVALID_VALUE;
    return product<float>(handle, transa, transb, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
                          stride_c, count, bits_lost.at(compute));
}

int emulated_gemm(Stream* handle, int transa, int transb, int m, int n, int k, const void* alpha, const void* a,
                  int atype, int lda, const void* b, int btype, int ldb, const void* beta, void* c, int ctype, int ldc,
                  int compute, int algorithm) {
    return emulated_gemm_strided(handle, transa, transb, m, n, k, alpha, a, atype, lda, 0, b, btype, ldb, 0, beta, c,
                                 ctype, ldc, 0, 1, compute, algorithm);
}

// For driver.py

Stream* emulated_stream(int device) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    Stream* made = *streams.insert(new Stream).first;
    made->device = device;
    return made;
}

// Makes a device's context current, as CUDA's runtime does; returns what was, which is device 0 if nothing was.
int emulated_set_device(int device) {
    const int before = std::max(current, 0);
    current = device;
    return before;
}

void emulated_forget_stream(Stream* stream) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    streams.erase(stream);
    delete stream;
}

// A kernel that does nothing as long as it is not defined.
Kernel* emulated_kernel() {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    Kernel* made = new Kernel{};
    kernels.insert(made);
    return made;
}

void emulated_define(Kernel* known, const Kernel* compiled) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    *known = *compiled;
}

Work* emulated_begin(Stream* stream) {
    recorded = stream;
    return stream->recording = new Work;
}

void emulated_end(Stream* stream) { recorded = nullptr, stream->recording = nullptr; }

int emulated_replay(Stream* stream, Work* work) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    stream->replayed++;
    for (auto& doing : *work) {
        const int status = doing();
        if (status) return status;
    }
    return 0;
}

void emulated_forget_work(Work* work) { delete work; }

// One thread of a grid of any size, which may not wait.
void emulated_thread(const Kernel* what, const Three* sizes, const Three* places, void** given) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    gridDim = sizes[0], blockDim = sizes[1], blockIdx = places[0], threadIdx = places[1];
    what->call(given);
}

// The functions of the C library that kernels are compiled to call.
float emulated_exp(float x) { return __builtin_expf(x); }
float emulated_tanh(float x) { return __builtin_tanhf(x); }
}
