// Breadth-first traversal, level by level, without a budget: what is reached then depends on no order.
//
// Each query has n places in `hops`, `origins` and `ways`, by node, and in `found`, by the order in which nodes are
// reached; within a level that order is any. A warp follows the edges of a node, its lanes neighbouring ones.

#define UNREACHED -1
#define MOST_WAYS 0x7fffffffffffffffull

// Begin with the anchors: a thread each.
extern "C" __global__ void start_levels(const int* anchors, const int* query_of, const int* first_anchor, int total,
                                        int nodes, int* hops, int* origins, uint64* ways, int* found) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= total) return;
    const int64 query = query_of[at];
    const int place = at - first_anchor[query];
    const int64 there = query * nodes + anchors[at];
    hops[there] = 0;
    origins[there] = place;
    ways[there] = 1;
    found[query * nodes + place] = anchors[at];
}

// Whether a row, sorted by tie rank, has a node.
__device__ __forceinline__ bool has(const int* __restrict__ neighbors, const int* __restrict__ order, int64 first,
                                    int64 last, int node) {
    const int64 end = last;
    while (first < last) {
        const int64 middle = first + (last - first) / 2;
        if (order[neighbors[middle]] < order[node]) first = middle + 1; else last = middle;
    }
    return first < end && neighbors[first] == node;
}

// Do for the nodes that an edge leads to from a node of the level, each once: lanes take entries of both rows, and
// the statements know it as `node`.
#define FOLLOW(...)                                                                                                    \
    for (int side = 0; side < 2; ++side) {                                                                             \
        const int64* bounds = side ? other_offsets : offsets;                                                          \
        const int* row = side ? other_neighbors : neighbors;                                                           \
        if (!bounds) continue;                                                                                         \
        for (int64 entry = bounds[source] + threadIdx.x; entry < bounds[source + 1]; entry += LANES) {                 \
            const int node = row[entry];                                                                               \
            if (entry > bounds[source] && row[entry - 1] == node) continue;                                            \
            if (side && has(neighbors, order, offsets[source], offsets[source + 1], node)) continue;                   \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

// Reach what one edge leads to from the nodes firsts ... lasts - 1 among those found: grid (any, queries), block (LANES,
// nodes). The lowest anchor of those that lead to a new node becomes its own.
extern "C" __global__ void __launch_bounds__(RECALL_THREADS) reach_level(
    const int64* __restrict__ offsets, const int* __restrict__ neighbors, const int64* __restrict__ other_offsets,
    const int* __restrict__ other_neighbors, const int* __restrict__ order, int nodes, const int* firsts,
    const int* lasts, int hop, int* hops, int* origins, int* found, int* counts, uint64* edges) {
    const int64 query = blockIdx.y, base = query * nodes;
    uint64 followed = 0;
    for (int64 at = firsts[query] + (int64)blockIdx.x * blockDim.y + threadIdx.y; at < lasts[query];
         at += (int64)gridDim.x * blockDim.y) {
        const int source = found[base + at], origin = origins[base + source];
        FOLLOW({
            ++followed;
            const int before = atomicCAS(&hops[base + node], UNREACHED, hop);
            if (before == UNREACHED) found[base + atomicAdd(&counts[query], 1)] = node;
            if (before == UNREACHED || before == hop) atomicMin(&origins[base + node], origin);
        })
    }
    if (followed) atomicAdd(&edges[query], followed);
}

// Add up the shortest ways from the own anchor to the nodes of the next level, at most 2**63 - 1; as `reach_level`.
extern "C" __global__ void __launch_bounds__(RECALL_THREADS) count_ways(
    const int64* __restrict__ offsets, const int* __restrict__ neighbors, const int64* __restrict__ other_offsets,
    const int* __restrict__ other_neighbors, const int* __restrict__ order, int nodes, const int* firsts,
    const int* lasts, int hop, const int* __restrict__ hops, const int* __restrict__ origins,
    const int* __restrict__ found, uint64* ways) {
    const int64 query = blockIdx.y, base = query * nodes;
    for (int64 at = firsts[query] + (int64)blockIdx.x * blockDim.y + threadIdx.y; at < lasts[query];
         at += (int64)gridDim.x * blockDim.y) {
        const int source = found[base + at], origin = origins[base + source];
        const uint64 more = ways[base + source];
        FOLLOW({
            if (hops[base + node] != hop || origins[base + node] != origin) continue;
            uint64 seen = ways[base + node], before;
            do {
                before = seen;
                const uint64 sum = before + more;
                seen = atomicCAS(&ways[base + node], before, sum > MOST_WAYS ? MOST_WAYS : sum);
            } while (seen != before);
        })
    }
}

// Whether a node of the last level has an edge, which was not followed then: grid (any, queries).
extern "C" __global__ void has_edges(const int64* __restrict__ offsets, const int64* __restrict__ other_offsets,
                                     int nodes, const int* firsts, const int* lasts, const int* __restrict__ found,
                                     int* any) {
    const int query = blockIdx.y;
    for (int64 at = firsts[query] + (int64)blockIdx.x * blockDim.x + threadIdx.x; at < lasts[query];
         at += (int64)gridDim.x * blockDim.x) {
        const int node = found[(int64)query * nodes + at];
        if (offsets[node] < offsets[node + 1] || (other_offsets && other_offsets[node] < other_offsets[node + 1]))
            any[query] = 1;
    }
}

// Forget the ways to excluded nodes: a thread an exclusion.
extern "C" __global__ void exclude_levels(const int* excluded, const int* query_of_exclusion, int exclusions, int nodes,
                                          uint64* ways) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < exclusions) ways[(int64)query_of_exclusion[at] * nodes + excluded[at]] = 0;
}

// What found nodes are ranked by, 0 for those that are not: grid (any, queries). `classes`, by hops, is larger where the
// score is, and 0 where it does not count.
extern "C" __global__ void rank_levels(const int* __restrict__ order, int nodes, const int* counts,
                                       const int* __restrict__ found, const int* __restrict__ hops,
                                       const uint64* __restrict__ ways, const unsigned char* eligible,
                                       const int* classes, uint64* ranked) {
    const int64 query = blockIdx.y, base = query * nodes;
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x; at < counts[query]; at += step) {
        const int node = found[base + at], score = classes[hops[base + node]];
        const bool may = score > 0 && ways[base + node] > 0 && (!eligible || eligible[node]);
        ranked[base + at] = may ? (uint64)score << 32 | (0xffffffffu - (unsigned)order[node]) : 0;
    }
}

// Write down what is known of the chosen places: a thread each; grid (any, queries).
extern "C" __global__ void describe_levels(const int* chosen_counts, const int64* chosen, int k, int nodes,
                                           const int* found, const int* hops, const int* origins, const uint64* ways,
                                           int* node, int* hop, int* origin, uint64* way) {
    const int64 query = blockIdx.y, base = query * nodes;
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= chosen_counts[query]) return;
    const int64 out = query * k + place;
    const int there = found[chosen[out]];
    node[out] = there;
    hop[out] = hops[base + there];
    origin[out] = origins[base + there];
    way[out] = ways[base + there];
}
