// What all kernels share, for NVRTC: no includes.
#pragma nv_diag_suppress 177  // generated kernels name what they may read, and need not read all of it
#ifndef INFINITY  // NVRTC has no <math.h>
#define INFINITY __int_as_float(0x7f800000)
#endif

// Both are NaN if an argument is.
template <typename T> __device__ inline T maximum(T a, T b) { return a >= b || a != a ? a : b; }
template <typename T> __device__ inline T minimum(T a, T b) { return a <= b || a != a ? a : b; }

// The entry of a thread, where each entry has one: rows are spread over x, the columns of a row over y and z. A kernel
// without loops has few addresses to keep, so that all it reads is on its way at once.
__device__ inline long long own_row() { return (long long)blockIdx.x * blockDim.y + threadIdx.y; }
__device__ inline long long own_column() {
    return ((long long)blockIdx.z * gridDim.y + blockIdx.y) * blockDim.x + threadIdx.x;
}

struct Add {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};

struct Greater {
    template <typename T> __device__ T operator()(T a, T b) const { return maximum(a, b); }
};

struct Less {
    template <typename T> __device__ T operator()(T a, T b) const { return minimum(a, b); }
};

// The values of the threads of a row (all with the same threadIdx.y), in one; all of them get it. They are a multiple of
// 32, and if there are more, a block has no other row: a row may end before others, as none waits for another's threads.
template <typename T, typename Combine> __device__ inline T over_row(T value, Combine combine) {
    __shared__ T parts[32];
    for (int distance = 16; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    if (blockDim.x > 32) {
        __syncthreads();  // those of the time before have been read
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
        __syncthreads();
        value = parts[0];
        for (unsigned warp = 1; warp < blockDim.x / 32; warp++) value = combine(value, parts[warp]);
    }
    return value;
}

// combine(combine(value, entry(first)), entry(first + step)), ... as long as numbers are below `count`, in this order.
// Four entries are on their way at once: a loop that asks after each whether it was the last waits for each.
template <typename T, typename Number, typename Combine, typename Entry>
__device__ inline T reduced(T value, Number first, Number count, Number step, Combine combine, Entry entry) {
    Number k = first;
    #pragma unroll 1
    for (; k + 3 * step < count; k += 4 * step) {
        const T a = entry(k), b = entry(k + step), c = entry(k + 2 * step), d = entry(k + 3 * step);
        value = combine(combine(combine(combine(value, a), b), c), d);
    }
    #pragma unroll 1
    for (; k < count; k += step) value = combine(value, entry(k));
    return value;
}

// A division that rounds to nearest has a branch, which all that is read later would wait for. This one is off by two
// units in the last place at most, and gives 0 where the quotient is no normal number.
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }
__device__ inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

