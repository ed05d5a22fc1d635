"""Vector search and cosines of pairs against the obvious definition; what may not change a bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedrank.kernels import rerank, semantic
from seedrank.kernels.rerank import cosines_of_pairs
from seedrank.kernels.semantic import NearestVectors, nearest_vectors
from seedrank.kernels.vectors import Vectors, norms_of
from seedrank.testing.reference_vectors import reference_cosine, reference_nearest

Rows = npt.NDArray[np.floating[Any]]


def vectors(rows: Rows, places: Any = None) -> Vectors:
    order = np.arange(len(rows)) if places is None else np.asarray(places)
    return Vectors(rows, order, norms_of(rows)[order])


def found(result: NearestVectors, query: int) -> list[tuple[int, float]]:
    part = slice(result.offsets[query], result.offsets[query + 1])
    return list(zip(result.nodes[part].tolist(), result.cosines[part].tolist(), strict=True))


def test_worked_out_by_hand() -> None:
    nodes = vectors(np.array([[3, 4], [0, 2], [-1, 0], [0, 0], [6, 8]], np.float32))
    queries = vectors(np.array([[1, 0], [0, 0], [0, 5]], np.float32))
    result = nearest_vectors(queries, nodes, np.arange(3), k=5)
    assert found(result, 0) == [(0, 0.6), (4, 0.6), (1, 0.0), (2, -1.0)]
    assert found(result, 1) == []
    assert found(result, 2) == [(1, 1.0), (0, 0.8), (4, 0.8), (2, 0.0)]
    assert found(nearest_vectors(queries, nodes, np.array([2]), k=2), 0) == [(1, 1.0), (0, 0.8)]
    assert found(nearest_vectors(queries, nodes, np.array([2]), k=5, min_score=0.8), 0) == [
        (1, 1.0),
        (0, 0.8),
        (4, 0.8),
    ]


def test_filters_apply_before_the_cut() -> None:
    nodes = vectors(np.eye(4) + 0.1)
    queries = vectors(np.array([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]]))
    eligible = np.array([True, False, True, True])
    result = nearest_vectors(
        queries, nodes, np.arange(2), k=1, eligible=eligible,
        exclude_offsets=np.array([0, 1, 1]), exclude_nodes=np.array([0]),
    )  # fmt: skip
    assert [node for node, _ in found(result, 0)] == [2]
    assert [node for node, _ in found(result, 1)] == [3]
    none = nearest_vectors(queries, nodes, np.arange(2), k=1, eligible=np.zeros(4, np.bool_))
    assert none.offsets.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 70])
def test_agrees_with_the_reference(dtype: Any, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic, "QUERIES_AT_ONCE", 5)
    monkeypatch.setattr(semantic, "MOST_NODES_AT_ONCE", 7)
    random = np.random.default_rng(width)
    rows = random.integers(-3, 4, (40, width)).astype(dtype)  # small whole numbers: many equal cosines
    nodes, queries = vectors(rows), vectors(rows[::3])
    result = nearest_vectors(queries, nodes, np.arange(14), k=6)
    for query, row in enumerate(rows[::3]):
        got = found(result, query)
        if not row.any():
            assert got == []
            continue
        expected = reference_nearest(row.tolist(), dict(enumerate(rows.tolist())), k=40)
        cosine = dict(expected)
        assert [value for _, value in got] == pytest.approx([value for _, value in expected[:6]], abs=1e-14)
        assert all(value == pytest.approx(cosine[node], abs=1e-14) for node, value in got)
        # Exactly parallel vectors are exactly tied only where rounding agrees, so ties are told by the reference.
        assert len({node for node, _ in got}) == min(6, len(expected))


@given(data=st.data())
def test_neither_blocks_nor_the_order_of_rows_nor_other_queries_change_a_bit(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count, width = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 20))
    rows = random.standard_normal((count, width)).astype(np.float32)
    rows = rows[random.integers(0, count, count)]  # repeated vectors are exactly tied: the position decides
    asked = rows[: min(9, count)]
    k = data.draw(st.integers(1, count))
    whole = nearest_vectors(vectors(asked), vectors(rows), np.arange(len(asked)), k=k)
    assert np.diff(whole.offsets).tolist() == [k] * len(asked)
    shuffled = random.permutation(count)
    places = np.argsort(shuffled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(semantic, "QUERIES_AT_ONCE", data.draw(st.integers(1, 4)))
        patch.setattr(semantic, "MOST_NODES_AT_ONCE", data.draw(st.integers(1, 20)))
        patch.setattr(rerank, "NUMBERS_AT_ONCE", data.draw(st.integers(1, 50)))
        other = nearest_vectors(vectors(asked), vectors(rows[shuffled], places), np.arange(len(asked)), k=k)
    assert other.nodes.tolist() == whole.nodes.tolist()
    assert other.cosines.tobytes() == whole.cosines.tobytes()
    for query in range(len(asked)):
        nodes, cosines = whole.nodes[query * k : query * k + k], whole.cosines[query * k : query * k + k]
        assert [*zip(-cosines, nodes, strict=True)] == sorted(zip(-cosines, nodes, strict=True))
        assert cosines.tobytes() == cosines_of_pairs(vectors(asked), vectors(rows), np.full(k, query), nodes).tobytes()


def test_differences_that_float32_does_not_see_are_ranked() -> None:
    rows = np.ones((50, 64))
    rows[:, 0] += 1e-9 * np.arange(50)
    result = nearest_vectors(vectors(np.eye(1, 64)), vectors(rows), np.array([0]), k=3)
    assert [node for node, _ in found(result, 0)] == [49, 48, 47]


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_lengths_beyond_float32(scale: float) -> None:
    rows = np.array([[3.0, 4.0], [4.0, 3.0]]) * scale
    result = nearest_vectors(vectors(np.array([[0.0, 2.0 * scale]])), vectors(rows), np.array([0]), k=2)
    assert result.nodes.tolist() == [0, 1]
    assert result.cosines == pytest.approx([0.8, 0.6])


def test_many_equal_vectors_are_ranked_by_position() -> None:
    rows = np.tile(np.array([[1.0, 2.0, 3.0]], np.float32), (500, 1))
    result = nearest_vectors(vectors(rows[:2]), vectors(rows), np.arange(2), k=4)
    assert result.nodes.tolist() == [0, 1, 2, 3] * 2


def test_the_reference_by_hand() -> None:
    assert reference_cosine([3, 4], [4, 3]) == 24 / 25
    assert reference_cosine([0, 0], [1, 1]) is None
    assert reference_nearest([1, 0], {"b": [2, 0], "a": [1, 0], "c": [0, 1]}, k=2) == [("a", 1.0), ("b", 1.0)]
