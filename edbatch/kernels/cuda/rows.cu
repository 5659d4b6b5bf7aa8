// Kernels on rows of entries, for NVRTC; after common.cu. All parameters have 8 bytes, but for `Moves`. Blocks have at
// most 256 threads: with those, a thread may use all registers there are.
//
// Rows and columns are numbers of any size; lists of rows are int32. Everything is computed in a fixed order: the
// same launch gives the same bits again.

// The rows and columns of one thread: (row, row + rows, ...) and (column, column + columns, ...). A row is given to
// the least power of two of neighbouring threads that covers it, so that narrow rows leave no thread idle, and
// neighbours read neighbours. Rows are spread over blockIdx.x, columns over `part` of `parts`; blocks of any size.
struct Share {
    long long row, rows, column, columns;

    __device__ Share(long long width, unsigned part, unsigned parts) {
        const unsigned threads = blockDim.x * blockDim.y;
        const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
        unsigned shift = 0;
        while ((1ll << shift) < width && (2u << shift) <= threads) shift++;
        const unsigned together = threads >> shift;  // rows
        const unsigned place = thread >> shift;
        row = place < together ? (long long)blockIdx.x * together + place : 0x7fffffffffffffffll;  // none: left over
        rows = (long long)gridDim.x * together;
        column = ((long long)part << shift) + (thread & ((1u << shift) - 1));
        columns = (long long)parts << shift;
    }
};

// Distances and widths are in words of 4 bytes. `rows` and `positions` are null for all rows in order.
struct Move {
    const int* source;
    long long source_stride;
    const int* rows;
    const int* positions;
    long long n;
    int* target;
    long long target_stride;
    long long width;
};

struct Moves {
    Move move[16];
};

template <typename Unit> __device__ inline void move_rows(const Move& move) {
    const int words = sizeof(Unit) / sizeof(int);
    const Unit* __restrict__ source = (const Unit*)move.source;
    Unit* __restrict__ target = (Unit*)move.target;
    const int* __restrict__ from = move.rows;
    const int* __restrict__ to = move.positions;
    const long long source_stride = move.source_stride / words, target_stride = move.target_stride / words;
    long long n = move.n, width = move.width / words;
    if (!from && !to && source_stride == width && target_stride == width) {  // one block of memory
        width *= n;
        const long long threads = (long long)gridDim.x * gridDim.z * blockDim.x * blockDim.y;
        const long long block = (long long)blockIdx.z * gridDim.x + blockIdx.x;
        #pragma unroll 1  // unrolling would count the turns first: a 64-bit division
        for (long long j = (block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; j < width; j += threads) {
            target[j] = source[j];
        }
        return;
    }
    const Share mine(width, blockIdx.z, gridDim.z);
    for (long long i = mine.row; i < n; i += mine.rows) {
        const Unit* __restrict__ read = source + (from ? from[i] : i) * source_stride;
        Unit* __restrict__ written = target + (to ? to[i] : i) * target_stride;
        #pragma unroll 1  // unrolling would count the turns first: a 64-bit division a row
        for (long long j = mine.column; j < width; j += mine.columns) written[j] = read[j];
    }
}

// Target row positions[i] = source row rows[i], for i < n, in every move: blockIdx.y is the move, rows are spread
// over blockIdx.x, columns over blockIdx.z. No move may write what another reads or writes.
extern "C" __global__ void gather(const __grid_constant__ Moves moves) {
    const Move& move = moves.move[blockIdx.y];
    const unsigned long long all = (unsigned long long)move.source | (unsigned long long)move.target |
        4ull * (move.source_stride | move.target_stride | move.width);
    if (all % 16 == 0) {
        move_rows<int4>(move);
    } else {
        move_rows<int>(move);
    }
}

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

    // log sum exp; -inf contributes nothing.
    __device__ T log_sum_exp(long long begin, long long end) const {
        const T top = over(-INFINITY, begin, end, Greater());
        const T shift = top - top == 0 ? top : 0;
        const auto entry = [this, shift](long long k) {
            return exponential(source[(rows ? rows[k] : k) * stride] - shift);
        };
        const T total = reduced<T, long long>(0, begin + among.first(), end, among.step(), Add(), entry);
        return logarithm_of(among(total, Add())) + shift;
    }

    // The sum (kind 0), maximum (1), minimum (2), mean (3) or log sum exp (4). No rows have the sum 0, the maximum
    // -inf and the minimum inf.
    __device__ T reduction(long long begin, long long end, long long kind) const {
        return kind == 0 ? over(0, begin, end, Add())
            : kind == 1  ? over(-INFINITY, begin, end, Greater())
            : kind == 2  ? over(INFINITY, begin, end, Less())
            : kind == 3  ? over(0, begin, end, Add()) / (end - begin)
                         : log_sum_exp(begin, end);
    }
};

