/* What a compiler makes of the plain product Y = A X on a structure-only matrix A (compressed rows) and a row-major
 * block X of B float32 columns: one row a loop, rows dealt to the threads 512 at a time, one prefetch an entry.
 *
 * The columns need `ahead` more entries than there are: the prefetch reads past the end.
 *
 *     gcc -O3 -march=native -ffast-math -fopenmp -shared -fPIC roofline.c -o roofline.so
 */
#include <stdint.h>

#define PULL(B)                                                                                                        \
    void pull##B(int64_t rows, const int64_t *offsets, const int32_t *columns, int64_t ahead,                          \
                 const float *restrict x, float *restrict y)                                                           \
    {                                                                                                                  \
        _Pragma("omp parallel for schedule(dynamic, 512)")                                                             \
        for (int64_t row = 0; row < rows; row++) {                                                                     \
            float sum[B];                                                                                              \
            for (int j = 0; j < B; j++) sum[j] = 0;                                                                    \
            for (int64_t entry = offsets[row]; entry < offsets[row + 1]; entry++) {                                    \
                const float *added = x + (int64_t)columns[entry] * B;                                                  \
                __builtin_prefetch(x + (int64_t)columns[entry + ahead] * B);                                           \
                for (int j = 0; j < B; j++) sum[j] += added[j];                                                        \
            }                                                                                                          \
            for (int j = 0; j < B; j++) y[row * B + j] = sum[j];                                                       \
        }                                                                                                              \
    }

PULL(16)
PULL(32)
PULL(64)
