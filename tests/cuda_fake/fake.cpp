// CUDA without a GPU, below the real CuPy: its runtime (fake_cuda..., which install.py puts into CuPy's copy of it), the
// driver and cuBLAS.
//
// Work is done late, when something waits for it, or by chance earlier; kernels and products by the emulator. What is
// not allowed is refused as CUDA refuses it: calls while a stream is captured, handles that are unknown, sizes, copies
// beyond memory. A function that is not here says its name and fails. What fails late is the status of all later calls.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

// The emulator: streams, kernels as they were compiled, those that can be launched, and work that was recorded.
struct Emulated;
struct Compiled;
struct Kernel;
struct Recorded;

extern "C" {
Emulated* emulated_stream(int device);
int emulated_set_device(int device);
Kernel* emulated_kernel(const char* name);
void emulated_define(Kernel* known, const Compiled* compiled);
Recorded* emulated_begin(Emulated*);
void emulated_end(Emulated*);
int emulated_replay(Emulated*, Recorded*);
void emulated_forget_work(Recorded*);
int emulated_launch(const Kernel*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Emulated*,
                    void**, void**);
int emulated_gemm_strided(Emulated*, int, int, int, int, int, const void*, const void*, int, int, long long,
                          const void*, int, int, long long, const void*, void*, int, int, long long, int, int, int);
// Set by install.py and tests; `broken`: the status of all calls, once work that was enqueued has failed
int fake_version = 12000, fake_broken = 0;
}

namespace {

enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201, INVALID_HANDLE = 400, ILLEGAL_STATE = 401, NOT_FOUND = 500, NOT_READY = 600,
    ILLEGAL_ADDRESS = 700, NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901, IMPLICIT = 906, WRONG_THREAD = 908,
    BLAS_NOT_INITIALIZED = 1, BLAS_INVALID_VALUE = 7, BLAS_EXECUTION_FAILED = 13, BLAS_INTERNAL = 14,
    TO_DEVICE = 1, TO_HOST, ON_DEVICE, DEFAULT,  // copies
    GLOBAL = 0, OF_THREAD, RELAXED,  // captures
};

using Work = std::function<int()>;

// What is done in order: of all streams that are in order with the default one, or of one that is not.
struct Order {
    std::deque<Work> waiting;
    uint64_t enqueued = 0, done = 0;
};

struct Capture {
    int mode;
    std::thread::id thread;
    std::vector<Work> work;
    bool spoilt;
};

struct Stream {
    Emulated* emulated;
    int device;
    unsigned flags;  // 1: not in order with the default stream
    Order* order;
    Capture* capture;
};

struct Event {
    Order* order;
    uint64_t at;
};

struct Block {
    char* raw;
    size_t size;
};

struct Image {
    std::string bytes;
    std::map<std::string, const Compiled*> kernels;
};

struct Loaded {
    const Image* image;
    std::map<std::string, Kernel*> kernels;
};

struct Function {
    bool of_cupy, has_run;
};

struct Failure {
    long after;
    int status;
};

constexpr int DEVICES = 2;
constexpr size_t FENCE = 512;
constexpr char LEFT_ALONE = '\xA5';

std::recursive_mutex one_at_a_time;
std::minstd_rand chance;
std::map<std::string, long> counts;
std::map<std::string, Failure> failures;
thread_local int current = -1;  // no context
Order in_order;
std::set<Stream*> streams;
std::vector<Stream*> default_streams;  // of each device
std::map<char*, Block> memory, pinned;
std::vector<Image*> images;
std::map<Kernel*, Function> functions;

void say(const std::string& what) { fprintf(stderr, "fake CUDA: %s\n", what.c_str()); }

const char* named(const char* function) { return strncmp(function, "fake_", 5) ? function : function + 5; }

