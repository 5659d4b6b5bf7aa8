// Kernels that add all rows to one, and squares; after rows.cu. (As a kernel of a list it would read with a thread a row, and not in
// the order of memory; and the list would have to be in the memory of the GPU.)

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

// target [width] += the sum of n source rows. Columns are spread over x; the threads of a column, one of each
// threadIdx.y, sum every blockDim.y-th row, and then their sums. At most 1024 threads a block.
template <typename T>
__device__ inline void add_all(long long n, const T* source, long long source_stride, T* target, long long width) {
    __shared__ T parts[1024];
    const long long columns = (long long)gridDim.x * blockDim.x;
    for (long long first = (long long)blockIdx.x * blockDim.x; first < width; first += columns) {
        const long long j = first + threadIdx.x;
        const T* column = source + (j < width ? j : width - 1);
        const auto entry = [=](long long k) { return column[k * source_stride]; };
        const T mine = reduced<T, long long>(0, threadIdx.y, n, blockDim.y, Add(), entry);
        const T total = over_column(mine, parts, Add());
        if (threadIdx.y == 0 && j < width) target[j] += total;
    }
}

#define ADD_ALL(T) long long n, const T* source, long long source_stride, T* target, long long width
#define BLOCK __launch_bounds__(1024)  // or the compiler may use more registers than so large a block can have
extern "C" __global__ void BLOCK add_all_float(ADD_ALL(float)) { add_all(n, source, source_stride, target, width); }
extern "C" __global__ void BLOCK add_all_double(ADD_ALL(double)) { add_all(n, source, source_stride, target, width); }

struct Numbers {
    const void* entries;
    long long n, bytes;  // of each
};

struct SomeNumbers {
    Numbers of[16];
};

template <typename T> __device__ inline double sum_of_squares(const T* entries, long long n) {
    const auto square = [=](long long k) { return (double)entries[k] * (double)entries[k]; };
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long long)gridDim.x * blockDim.x;
    return reduced<double, long long>(0, first, n, threads, Add(), square);
}

// The sum of squares of some arrays, blockIdx.y, in as many parts as there are blocks along x.
extern "C" __global__ void squares(const __grid_constant__ SomeNumbers some, double* parts) {
    const Numbers& mine = some.of[blockIdx.y];
    const double sum = mine.bytes == 4 ? sum_of_squares((const float*)mine.entries, mine.n)
                                       : sum_of_squares((const double*)mine.entries, mine.n);
    const double part = over_row(sum, Add());
    if (threadIdx.x == 0) parts[(long long)blockIdx.y * gridDim.x + blockIdx.x] = part;
}
