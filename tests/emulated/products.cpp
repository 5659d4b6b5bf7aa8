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

// [rows, columns] in float64, by columns, of a matrix that is stored by columns, or by rows where it is turned.
template <typename T> std::vector<double> wide(const Matrix& x, int number, int rows, int columns, int bits_lost) {
    const T* from = static_cast<const T*>(x.data) + number * x.stride;
    std::vector<double> all((size_t)rows * columns);
    for (int j = 0; j < columns; j++) {
        for (int i = 0; i < rows; i++) {
            const T value = x.turned ? from[j + i * x.distance] : from[i + j * x.distance];
            all[(size_t)j * rows + i] = bits_lost ? rounded(value, bits_lost) : value;
        }
    }
    return all;
}

// c = alpha a b + beta c, where what was there is not read if beta is 0.
template <typename T>
int multiply(int m, int n, int k, double alpha, Matrix a, Matrix b, double beta, Matrix c, int count, int bits_lost) {
    for (int number = 0; number < count; number++) {
        const std::vector<double> left = wide<T>(a, number, m, k, bits_lost);
        const std::vector<double> right = wide<T>(b, number, k, n, bits_lost);
        for (int j = 0; j < n; j++) {
            std::vector<double> column(m);
            for (int l = 0; l < k; l++) {
                for (int i = 0; i < m; i++) column[i] += left[(size_t)l * m + i] * right[(size_t)j * k + l];
            }
            T* const out = (T*)c.data + number * c.stride + j * c.distance;
            for (int i = 0; i < m; i++) out[i] = alpha * column[i] + (beta == 0 ? 0 : beta * out[i]);
        }
    }
    return 0;
}

}  // namespace