// The status with which a call fails at once. Those that are not `safe` spoil a capture.
int begun(const char* function, bool safe) {
    const std::string name = named(function);
    counts[name]++;
    const auto failure = failures.find(name);
    if (failure != failures.end() && failure->second.after-- <= 0) return failure->second.status;
    for (Stream* stream : streams) {
        Capture* capture = stream->capture;
        if (safe || !capture || capture->mode == RELAXED) continue;
        if (capture->mode == OF_THREAD && capture->thread != std::this_thread::get_id()) continue;
        say(name + " while a stream is captured");
        capture->spoilt = true;
        return CAPTURE_UNSUPPORTED;
    }
    if (current < 0 && name.compare(0, 4, "cuda") == 0) current = 0;  // its context is made on first use
    return SUCCESS;
}

#define CALL(safe) \
    std::lock_guard<std::recursive_mutex> lock(one_at_a_time); \
    if (const int status = begun(__func__, safe)) return status
#define SAFE CALL(true)
#define UNSAFE CALL(false)

void check_fences() {
    for (const auto& [begin, block] : memory) {
        const auto left = [](char x) { return x == LEFT_ALONE; };
        char* end = begin + block.size;
        if (std::all_of(block.raw, begin, left) && std::all_of(end, end + FENCE, left)) continue;
        say("something was written beyond " + std::to_string(block.size) + " bytes of device memory");
        fake_broken = ILLEGAL_ADDRESS;
    }
}

void run(Order& order, size_t most) {
    for (; most && !order.waiting.empty(); most--) {
        const Work work = std::move(order.waiting.front());
        order.waiting.pop_front();
        const int status = work();
        if (status && !fake_broken) {
            say("work that was enqueued fails with status " + std::to_string(status));
            fake_broken = status;
        }
        order.done++;
    }
}

int wait(Order& order) {
    run(order, SIZE_MAX);
    check_fences();
    return fake_broken;
}

int wait_for_all() {
    for (Stream* stream : streams) run(*stream->order, SIZE_MAX);
    return wait(in_order);
}

Stream* default_stream(int device) {
    while ((int)default_streams.size() <= device) {
        const int number = default_streams.size();
        default_streams.push_back(new Stream{emulated_stream(number), number, 0, &in_order, nullptr});
    }
    return default_streams[device];
}

Stream* stream_of(void* handle) {
    return (uintptr_t)handle <= 2 ? default_stream(std::max(current, 0)) : static_cast<Stream*>(handle);
}

// Whether the default stream cannot be used, since one that is in order with it is captured.
bool implicitly_captured(Stream* stream) {
    if (streams.count(stream)) return false;
    for (Stream* other : streams) {
        if (!other->capture || other->flags & 1) continue;
        say("the default stream is used while one that is in order with it is captured");
        other->capture->spoilt = true;
        return true;
    }
    return false;
}

int enqueue(Stream* stream, Work work) {
    if (!streams.count(stream) && stream != default_stream(stream->device)) return INVALID_HANDLE;
    if (fake_broken) return fake_broken;
    if (stream->device != std::max(current, 0)) return INVALID_HANDLE;
    if (implicitly_captured(stream)) return IMPLICIT;
    if (stream->capture) {
        if (stream->capture->spoilt) return CAPTURE_INVALIDATED;
        stream->capture->work.push_back(work);
        return SUCCESS;
    }
    stream->order->waiting.push_back(work);
    stream->order->enqueued++;
    if (chance() % 4 == 0) run(*stream->order, chance() % 16);
    return SUCCESS;
}

bool within(const std::map<char*, Block>& blocks, const void* begin, size_t size) {
    auto found = blocks.upper_bound((char*)begin);
    if (found == blocks.begin()) return false;
    --found;
    return (char*)begin + size <= found->first + found->second.size;
}

