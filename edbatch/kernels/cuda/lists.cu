// Kernels that add up rows; after rows.cu.

// The values of the threads of a column (all with the same threadIdx.x), in one; all of them get it. `parts` holds a
// number of every thread.
template <typename T, typename Combine> __device__ inline T over_column(T value, T* parts, Combine combine) {
    T* const part = parts + threadIdx.y * blockDim.x + threadIdx.x;
    __syncthreads();  // those of the time before have been read
    *part = value;
    for (unsigned left = blockDim.y; left > 1;) {
        const unsigned half = (left + 1) / 2;
        __syncthreads();
        if (threadIdx.y + half < left) *part = combine(*part, part[half * blockDim.x]);
        left = half;
    }
    __syncthreads();
    return parts[threadIdx.x];
}

// An entry in the rows of lists, which one thread reads, or the threads of a column, one of each threadIdx.y.
template <typename T> struct Alone {
    __device__ unsigned first() const { return 0; }
    __device__ unsigned step() const { return 1; }
    template <typename Combine> __device__ T operator()(T value, Combine) const { return value; }
};

template <typename T> struct Together {
    T* parts;

    __device__ unsigned first() const { return threadIdx.y; }
    __device__ unsigned step() const { return blockDim.y; }
    template <typename Combine> __device__ T operator()(T value, Combine combine) const {
        return over_column(value, parts, combine);
    }
};

// One column of a source, of which lists name rows: rows[k], or k where `rows` is null.
template <typename T, typename Among> struct Column {
    const T* source;
    long long stride;
    const int* rows;
    Among among;

    // combine(combine(value, row begin), row begin + 1), ..., but for the order of threads.
    template <typename Combine>
    __device__ T over(T value, long long begin, long long end, Combine combine) const {
        const auto entry = [this](long long k) { return source[(rows ? rows[k] : k) * stride]; };
        value = reduced<T, long long>(value, begin + among.first(), end, among.step(), combine, entry);
        return among(value, combine);
    }
};

// Target row rows[g] += source row members[k], one after the other, for k in [offsets[g], offsets[g + 1]); a list that
// is null: g, or k. No target row may occur twice.
template <typename T>
__device__ inline void add_grouped(
    long long groups, const int* offsets, const int* members, const int* rows, const T* source,
    long long source_stride, T* target, long long target_stride, long long width
) {
    const Share mine(width, blockIdx.y, gridDim.y);
    for (long long g = mine.row; g < groups; g += mine.rows) {
        T* written = target + (rows ? rows[g] : g) * target_stride;
        for (long long j = mine.column; j < width; j += mine.columns) {
            const Column<T, Alone<T>> column = {source + j, source_stride, members, {}};
            written[j] = column.over(written[j], offsets[g], offsets[g + 1], Add());
        }
    }
}

// target [width] += the sum of n source rows. Columns are spread over x; the threads of a column, one of each
// threadIdx.y, sum every blockDim.y-th row, and then their sums. At most 1024 threads a block.
template <typename T>
__device__ inline void add_all(long long n, const T* source, long long source_stride, T* target, long long width) {
    __shared__ T parts[1024];
    const long long columns = (long long)gridDim.x * blockDim.x;
    for (long long first = (long long)blockIdx.x * blockDim.x; first < width; first += columns) {
        const long long j = first + threadIdx.x;
        const Column<T, Together<T>> column = {source + (j < width ? j : width - 1), source_stride, nullptr, {parts}};
        const T total = column.over(0, 0, n, Add());
        if (threadIdx.y == 0 && j < width) target[j] += total;
    }
}

#define ADD_GROUPED(T) \
    long long groups, const int* offsets, const int* members, const int* rows, const T* source, \
        long long source_stride, T* target, long long target_stride, long long width
FOR_BOTH(
    add_grouped, ADD_GROUPED, groups, offsets, members, rows, source, source_stride, target, target_stride, width
)

#define ADD_ALL(T) long long n, const T* source, long long source_stride, T* target, long long width
#define BLOCK __launch_bounds__(1024)  // or the compiler may use more registers than so large a block can have
extern "C" __global__ void BLOCK add_all_float(ADD_ALL(float)) { add_all(n, source, source_stride, target, width); }
extern "C" __global__ void BLOCK add_all_double(ADD_ALL(double)) { add_all(n, source, source_stride, target, width); }
