// Runs CUDA C++ kernels on a CPU, so that they can be tested where there is no GPU.
//
// Every CUDA thread is a fiber of its own; a block runs until all its threads have ended, blocks run one after another.
// A thread runs until it waits at a barrier or a warp exchange, then another takes over: in order, or, with a seed, one
// drawn from those that can go on, so that a kernel that lacks a barrier meets orders that it does not survive. Blocks
// are drawn likewise. Shared memory is filled with noise before every block.
//
// Stricter than a GPU: a barrier that not all threads of the block reach, or that they reach at different lines, and an
// exchange that not all lanes of the warp take part in, end the launch with a message. As CuPy compiles (-ftz=true),
// numbers below the normal ones are 0 to kernels of float32. Not modelled: threads of a block that really run at once,
// the order of memory operations, limits of launches, speed. With SHIM_THREADS, blocks are shared out to threads of the
// CPU, and ThreadSanitizer finds what they write, not atomically, while others use it; shared memory is no noise then.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

struct dim3 {
    unsigned x, y, z;
};

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#if defined(SHIM_THREADS)
#define BY_WORKER static thread_local
#define __shared__ BY_WORKER
#else
#define BY_WORKER static
#define __shared__ static __attribute__((section("shim_shared")))
#endif

using std::fabs;
using std::fma;

extern "C" char __start_shim_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_shim_shared[] __attribute__((weak, visibility("hidden")));