__device__ inline unsigned long long mixed(unsigned long long z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// A number in [0, 1) that depends on a seed and an entry's position.
__device__ inline double uniform(unsigned seed, unsigned entry) {
    const unsigned long long step = 0x9E3779B97F4A7C15ull;
    return (mixed(mixed(seed * step) + (entry + 1) * step) >> 11) * 0x1p-53;
}

// What a generated kernel is given; see `kernels.language.given`.
template <unsigned WORDS> struct Given { long long v[WORDS]; };

// Where a row begins, of a place: base, distance, list. What lies in the memory of the GPU is read with other
// instructions than what may lie anywhere.
template <typename T, typename Index>
__device__ inline T* row_at(const long long* place, const Index* list, long long i) {
    __builtin_assume(__isGlobal(list));
    char* const base = (char*)place[0];
    __builtin_assume(__isGlobal(base));
    return (T*)(base + (list ? list[i] : i) * place[1]);
}

// The row in whose list an element is, counted through all lists.
template <typename Index> __device__ inline long long row_of(const Index* offsets, long long n, long long element) {
    long long low = 0, high = n;  // offsets[low] <= element < offsets[high]
    while (high - low > 1) {
        const long long middle = (low + high) / 2;
        if (offsets[middle] <= element) low = middle;
        else high = middle;
    }
    return low;
}

// A 64-bit division takes forty times as long as one of 32 bits, so larger numbers, of less than 2^52, are divided in
// float64, which is off by one at most.
__device__ inline long long divided(long long a, long long b) {
    if (!((a | b) >> 32)) return (unsigned)a / (unsigned)b;
    const long long found = (long long)((double)a / (double)b);
    return found - (found * b > a) + ((found + 1) * b <= a);
}

// Entries of a group, for this thread: number threadIdx.x, and every blockDim.x-th from there on; four are on their way
// at once (see `reduced`).
template <typename Entry> __device__ inline void each_entry(long long count, Entry entry) {
    const long long step = blockDim.x;
    long long k = threadIdx.x;
    #pragma unroll 1
    for (; k + 3 * step < count; k += 4 * step) entry(k), entry(k + step), entry(k + 2 * step), entry(k + 3 * step);
    #pragma unroll 1
    for (; k < count; k += step) entry(k);
}

// The same, of entries that are stored after four have been computed.
template <typename Entry, typename Store>
__device__ inline void each_entry(long long count, Entry entry, Store store) {
    const long long step = blockDim.x;
    long long k = threadIdx.x;
    #pragma unroll 1
    for (; k + 3 * step < count; k += 4 * step) {
        const auto a = entry(k), b = entry(k + step), c = entry(k + 2 * step), d = entry(k + 3 * step);
        store(k, a), store(k + step, b), store(k + 2 * step, c), store(k + 3 * step, d);
    }
    #pragma unroll 1
    for (; k < count; k += step) store(k, entry(k));
}

template <typename T, unsigned COUNT> struct Stored { T v[COUNT]; };

// The values of the threads of a group (one, or as of `over_row`), in one.
template <typename T, typename Combine> __device__ inline T over_lanes(T value, Combine combine) {
    return blockDim.x > 1 ? over_row(value, combine) : value;
}

// Reductions: each thread takes entries, then all are put together. Sums are in float64 after every 64 entries.
template <typename T> struct Sum {
    T part = 0;
    double total = 0;
    unsigned count = 0;
    __device__ void take(T value) {
        part += value;
        if (++count % 64 == 0) total += part, part = 0;
    }
    __device__ T over_lanes() const { return (T)::over_lanes(total + part, Add()); }
};

template <typename T> struct Largest {
    T value = -INFINITY;
    __device__ void take(T other) { value = maximum(value, other); }
    __device__ T over_lanes() const { return ::over_lanes(value, Greater()); }
};

template <typename T> struct Smallest {
    T value = INFINITY;
    __device__ void take(T other) { value = minimum(value, other); }
    __device__ T over_lanes() const { return ::over_lanes(value, Less()); }
};

struct First {  // the number of the first entry of which something is true, or -1
    long long at = 0x7fffffffffffffff;
    __device__ void take(bool is, long long k) { if (is && k < at) at = k; }
    __device__ long long over_lanes() const {
        const long long found = ::over_lanes(at, Less());
        return found == 0x7fffffffffffffff ? -1 : found;
    }
};

// The numbers of entries in a heap, where the result will be: each comes after the two below it, so that the last in the
// order (larger ones first, NaN before all, then by number) is at the top.
template <typename T> struct Heap {
    const T* entries;
    long long entry_step;
    T* numbers;
    long long number_step;

    __device__ T entry(long long number) const { return entries[number * entry_step]; }
    __device__ long long number(long long place) const { return (long long)numbers[place * number_step]; }
    __device__ void put(long long place, long long number) const { numbers[place * number_step] = (T)number; }
    __device__ static bool larger(T a, T b) { return !(a <= b) && b == b; }
    __device__ bool before(long long a, long long b) const {
        return a < b ? !larger(entry(b), entry(a)) : larger(entry(a), entry(b));
    }

    // Put a number at a place, or below it, where what comes later goes up.
    __device__ void sink(long long number_, long long place, long long size) const {
        long long below = 2 * place + 1;
        for (; below < size; below = 2 * place + 1) {
            if (below + 1 < size && before(number(below), number(below + 1))) below++;
            if (before(number(below), number_)) break;
            put(place, number(below));
            place = below;
        }
        put(place, number_);
    }
};

// The numbers of the largest entries of a group, the largest first.
template <typename T>
__device__ void sort_largest(
    const T* entries, long long entry_step, T* numbers, long long number_step, long long size, long long count
) {
    const Heap<T> heap = {entries, entry_step, numbers, number_step};
    for (long long at = 0; at < count; at++) heap.put(at, at);
    for (long long at = count / 2 - 1; at >= 0; at--) heap.sink(heap.number(at), at, count);
    for (long long at = count; at < size; at++) {
        if (heap.larger(heap.entry(at), heap.entry(heap.number(0)))) heap.sink(at, 0, count);
    }
    for (long long end = count - 1; end > 0; end--) {
        const long long last = heap.number(end);
        heap.put(end, heap.number(0));
        heap.sink(last, 0, end);
    }
}
