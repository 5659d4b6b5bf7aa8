// The functions of CUDA and cuBLAS that enqueue work, on the CPU: with their binary interfaces, and done at once; under
// other names, as a process that has the real libraries binds names to whatever has them.
//
// What would be wrong on a GPU fails here: unknown handles, sizes that CUDA refuses, barriers that not all threads of a
// block reach, shuffles that not all threads of a warp reach, numbers of types and modes that cuBLAS does not know.
#include <functional>
#include <mutex>

namespace {

struct Handle : Kernel {
    std::string name;
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
std::set<const Handle*> kernels;
std::set<Stream*> streams;

// Parameters are copied at once, as CUDA does.
std::function<int()> copied(const Handle* what, Three grid, Three block, void** given) {
    std::vector<std::vector<uint64_t>> copies;
    for (unsigned at = 0; at < what->parameters; at++) {
        copies.emplace_back((what->sizes[at] + 7) / 8);
        memcpy(copies.back().data(), given[at], what->sizes[at]);
    }
    return [=]() mutable {
        std::vector<void*> addresses;
        for (auto& copy : copies) addresses.push_back(copy.data());
        name = what->name;
        return run(what, grid, block, addresses.data());
    };
}

// Do something now, and count it, or record it.
int enqueue(Stream* stream, long long& count, std::function<int()> doing) {
    if (!stream->recording) return count++, doing();
    stream->recorded++;
    stream->recording->push_back(std::move(doing));
    return 0;
}

}  // namespace

extern "C" {

int emulated_launch(const Handle* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, Stream* stream, void** given, void** extra) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    if (!kernels.count(function) || !streams.count(stream)) return 400;  // CUDA_ERROR_INVALID_HANDLE
    if (const int status = refusal(stream)) return status;
    if (!function->call) return 0;
    const bool grid = gx && gy && gz && gx <= 0x7fffffff && gy <= 65535 && gz <= 65535;
    const bool block = bx && by && bz && bx <= 1024 && by <= 1024 && bz <= 64 && bx * by * bz <= 1024;
    if (!grid || !block || shared || !given || extra) return 1;  // CUDA_ERROR_INVALID_VALUE
    return enqueue(stream, stream->launches, copied(function, {gx, gy, gz}, {bx, by, bz}, given));
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
    const Matrix left = {a, lda, stride_a, transa != 0}, right = {b, ldb, stride_b, transb != 0};
    const Matrix out = {c, ldc, stride_c, false};
    const auto places = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c;
    if (atype == CUDA_R_64F && (compute == COMPUTE_64F || compute == PEDANTIC_64F) && places % 8 == 0) {
        const double factor = *(const double*)alpha, kept = *(const double*)beta;
        return enqueue(handle, handle->products, [=]() {
            return multiply<double>(m, n, k, factor, left, right, kept, out, count, 0);
        });
    }
    const std::map<int, int> bits_lost = {{COMPUTE_32F, 0}, {PEDANTIC_32F, 0}, {FAST_16BF, 16}, {FAST_TF32, 13}};
    if (atype != CUDA_R_32F || !bits_lost.count(compute) || places % 4) return INVALID_VALUE;
    const float factor = *(const float*)alpha, kept = *(const float*)beta;
    return enqueue(handle, handle->products, [=, lost = bits_lost.at(compute)]() {
        return multiply<float>(m, n, k, factor, left, right, kept, out, count, lost);
    });
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
Handle* emulated_kernel(const char* name) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    Handle* made = new Handle{{}, name};
    kernels.insert(made);
    return made;
}

void emulated_define(Handle* known, const Kernel* compiled) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    static_cast<Kernel&>(*known) = *compiled;
    if (known->shared) add_memory((uintptr_t)known->shared, known->shared_end - known->shared, 0, true);
}

// Memory of the device, with room on both sides that is nobody's.
void emulated_memory(const void* begin, size_t bytes, size_t room) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    add_memory((uintptr_t)begin, bytes, room, false);
}

// The next that was found, as text, tab, library, tab, offset in it; or null.
const char* emulated_report() {
    static std::string given;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    if (reports.empty()) return nullptr;
    given = reports.front();
    reports.pop_front();
    return given.c_str();
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

// One thread, which may not wait, of a grid of any size: blockIdx, blockDim, gridDim, threadIdx.
void emulated_thread(const Kernel* what, const Three* places, void** given) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    memcpy(emulated_places, places, sizeof emulated_places);
    what->call(given);
}
}
