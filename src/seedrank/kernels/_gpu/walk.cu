// Random walks with restart: the walks of seedrank.kernels._cpu.walk, bit for bit.
//
// A walker knows nothing of the others, so all of them walk at once and write down where each step ended. What a budget
// allows is found afterwards: steps have an order (step by step, the anchors of a query in turn), and a budget only
// decides how many of them count. Visits are counted in hash tables by integer atomics, whose order does not matter.
//
// Events: step `s` of walker `w` stands at s * walkers + w. In `hops` it is the number of edges since the last return, 0
// for a return, LIMITED for one that the hop limit forced.

#define LIMITED -1
#define FREE -1

// Two random numbers of 64 bits: Philox4x32-10, as seedrank.kernels._cpu.philox.
__device__ __forceinline__ void random_pair(uint64 key, uint64 stream, uint64 counter, uint64* first, uint64* second) {
    unsigned a = (unsigned)counter, b = (unsigned)(counter >> 32), c = (unsigned)stream, d = (unsigned)(stream >> 32);
    unsigned first_key = (unsigned)key, second_key = (unsigned)(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64 left = (uint64)a * 0xD2511F53u, right = (uint64)c * 0xCD9E8D57u;
        a = (unsigned)(right >> 32) ^ b ^ first_key;
        b = (unsigned)right;
        c = (unsigned)(left >> 32) ^ d ^ second_key;
        d = (unsigned)left;
        first_key += 0x9E3779B9u;
        second_key += 0xBB67AE85u;
    }
    *first = (uint64)b << 32 | a;
    *second = (uint64)d << 32 | c;
}

// First entry of a row whose running sum exceeds a value; the last one does.
__device__ __forceinline__ int64 first_above(const int64* __restrict__ sums, int64 first, int64 last, int64 value) {
    while (last - first > 1) {
        const int64 middle = first + (last - first) / 2;
        if (sums[middle - 1] <= value) first = middle; else last = middle;
    }
    return first;
}

// The next node by weight, or -1 at a dead end. Without weights `sums` is null, without the other direction its offsets.
__device__ __forceinline__ int choose(uint64 draw, const int64* offsets, const int* neighbors, const int64* sums,
                                      const int64* other_offsets, const int* other_neighbors, const int64* other_sums,
                                      int node) {
    const int64 first = offsets[node], last = offsets[node + 1];
    int64 other_first = 0, other_last = 0;
    if (other_offsets) {
        other_first = other_offsets[node];
        other_last = other_offsets[node + 1];
    }
    int64 here = last - first, total = here + other_last - other_first;
    if (sums) {
        here = last > first ? sums[last - 1] : 0;
        total = other_last > other_first ? other_sums[other_last - 1] : here;
    }
    if (total == 0) return -1;
    const int64 chosen = (int64)__umul64hi(draw, (uint64)total);
    if (chosen < here) return neighbors[sums ? first_above(sums, first, last, chosen) : first + chosen];
    return other_neighbors[sums ? first_above(other_sums, other_first, other_last, chosen)
                                : other_first + chosen - here];
}

// Some steps of all walkers: a thread a walker. A query makes the steps before `ends`.
extern "C" __global__ void __launch_bounds__(RECALL_THREADS) walk_steps(
    const int64* __restrict__ offsets, const int* __restrict__ neighbors, const int64* __restrict__ sums,
    const int64* __restrict__ other_offsets, const int* __restrict__ other_neighbors,
    const int64* __restrict__ other_sums, const int* anchors, const uint64* streams, const int* query_of,
    const uint64* query_keys, const int* ends, int walkers, int first_step, int last_step, uint64 restart,
    int64 most_hops, int* position, int* hop, int* nodes, int* hops) {
    const int walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= walkers) return;
    const int query = query_of[walker], anchor = anchors[walker];
    const int stop = ends[query] < last_step ? ends[query] : last_step;
    const uint64 key = query_keys[query], stream = streams[walker];
    int at = position[walker], length = hop[walker];
    for (int step = first_step; step < stop; ++step) {
        uint64 restart_draw, choice_draw;
        random_pair(key, stream, (uint64)step, &restart_draw, &choice_draw);
        int node = anchor, now = 0;
        if (restart_draw > restart) {
            const int chosen = choose(choice_draw, offsets, neighbors, sums, other_offsets, other_neighbors, other_sums,
                                      at);
            if (chosen >= 0 && length == most_hops) {
                now = LIMITED;
            } else if (chosen >= 0) {
                node = chosen;
                now = length + 1;
            }
        }
        const int64 event = (int64)step * walkers + walker;
        nodes[event] = node;
        hops[event] = now;
        at = node;
        length = now > 0 ? now : 0;
    }
    position[walker] = at;
    hop[walker] = length;
}

