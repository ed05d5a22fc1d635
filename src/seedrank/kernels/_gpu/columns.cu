// Seeds into a block, columns out of it, and sums of blocks.

// Remember (or, with `forget`, no longer) where the seeds of a row begin in the list, which is sorted by row.
extern "C" __global__ void mark_seeds(const int* seed_row, int seeds, int forget, int* first_seed) {
    const int seed = blockIdx.x * blockDim.x + threadIdx.x;
    if (seed >= seeds) return;
    if (seed == 0 || seed_row[seed - 1] != seed_row[seed]) first_seed[seed_row[seed]] = forget ? -1 : seed;
}

// Write the seeds into a block of zeros: each (row, column) occurs once.
template <typename T>
__device__ __forceinline__ void place_seeds(const int* seed_row, const int* seed_column, const double* seed_weight,
                                            int seeds, int width, T* block) {
    const int seed = blockIdx.x * blockDim.x + threadIdx.x;
    if (seed < seeds) block[(int64)seed_row[seed] * width + seed_column[seed]] = (T)seed_weight[seed];
}

// Copy some columns of a block of `width` into a block of `kept` columns.
template <typename T>
__device__ __forceinline__ void keep_columns(const T* __restrict__ block, int64 nodes, int width, const int* positions,
                                             int kept, T* __restrict__ narrowed) {
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x; at < nodes * kept; at += step)
        narrowed[at] = block[at / kept * width + positions[at % kept]];
}

// sum <- (sum + weight * block) * factor, weights and factors by column.
template <typename T>
__device__ __forceinline__ void accumulate(const T* __restrict__ block, int64 nodes, int width, const double* weights,
                                           const double* factors, T* __restrict__ sum) {
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x; at < nodes * width; at += step)
        sum[at] = fma((T)weights[at % width], block[at], sum[at]) * (T)factors[at % width];
}

#define COLUMN_KERNELS(T, SUFFIX)                                                                                      \
    extern "C" __global__ void place_seeds_##SUFFIX(const int* seed_row, const int* seed_column,                       \
                                                    const double* seed_weight, int seeds, int width, T* block) {       \
        place_seeds<T>(seed_row, seed_column, seed_weight, seeds, width, block);                                       \
    }                                                                                                                  \
    extern "C" __global__ void keep_columns_##SUFFIX(const T* block, int64 nodes, int width, const int* positions,     \
                                                     int kept, T* narrowed) {                                          \
        keep_columns<T>(block, nodes, width, positions, kept, narrowed);                                               \
    }                                                                                                                  \
    extern "C" __global__ void accumulate_##SUFFIX(const T* block, int64 nodes, int width, const double* weights,      \
                                                   const double* factors, T* sum) {                                    \
        accumulate<T>(block, nodes, width, weights, factors, sum);                                                     \
    }

COLUMN_KERNELS(float, float32)
COLUMN_KERNELS(double, float64)
