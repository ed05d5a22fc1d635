"""Whether the arrays of a graph store could be a graph: compiled kernels trust them, and would leave their memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.errors import InputDataError
from seedrank.io.graph.graph_files import StoredRows
from seedrank.io.records import GraphFacts


def refuse_unsound_rows(rows: StoredRows, side: str, *, store: Path, facts: GraphFacts) -> None:
    """Refuse compressed rows that point outside the graph; one pass at the speed of the disk.

    Raises
    ------
    InputDataError
        Naming the file.
    """
    arrays = {"neighbors": rows.neighbors, "weights": rows.weights, "types": rows.types}
    lengths = {name: len(array) for name, array in arrays.items() if array is not None}
    refuse_unsound_offsets(rows.offsets, lengths, side, store=store, facts=facts)
    refuse_unsound_entries(rows.neighbors, rows.types, side, store=store, facts=facts)


def refuse_unsound_offsets(
    offsets: npt.NDArray[np.int64], lengths: Mapping[str, int], side: str, *, store: Path, facts: GraphFacts
) -> None:
    """Refuse offsets that are not those of arrays of these lengths.

    Raises
    ------
    InputDataError
        Naming the file.
    """
    entries = lengths["neighbors"]
    if not (
        len(offsets) == facts.nodes + 1
        and offsets[0] == 0
        and offsets[-1] == entries
        and bool((np.diff(offsets) >= 0).all())
    ):
        raise _unsound(store, f"{side}_offsets")
    for name, length in lengths.items():
        if length != entries:
            raise _unsound(store, f"{side}_{name}")


def refuse_unsound_entries(
    neighbors: npt.NDArray[np.int32], types: npt.NDArray[Any] | None, side: str, *, store: Path, facts: GraphFacts
) -> None:
    """Refuse entries, all or some of them, that lead out of the graph or are of no type.

    Raises
    ------
    InputDataError
        Naming the file.
    """
    if not len(neighbors):
        return
    if neighbors.min() < 0 or neighbors.max() >= facts.nodes:
        raise _unsound(store, f"{side}_neighbors")
    if types is not None and types.max() >= len(facts.edge_types):
        raise _unsound(store, f"{side}_types")


def refuse_unsound_numbering(array: npt.NDArray[Any], name: str, *, store: Path, nodes: int) -> None:
    """Refuse a numbering of the nodes that names others.

    Raises
    ------
    InputDataError
        Naming the file.
    """
    if len(array) != nodes or (nodes and (array.min() < 0 or array.max() >= nodes)):
        raise _unsound(store, name)


def _unsound(store: Path, name: str) -> InputDataError:
    return InputDataError(
        f"{store / f'{name}.npy'} holds numbers that no graph has",
        expected="the file that build wrote; its hash is in graph.json",
        fix=f"rebuild it: seedrank build EDGES --out {store} --overwrite",
    )
