"""Long edge lists as one packed integer an edge: sort, reduce duplicates, compress; on all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads, prange

from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.radix_sort import Rows, sort_by_bits
from seedrank.kernels._cpu.reduce_runs import count_dtype, reduce_runs
from seedrank.kernels.arrays import DuplicateRule, Float64Array, Int32Array, Int64Array
from seedrank.kernels.building.duplicates import CompressedRows
from seedrank.kernels.building.edge_keys import KEY_BITS
from seedrank.kernels.runs import offsets_of


class PackedEdges:
    """The same as `seedrank.kernels.building.duplicates.ReducedEdges`, bit for bit, for lists of millions of edges.

    An edge is one integer: two nodes and the type, from the highest bits to the lowest. All steps are stable or act on
    one run of equal edges, so no bit depends on the number of threads.

    Memory beside the input: 32 bytes an edge and what `compress` returns; 24 if the edges have no weights, and 16 if
    none of them is there twice either.

    Parameters
    ----------
    source, target, weight, edge_type, nodes, duplicate_edges
        See `seedrank.kernels.building.duplicates.reduce_duplicates`. An edge must fit, see `fits`.

    Attributes
    ----------
    entries : int
        Distinct (source, target, type).
    out_degree, in_degree : int64 (nodes)
        Entries by source and by target, by tie rank.
    self_loops : int
        Nodes with at least one edge to themselves.
    """

    def __init__(
        self,
        source: Int32Array,
        target: Int32Array,
        weight: Float64Array | None,
        edge_type: Int32Array | None,
        *,
        nodes: int,
        duplicate_edges: DuplicateRule,
    ) -> None:
        types = _types(edge_type)
        self._threads = get_num_threads()
        self._node_bits, self._type_bits = _bits(nodes, types)
        self._type_dtype = None if edge_type is None else np.min_scalar_type(types - 1)
        # NumPy allocates, not Numba: it asks Linux for huge pages, which makes fresh memory several times cheaper.
        key = np.empty(len(source), dtype=np.int64)
        _pack(source, target, edge_type, key, self._node_bits, self._type_bits, self._threads)
        rows: Rows = (key, None if weight is None else weight.copy())
        spare: Rows = (np.empty_like(key), None if weight is None else np.empty_like(weight))
        bits = 2 * self._node_bits + self._type_bits
        rows, spare = sort_by_bits(rows, spare, low=0, high=bits, threads=self._threads)
        self._key, self._weight = reduce_runs(rows, duplicate_edges, self._threads)
        self.entries = len(self._key)
        self._spare_key = spare[0][: self.entries]
        # Each share of the edges counts for itself, in no more memory than the edges take.
        shares = min(self._threads, 1 + self.entries // max(nodes, 1))
        starts = np.empty(nodes + 1, dtype=np.int64)
        in_degree = np.zeros((shares, nodes), dtype=count_dtype(self.entries))
        self.self_loops = int(_count(self._key, self._node_bits, self._type_bits, starts, in_degree))
        self.out_degree: Int64Array = np.diff(starts)
        self.in_degree: Int64Array = in_degree.sum(axis=0, dtype=np.int64)

    @staticmethod
    def fits(nodes: int, edge_type: Int32Array | None) -> bool:
        """Whether an edge of such a graph fits one integer."""
        node_bits, type_bits = _bits(nodes, _types(edge_type))
        return 2 * node_bits + type_bits <= KEY_BITS

    def compress(self, inverse_order: Int32Array) -> tuple[CompressedRows, CompressedRows]:
        """Compress by source and by destination; uses the edges up.

        Parameters
        ----------
        inverse_order : int32 (nodes)
            Internal node of each tie rank.

        Returns
        -------
        tuple of two `CompressedRows`
            Rows and neighbors are internal nodes; the other ends of a row are in the order of their tie ranks.
        """
        order = np.empty_like(inverse_order)
        order[inverse_order] = np.arange(len(order), dtype=np.int32)
        # From here on an edge is (internal target, internal source, type), still in the order of the tie ranks.
        _rename(self._key, inverse_order, self._node_bits, self._type_bits, self._threads)
        by_source = self._move_rows(order)
        # Stable: sources stay in order within a target, types within a source.
        rows: Rows = (self._key, self._weight)
        spare: Rows = (self._spare_key, None if self._weight is None else np.empty_like(self._weight))
        del self._key, self._weight, self._spare_key
        low = self._node_bits + self._type_bits
        (key, weight), spare = sort_by_bits(rows, spare, low=low, high=low + self._node_bits, threads=self._threads)
        del rows, spare
        neighbors, types = self._empty(np.int32), self._empty(self._type_dtype)
        _unpack(key, neighbors, types, self._node_bits, self._type_bits, self._threads)
        weights = None if weight is None else weight.astype(np.float64, copy=False)
        return by_source, (offsets_of(self.in_degree[order]), neighbors, weights, types)

    def _move_rows(self, order: Int32Array) -> CompressedRows:
        """Compress by source: whole rows go to their internal places."""
        offsets = offsets_of(self.out_degree[order])
        starts = offsets_of(self.out_degree)[order]
        neighbors, types = self._empty(np.int32), self._empty(self._type_dtype)
        weights = None if self._weight is None else self._empty(np.float64)
        # Rows are many and short or few and long: share out the entries, not the rows.
        shares = np.searchsorted(offsets, self.entries * np.arange(self._threads + 1) // self._threads)
        shares[-1] = len(order)
        shift = self._node_bits + self._type_bits
        _move_rows(self._key, self._weight, starts, offsets, neighbors, weights, types, shift, self._type_bits, shares)
        return offsets, neighbors, weights, types

    def _empty(self, dtype: Any) -> Any:
        """One element an entry."""
        return None if dtype is None else np.empty(self.entries, dtype=dtype)


def _types(edge_type: Int32Array | None) -> int:
    return 1 if edge_type is None or not len(edge_type) else int(edge_type.max()) + 1


def _bits(nodes: int, types: int) -> tuple[int, int]:
    return max(nodes - 1, 1).bit_length(), (types - 1).bit_length()


@compiled(parallel=True)
def _pack(source: Any, target: Any, edge_type: Any, key: Any, node_bits: int, type_bits: int, threads: int) -> None:
    rows = key.shape[0]
    for thread in prange(threads):
        for i in range(rows * thread // threads, rows * (thread + 1) // threads):
            packed = np.int64(source[i]) << node_bits | np.int64(target[i])
            if edge_type is not None:
                packed = packed << type_bits | np.int64(edge_type[i])
            key[i] = packed


@compiled(parallel=True)
def _count(key: Any, node_bits: int, type_bits: int, starts: Any, in_degree: Any) -> int:
    """Count what the sorted edges hold.

    ``starts[source]`` becomes the first edge of that source or of a later one. Each row of `in_degree` counts the edges
    by target for one share of them. Returns the number of nodes with an edge to themselves.
    """
    rows, nodes, shares = key.shape[0], starts.shape[0] - 1, in_degree.shape[0]
    mask = (1 << node_bits) - 1
    loops = 0
    for share in prange(shares):
        for i in range(rows * share // shares, rows * (share + 1) // shares):
            ends = key[i] >> type_bits
            ends_before = key[i - 1] >> type_bits if i else -1
            # Each element has one writer: a gap between two edges belongs to the later one.
            for source in range((ends_before >> node_bits) + 1, (ends >> node_bits) + 1):
                starts[source] = i
            in_degree[share, ends & mask] += 1
            # Loops of several types are neighbours and count once.
            if ends >> node_bits == ends & mask and ends != ends_before:
                loops += 1
    for source in range((key[rows - 1] >> (node_bits + type_bits)) + 1 if rows else 0, nodes + 1):
        starts[source] = rows
    return loops


@compiled(parallel=True)
def _rename(key: Any, inverse_order: Any, node_bits: int, type_bits: int, threads: int) -> None:
    """Turn (source, target, type) into (internal target, internal source, type)."""
    rows = key.shape[0]
    node_mask = (1 << node_bits) - 1
    type_mask = (1 << type_bits) - 1
    for thread in prange(threads):
        for i in range(rows * thread // threads, rows * (thread + 1) // threads):
            edge = key[i]
            source = np.int64(inverse_order[edge >> (node_bits + type_bits)])
            target = np.int64(inverse_order[edge >> type_bits & node_mask])
            key[i] = (target << node_bits | source) << type_bits | (edge & type_mask)


@compiled(parallel=True)
def _move_rows(
    key: Any,
    weight: Any,
    starts: Any,
    offsets: Any,
    neighbors: Any,
    weights: Any,
    types: Any,
    shift: int,
    type_bits: int,
    shares: Any,
) -> None:
    """Copy the row that begins at ``starts[node]`` to ``offsets[node]``, for all nodes."""
    type_mask = (1 << type_bits) - 1
    for share in prange(shares.shape[0] - 1):
        for node in range(shares[share], shares[share + 1]):
            first, begin = starts[node], offsets[node]
            for i in range(offsets[node + 1] - begin):
                neighbors[begin + i] = key[first + i] >> shift
            if weight is not None:
                for i in range(offsets[node + 1] - begin):
                    weights[begin + i] = weight[first + i]
            if types is not None:
                for i in range(offsets[node + 1] - begin):
                    types[begin + i] = key[first + i] & type_mask


@compiled(parallel=True)
def _unpack(key: Any, neighbors: Any, types: Any, node_bits: int, type_bits: int, threads: int) -> None:
    """Neighbors and types of edges that are in the order of the result."""
    rows = key.shape[0]
    node_mask = (1 << node_bits) - 1
    type_mask = (1 << type_bits) - 1
    for thread in prange(threads):
        for i in range(rows * thread // threads, rows * (thread + 1) // threads):
            neighbors[i] = key[i] >> type_bits & node_mask
            if types is not None:
                types[i] = key[i] & type_mask
