"""Whether the arrays of a graph store could be a graph: compiled kernels trust them, and would leave their memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seedrank.errors import InputDataError
from seedrank.io.records import GraphFacts

if TYPE_CHECKING:
    from seedrank.io.graph_files import StoredRows


def refuse_unsound_rows(rows: StoredRows, side: str, *, store: Path, facts: GraphFacts) -> None:
    """Refuse compressed rows that point outside the graph; one pass at the speed of the disk.

    Raises
    ------
    InputDataError
        Naming the file.
    """
    offsets, neighbors, weights, types = rows.offsets, rows.neighbors, rows.weights, rows.types
    entries, some = len(neighbors), len(neighbors) > 0
    sound = {
        "offsets": len(offsets) == facts.nodes + 1
        and offsets[0] == 0
        and offsets[-1] == entries
        and bool((np.diff(offsets) >= 0).all()),
        "neighbors": not some or (neighbors.min() >= 0 and neighbors.max() < facts.nodes),
        "weights": weights is None or len(weights) == entries,
        "types": types is None or (len(types) == entries and (not some or types.max() < len(facts.edge_types))),
    }
    for name, is_sound in sound.items():
        if not is_sound:
            raise _unsound(store, f"{side}_{name}")


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
