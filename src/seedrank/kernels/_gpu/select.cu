// Exact top-k of some columns: a radix select on (score descending, tie rank ascending), 8 bits a pass.
//
// Scores are >= 0, so their bits are ordered as they are. Digits of the score come first, from the highest; where more
// nodes share the k-th score than are wanted, digits of the tie rank follow. What is selected is therefore one set,
// whatever the order in which threads run; the host sorts it. Bits are compared, never floats: CuPy compiles with
// -ftz=true, by which every float32 below 2^-126 would be equal to 0.

__device__ __forceinline__ uint64 key_of(float score) { return __float_as_uint(score); }
__device__ __forceinline__ uint64 key_of(double score) { return (uint64)__double_as_longlong(score); }

// Of infinity: above them are the bits of NaN and of everything negative.
__device__ __forceinline__ uint64 highest_key(float) { return 0x7f800000u; }
__device__ __forceinline__ uint64 highest_key(double) { return 0x7ff0000000000000ull; }

// Larger is better, as with scores.
__device__ __forceinline__ uint64 rank_key(int rank) { return 0xffffffffu - (unsigned)rank; }

// Which nodes each column may select, a bit for each of 32 columns a word: a thread a node.
extern "C" __global__ void allow(int nodes, int count, int words, const int* bits, const unsigned char* eligible,
                                 const uint64* reachable, unsigned* allowed) {
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 row = (int64)blockIdx.x * blockDim.x + threadIdx.x; row < nodes; row += step)
        for (int word = 0; word < words; ++word) {
            unsigned may = 0;
            if (!eligible || eligible[row])
                for (int place = word * LANES; place < count && place < (word + 1) * LANES; ++place)
                    if (!reachable || reachable[row] >> bits[place] & 1) may |= 1u << place % LANES;
            allowed[row * words + word] = may;
        }
}

// Take single nodes away from single columns.
extern "C" __global__ void exclude(const int* excluded, const int* place, int exclusions, int words,
                                   unsigned* allowed) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < exclusions)
        atomicAnd(&allowed[(int64)excluded[at] * words + place[at] / LANES], ~(1u << place[at] % LANES));
}

// Count the digits of the nodes that agree with what is known of the k-th key; scores count from `least` on, which is
// above 0. Grid (any, words), block (lanes, any), a lane a column; fewer than LANES where there are no more columns. The
// counters of a digit lie side by side, so no two lanes meet at a bank.
template <typename T>
__device__ __forceinline__ void count_digits(const T* __restrict__ block, int nodes, int width, const int* positions,
                                             int count, const unsigned* __restrict__ allowed, int words, T least,
                                             const int* __restrict__ order, const uint64* known_score,
                                             const uint64* known_rank, const int* wanted, int by_rank, int shift,
                                             int* counted, int (*shared)[LANES]) {
    const int lane = threadIdx.x, place = blockIdx.y * LANES + lane;
    for (int digit = threadIdx.y; digit < BINS; digit += blockDim.y) shared[digit][lane] = 0;
    __syncthreads();
    if (place < count && wanted[place] > 0) {
        const int position = positions[place];
        const uint64 score_so_far = known_score[place], rank_so_far = known_rank[place];
        const int64 step = (int64)gridDim.x * blockDim.y;
        for (int64 row = (int64)blockIdx.x * blockDim.y + threadIdx.y; row < nodes; row += step) {
            if (!(allowed[row * words + blockIdx.y] >> lane & 1)) continue;
            const uint64 score = key_of(block[row * width + position]);
            if (score < key_of(least) || score > highest_key(least)) continue;
            const uint64 key = by_rank ? rank_key(order[row]) : score;
            const uint64 so_far = by_rank ? rank_so_far : score_so_far;
            if (by_rank && score != score_so_far) continue;
            if (key >> shift >> 8 == so_far >> shift >> 8) atomicAdd(&shared[key >> shift & (BINS - 1)][lane], 1);
        }
    }
    __syncthreads();
    if (place >= count) return;
    for (int digit = threadIdx.y; digit < BINS; digit += blockDim.y)
        if (shared[digit][lane]) atomicAdd(&counted[(int64)place * BINS + digit], shared[digit][lane]);
}

