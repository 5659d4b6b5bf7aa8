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

// c = alpha a b + beta c, where what was there is not read if beta is 0.
//
// A sum has up to four parts, which are added at its end: how many, and so how it is rounded, depends on the sizes, and
// on where matrices begin, as in cuBLAS. The same product in a batch of another size is not the same to the last bit.
template <typename T>
int multiply(int m, int n, int k, double alpha, Matrix a, Matrix b, double beta, Matrix c, int count, int bits_lost) {
    const auto lies = [](const Matrix& x) { return (int)((uintptr_t)x.data % 16); };
    unsigned mixed = 0;
    for (const int x : {m, n, k, count, (int)a.turned, (int)b.turned, lies(a), lies(b), lies(c)}) {
        mixed = (mixed ^ x) * 0x9e3779b1u;
    }
    const int parts = 1 + (mixed >> 30);
    for (int number = 0; number < count; number++) {
        const std::vector<T> left = by_columns<T>(a, number, m, k, bits_lost);
        const std::vector<T> right = by_columns<T>(b, number, k, n, bits_lost);
        for (int j = 0; j < n; j++) {
            std::vector<T> column(m);
            for (int first = 0; first < parts; first++) {
                std::vector<T> part(m);
                for (int l = first; l < k; l += parts) {
                    for (int i = 0; i < m; i++) part[i] += left[(size_t)l * m + i] * right[(size_t)j * k + l];
                }
                for (int i = 0; i < m; i++) column[i] += part[i];
            }
            T* const out = (T*)c.data + number * c.stride + j * c.distance;
            for (int i = 0; i < m; i++) out[i] = T(alpha) * column[i] + (beta == 0 ? T(0) : T(beta) * out[i]);
        }
    }
    return 0;
}

}  // namespace
