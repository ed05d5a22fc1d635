"""The shim itself: it computes what CUDA computes, and finds what a kernel must not do."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shim

PARTS = r"""
typedef long long int64;
typedef unsigned long long uint64;

extern "C" __global__ void __launch_bounds__(32 * 4) reversed(const int* from, int* to, int barrier) {
    __shared__ int tile[128];
    tile[threadIdx.x] = from[blockIdx.x * 128 + threadIdx.x];
    if (barrier) __syncthreads();
    to[blockIdx.x * 128 + threadIdx.x] = tile[127 - threadIdx.x];
}

extern "C" __global__ void twice(int* total, int barrier) {
    __shared__ int sum;
    for (int round = 0; round < 2; ++round) {
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        atomicAdd(&sum, 1);
        __syncthreads();
        if (threadIdx.x == 1) total[round] = sum;
        if (barrier) __syncthreads();
    }
}

extern "C" __global__ void warps(int* sums, unsigned* votes) {
    int sum = threadIdx.x;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int below = __shfl_up_sync(0xffffffffu, sum, distance);
        if ((int)threadIdx.x % 32 >= distance) sum += below;
    }
    sums[threadIdx.x] = sum;
    votes[threadIdx.x] = __ballot_sync(0xffffffffu, sum % 3 == 0);
}