// Find the digit of the k-th key from the counts, and clear them: one warp a column, grid (columns), block (LANES).
// `wanted` becomes how many of the nodes with this digit are still wanted, 0 where all candidates are; `tied`, how many
// there are.
extern "C" __global__ void choose_digit(int* counted, int by_rank, int shift, uint64* known_score, uint64* known_rank,
                                        int* wanted, int* tied) {
    const int column = blockIdx.x, lane = threadIdx.x, own = BINS / LANES;
    const int needed = wanted[column];
    // Lane 0 has the highest digits.
    int* counts = counted + (int64)column * BINS + (LANES - 1 - lane) * own;
    int sum = 0;
    for (int digit = 0; digit < own; ++digit) sum += counts[digit];
    int upto = sum;
    for (int distance = 1; distance < LANES; distance *= 2) {
        const int below = __shfl_up_sync(EVERY_LANE, upto, distance);
        if (lane >= distance) upto += below;
    }
    const unsigned reached = __ballot_sync(EVERY_LANE, upto >= needed);
    if (needed > 0 && !reached && lane == 0) {
        wanted[column] = 0;
        tied[column] = 0;
    }
    if (needed > 0 && reached && lane == __ffs(reached) - 1) {
        int before = upto - sum, digit = own - 1;
        while (before + counts[digit] < needed) before += counts[digit--];
        const uint64 found = (uint64)((LANES - 1 - lane) * own + digit) << shift;
        if (by_rank) known_rank[column] |= found; else known_score[column] |= found;
        wanted[column] = needed - before;
        tied[column] = counts[digit];
    }
    for (int digit = 0; digit < own; ++digit) counts[digit] = 0;
}

// Write down the nodes whose keys are not below the k-th, in any order: grid (any, words), block (lanes, any).
template <typename T>
__device__ __forceinline__ void gather(const T* __restrict__ block, int nodes, int width, const int* positions,
                                       int count, const unsigned* __restrict__ allowed, int words, T least,
                                       const int* __restrict__ order, const uint64* known_score,
                                       const uint64* known_rank, int k, int* found, int* node, T* score_of) {
    const int lane = threadIdx.x, place = blockIdx.y * LANES + lane;
    if (place >= count) return;
    const int position = positions[place];
    const uint64 lowest = known_score[place], lowest_rank = known_rank[place];
    const int64 step = (int64)gridDim.x * blockDim.y;
    for (int64 row = (int64)blockIdx.x * blockDim.y + threadIdx.y; row < nodes; row += step) {
        if (!(allowed[row * words + blockIdx.y] >> lane & 1)) continue;
        const T score = block[row * width + position];
        const uint64 key = key_of(score);
        if (key < key_of(least) || key > highest_key(least)) continue;
        if (key < lowest || (key == lowest && rank_key(order[row]) < lowest_rank)) continue;
        const int at = atomicAdd(&found[place], 1);
        if (at >= k) continue;
        node[(int64)place * k + at] = (int)row;
        score_of[(int64)place * k + at] = score;
    }
}

#define SELECT_KERNELS(T, SUFFIX)                                                                                      \
    extern "C" __global__ void __launch_bounds__(SELECT_THREADS) count_digits_##SUFFIX(                                  \
        const T* block, int nodes, int width, const int* positions, int count, const unsigned* allowed, int words,     \
        T least, const int* order, const uint64* known_score, const uint64* known_rank, const int* wanted,             \
        int by_rank, int shift, int* counted) {                                                                        \
        __shared__ int shared[BINS][LANES];                                                                            \
        count_digits<T>(block, nodes, width, positions, count, allowed, words, least, order, known_score,              \
                        known_rank, wanted, by_rank, shift, counted, shared);                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(SELECT_THREADS) gather_##SUFFIX(                                        \
        const T* block, int nodes, int width, const int* positions, int count, const unsigned* allowed, int words,     \
        T least, const int* order, const uint64* known_score, const uint64* known_rank, int k, int* found,             \
        int* node, T* score_of) {                                                                                      \
        gather<T>(block, nodes, width, positions, count, allowed, words, least, order, known_score, known_rank, k,     \
                  found, node, score_of);                                                                              \
    }

SELECT_KERNELS(float, float32)
SELECT_KERNELS(double, float64)
