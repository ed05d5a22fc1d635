// One step of the recurrence: v <- damping * P^T v + restart and dangling mass at the seeds, with column sums.

// Add entries first ... last - 1 of a row to the totals of COLUMNS columns, LANES apart: STRETCH entries in the precision
// of the block, and these sums in float64.
template <typename T, int COLUMNS>
__device__ __forceinline__ void add_entries(const int* __restrict__ sources, const T* __restrict__ values,
                                            const T* __restrict__ factors, const T* __restrict__ block, int64 first,
                                            int64 last, int width, int column, double* total) {
    for (int64 start = first; start < last; start += STRETCH) {
        const int64 stop = start + STRETCH < last ? start + STRETCH : last;
        T part[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) part[j] = (T)0;
#pragma unroll 4
        for (int64 entry = start; entry < stop; ++entry) {
            const int source = sources[entry];
            const T factor = values ? values[entry] : factors[source];
            const T* from = block + (int64)source * width + column;
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                if (column + j * LANES < width) part[j] = fma(factor, from[j * LANES], part[j]);
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) total[j] += (double)part[j];
    }
}

// Sums of the pieces of long rows: grid (pieces / STRIPES, column tiles), block (lanes, STRIPES).
template <typename T, int COLUMNS>
__device__ __forceinline__ void sum_pieces(const int64* piece_first, const int64* piece_last, int pieces,
                                           const int* sources, const T* values, const T* factors, const T* block,
                                           int width, double* partial) {
    const int64 piece = (int64)blockIdx.x * STRIPES + threadIdx.y;
    const int column = blockIdx.y * (LANES * COLUMNS) + threadIdx.x;
    if (piece >= pieces || column >= width) return;
    double total[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) total[j] = 0.0;
    add_entries<T, COLUMNS>(sources, values, factors, block, piece_first[piece], piece_last[piece], width, column,
                            total);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
        if (column + j * LANES < width) partial[piece * width + column + j * LANES] = total[j];
}

// All rows of a chunk and its column sums: grid (chunks, column tiles), block (lanes, STRIPES). With COLUMNS > 1 there
// are LANES lanes.
// sums: 3 x chunks x width, of the new values, of those on dangling rows, of the changes.
template <typename T, int COLUMNS>
__device__ __forceinline__ void step_rows(
    const int64* __restrict__ offsets, const int* __restrict__ sources, const T* __restrict__ values,
    const T* __restrict__ factors, const unsigned char* __restrict__ dangling, int nodes, const int* long_rows,
    const int* long_pieces, int longs, const double* __restrict__ partial, const int* __restrict__ first_seed,
    const int* seed_row, const int* seed_column, const double* seed_weight, int seeds, const T* __restrict__ current,
    T* __restrict__ following, const double* dangling_mass, double restart, int rule, int width, double* sums,
    double (*shared)[STRIPES][LANES * COLUMNS]) {
    const int64 chunk = blockIdx.x;
    const int lane = threadIdx.x, stripe = threadIdx.y;
    const int column = blockIdx.y * (LANES * COLUMNS) + lane;
    const double damping = 1.0 - restart;
    double share[COLUMNS], everywhere[COLUMNS], mass[COLUMNS], lost[COLUMNS], change[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
        const bool inside = column + j * LANES < width;
        const double waiting = inside ? dangling_mass[column + j * LANES] : 0.0;
        share[j] = rule == RULE_SEEDS ? fma(damping, waiting, restart) : restart;
        everywhere[j] = rule == RULE_UNIFORM ? damping * waiting / nodes : 0.0;
        mass[j] = lost[j] = change[j] = 0.0;
    }
    const int64 end = (chunk + 1) * CHUNK_ROWS < nodes ? (chunk + 1) * CHUNK_ROWS : nodes;
    for (int64 row = chunk * CHUNK_ROWS + stripe; row < end && column < width; row += STRIPES) {
        double total[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) total[j] = 0.0;
        if (offsets[row + 1] - offsets[row] <= PIECE) {
            add_entries<T, COLUMNS>(sources, values, factors, current, offsets[row], offsets[row + 1], width, column,
                                    total);
        } else {
            int low = 0, high = longs - 1;
            while (low < high) {
                const int middle = (low + high) / 2;
                if (long_rows[middle] < row) low = middle + 1; else high = middle;
            }
            for (int64 piece = long_pieces[low]; piece < long_pieces[low + 1]; ++piece)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    if (column + j * LANES < width) total[j] += partial[piece * width + column + j * LANES];
        }
        const bool hangs = dangling[row];
        const int seed = first_seed[row];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            const int place = column + j * LANES;
            if (place >= width) continue;
            const double before = (double)current[row * width + place];
            if (rule == RULE_SELF && hangs) total[j] += before;
            double value = fma(damping, total[j], everywhere[j]);
            if (seed >= 0)
                for (int at = seed; at < seeds && seed_row[at] == row; ++at)
                    if (seed_column[at] == place) value = fma(share[j], seed_weight[at], value);
            const T stored = (T)value;
            following[row * width + place] = stored;
            mass[j] += (double)stored;
            if (hangs) lost[j] += (double)stored;
            change[j] += fabs((double)stored - before);
        }
    }
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
        shared[0][stripe][j * LANES + lane] = mass[j];
        shared[1][stripe][j * LANES + lane] = lost[j];
        shared[2][stripe][j * LANES + lane] = change[j];
    }
    __syncthreads();
    if (stripe >= 3) return;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
        double sum = 0.0;
        for (int other = 0; other < STRIPES; ++other) sum += shared[stripe][other][j * LANES + lane];
        if (column + j * LANES < width) sums[(stripe * (int64)gridDim.x + chunk) * width + column + j * LANES] = sum;
    }
}

