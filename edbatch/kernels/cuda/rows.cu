// The kernel that moves rows, for NVRTC; after common.cu. (Generated kernels would be a launch for each move.)
//
// Here and in lists.cu all parameters have 8 bytes, but for `Moves`. Blocks have at most 256 threads: so
// many may use all registers there are. Rows and columns are numbers of any size; lists of rows are int32. Everything is
// computed in a fixed order: the same launch gives the same bits again.

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
