"""What the CPU backend holds: of a loaded graph, and of a started block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels._cpu.buffers import BlockPair
from seedrank.kernels._cpu.frontier import Frontier
from seedrank.kernels._cpu.layout import Layout
from seedrank.kernels._cpu.sums import RunningSums
from seedrank.kernels.arrays import DanglingRule, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import QueryBlock


@dataclass(frozen=True)
class LoadedGraph:
    """What `load` prepares."""

    layout: Layout
    dangling: DanglingRule
    precision: Precision
    ranks: Int32Array
    ones: ScoreArray
    pair: BlockPair
    sums: RunningSums
    frontier: Frontier


@dataclass
class StartedBlock:
    """A started block; `columns` holds, by column of the matrix, its position in the block as started."""

    query: QueryBlock
    restart: float
    columns: Int64Array
    # Mass on rows that pass mass on, by column, and on dangling ones; the latter only where a step was measured.
    active_mass: Float64Array
    dangling_mass: Float64Array
    # What the stored active rows have to be multiplied with; not 1 for columns that were relaxed since the last step.
    norm: Float64Array
    # Seeds of the columns in the matrix, ascending by row, then column: the order in which they are added.
    seed_row: Int64Array
    seed_column: Int64Array
    seed_weight: Float64Array
    # Whether the block is multiplied with the layout's scale, as products want it. A measured step stores the vector
    # as it is: dividing by an out-weight and multiplying with it again would tell equal scores apart.
    scaled: bool = True
    # Whether sums were begun.
    summed: bool = False


def seed_mass(row: Int64Array, column: Int64Array, weight: Float64Array, *, active: int, width: int) -> Float64Array:
    """Seed weight by column, over active and over dangling rows: float64 (2, width)."""
    mass = np.zeros((2, width))
    np.add.at(mass, ((row >= active).astype(np.int64), column), weight)
    return mass