#define STEP_KERNELS(T, SUFFIX, COLUMNS)                                                                               \
    extern "C" __global__ void __launch_bounds__(LANES* STRIPES) sum_pieces_##SUFFIX(                                    \
        const int64* piece_first, const int64* piece_last, int pieces, const int* sources, const T* values,            \
        const T* factors, const T* block, int width, double* partial) {                                                \
        sum_pieces<T, COLUMNS>(piece_first, piece_last, pieces, sources, values, factors, block, width, partial);      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(LANES* STRIPES) step_##SUFFIX(                                          \
        const int64* offsets, const int* sources, const T* values, const T* factors, const unsigned char* dangling,    \
        int nodes, const int* long_rows, const int* long_pieces, int longs, const double* partial,                     \
        const int* first_seed, const int* seed_row, const int* seed_column, const double* seed_weight, int seeds,      \
        const T* current, T* following, const double* dangling_mass, double restart, int rule, int width,              \
        double* sums) {                                                                                                \
        __shared__ double shared[3][STRIPES][LANES * COLUMNS];                                                           \
        step_rows<T, COLUMNS>(offsets, sources, values, factors, dangling, nodes, long_rows, long_pieces, longs,       \
                              partial, first_seed, seed_row, seed_column, seed_weight, seeds, current, following,      \
                              dangling_mass, restart, rule, width, sums, shared);                                      \
    }

STEP_KERNELS(float, float32_1, 1)
STEP_KERNELS(float, float32_2, 2)
STEP_KERNELS(double, float64_1, 1)
STEP_KERNELS(double, float64_2, 2)

// Fold rows of column sums, FOLD to one: grid (folded rows, column tiles, kinds), block (lanes, STRIPES).
extern "C" __global__ void __launch_bounds__(LANES* STRIPES)
    fold_sums(const double* sums, int rows, int width, double* folded) {
    __shared__ double shared[STRIPES][LANES];
    const int column = blockIdx.y * LANES + threadIdx.x;
    const double* from = sums + (int64)blockIdx.z * rows * width;
    const int64 start = (int64)blockIdx.x * FOLD;
    const int64 end = start + FOLD < rows ? start + FOLD : rows;
    double sum = 0.0;
    if (column < width)
        for (int64 row = start + threadIdx.y; row < end; row += STRIPES) sum += from[row * width + column];
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= width) return;
    sum = 0.0;
    for (int stripe = 0; stripe < STRIPES; ++stripe) sum += shared[stripe][threadIdx.x];
    folded[((int64)blockIdx.z * gridDim.x + blockIdx.x) * width + column] = sum;
}
