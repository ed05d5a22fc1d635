"""The CUDA kernels on a CPU: against NumPy, in shuffled orders, with AddressSanitizer, and broken on purpose."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import shim
from fake_device import FAKE
from line_counts import counted_lines, counting_environment

from seedrank.errors import KernelError
from seedrank.kernels._gpu.source import OPTIONS, SOURCES, Group, kernel_source, source_of

#: What is taken away or turned round: (group of kernels, file, its text, what stands there instead). Each has to be
#: noticed.
MUTATIONS: dict[str, tuple[Group, str, str, str]] = {
    "no barrier before the sums of a chunk are added": (
        "pagerank", "step.cu",
        "    __syncthreads();\n    if (stripe >= 3) return;",
        "    if (stripe >= 3) return;",
    ),
    "no barrier before sums are folded": (
        "pagerank", "step.cu",
        "    __syncthreads();\n    if (threadIdx.y != 0 || column >= width) return;",
        "    if (threadIdx.y != 0 || column >= width) return;",
    ),
    "no barrier after counters are cleared": (
        "pagerank", "select.cu",
        "__syncthreads();\n    if (place < count && wanted[place] > 0)",
        "if (place < count && wanted[place] > 0)",
    ),
    "no barrier before counters are read": (
        "pagerank", "select.cu",
        "    __syncthreads();\n    if (place >= count) return;\n    for (int digit",
        "    if (place >= count) return;\n    for (int digit",
    ),
    "a stretch replaces the one before": (
        "pagerank", "step.cu",
        "total[j] += (double)part[j]", "total[j] = (double)part[j]",
    ),
    "the last piece of a long row is forgotten": (
        "pagerank", "step.cu",
        "piece < long_pieces[low + 1]",
        "piece < long_pieces[low + 1] - 1",
    ),
    "every node keeps its mass, not only dangling ones": (
        "pagerank", "step.cu",
        "rule == RULE_SELF && hangs", "rule == RULE_SELF",
    ),
    "a seed counts for all columns": (
        "pagerank", "step.cu",
        "if (seed_column[at] == place)", "if (seed_column[at] >= 0)",
    ),
    "the warp's running total lacks a lane": (
        "pagerank", "select.cu",
        "if (lane >= distance) upto", "if (lane > distance) upto",
    ),
    "one node too few is wanted": (
        "pagerank", "select.cu",
        "wanted[column] = needed - before", "wanted[column] = needed - before - 1",
    ),
    "nodes whose higher digits differ are counted, too": (
        "pagerank", "select.cu",
        "if (key >> shift >> 8 == so_far >> shift >> 8)",
        "if (key >= so_far)",
    ),
    "ties are broken the other way": (
        "pagerank", "select.cu",
        "return 0xffffffffu - (unsigned)rank", "return (unsigned)rank",
    ),
    "an exclusion takes its whole word away": (
        "pagerank", "select.cu",
        "~(1u << place[at] % LANES)", "0u",
    ),
    "another column is kept": (
        "pagerank", "columns.cu",
        "width + positions[at % kept]]", "width + positions[kept - 1 - at % kept]]",
    ),
    "the two random numbers change places": (
        "recall", "walk.cu", "*first = (uint64)b << 32 | a;\n    *second = (uint64)d << 32 | c;",
        "*second = (uint64)b << 32 | a;\n    *first = (uint64)d << 32 | c;",
    ),
    "a key that is not stepped": ("recall", "walk.cu", "second_key += 0xBB67AE85u", "second_key += 0u"),
    "the entry before or after": ("recall", "walk.cu", "sums[middle - 1] <= value", "sums[middle] <= value"),
    "the other direction from its end": ("recall", "walk.cu", "+ chosen - here", "+ total - 1 - chosen"),
    "a hop more than is allowed": ("recall", "walk.cu", "length == most_hops", "length > most_hops"),
    "an edge more than is allowed": ("recall", "walk.cu", "& before) >= most_edges", "& before) > most_edges"),
    "a node more than is allowed": ("recall", "walk.cu", "& before) >= most_nodes", "& before) > most_nodes"),
    "what follows the cut within a warp counts": ("recall", "walk.cu", "(1u << last) - 1;", "EVERY_LANE;"),
    "anchors are nodes that were visited": (
        "recall", "walk.cu", "anchors[walker])] = -1", "anchors[walker])] = 0x7fffffff"
    ),
    "steps behind the cut are counted": (
        "recall", "walk.cu", ">= cuts[query]) continue", ">= cuts[query] + 1) continue"
    ),
    "the hops of any visit": (
        "recall", "walk.cu", "atomicMin(&fewest[place], hops[event] > 0 ? hops[event] : 0)",
        "fewest[place] = hops[event] > 0 ? hops[event] : 0",
    ),
    "any walker, not the best": (
        "recall", "walk.cu", "atomicMax(&best[place_of(keys, starts[query], mask, walker_keys[at])],",
        "best[place_of(keys, starts[query], mask, walker_keys[at])] = (",
    ),
    "an excluded walk stays": ("recall", "walk.cu", "best[place] = 0", "best[place] = best[place]"),
    "an edge of both directions is two": ("recall", "levels.cu", "if (side && has(", "if (false && has("),
    "parallel edges are several": (
        "recall", "levels.cu", "if (entry > bounds[source] && row", "if (entry > bounds[source + 1] && row"
    ),
    "a later level takes the anchor over": (
        "recall", "levels.cu", "if (before == UNREACHED || before == hop)", "if (true)"
    ),
    "ways from other anchors are added": (
        "recall", "levels.cu", "|| origins[base + node] != origin) continue", "|| origin < 0) continue"
    ),
    "a node without edges was cut, too": ("recall", "levels.cu", "if (offsets[node] < offsets[node + 1]", "if (true"),
    "an excluded node stays": ("recall", "levels.cu", "excluded[at]] = 0", "excluded[at]] += 0"),
    "no barrier after digits are cleared": (
        "recall", "best.cu", "counted[digit] = 0;\n        __syncthreads();", "counted[digit] = 0;"
    ),
    "no barrier before a digit is chosen": (
        "recall", "best.cu", "        __syncthreads();\n        if (threadIdx.x == 0 && enough)",
        "        if (threadIdx.x == 0 && enough)",
    ),
    "no barrier after a digit is chosen": ("recall", "best.cu", "        __syncthreads();\n    }", "    }"),
    "one key too few": ("recall", "best.cu", "wanted = k;", "wanted = k > 1 ? k - 1 : 1;"),
}  # fmt: skip


SCENARIOS: dict[Group, str] = {"pagerank": "scenario", "recall": "recall_scenario"}


@pytest.fixture(name="use_kernels")
def _use_kernels(gpu_device: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Run the scenario's kernels from other sources, the first that has one, on the stand-in for CuPy only."""
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here: the shim is not in use")

    def use(group: Group, *sources: shim.Kernels) -> ModuleType:
        scenario = importlib.import_module(SCENARIOS[group])
        device = importlib.import_module("seedrank.kernels._gpu.device")
        module = cupy.RawModule(code=kernel_source(group), options=OPTIONS)

        def kernel(_: Group, name: str) -> Any:
            module.kernels = next(kernels for kernels in sources if name in kernels.names)
            return module.get_function(name)

        monkeypatch.setattr(device, "_kernel", kernel)
        return scenario

    return use


