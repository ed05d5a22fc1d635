"""One small run through every kernel, held against plain NumPy: what passes here has computed, not guessed.

Used three times: as it is, with AddressSanitizer, and on kernels that were broken on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
from scipy import sparse

from seedrank.kernels._gpu.device import launch
from seedrank.kernels.arrays import DanglingRule, Float64Array, Int64Array, Precision
from seedrank.kernels.backend import QueryBlock, Selection
from seedrank.kernels.backends.gpu import GpuBackend
from seedrank.kernels.topk import top_k
from seedrank.kernels.transition import SparseRows, Transition

NODES = 700
#: Entries of the first rows: of several pieces, of one piece and one entry more, of a stretch and one entry more.
LONG_ROWS = (4600, 2049, 2048, 17, 16, 0)
RESTART = 0.3


def made_transition(dangling: DanglingRule, *, weighted: bool) -> Transition:
    """Random rows behind `LONG_ROWS`; every seventh node is dangling."""
    random = np.random.default_rng(11)
    lengths = np.concatenate((LONG_ROWS, random.integers(0, 7, NODES - len(LONG_ROWS))))
    passing = np.flatnonzero(np.arange(NODES) % 7 != 3).astype(np.int32)
    columns = random.choice(passing, lengths.sum())
    columns[: len(passing)] = passing  # row 0 is long enough for everyone to pass something on
    weights = random.uniform(0.5, 2.0, len(columns)) if weighted else np.ones(len(columns))
    out_weight: Float64Array = np.bincount(columns, weights, minlength=NODES).astype(np.float64)
    inverse = np.divide(1.0, out_weight, out=np.zeros(NODES), where=out_weight > 0)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return Transition(
        nodes=NODES,
        products=(SparseRows(offsets, columns, weights * inverse[columns] if weighted else None),),
        outgoing=(),
        out_weight=out_weight,
        inverse_out_weight=inverse,
        dangling_nodes=np.flatnonzero(out_weight == 0).astype(np.int32),
        dangling=dangling,
    )


def made_block(width: int) -> QueryBlock:
    """Queries of one to four seeds and up to five exclusions; column 0 has a seed that dangles."""
    random = np.random.default_rng(12)
    seeds = [random.choice(NODES, 1 + column % 4, replace=False) for column in range(width)]
    seeds[0] = np.array([3])
    excluded = [random.choice(NODES, column % 6, replace=False) for column in range(width)]
    return QueryBlock(
        seed_offsets=np.cumsum([0, *map(len, seeds)]),
        seed_nodes=np.concatenate(seeds).astype(np.int32),
        seed_weights=np.concatenate([np.full(len(nodes), 1 / len(nodes)) for nodes in seeds]),
        exclude_offsets=np.cumsum([0, *map(len, excluded)]),
        exclude_nodes=np.concatenate(excluded).astype(np.int32),
        reachable=random.integers(0, 2**64, NODES, dtype=np.uint64) | np.uint64(1),
    )


def dense_seeds(block: QueryBlock) -> Float64Array:
    """Personalization vectors as columns."""
    dense = np.zeros((NODES, block.width))
    dense[block.seed_nodes, np.repeat(np.arange(block.width), np.diff(block.seed_offsets))] = block.seed_weights
    return dense


def stepped(transition: Transition, vectors: Float64Array, seeds: Float64Array) -> Float64Array:
    """One step of the recurrence, as the formula says."""
    (rows,) = transition.products
    values = transition.inverse_out_weight[rows.columns] if rows.probabilities is None else rows.probabilities
    matrix = sparse.csr_array((values, rows.columns, rows.offsets), shape=(NODES, NODES))
    lost = vectors[transition.dangling_nodes]
    result: Float64Array = (1 - RESTART) * (matrix @ vectors) + RESTART * seeds
    if transition.dangling == "seeds":
        result += (1 - RESTART) * lost.sum(axis=0) * seeds
    elif transition.dangling == "uniform":
        result += (1 - RESTART) * lost.sum(axis=0) / NODES
    elif transition.dangling == "self":
        result[transition.dangling_nodes] += (1 - RESTART) * lost
    return result


def vectors_of(backend: GpuBackend, columns: Int64Array) -> Float64Array:
    """Whole vectors of the block, as the device holds them."""
    block = backend._block
    return block.current[: NODES * block.width].get().reshape(NODES, -1).astype(np.float64)


def expected_selection(
    matrix: Any, backend: GpuBackend, columns: Int64Array, *, k: int, eligible: Any, min_score: float
) -> Iterator[tuple[list[int], list[float]]]:
    """Top k of columns of a matrix by the reference."""
    query, order = backend._block.query, backend._graph.order_host
    assert query.reachable is not None
    for place, column in enumerate(columns):
        near = (query.reachable >> np.uint64(column)) & np.uint64(1) == 1
        nodes, scores = top_k(
            np.ascontiguousarray(matrix[:, place]),
            k=k,
            order=order,
            eligible=near if eligible is None else near & eligible,
            excluded=query.exclude_nodes[query.exclude_offsets[column] : query.exclude_offsets[column + 1]],
            min_score=min_score,
        )
        yield nodes.tolist(), scores.tolist()


def selected(selection: Selection) -> list[tuple[list[int], list[float]]]:
    """What was selected, without padding."""
    return [
        (selection.nodes[row, :count].tolist(), selection.scores[row, :count].tolist())
        for row, count in enumerate(selection.counts)
    ]


def run_block(
    dangling: DanglingRule, precision: Precision, width: int, *, weighted: bool
) -> Iterator[tuple[str, bool]]:
    """Start, step, keep, step, accumulate, select: what was checked, and whether it is right."""
    single = precision == "float32"

    def close(found: Any, expected: Any) -> bool:
        return np.allclose(found, expected, rtol=3e-5 if single else 1e-12, atol=1e-9 if single else 0.0)

    transition, query = made_transition(dangling, weighted=weighted), made_block(width)
    order = np.random.default_rng(13).permutation(NODES).astype(np.int32)
    backend = GpuBackend()
    backend.load(transition, precision=precision, order=order)
    backend.start(query, restart=RESTART)
    columns, seeds = np.arange(width), dense_seeds(query)
    before = seeds.astype(precision).astype(np.float64)
    yield "start", bool((vectors_of(backend, columns) == before).all())
    sums = np.zeros((2, NODES, width))
    for step in range(4):
        if step == 2 and width > 1:
            columns = np.flatnonzero(columns % 3 != 1)
            backend.keep(columns)
            before, seeds, sums = before[:, columns], seeds[:, columns], sums[:, :, columns]
            yield "keep", bool((vectors_of(backend, columns) == before).all())
        report = backend.step()
        after = vectors_of(backend, columns)
        yield "step", close(after, stepped(transition, before, seeds))
        yield "mass", np.allclose(report.mass, after.sum(axis=0), rtol=1e-13)
        lost = after[transition.dangling_nodes].sum(axis=0)
        yield "dangling mass", np.allclose(report.dangling_mass, lost, rtol=1e-13)
        yield "difference", np.allclose(report.difference, np.abs(after - before).sum(axis=0), rtol=1e-11)
        weights = np.linspace(0.5, 2.0, 2 * len(columns)).reshape(2, -1)
        backend.accumulate(weights, 1 / (1 + weights))
        sums = (sums + weights[:, np.newaxis] * after) / (1 + weights[:, np.newaxis])
        before = after
    # As they are, all digits decide; rounded, there are ties at the cut, and ranks decide.
    eligible = np.random.default_rng(14).random(NODES) < 0.8
    for matrix in (before.astype(precision), np.round(before, 3).astype(precision)):
        backend._block.current = cupy.asarray(matrix.ravel())
        for k, mask, least in ((1, None, 0.0), (40, eligible, 0.0), (NODES, eligible, 0.0), (9, None, 0.004)):
            found = selected(backend.select(columns, k=k, eligible=mask, min_score=least))
            expected = expected_selection(matrix, backend, columns, k=k, eligible=mask, min_score=least)
            yield "select", found == list(expected)
    found = selected(backend.select_sum(1, columns[:1], k=NODES, eligible=None, min_score=0.0))
    allowed = list(expected_selection(sums[1], backend, columns[:1], k=NODES, eligible=None, min_score=0.0))
    yield "sums", close(sorted(found[0][1]), sorted(allowed[0][1]))


def fold_rows() -> Iterator[tuple[str, bool]]:
    """Column sums of more rows than one thread block folds."""
    values = np.random.default_rng(15).random((3, 1000, 5))
    folded, total = cupy.zeros(3 * 4 * 5, np.float64), cupy.zeros(3 * 5, np.float64)
    launch("fold_sums", (4, 1, 3), (8, 16), cupy.asarray(values.ravel()), 1000, 5, folded)
    launch("fold_sums", (1, 1, 3), (8, 16), folded, 4, 5, total)
    yield "fold", np.allclose(total.get().reshape(3, 5), values.sum(axis=1), rtol=1e-13)


def failures(*precisions: Precision) -> Iterator[str]:
    """What comes out wrong, in these precisions; in both where none is named."""
    cases: tuple[tuple[DanglingRule, Precision, int, bool], ...] = (
        ("seeds", "float32", 1, False), ("self", "float32", 40, True), ("uniform", "float64", 5, False),
        ("drop", "float64", 64, True), ("seeds", "float64", 33, False), ("uniform", "float32", 17, True),
    )  # fmt: skip
    for dangling, precision, width, weighted in cases:
        if precisions and precision not in precisions:
            continue
        for name, right in run_block(dangling, precision, width, weighted=weighted):
            if not right:
                yield f"{name} ({dangling}, {precision}, {width} columns)"
    yield from (name for name, right in fold_rows() if not right)


if __name__ == "__main__":
    print(list(failures()))  # noqa: T201  # for the process that has AddressSanitizer