namespace shim {

constexpr unsigned WARP = 32;
constexpr size_t COLORS = 64, COLOR = 576;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t STACK = 256 << 10;
#else
constexpr size_t STACK = 64 << 10;
#endif

#if defined(__x86_64__)
// Saves the registers that a call preserves, and continues where the other stack was left.
extern "C" void shim_switch(void** saved, void* next) __attribute__((visibility("hidden")));
asm(R"(
.pushsection .text
.globl shim_switch
.hidden shim_switch
.type shim_switch, @function
shim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size shim_switch, . - shim_switch
.popsection
)");

struct Context {
    void* at = nullptr;
    void begin(char* stack, void (*entry)()) {
        void** top = reinterpret_cast<void**>(stack + STACK);
        top[-1] = nullptr;  // where the entry would return to, and what aligns its frame
        top[-2] = reinterpret_cast<void*>(entry);
        at = top - 8;
        memset(at, 0, 6 * sizeof(void*));
    }
    void swap(Context& next) { shim_switch(&at, next.at); }
};
#else
struct Context {
    ucontext_t at;
    void begin(char* stack, void (*entry)()) {
        getcontext(&at);
        at.uc_stack.ss_sp = stack;
        at.uc_stack.ss_size = STACK;
        at.uc_link = nullptr;
        makecontext(&at, entry, 0);
    }
    void swap(Context& next) { swapcontext(&at, &next.at); }
};
#endif

struct Thread {
    Context context;
    dim3 index;
    unsigned number, exchanges;
    int line;  // of the barrier or exchange where it waits
    bool ended;
    char* stack;
    void* shadow;
};

struct Warp {
    unsigned lanes, arrived;
    uint64_t slots[2][WARP];
};

BY_WORKER Context scheduler;
BY_WORKER std::vector<Thread> threads;
BY_WORKER std::vector<Warp> warps;
BY_WORKER std::vector<char*> stacks;
BY_WORKER std::vector<unsigned> ready;
BY_WORKER Thread* current;
BY_WORKER dim3 block_index;
BY_WORKER unsigned at_barrier;
BY_WORKER uint64_t noise;
BY_WORKER std::string error;
static dim3 block_size, grid_size;
static void (*body)(void**);
static void** arguments;

inline uint64_t draw() {  // splitmix64
    uint64_t z = noise += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

inline void to_scheduler() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(current->ended ? nullptr : &current->shadow, nullptr, 0);
#endif
    current->context.swap(scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(current->shadow, nullptr, nullptr);
#endif
}

inline void to_thread(Thread& thread) {
    current = &thread;
#if defined(__SANITIZE_ADDRESS__)
    void* shadow;
    __sanitizer_start_switch_fiber(&shadow, thread.stack, STACK);
#endif
    scheduler.swap(thread.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
}

[[noreturn]] inline void run_thread() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    body(arguments);
    current->ended = true;
    to_scheduler();
    abort();
}

// All threads of the range have arrived: they may go on, if they are at one place.
inline void release(unsigned first, unsigned last, const char* what) {
    for (unsigned t = first; t < last; ++t) {
        if (threads[t].line != threads[first].line && error.empty())
            error = std::string("threads wait at different ") + what + ", in lines " +
                    std::to_string(threads[first].line) + " and " + std::to_string(threads[t].line);
        ready.push_back(t);
    }
}

inline void block_barrier(int line) {
    current->line = line;
    if (++at_barrier == threads.size()) {
        at_barrier = 0;
        release(0, threads.size(), "barriers");
    }
    to_scheduler();
}

// Hand a value over to the warp; the slots hold those of all lanes until the next exchange but one.
inline const uint64_t* exchange(unsigned mask, uint64_t value, int line) {
    Thread& self = *current;
    Warp& warp = warps[self.number / WARP];
    if (mask != 0xffffffffu && error.empty()) error = "a warp exchange with part of the lanes, in line " + std::to_string(line);
    uint64_t* slots = warp.slots[self.exchanges++ % 2];
    slots[self.number % WARP] = value;
    self.line = line;
    if (++warp.arrived == warp.lanes) {
        warp.arrived = 0;
        const unsigned first = self.number / WARP * WARP;
        release(first, first + warp.lanes, "warp exchanges");
    }
    to_scheduler();
    return slots;
}

inline void run_block(bool shuffled) {
    const unsigned count = threads.size();
    for (unsigned t = 0; t < count; ++t) {
        Thread& thread = threads[t];
        thread.exchanges = 0;
        thread.line = 0;
        thread.ended = false;
        thread.stack = stacks[t];
        thread.context.begin(stacks[t], run_thread);
    }
    for (unsigned w = 0; w < warps.size(); ++w) warps[w].arrived = 0;
    at_barrier = 0;
    for (char* at = __start_shim_shared; shuffled && at < __stop_shim_shared; at += sizeof(uint64_t)) {
        const uint64_t bits = draw();
        memcpy(at, &bits, std::min<size_t>(sizeof bits, __stop_shim_shared - at));
    }
    ready.clear();
    // The last is taken first.
    for (unsigned t = count; t-- > 0;) ready.push_back(t);
    unsigned ended = 0;
    while (!ready.empty() && error.empty()) {
        if (shuffled) std::swap(ready[draw() % ready.size()], ready.back());
        Thread& thread = threads[ready.back()];
        ready.pop_back();
        to_thread(thread);
        ended += thread.ended;
    }
    if (ended == count || !error.empty()) return;
    for (unsigned t = 0; t < count; ++t)
        if (!threads[t].ended) {
            error = "a thread waits for others that do not come, in line " + std::to_string(threads[t].line);
            return;
        }
}

// Takes numbers below the normal ones as 0, and makes none, as long as it lives; not on other processors.
class Flushed {
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();

   public:
    explicit Flushed(bool flush) {
        if (flush) _mm_setcsr(before | _MM_FLUSH_ZERO_ON | 0x0040 /* operands, too */);
    }
    ~Flushed() { _mm_setcsr(before); }
#else
   public:
    explicit Flushed(bool) {}
#endif
};

// Runs the blocks first ... last - 1 of a grid, numbered along x, then y, then z.
// Run every `stride`-th block from `first` on.
inline void run_blocks(uint64_t first, uint64_t last, uint64_t stride, uint64_t seed, bool flush) {
    const Flushed flushed(flush);
    const dim3 grid = grid_size, block = block_size;
    const unsigned count = block.x * block.y * block.z;
    error.clear();
    noise = seed;
    // Tops of stacks at multiples of their size would all meet in one set of the cache.
    for (size_t s = stacks.size(); s < count; ++s)
        stacks.push_back(static_cast<char*>(malloc(STACK + COLORS * COLOR)) + s % COLORS * COLOR);
    threads.assign(count, Thread{});
    warps.assign((count + WARP - 1) / WARP, Warp{});
    for (unsigned t = 0; t < count; ++t) {
        threads[t].number = t;
        threads[t].index = {t % block.x, t / block.x % block.y, t / block.x / block.y};
    }
    for (unsigned w = 0; w < warps.size(); ++w) warps[w].lanes = w * WARP + WARP <= count ? WARP : count % WARP;
    std::vector<uint64_t> order;
    for (uint64_t b = first; b < last; b += stride) order.push_back(b);
    if (seed)
        for (uint64_t b = order.size(); b > 1; --b) std::swap(order[b - 1], order[draw() % b]);
    for (uint64_t b : order) {
        block_index = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        run_block(seed != 0);
        if (!error.empty()) break;
    }
}

inline const char* launch(dim3 grid, dim3 block, uint64_t first, uint64_t last, uint64_t seed, bool flush,
                          void (*kernel)(void**), void** values) {
    grid_size = grid;
    block_size = block;
    body = kernel;
    arguments = values;
#if defined(SHIM_THREADS)
    constexpr uint64_t WORKERS = 4;
    static std::string found;
    std::string errors[WORKERS];
    std::vector<std::thread> workers;
    for (uint64_t worker = 0; worker < WORKERS; ++worker)
        workers.emplace_back([=, &errors] {
            run_blocks(first + worker, last, WORKERS, seed, flush);
            errors[worker] = error;
            for (size_t s = 0; s < stacks.size(); ++s) free(stacks[s] - s % COLORS * COLOR);
        });
    for (std::thread& worker : workers) worker.join();
    found = *std::max_element(errors, errors + WORKERS);
    return found.empty() ? nullptr : found.c_str();
#else
    run_blocks(first, last, 1, seed, flush);
    return error.empty() ? nullptr : error.c_str();
#endif
}

template <typename T>
inline uint64_t packed(T value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <typename T>
inline T unpacked(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace shim

#define threadIdx (shim::current->index)
#define blockIdx (shim::block_index)
#define blockDim (shim::block_size)
#define gridDim (shim::grid_size)

inline void __syncthreads(int line = __builtin_LINE()) { shim::block_barrier(line); }

template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int line = __builtin_LINE()) {
    const unsigned lane = shim::current->number % shim::WARP;
    const uint64_t* slots = shim::exchange(mask, shim::packed(value), line);
    return lane < distance ? value : shim::unpacked<T>(slots[lane - distance]);
}

inline unsigned __ballot_sync(unsigned mask, bool vote, int line = __builtin_LINE()) {
    const unsigned lanes = shim::warps[shim::current->number / shim::WARP].lanes;
    const uint64_t* slots = shim::exchange(mask, vote, line);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) votes |= (unsigned)slots[lane] << lane;
    return votes;
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline unsigned long long __umul64hi(unsigned long long one, unsigned long long other) {
    return (unsigned long long)((unsigned __int128)one * other >> 64);
}
inline int __ffs(unsigned bits) { return __builtin_ffs((int)bits); }
inline unsigned __float_as_uint(float value) { return shim::unpacked<unsigned>(shim::packed(value)); }
inline long long __double_as_longlong(double value) { return shim::unpacked<long long>(shim::packed(value)); }

template <typename T>
inline T atomicAdd(T* at, T value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

inline unsigned atomicAnd(unsigned* at, unsigned value) { return __atomic_fetch_and(at, value, __ATOMIC_RELAXED); }

template <typename T>
inline T atomicCAS(T* at, T expected, T value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

inline int atomicMin(int* at, int value) {
    int before = __atomic_load_n(at, __ATOMIC_RELAXED), found;
    for (; value < before; before = found)
        if ((found = atomicCAS(at, before, value)) == before) break;
    return before;
}

inline unsigned long long atomicMax(unsigned long long* at, unsigned long long value) {
    unsigned long long before = __atomic_load_n(at, __ATOMIC_RELAXED), found;
    for (; value > before; before = found)
        if ((found = atomicCAS(at, before, value)) == before) break;
    return before;
}