// out row i = a reduction (see `Column`) of source rows rows[k], k in [offsets[i], offsets[i + 1]); `rows` null: of rows
// k. In blocks of more than one y, whose threads read a list together, lists are spread over x; otherwise see `Share`.
template <typename T>
__device__ inline void segment_reduce(
    long long n, const int* offsets, const int* rows, const T* source, long long source_stride, T* out,
    long long out_stride, long long width, long long kind
) {
    if (blockDim.y > 1) {
        __shared__ T parts[256];
        const long long columns = (long long)gridDim.y * blockDim.x;
        for (long long i = blockIdx.x; i < n; i += gridDim.x) {
            const long long begin = offsets[i], end = offsets[i + 1];
            for (long long first = (long long)blockIdx.y * blockDim.x; first < width; first += columns) {
                const long long j = first + threadIdx.x;
                const T* const read = source + (j < width ? j : width - 1);  // no thread may be missing
                const T value = Column<T, Together<T>>{read, source_stride, rows, {parts}}.reduction(begin, end, kind);
                if (threadIdx.y == 0 && j < width) out[i * out_stride + j] = value;
            }
        }
        return;
    }
    const Share mine(width, blockIdx.y, gridDim.y);
    for (long long i = mine.row; i < n; i += mine.rows) {
        const long long begin = offsets[i], end = offsets[i + 1];
        for (long long j = mine.column; j < width; j += mine.columns) {
            const Column<T, Alone<T>> column = {source + j, source_stride, rows, {}};
            out[i * out_stride + j] = column.reduction(begin, end, kind);
        }
    }
}

// Target row rows[i] += source row positions[i], for i < n; a list that is null: i. No target row may occur twice.
template <typename T>
__device__ inline void add_rows(
    long long n, const T* source, long long source_stride, const int* positions, const int* rows, T* target,
    long long target_stride, long long width
) {
    const Share mine(width, blockIdx.y, gridDim.y);
    for (long long i = mine.row; i < n; i += mine.rows) {
        const T* read = source + (positions ? positions[i] : i) * source_stride;
        T* written = target + (rows ? rows[i] : i) * target_stride;
        #pragma unroll 1  // unrolling would count the turns first: a 64-bit division a row
        for (long long j = mine.column; j < width; j += mine.columns) written[j] += read[j];
    }
}

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

__device__ inline float erf_of(float x) { return erff(x); }
__device__ inline double erf_of(double x) { return erf(x); }

// out[i] = erf(x[i]), for i < n.
template <typename T> __device__ inline void error_function(long long n, const T* x, T* out) {
    const long long threads = (long long)gridDim.x * blockDim.x;
    #pragma unroll 1  // unrolling would count the turns first: a 64-bit division
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) out[i] = erf_of(x[i]);
}

#define FOR_BOTH(NAME, PARAMETERS_OF, ...) \
    extern "C" __global__ void NAME##_float(PARAMETERS_OF(float)) { NAME<float>(__VA_ARGS__); } \
    extern "C" __global__ void NAME##_double(PARAMETERS_OF(double)) { NAME<double>(__VA_ARGS__); }

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

#define SEGMENT_REDUCE(T) \
    long long n, const int* offsets, const int* rows, const T* source, long long source_stride, T* out, \
        long long out_stride, long long width, long long kind
FOR_BOTH(segment_reduce, SEGMENT_REDUCE, n, offsets, rows, source, source_stride, out, out_stride, width, kind)

#define ADD_ROWS(T) \
    long long n, const T* source, long long source_stride, const int* positions, const int* rows, T* target, \
        long long target_stride, long long width
FOR_BOTH(add_rows, ADD_ROWS, n, source, source_stride, positions, rows, target, target_stride, width)

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

#define ERROR_FUNCTION(T) long long n, const T* x, T* out
FOR_BOTH(error_function, ERROR_FUNCTION, n, x, out)