int copy(void* to, const void* from, size_t size, int kind, Stream* stream) {
    const bool read = kind == TO_HOST || kind == ON_DEVICE || (kind == DEFAULT && within(memory, from, size));
    const bool written = kind == TO_DEVICE || kind == ON_DEVICE || (kind == DEFAULT && within(memory, to, size));
    if ((read && !within(memory, from, size)) || (written && !within(memory, to, size))) {
        say("a copy of what is no device memory");
        return INVALID_VALUE;
    }
    // What is not pinned is read at once, or has been written when the call returns.
    std::vector<char> bytes;
    if (!read && !within(pinned, from, size)) bytes.assign((const char*)from, (const char*)from + size);
    const int status = enqueue(stream, [=]() {
        memcpy(to, bytes.empty() ? from : bytes.data(), size);
        return 0;
    });
    if (status || written || within(pinned, to, size)) return status;
    if (stream->capture) {
        stream->capture->spoilt = true;
        return CAPTURE_UNSUPPORTED;
    }
    return wait(*stream->order);
}

// The emulator checks what it is asked for at once, and does it later.
int enqueue_emulated(Stream* stream, const std::function<int(Emulated*)>& ask) {
    Emulated* const emulated = stream->emulated;
    const int device = stream->device, before = emulated_set_device(device);
    const std::shared_ptr<Recorded> recorded(emulated_begin(emulated), emulated_forget_work);
    const int status = ask(emulated);
    emulated_end(emulated);
    emulated_set_device(before);
    return status ? status : enqueue(stream, [=]() {
        const int current = emulated_set_device(device), status = emulated_replay(emulated, recorded.get());
        emulated_set_device(current);
        return status;
    });
}

struct Blas {
    Stream* stream;
    void* workspace;
};

template <typename T> int dot(Blas* handle, int n, const T* x, int along_x, const T* y, int along_y, T* result) {
    const int status = enqueue(handle->stream, [=]() {
        double total = 0;
        for (int i = 0; i < n; i++) total += (double)x[i * along_x] * y[i * along_y];
        *result = total;
        return SUCCESS;
    });
    if (status) return BLAS_EXECUTION_FAILED;
    return !within(memory, result, sizeof(T)) && wait(*handle->stream->order) ? BLAS_EXECUTION_FAILED : SUCCESS;
}

struct Graph {
    std::vector<Work> work;
};

}  // namespace

