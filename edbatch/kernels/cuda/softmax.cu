// Kernels that compute the entries of a row from all of them, and one of each by itself; after rows.cu.

template <typename T> __device__ inline T over_row_maximum(const T* x, long long width) {
    const auto entry = [x](long long j) { return x[j]; };
    const T top = x[0];  // as good as any for those without an entry
    return over_row(reduced<T, long long>(top, threadIdx.x, width, blockDim.x, Greater(), entry), Greater());
}

template <typename T> __device__ inline T over_row_exponentials(const T* x, long long width, T top) {
    const auto entry = [x, top](long long j) { return exponential(x[j] - top); };
    return over_row(reduced<T, long long>(0, threadIdx.x, width, blockDim.x, Add(), entry), Add());
}

// Entry j of `written` = value(j, entry j of `read`), for the columns of this thread; the two may be the same.
template <typename T, typename Value>
__device__ inline void over_columns(const T* read, T* written, long long width, Value value) {
    const long long step = blockDim.x;
    long long j = threadIdx.x;
    #pragma unroll 1
    for (; j + 3 * step < width; j += 4 * step) {  // see `reduced`
        const T a = read[j], b = read[j + step], c = read[j + 2 * step], d = read[j + 3 * step];
        written[j] = value(j, a);
        written[j + step] = value(j + step, b);
        written[j + 2 * step] = value(j + 2 * step, c);
        written[j + 3 * step] = value(j + 3 * step, d);
    }
    #pragma unroll 1
    for (; j < width; j += step) written[j] = value(j, read[j]);
}

// out row i = softmax of x row i [width], or its logarithm; may be in place.
template <typename T>
__device__ inline void softmax(
    long long n, const T* x, long long x_stride, T* out, long long out_stride, long long width, long long logarithm
) {
    const Turns turns;
    for (long long turn = turns.first; turn < n; turn += turns.step) {
        const long long i = turns.row(turn, n);
        const T* read = x + i * x_stride;
        T* written = out + i * out_stride;
        const T top = over_row_maximum(read, width);
        const T total = over_row_exponentials(read, width, top);
        if (!turns.mine(turn, n)) continue;
        const T shift = logarithm_of(total), scale = 1 / total;
        over_columns(read, written, width, [=](long long, T x) {
            return logarithm ? x - top - shift : exponential(x - top) * scale;
        });
    }
}

// out[i * out_stride] = log sum exp(x row i) - its entry labels[i].
template <typename T>
__device__ inline void cross_entropy(
    long long n, const T* x, long long x_stride, const int* labels, T* out, long long out_stride, long long width
) {
    const Turns turns;
    for (long long turn = turns.first; turn < n; turn += turns.step) {
        const long long i = turns.row(turn, n);
        const T* read = x + i * x_stride;
        const T top = over_row_maximum(read, width);
        const T total = over_row_exponentials(read, width, top);
        if (turns.mine(turn, n) && threadIdx.x == 0) {
            out[i * out_stride] = logarithm_of(total) - (read[labels[i]] - top);
        }
    }
}

// out row i = g[i * g_stride] * (softmax of x row i - 1 at labels[i]); may be in place of x.
template <typename T>
__device__ inline void cross_entropy_gradient(
    long long n, const T* x, long long x_stride, const int* labels, const T* g, long long g_stride, T* out,
    long long out_stride, long long width
) {
    const Turns turns;
    for (long long turn = turns.first; turn < n; turn += turns.step) {
        const long long i = turns.row(turn, n);
        const T* read = x + i * x_stride;
        T* written = out + i * out_stride;
        const T top = over_row_maximum(read, width);
        const T total = over_row_exponentials(read, width, top);
        if (!turns.mine(turn, n)) continue;
        const T scale = 1 / total, slope = g[i * g_stride];
        const long long label = labels[i];
        over_columns(read, written, width, [=](long long j, T x) {
            return slope * (exponential(x - top) * scale - (j == label));
        });
    }
}

__device__ inline float erf_of(float x) { return erff(x); }
__device__ inline double erf_of(double x) { return erf(x); }

__device__ inline float erfc_of(float x) { return erfcf(x); }
__device__ inline double erfc_of(double x) { return erfc(x); }

// out[i] = erf(x[i]), or 1 - erf(x[i]) without cancellation, for i < n.
template <typename T> __device__ inline void error_function(long long n, const T* x, T* out, long long complement) {
    const long long threads = (long long)gridDim.x * blockDim.x;
    #pragma unroll 1  // unrolling would count the turns first: a 64-bit division
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        out[i] = complement ? erfc_of(x[i]) : erf_of(x[i]);
    }
}

#define SOFTMAX(T) \
    long long n, const T* x, long long x_stride, T* out, long long out_stride, long long width, long long logarithm
FOR_BOTH(softmax, SOFTMAX, n, x, x_stride, out, out_stride, width, logarithm)

#define CROSS_ENTROPY(T) \
    long long n, const T* x, long long x_stride, const int* labels, T* out, long long out_stride, long long width
FOR_BOTH(cross_entropy, CROSS_ENTROPY, n, x, x_stride, labels, out, out_stride, width)

#define CROSS_ENTROPY_GRADIENT(T) \
    long long n, const T* x, long long x_stride, const int* labels, const T* g, long long g_stride, T* out, \
        long long out_stride, long long width
FOR_BOTH(cross_entropy_gradient, CROSS_ENTROPY_GRADIENT, n, x, x_stride, labels, g, g_stride, out, out_stride, width)

#define ERROR_FUNCTION(T) long long n, const T* x, T* out, long long complement
FOR_BOTH(error_function, ERROR_FUNCTION, n, x, out, complement)