@pytest.mark.parametrize("group", SOURCES)
@pytest.mark.parametrize("seed", [0, 2])  # in order, and shuffled; the broken ones run in another order still
def test_kernels_compute_what_is_expected(use_kernels: Callable[..., ModuleType], seed: int, group: Group) -> None:
    kernels = shim.Kernels(kernel_source(group), seed=seed)
    assert list(use_kernels(group, kernels).failures()) == []
    assert kernels.launched == kernels.names, "a kernel that nothing launches"


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_kernel_is_noticed(use_kernels: Callable[..., ModuleType], mutation: str) -> None:
    group, file, whole, broken = MUTATIONS[mutation]
    # One file of the group compiles in a fraction of the time; the rest is that of the other tests.
    text = source_of("common.cu", file)
    assert text.count(whole) == 1
    part = shim.Kernels(text.replace(whole, broken), seed=1, quick=True)
    scenario = use_kernels(group, part, shim.Kernels(kernel_source(group), seed=1))
    precisions = ("float32",) if group == "pagerank" else ()

    def first(failures: Iterator[str]) -> str | None:
        try:
            return next(failures, None)
        except (IndexError, KernelError, shim.LaunchError) as error:
            return repr(error)

    assert first(scenario.failures(*precisions)) is not None


@pytest.mark.parametrize("group", SOURCES)
def test_kernels_touch_only_their_own_memory_and_every_line_of_them_runs(group: Group, tmp_path: Path) -> None:
    """Every line, in every instance of a template."""
    shim.require_compiler()
    environment = shim.sanitized_environment() | {"FAKE_CUPY_SANITIZED": "1", "FAKE_CUPY_SEED": "5"}
    environment |= counting_environment(tmp_path)
    environment["PYTHONPATH"] = os.pathsep.join([str(FAKE), environment["PYTHONPATH"]])
    command = [sys.executable, "-m", SCENARIOS[group]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
    if shutil.which("gcov") is None:
        return
    counts = counted_lines(kernel_source(group), tmp_path)
    assert len(counts) > 200
    assert [place for place, count in counts.items() if count == 0] == []