// Where the search for a node begins, in a table of any size.
__device__ __forceinline__ unsigned first_place(int node) {
    return (unsigned)((uint64)node * 0x9E3779B97F4A7C15ull >> 32);
}

// Where a node stands in an open table of `mask` + 1 places that begins at `start`, or where it would; -1 is FREE.
__device__ __forceinline__ int64 place_of(const int* keys, int64 start, unsigned mask, int node) {
    unsigned at = first_place(node) & mask;
    while (keys[start + at] != node && keys[start + at] != FREE) at = (at + 1) & mask;
    return start + at;
}

// The same, after the node has been entered. What is read may be older than what another thread has entered, so a place
// that looks free is decided by the exchange alone.
__device__ __forceinline__ int64 entered(int* keys, int64 start, unsigned mask, int node) {
    unsigned at = first_place(node) & mask;
    for (;;) {
        int* key = &keys[start + at];
        int before = *key;
        if (before == FREE) before = atomicCAS(key, FREE, node);
        if (before == FREE || before == node) return start + at;
        at = (at + 1) & mask;
    }
}

// Enter the anchors into the tables of their queries, as seen before every event: a thread a walker.
extern "C" __global__ void enter_anchors(const int* anchors, const int* query_of, const int64* starts, int walkers,
                                         int* keys, int* seen) {
    const int walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= walkers) return;
    const int query = query_of[walker];
    const unsigned mask = (unsigned)(starts[query + 1] - starts[query] - 1);
    seen[entered(keys, starts[query], mask, anchors[walker])] = -1;
}

// Enter every node that a step ended on, with the first event (within its query) that did: a thread an event.
extern "C" __global__ void enter_nodes(const int* __restrict__ nodes, const int* __restrict__ query_of,
                                       const int* first_walker, const int64* starts, const int* ends, int walkers,
                                       int64 events, int* keys, int* seen) {
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 event = (int64)blockIdx.x * blockDim.x + threadIdx.x; event < events; event += step) {
        const int walker = (int)(event % walkers), query = query_of[walker];
        const int64 made = event / walkers;
        if (made >= ends[query]) continue;
        const int own = first_walker[query + 1] - first_walker[query];
        const unsigned mask = (unsigned)(starts[query + 1] - starts[query] - 1);
        const int number = (int)(made * own + walker - first_walker[query]);
        atomicMin(&seen[entered(keys, starts[query], mask, nodes[event])], number);
    }
}

// How many events of each query count, and what they took: grid (queries), block (LANES).
extern "C" __global__ void cut_walks(const int* __restrict__ nodes, const int* __restrict__ hops,
                                     const int* first_walker, const int64* starts, const int* ends, int walkers,
                                     int steps, int64 most_nodes, int64 most_edges, const int* keys, const int* seen,
                                     int* cuts, int64* visited_nodes, int64* visited_edges, unsigned char* limits) {
    const int query = blockIdx.x, lane = threadIdx.x, first = first_walker[query];
    const int own = first_walker[query + 1] - first;
    const unsigned mask = (unsigned)(starts[query + 1] - starts[query] - 1), before = (1u << lane) - 1;
    const int64 events = (int64)ends[query] * own;
    int64 visited = 0, edges = 0, end = events;
    int limit = own > 0 && ends[query] < steps ? LIMIT_TIMEOUT_S : 0;
    bool limited = false;
    for (int64 start = 0; start < events; start += LANES) {
        const int64 number = start + lane;
        bool edge = false, fresh = false, forced = false;
        if (number < events) {
            const int64 event = number / own * walkers + first + number % own;
            edge = hops[event] > 0;
            forced = hops[event] == LIMITED;
            fresh = edge && seen[place_of(keys, starts[query], mask, nodes[event])] == number;
        }
        const unsigned edge_votes = __ballot_sync(EVERY_LANE, edge), fresh_votes = __ballot_sync(EVERY_LANE, fresh);
        const unsigned forced_votes = __ballot_sync(EVERY_LANE, forced);
        int over = 0;
        if (edge && edges + __popc(edge_votes & before) >= most_edges) over = LIMIT_MAX_VISITED_EDGES;
        else if (fresh && visited + __popc(fresh_votes & before) >= most_nodes) over = LIMIT_MAX_VISITED_NODES;
        const unsigned over_votes = __ballot_sync(EVERY_LANE, over != 0);
        const unsigned edge_limit = __ballot_sync(EVERY_LANE, over == LIMIT_MAX_VISITED_EDGES);
        const int last = over_votes ? __ffs(over_votes) - 1 : LANES;
        const unsigned counted = last == LANES ? EVERY_LANE : (1u << last) - 1;
        edges += __popc(edge_votes & counted);
        visited += __popc(fresh_votes & counted);
        limited = limited || (forced_votes & counted) != 0;
        if (over_votes) {
            end = start + last;
            limit = edge_limit >> last & 1 ? LIMIT_MAX_VISITED_EDGES : LIMIT_MAX_VISITED_NODES;
            break;
        }
    }
    if (lane > 0) return;
    cuts[query] = (int)end;
    visited_nodes[query] = visited;
    visited_edges[query] = edges;
    limits[query] = (unsigned char)(limit == 0 && limited ? LIMIT_MAX_HOPS : limit);
}

