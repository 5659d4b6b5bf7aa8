// Products of matrices, as those of cuBLAS.
#include <vector>

namespace {

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

// A sum has up to four parts, which are added at its end: how many, and so how it is rounded, depends on the sizes, and
// on where matrices begin, as in cuBLAS. The same product in a batch of another size is not the same to the last bit.
template <typename T>
void multiply(int m, int n, int k, T alpha, Matrix a, Matrix b, T beta, T* c, long long ldc, long long stride, int count,
              int bits_lost) {
    const auto lies = [](const void* x) { return (int)((uintptr_t)x % 16); };
    unsigned mixed = 0;
    for (const int x : {m, n, k, count, (int)a.turned, (int)b.turned, lies(a.data), lies(b.data), lies(c)}) {
        mixed = (mixed ^ x) * 0x9e3779b1u;
    }
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

}  // namespace
