"""A transition matrix, laid out on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cupy
import numpy as np

from seedrank.kernels._gpu.device import device_dtype
from seedrank.kernels._gpu.source import PIECE, RULES
from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.transition import SparseRows, Transition

_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class DeviceGraph:
    """What the kernels read of a graph. Arrays are on the device unless said otherwise.

    Attributes
    ----------
    nodes : int
    precision : "float32" or "float64"
    rule : int
        Position of the dangling rule in `RULES`.
    offsets : int64 (n + 1)
        Bounds of the rows (= destinations) among the entries; may exceed 2**31.
    sources : int32 (m)
    values : (m) or None
        Probabilities in the precision of the run; None: an entry is `factors` of its source.
    factors : (n)
        1 / out-weight.
    dangling : uint8 (n)
    dangling_host : bool (n)
        On the host.
    order : int32 (n)
        Tie ranks.
    order_host : int32 (n)
        On the host.
    long_rows, long_pieces : int32 (r), (r + 1)
        Rows of more than `PIECE` entries, ascending, and where the pieces of each begin.
    piece_first, piece_last : int64 (p)
        Entries of the pieces.
    pieces : int
    first_seed : int32 (n)
        Where the seeds of a row begin in the list of the block; -1: none.
    """

    nodes: int
    precision: Precision
    rule: int
    offsets: cupy.ndarray
    sources: cupy.ndarray
    values: cupy.ndarray | None
    factors: cupy.ndarray
    dangling: cupy.ndarray
    dangling_host: BoolArray
    order: cupy.ndarray
    order_host: Int32Array
    long_rows: cupy.ndarray
    long_pieces: cupy.ndarray
    piece_first: cupy.ndarray
    piece_last: cupy.ndarray
    pieces: int
    first_seed: cupy.ndarray


def upload_graph(transition: Transition, *, precision: Precision, order: Int32Array) -> DeviceGraph:
    """Copy a graph to the device, once for all blocks.

    Parameters
    ----------
    transition : Transition
    precision : "float32" or "float64"
    order : int32 (n)
        Tie rank by internal node.

    Returns
    -------
    DeviceGraph

    Raises
    ------
    MemoryError
        It does not fit.
    """
    dtype = device_dtype(precision)
    offsets, sources, values = merge_rows(transition.products, transition.inverse_out_weight)
    dangling = np.zeros(transition.nodes, dtype=np.bool_)
    dangling[transition.dangling_nodes] = True
    rows, starts, first, last = cut_long_rows(offsets)
    with np.errstate(over="ignore"):  # factors of tiny weights are not used, see Transition.inverse_out_weight
        factors = transition.inverse_out_weight.astype(dtype)
    return DeviceGraph(
        nodes=transition.nodes,
        precision=precision,
        rule=RULES.index(transition.dangling),
        offsets=cupy.asarray(offsets),
        sources=cupy.asarray(sources),
        values=None if values is None else cupy.asarray(values.astype(dtype)),
        factors=cupy.asarray(factors),
        dangling=cupy.asarray(dangling.astype(np.uint8)),
        dangling_host=dangling,
        order=cupy.asarray(order),
        order_host=order,
        long_rows=cupy.asarray(rows),
        long_pieces=cupy.asarray(starts),
        piece_first=cupy.asarray(first),
        piece_last=cupy.asarray(last),
        pieces=len(first),
        first_seed=cupy.asarray(np.full(transition.nodes, -1, dtype=np.int32)),
    )


def merge_rows(
    products: Sequence[SparseRows], inverse_out_weight: Float64Array
) -> tuple[Int64Array, Int32Array, ScoreArray | None]:
    """Write the summands of a transition as one matrix: a row has the entries of the first, then those of the next.

    Parameters
    ----------
    products : sequence of SparseRows
    inverse_out_weight : float64 (n)
        Value of an entry of summands without values, where others have them.

    Returns
    -------
    offsets : int64 (n + 1)
    columns : int32 (m)
    values : float64 (m) or None
        None: no summand has any.
    """
    valued = any(product.probabilities is not None for product in products)
    if len(products) == 1:
        only = products[0]
        return np.asarray(only.offsets, dtype=np.int64), np.asarray(only.columns), only.probabilities
    offsets: Int64Array = sum((product.offsets for product in products[1:]), start=np.asarray(products[0].offsets))
    columns = np.empty(offsets[-1], dtype=np.int32)
    values = np.empty(offsets[-1]) if valued else None
    for start in range(0, len(offsets) - 1, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(offsets) - 1)
        begin = offsets[start:stop].copy()
        for product in products:
            bounds = np.asarray(product.offsets[start : stop + 1])
            lengths = np.diff(bounds)
            entries = slice(bounds[0], bounds[-1])
            place = np.repeat(begin - bounds[:-1], lengths) + np.arange(bounds[0], bounds[-1])
            columns[place] = product.columns[entries]
            if values is not None:
                own = product.probabilities
                values[place] = inverse_out_weight[product.columns[entries]] if own is None else own[entries]
            begin += lengths
    return offsets, columns, values


def cut_long_rows(offsets: Int64Array) -> tuple[Int32Array, Int32Array, Int64Array, Int64Array]:
    """Cut rows of more than `PIECE` entries into pieces of that length; the last may be shorter.

    Parameters
    ----------
    offsets : int64 (n + 1)

    Returns
    -------
    rows : int32 (r)
    starts : int32 (r + 1)
        First piece of each of these rows, and the number of pieces.
    first, last : int64 (p)
        Entries of the pieces.
    """
    lengths = np.diff(offsets)
    rows = np.flatnonzero(lengths > PIECE)
    counts = -(-lengths[rows] // PIECE)
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    first = np.repeat(offsets[rows], counts) + within * PIECE
    last = np.minimum(first + PIECE, np.repeat(offsets[rows + 1], counts))
    return rows.astype(np.int32), starts.astype(np.int32), first, last
