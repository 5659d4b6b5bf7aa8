// What CUDA C++ takes for granted, for a C++ compiler on the CPU: before the kernels.
#include <math.h>
#include <utility>

#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(threads)
#define __shared__ static  // blocks run one after the other

struct Three {
    unsigned x, y, z;
};
extern "C" {
extern Three emulated_places[4];
void emulated_barrier(int line);
void emulated_exchange(void* value, unsigned size, unsigned mask, unsigned distance, int line);
void emulated_aligned(const void* address, unsigned bytes);
}

#define blockIdx emulated_places[0]
#define blockDim emulated_places[1]
#define gridDim emulated_places[2]
#define threadIdx emulated_places[3]

struct int4 {  // as in CUDA, it has to lie at a multiple of 16 bytes
    int x, y, z, w;
    __attribute__((always_inline)) int4& operator=(const int4& from) {
        emulated_aligned(this, 16);
        emulated_aligned(&from, 16);
        x = from.x, y = from.y, z = from.z, w = from.w;
        return *this;
    }
};

#define __builtin_assume(what)

// Every second result one unit in the last place further from 0: CUDA's functions are not those of the C library. What
// has few digits, as 0, 1 and 2^k, stays exact.
template <typename T, typename Bits> inline T one_off(T x, Bits few) {
    Bits bits;
    __builtin_memcpy(&bits, &x, sizeof(T));
    if (x - x != 0 || !(bits & few)) return x;
    bits += bits >> 1 & 1;
    __builtin_memcpy(&x, &bits, sizeof(T));
    return x;
}
inline float off(float x) { return one_off(x, 0xffu); }
inline double off(double x) { return one_off(x, 0xffffull); }
#define exp(x) off(exp(x))
#define expf(x) off(expf(x))
#define expm1(x) off(expm1(x))
#define expm1f(x) off(expm1f(x))
#define log(x) off(log(x))
#define logf(x) off(logf(x))
#define log1p(x) off(log1p(x))
#define log1pf(x) off(log1pf(x))
#define tanh(x) off(tanh(x))
#define tanhf(x) off(tanhf(x))
#define sin(x) off(sin(x))
#define sinf(x) off(sinf(x))
#define cos(x) off(cos(x))
#define cosf(x) off(cosf(x))
#define erf(x) off(erf(x))
#define erff(x) off(erff(x))
#define erfc(x) off(erfc(x))
#define erfcf(x) off(erfcf(x))
#define pow(x, y) off(pow(x, y))
#define powf(x, y) off(powf(x, y))

inline float __fdividef(float a, float b) { return off(a / b); }

inline void __syncthreads(int line = __builtin_LINE()) { emulated_barrier(line); }

template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, unsigned distance, int line = __builtin_LINE()) {
    emulated_exchange(&value, sizeof(T), mask, distance, line);
    return value;
}

struct Kernel {  // as in threads.cpp
    void (*call)(void** parameters);
    const unsigned* sizes;
    unsigned parameters;
    const char *shared, *shared_end;
};

#ifdef __SANITIZE_THREAD__  // the linker's names: all variables without values, which are those of shared memory
extern "C" __attribute__((visibility("hidden"))) const char __bss_start[], _end[];
#define UNCHECKED __attribute__((no_sanitize("thread")))
#else
constexpr const char *__bss_start = nullptr, *_end = nullptr;
#define UNCHECKED
#endif

template <typename F> struct Form;
template <typename... P> struct Form<void(P...)> {
    static_assert(((sizeof(P) == 8 || __is_class(P) || __is_same(P, float)) && ...), "parameters have 8 bytes");
    static_assert((sizeof(P) + ...) <= 4096, "CUDA passes 4,096 bytes, before 12.1");
    static constexpr unsigned sizes[] = {sizeof(P)...};

    template <void (*kernel)(P...), size_t... I> UNCHECKED static void unpack(void** given, std::index_sequence<I...>) {
        kernel(*static_cast<P*>(given[I])...);
    }
    template <void (*kernel)(P...)> UNCHECKED static void call(void** given) {
        unpack<kernel>(given, std::index_sequence_for<P...>());
    }
    template <void (*kernel)(P...)> static constexpr Kernel made = {
        call<kernel>, sizes, sizeof...(P), __bss_start, _end};
};

#define EMULATED(NAME) \
    extern "C" { \
    extern const Kernel emulated_##NAME; \
    const Kernel emulated_##NAME = Form<decltype(NAME)>::made<NAME>; \
    }
#line 1 "kernel.cu"