extern "C" __global__ void places(int* seen) {
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    seen[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1 + block;
}

extern "C" __global__ void divergent(int which) {
    if (which == 0 && threadIdx.x < 5) return;
    if (which == 1 && threadIdx.x < 5) __syncthreads(); else __syncthreads();
    if (which == 2 && threadIdx.x == 0) __ballot_sync(0xffffffffu, true);
    if (which == 3) __ballot_sync(0xffu, true);
    if (which == 4) {
        if (threadIdx.x < 5) __ballot_sync(0xffffffffu, true);
        else __ballot_sync(0xffffffffu, true);
    }
}

extern "C" __global__ void unset(int* to) {
    __shared__ int never[32];
    to[threadIdx.x] = never[threadIdx.x];
}

extern "C" __global__ void types(const float* many, double one, unsigned* bits, const unsigned char* flags,
                                 int64 large) {
    bits[0] = __float_as_uint(many[1]) + (unsigned)one + (flags ? flags[2] : 0) + (unsigned)(large >> 32);
}
"""


@pytest.fixture(scope="module", name="source")
def _source() -> str:
    shim.require_compiler()
    # Without an own line for each, barriers could not be told apart.
    return PARTS.replace("; else __syncthreads", ";\n    else __syncthreads")


def reversed_tiles(kernels: shim.Kernels, *, barrier: bool) -> bool:
    values, found = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    kernels.launch("reversed", (2,), (128,), [values, found, np.int32(barrier)])
    return bool((found == values.reshape(2, 128)[:, ::-1].ravel()).all())


def test_a_missing_barrier_shows_in_every_shuffled_order(source: str) -> None:
    for seed in range(8):
        kernels = shim.Kernels(source, seed=seed)
        assert reversed_tiles(kernels, barrier=True)
        assert not reversed_tiles(kernels, barrier=False)


def test_a_missing_barrier_before_memory_is_used_again_shows_in_some(source: str) -> None:
    found: dict[bool, set[tuple[int, ...]]] = {True: set(), False: set()}
    for seed in range(8):
        for barrier in (True, False):
            total = np.zeros(2, np.int32)
            shim.Kernels(source, seed=seed).launch("twice", (1,), (64,), [total, np.int32(barrier)])
            found[barrier].add(tuple(total.tolist()))
    assert found[True] == {(64, 64)}
    assert found[False] - found[True]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_warps_exchange_values(source: str, seed: int) -> None:
    sums, votes = np.zeros(96, np.int32), np.zeros(96, np.uint32)
    shim.Kernels(source, seed=seed).launch("warps", (1,), (96,), [sums, votes])
    expected = np.arange(96, dtype=np.int32).reshape(3, 32).cumsum(axis=1)
    assert sums.tolist() == expected.ravel().tolist()
    bits = (expected % 3 == 0) @ (1 << np.arange(32))
    assert votes.tolist() == np.repeat(bits, 32).tolist()


@pytest.mark.parametrize("seed", [0, 1])
def test_every_thread_of_every_block_runs_once_and_knows_where_it_is(source: str, seed: int) -> None:
    seen = np.zeros(12 * 30, np.int32)
    shim.Kernels(source, seed=seed).launch("places", (2, 3, 2), (3, 5, 2), [seen])
    assert seen.tolist() == np.repeat(np.arange(1, 13), 30).tolist()


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (0, "waits for others that do not come, in line"),
        (1, "wait at different barriers, in lines"),
        (2, "waits for others that do not come"),
        (3, "with part of the lanes"),
        (4, "wait at different warp exchanges, in lines"),
    ],
)
def test_threads_that_part_are_found(source: str, which: int, message: str) -> None:
    for seed in range(3):
        kernels = shim.Kernels(source, seed=seed)
        with pytest.raises(shim.LaunchError, match=message):
            kernels.launch("divergent", (1,), (32,), [np.int32(which)])
        assert reversed_tiles(kernels, barrier=True)  # a launch that failed leaves nothing behind


def test_shared_memory_is_noise_before_it_is_written(source: str) -> None:
    found = np.zeros(32, np.int32)
    shim.Kernels(source, seed=3).launch("unset", (1,), (32,), [found])
    assert len(set(found.tolist())) == 32


def test_arguments_have_the_types_of_the_parameters(source: str) -> None:
    kernels = shim.Kernels(source)
    many, bits = np.array([0, 1], np.float32), np.zeros(1, np.uint32)
    flags = np.array([0, 0, 9], np.uint8)
    good: list[Any] = [many, np.float64(3), bits, flags, np.int64(5 << 32)]
    kernels.launch("types", (1,), (1,), good)
    assert bits[0] == 0x3F800000 + 3 + 9 + 5
    kernels.launch("types", (1,), (1,), [*good[:3], np.uintp(0), good[4]])
    assert bits[0] == 0x3F800000 + 3 + 5
    for place, wrong in (
        (0, many.astype(np.float64)), (0, np.float32(1)), (1, np.float32(3)), (1, 3.0), (1, many), (2, np.uintp(1)),
        (3, flags.astype(np.int8)), (0, np.zeros(4, np.float32)[::2]), (4, np.int32(5)),
    ):  # fmt: skip
        with pytest.raises(shim.LaunchError, match=rf"(parameter|argument) {place}"):
            kernels.launch("types", (1,), (1,), [*good[:place], wrong, *good[place + 1 :]])
    with pytest.raises(shim.LaunchError, match="4 arguments for 5 parameters"):
        kernels.launch("types", (1,), (1,), good[:4])


@pytest.mark.parametrize(("grid", "block"), [((0,), (32,)), ((1, 70_000), (32,)), ((1,), (256,)), ((1,), (0,))])
def test_launches_that_no_gpu_makes(source: str, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    values = np.zeros(256, np.int32)
    with pytest.raises(shim.LaunchError, match="no GPU launches"):
        shim.Kernels(source).launch("reversed", grid, block, [values, values, np.int32(1)])


def test_what_does_not_compile_says_so() -> None:
    shim.require_compiler()
    with pytest.raises(RuntimeError, match="g\\+\\+ failed") as caught:
        shim.build('extern "C" __global__ void broken(int* to) { to[0] = missing; }')
    assert "kernels.cu:1" in str(caught.value)


PAST = """
import numpy as np, shim
kernels = shim.Kernels('extern "C" __global__ void past(int* to) { to[threadIdx.x] = 1; }', sanitized=True)
for threads in (1000, 1001):
    kernels.launch("past", (1,), (threads,), [np.zeros(1000, np.int32)])
    print("went well:", threads, flush=True)
"""


def test_a_write_past_the_end_is_found_by_the_sanitizer() -> None:
    shim.require_compiler()
    done = run_sanitized(PAST)
    assert done.stdout == "went well: 1000\n"
    assert "heap-buffer-overflow" in done.stderr
    assert "kernels.cu:1" in done.stderr


def run_sanitized(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program with AddressSanitizer's library, which has to be loaded first."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env=shim.sanitized_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_blocks_that_disturb_each_other_are_found(tmp_path: Path) -> None:
    """Whether they met this time or not; atomic operations are no disturbance."""
    script = Path(__file__).parents[1] / "benchmarks" / "gpu" / "races.py"
    if not script.is_file():
        pytest.skip("needs a checkout, not only the installed package")
    (tmp_path / "disturbed.py").write_text(
        "import numpy as np, shim\n"
        "kernels = shim.Kernels('''\n"
        'extern "C" __global__ void plain(int* sum) { sum[0] += blockIdx.x; }\n'
        'extern "C" __global__ void atomic(int* sum) { atomicAdd(&sum[0], (int)blockIdx.x); }\n'
        "''', threaded=True)\n"
        "for name in ('plain', 'atomic'):\n"
        "    sum = np.zeros(1, np.int32); kernels.launch(name, (9,), (2,), (sum,))\n"
        "print(sum[0])\n"
    )
    command = [sys.executable, str(tmp_path / "disturbed.py")]
    environment = shim.sanitized_environment("tsan")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not start under this kernel")
    assert done.stdout == "72\n", done.stderr
    found = runpy.run_path(str(script))["found_in"](done.stderr)
    assert found
    assert {(here, before) for _, here, _, before in found} == {("plain", "plain")}