// Count the visits of each walker to each node, and the fewest hops with which it came: a thread an event. The tables of
// all walkers have as many places.
extern "C" __global__ void count_visits(const int* __restrict__ nodes, const int* __restrict__ hops,
                                        const int* __restrict__ query_of, const int* first_walker, const int* cuts,
                                        int walkers, int64 events, int places, int* keys, int* visits, int* fewest) {
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 event = (int64)blockIdx.x * blockDim.x + threadIdx.x; event < events; event += step) {
        const int walker = (int)(event % walkers), query = query_of[walker];
        const int own = first_walker[query + 1] - first_walker[query];
        if (event / walkers * own + walker - first_walker[query] >= cuts[query]) continue;
        const int64 place = entered(keys, (int64)walker * places, (unsigned)places - 1, nodes[event]);
        atomicAdd(&visits[place], 1);
        atomicMin(&fewest[place], hops[event] > 0 ? hops[event] : 0);
    }
}

// Give every node of a query the walker with the most visits, of equal ones the first: a thread a place of a walker.
extern "C" __global__ void best_walkers(const int* __restrict__ walker_keys, const int* __restrict__ visits,
                                        const int* query_of, const int* first_walker, const int64* starts,
                                        int64 all_places, int places, const int* keys, uint64* best) {
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x; at < all_places; at += step) {
        if (walker_keys[at] == FREE) continue;
        const int walker = (int)(at / places), query = query_of[walker];
        const unsigned mask = (unsigned)(starts[query + 1] - starts[query] - 1);
        const unsigned place = (unsigned)(walker - first_walker[query]);
        atomicMax(&best[place_of(keys, starts[query], mask, walker_keys[at])],
                  (uint64)visits[at] << 32 | (0xffffffffu - place));
    }
}

// Forget what was found of excluded nodes: a thread an exclusion.
extern "C" __global__ void exclude_walks(const int* excluded, const int* query_of_exclusion, const int64* starts,
                                         int exclusions, const int* keys, uint64* best) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= exclusions) return;
    const int query = query_of_exclusion[at];
    const int64 place = place_of(keys, starts[query], (unsigned)(starts[query + 1] - starts[query] - 1), excluded[at]);
    if (keys[place] != FREE) best[place] = 0;
}

// What places of the queries' tables are ranked by, 0 for what is not: grid (any, queries). Visits order scores; in
// float32 several numbers of visits may have one score, so its bits are taken there.
extern "C" __global__ void rank_walks(const int64* starts, const int* __restrict__ order, const int* __restrict__ keys,
                                      const uint64* __restrict__ best, const unsigned char* eligible, int least,
                                      int steps, int single, uint64* ranked) {
    const int query = blockIdx.y;
    const int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 at = starts[query] + (int64)blockIdx.x * blockDim.x + threadIdx.x; at < starts[query + 1]; at += step) {
        const int node = keys[at], visits = (int)(best[at] >> 32);
        const bool may = node != FREE && visits >= least && (!eligible || eligible[node]);
        const unsigned score = single ? __float_as_uint((float)((double)visits / steps)) : (unsigned)visits;
        ranked[at] = may ? (uint64)score << 32 | (0xffffffffu - (unsigned)order[node]) : 0;
    }
}

// Write down what is known of the chosen places: a thread each; grid (any, queries).
extern "C" __global__ void describe_walks(const int* found, const int64* chosen, int k, const int* first_walker,
                                          const int* keys, const uint64* best, int places, const int* walker_keys,
                                          const int* fewest, int* node, int* visits, int* walker, int* hops) {
    const int query = blockIdx.y, place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= found[query]) return;
    const int64 out = (int64)query * k + place, at = chosen[out];
    const int own = (int)(0xffffffffu - (unsigned)best[at]);
    node[out] = keys[at];
    visits[out] = (int)(best[at] >> 32);
    walker[out] = own;
    const int64 start = (int64)(first_walker[query] + own) * places;
    hops[out] = fewest[place_of(walker_keys, start, (unsigned)places - 1, keys[at])];
}