extern "C" {

// For install.py and tests

int fake_lacks(const char* name) {
    say(named(name) + std::string(" is not here"));
    return NOT_SUPPORTED;
}

long fake_count(const char* name) { return counts[name]; }

// From its next call but so many on, the function of this name returns a status; 0: no longer.
void fake_fail(const char* name, long after, int status) {
    std::lock_guard<std::recursive_mutex> lock(one_at_a_time);
    if (status) {
        failures[name] = {after, status};
    } else {
        failures.erase(name);
    }
}

void fake_image(const char* bytes, size_t size, const char* const* names, const Compiled* const* kernels, int count) {
    std::lock_guard<std::recursive_mutex> lock(one_at_a_time);
    images.push_back(new Image{std::string(bytes, size), {}});
    for (int i = 0; i < count; i++) images.back()->kernels[names[i]] = kernels[i];
}

// The runtime

int fake_cudaDriverGetVersion(int* version) { return *version = fake_version, SUCCESS; }
int fake_cudaGetLastError() { return SUCCESS; }
int fake_cudaGetDeviceCount(int* count) { return *count = DEVICES, SUCCESS; }
int fake_cudaGetDevice(int* device) { return *device = std::max(current, 0), SUCCESS; }
int fake_cudaSetDevice(int device) {
    if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
    return current = device, SUCCESS;
}
int fake_cudaDeviceGetAttribute(int* value, int attribute, int) {
    static const std::map<int, int> known = {  // of an H100
        {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152}, {10, 32},
        {12, 65536}, {16, 132}, {39, 2048}, {41, 1}, {75, 9}, {76, 0}, {81, 233472}, {97, 232448}, {115, 1},
    };
    const auto found = known.find(attribute);
    return *value = found == known.end() ? 0 : found->second, SUCCESS;
}
int fake_cudaDeviceSynchronize() {
    UNSAFE;
    return wait_for_all();
}

int fake_cudaMalloc(void** begin, size_t size) {
    UNSAFE;
    const size_t room = (size + FENCE - 1) / FENCE * FENCE + 2 * FENCE;
    char* raw = static_cast<char*>(aligned_alloc(FENCE, room));
    memset(raw, LEFT_ALONE, room);
    memset(raw + FENCE, 0xFF, size);  // NaN
    memory[raw + FENCE] = {raw, size};
    *begin = raw + FENCE;
    return fake_broken;
}
int fake_cudaFree(void* begin) {
    UNSAFE;
    const auto found = memory.find(static_cast<char*>(begin));
    if (!begin || found == memory.end()) return begin ? INVALID_VALUE : SUCCESS;
    const int status = wait_for_all();
    free(found->second.raw);
    memory.erase(found);
    return status;
}
int fake_cudaHostAlloc(void** begin, size_t size, unsigned) {
    UNSAFE;
    char* raw = static_cast<char*>(aligned_alloc(4096, (size + 4095) / 4096 * 4096));
    pinned[raw] = {raw, size};
    *begin = raw;
    return SUCCESS;
}
int fake_cudaFreeHost(void* begin) {
    UNSAFE;
    const int status = wait_for_all();
    pinned.erase(static_cast<char*>(begin));
    free(begin);
    return status;
}
int fake_cudaMemGetInfo(size_t* left, size_t* all) { return *left = *all = 80ull << 30, SUCCESS; }
struct Attributes {  // as cudaPointerAttributes begins
    int type, device;
    void *on_device, *on_host;
};
int fake_cudaPointerGetAttributes(Attributes* found, const void* address) {
    void* const at = const_cast<void*>(address);
    const bool is_device = within(memory, at, 1);
    return *found = {is_device ? 2 : 0, 0, is_device ? at : nullptr, is_device ? nullptr : at}, SUCCESS;
}
int fake_cudaMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream) {
    SAFE;
    counts[kind == TO_DEVICE ? "uploads" : kind == TO_HOST ? "downloads" : "copies"]++;
    return copy(to, from, size, kind, stream_of(stream));
}
int fake_cudaMemsetAsync(void* begin, int value, size_t size, void* stream) {
    SAFE;
    if (!within(memory, begin, size)) return INVALID_VALUE;
    return enqueue(stream_of(stream), [=]() { return memset(begin, value, size), 0; });
}

int fake_cudaStreamCreateWithPriority(void** made, unsigned flags, int) {
    SAFE;
    auto* stream = new Stream{emulated_stream(current), current, flags, flags & 1 ? new Order : &in_order, nullptr};
    streams.insert(stream);
    *made = stream;
    return SUCCESS;
}
int fake_cudaStreamDestroy(void* stream) {
    SAFE;
    run(*stream_of(stream)->order, SIZE_MAX);
    return streams.erase(stream_of(stream)) ? SUCCESS : INVALID_HANDLE;
}
int fake_cudaStreamSynchronize(void* stream) {
    UNSAFE;
    return stream_of(stream)->capture ? CAPTURE_UNSUPPORTED : wait(*stream_of(stream)->order);
}
int fake_cudaStreamQuery(void* stream) {
    UNSAFE;
    return stream_of(stream)->order->waiting.empty() ? fake_broken : NOT_READY;
}
int fake_cudaStreamIsCapturing(void* stream, int* is) {
    SAFE;
    if (implicitly_captured(stream_of(stream))) return IMPLICIT;
    return *is = stream_of(stream)->capture != nullptr, SUCCESS;
}
int fake_cudaStreamBeginCapture(void* handle, int mode) {
    SAFE;
    Stream* stream = stream_of(handle);
    if (!streams.count(stream) || stream->capture) return CAPTURE_UNSUPPORTED;
    stream->capture = new Capture{mode, std::this_thread::get_id(), {}, false};
    return SUCCESS;
}
int fake_cudaStreamEndCapture(void* handle, void** graph) {
    SAFE;
    Stream* stream = stream_of(handle);
    if (!stream->capture) return ILLEGAL_STATE;
    if (stream->capture->mode != RELAXED && stream->capture->thread != std::this_thread::get_id()) return WRONG_THREAD;
    const Capture capture = *stream->capture;
    delete stream->capture;
    stream->capture = nullptr;
    *graph = capture.spoilt ? nullptr : new Graph{capture.work};
    return capture.spoilt ? CAPTURE_INVALIDATED : SUCCESS;
}

