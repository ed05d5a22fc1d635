"""A transition matrix, laid out on the device."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np

from seedrank.kernels._gpu.device import device_dtype, filled
from seedrank.kernels._gpu.merged_rows import MergedRows
from seedrank.kernels._gpu.source import PIECE, RULES
from seedrank.kernels._gpu.staging import PIECE_BYTES, Staging
from seedrank.kernels.arrays import BoolArray, Int32Array, Int64Array, Precision
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.transition import Transition


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


def upload_graph(
    transition: Transition, *, precision: Precision, order: Int32Array, piece_bytes: int = PIECE_BYTES
) -> DeviceGraph:
    """Copy a graph to the device, once for all blocks.

    Parameters
    ----------
    transition : Transition
    precision : "float32" or "float64"
    order : int32 (n)
        Tie rank by internal node.
    piece_bytes : int
        See `seedrank.kernels._gpu.staging.Staging`.

    Returns
    -------
    DeviceGraph

    Raises
    ------
    MemoryError
        It does not fit.
    """
    dtype = device_dtype(precision)
    merged, staging = MergedRows.of(transition), Staging(piece_bytes)
    dangling = np.zeros(transition.nodes, dtype=np.bool_)
    dangling[transition.dangling_nodes] = True
    rows, starts, first, last = cut_long_rows(merged.offsets)
    with np.errstate(over="ignore"):  # factors of tiny weights are not used, see Transition.inverse_out_weight
        factors = staging.upload_array(transition.inverse_out_weight, dtype)
    return DeviceGraph(
        nodes=transition.nodes,
        precision=precision,
        rule=RULES.index(transition.dangling),
        offsets=staging.upload_array(merged.offsets),
        sources=staging.upload(merged.entries, np.int32, merged.write_columns),
        values=staging.upload(merged.entries, dtype, merged.write_values) if merged.valued else None,
        factors=factors,
        dangling=staging.upload_array(dangling.view(np.uint8)),
        dangling_host=dangling,
        order=staging.upload_array(order),
        order_host=order,
        long_rows=cupy.asarray(rows),
        long_pieces=cupy.asarray(starts),
        piece_first=cupy.asarray(first),
        piece_last=cupy.asarray(last),
        pieces=len(first),
        first_seed=filled(transition.nodes, -1, np.int32),
    )


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
    starts = offsets_of(counts)
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    first = np.repeat(offsets[rows], counts) + within * PIECE
    last = np.minimum(first + PIECE, np.repeat(offsets[rows + 1], counts))
    return rows.astype(np.int32), starts.astype(np.int32), first, last
