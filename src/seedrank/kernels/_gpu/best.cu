// The k largest keys of each query: a radix select, 8 bits a pass, by one block of threads a query.

// Keys are distinct, except for 0, which is none. Writes the places of the k largest in any order: grid (queries), block
// (RECALL_THREADS). `chosen` has k places a query.
extern "C" __global__ void __launch_bounds__(RECALL_THREADS) choose_best(
    const uint64* __restrict__ keys, const int64* firsts, const int64* lasts, int k, int* found, int64* chosen) {
    __shared__ int counted[BINS];
    __shared__ uint64 lowest;
    __shared__ int wanted, taken, enough;
    const int query = blockIdx.x;
    const int64 first = firsts[query], last = lasts[query];
    if (threadIdx.x == 0) {
        lowest = 0;
        wanted = k;
        taken = 0;
        enough = 1;
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int digit = threadIdx.x; digit < BINS; digit += blockDim.x) counted[digit] = 0;
        __syncthreads();
        for (int64 at = first + threadIdx.x; enough && at < last; at += blockDim.x) {
            const uint64 key = keys[at];
            if (key && key >> shift >> 8 == lowest >> shift >> 8) atomicAdd(&counted[key >> shift & (BINS - 1)], 1);
        }
        __syncthreads();
        if (threadIdx.x == 0 && enough) {
            int digit = BINS - 1;
            while (digit >= 0 && counted[digit] < wanted) wanted -= counted[digit--];
            // Only the first pass can run out of keys: then all of them are among the k largest.
            if (digit < 0) enough = 0; else lowest |= (uint64)digit << shift;
        }
        __syncthreads();
    }
    for (int64 at = first + threadIdx.x; at < last; at += blockDim.x) {
        if (keys[at] == 0 || (enough && keys[at] < lowest)) continue;
        const int place = atomicAdd(&taken, 1);
        if (place < k) chosen[(int64)query * k + place] = at;
    }
    __syncthreads();
    if (threadIdx.x == 0) found[query] = taken < k ? taken : k;
}