int fake_cudaGraphInstantiate(void** made, Graph* graph, unsigned long long) {
    UNSAFE;
    return *made = new Graph(*graph), SUCCESS;
}
int fake_cudaGraphDestroy(Graph* graph) { return delete graph, SUCCESS; }
int fake_cudaGraphExecDestroy(Graph* graph) { return delete graph, SUCCESS; }
int fake_cudaGraphLaunch(Graph* graph, void* stream) {
    SAFE;
    return enqueue(stream_of(stream), [work = graph->work]() {
        for (const Work& one : work) {
            if (const int status = one()) return status;
        }
        return 0;
    });
}

int fake_cudaEventCreateWithFlags(Event** event, unsigned) { return *event = new Event{&in_order, 0}, SUCCESS; }
int fake_cudaEventDestroy(Event* event) { return delete event, SUCCESS; }
int fake_cudaEventRecord(Event* event, void* stream) {
    SAFE;
    *event = {stream_of(stream)->order, stream_of(stream)->order->enqueued};
    return SUCCESS;
}
int fake_cudaEventQuery(Event* event) {
    UNSAFE;
    return event->order->done >= event->at ? fake_broken : NOT_READY;
}

// The driver

int cuInit(unsigned) { return SUCCESS; }
int cuDriverGetVersion(int* version) { return *version = fake_version, SUCCESS; }
// NVRTC asks for one: a table's first entry is its size.
int cuGetExportTable(const void** table, const void*) {
    static const uint64_t empty[] = {sizeof(uint64_t)};
    return *table = empty, SUCCESS;
}
int cuGetErrorName(int status, const char** text) {
    static const std::map<int, const char*> known = {
        {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    };
    const auto found = known.find(status);
    return *text = found == known.end() ? "another error of CUDA" : found->second, SUCCESS;
}
int cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }
int cuCtxGetCurrent(void** context) { return *context = current < 0 ? nullptr : default_stream(current), SUCCESS; }
int cuModuleLoadData(Loaded** module, const char* bytes) {
    UNSAFE;
    if (current < 0) return INVALID_CONTEXT;
    for (const Image* image : images) {
        // Its header says how large an image is, as far as that.
        if (memcmp(bytes, image->bytes.data(), 64) || memcmp(bytes, image->bytes.data(), image->bytes.size())) continue;
        *module = new Loaded{image, {}};
        for (const auto& [name, compiled] : image->kernels) {
            Kernel* made = emulated_kernel(name.c_str());
            emulated_define(made, compiled);
            (*module)->kernels[name] = made;
            functions[made] = {name.compare(0, 4, "cupy") == 0, false};
        }
        return SUCCESS;
    }
    say("an image that NVRTC has not made here");
    return INVALID_IMAGE;
}
int cuModuleUnload(Loaded* module) {
    SAFE;
    for (const auto& [name, kernel] : module->kernels) functions.erase(kernel);
    return delete module, SUCCESS;
}
int cuModuleGetFunction(Kernel** found, Loaded* module, const char* name) {
    SAFE;
    const auto known = module->kernels.find(name);
    if (known == module->kernels.end()) return NOT_FOUND;
    return *found = known->second, SUCCESS;
}
int cuLaunchKernel(Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned, void* handle, void** given, void** extra) {
    SAFE;
    const auto known = functions.find(kernel);
    Stream* stream = stream_of(handle);
    if (current < 0) return INVALID_CONTEXT;
    if (known == functions.end()) return INVALID_HANDLE;
    if (streams.count(stream) && stream->capture && !known->second.has_run) {
        say("a kernel is loaded, as it runs for the first time, while a stream is captured");
        stream->capture->spoilt = true;
        return CAPTURE_UNSUPPORTED;
    }
    known->second.has_run = true;
    counts[known->second.of_cupy ? "kernels of CuPy" : "kernels"]++;
    return enqueue_emulated(stream, [=](Emulated* emulated) {
        return emulated_launch(kernel, gx, gy, gz, bx, by, bz, 0, emulated, given, extra);
    });
}

// cuBLAS

int cublasCreate_v2(Blas** made) {
    UNSAFE;
    if (current < 0) return BLAS_NOT_INITIALIZED;
    return *made = new Blas{stream_of(nullptr), nullptr}, SUCCESS;
}
int cublasDestroy_v2(Blas* handle) { return delete handle, SUCCESS; }
int cublasSetStream_v2(Blas* handle, void* stream) {
    SAFE;
    handle->workspace = nullptr;
    return handle->stream = stream_of(stream), SUCCESS;
}
int cublasSetWorkspace_v2(Blas* handle, void* begin, size_t size) {
    SAFE;
    if ((uintptr_t)begin % 256 || !within(memory, begin, size)) return BLAS_INVALID_VALUE;
    return handle->workspace = begin, SUCCESS;
}
int cublasSetMathMode(Blas*, int) {
    SAFE;
    return SUCCESS;
}
int cublasSetPointerMode_v2(Blas*, int) { return SUCCESS; }  // where a result is to be, its address says
const char* cublasGetStatusName(int status) {
    return status == 3 ? "CUBLAS_STATUS_ALLOC_FAILED" : "another status of cuBLAS";
}
int cublasGemmStridedBatchedEx(Blas* handle, int transa, int transb, int m, int n, int k, const void* alpha,
                               const void* a, int atype, int lda, long long stride_a, const void* b, int btype, int ldb,
                               long long stride_b, const void* beta, void* c, int ctype, int ldc, long long stride_c,
                               int count, int compute, int algorithm) {
    SAFE;
    counts["products"]++;
    Stream* stream = handle->stream;
    if (current < 0) return BLAS_EXECUTION_FAILED;
    if (stream->capture && !handle->workspace) {
        say("a product without a workspace while a stream is captured");
        return BLAS_INTERNAL;
    }
    const int found = enqueue_emulated(stream, [=](Emulated* emulated) {
        return emulated_gemm_strided(emulated, transa, transb, m, n, k, alpha, a, atype, lda, stride_a, b, btype, ldb,
                                     stride_b, beta, c, ctype, ldc, stride_c, count, compute, algorithm);
    });
    return found >= INVALID_IMAGE ? BLAS_EXECUTION_FAILED : found;  // of CUDA, or of cuBLAS
}
int cublasGemmEx(Blas* handle, int transa, int transb, int m, int n, int k, const void* alpha, const void* a, int atype,
                 int lda, const void* b, int btype, int ldb, const void* beta, void* c, int ctype, int ldc, int compute,
                 int algorithm) {
    SAFE;
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, atype, lda, 0, b, btype, ldb, 0, beta,
                                      c, ctype, ldc, 0, 1, compute, algorithm);
}
int cublasSdot_v2(Blas* handle, int n, const float* x, int along_x, const float* y, int along_y, float* result) {
    SAFE;
    return dot(handle, n, x, along_x, y, along_y, result);
}
int cublasDdot_v2(Blas* handle, int n, const double* x, int along_x, const double* y, int along_y, double* result) {
    SAFE;
    return dot(handle, n, x, along_x, y, along_y, result);
}
}
