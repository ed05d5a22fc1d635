"""The formulas of scale_model.py: bytes of graphs and blocks, and who may compute on them how fast."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

#: The widest block of a product, and the share of free device memory that blocks may take (kernels/backends/gpu.py).
WIDEST, USABLE = 64, 0.85
#: What a gather from beyond the caches moves at least, in bytes: a sector on a GPU, a line on a host.
SECTOR, LINE = 32, 64


@dataclass(frozen=True)
class Graph:
    """Nodes and distinct edges, without weights and types."""

    name: str
    nodes: float
    edges: float

    @property
    def store_bytes(self) -> float:
        """Files of the graph store: neighbors twice; ids of 8 bytes, offsets twice, both numberings."""
        return 8 * self.edges + (8 + 2 * 8 + 2 * 4) * self.nodes

    @property
    def temporary_bytes(self) -> float:
        """Most that `build` has in temporary files, if each edge is listed once: two ends and a key, later two keys."""
        return 16 * self.edges

    @property
    def cpu_bytes(self) -> float:
        """The layout of the cpu backend: sources and offsets, numberings there and back, scales, diagonal."""
        return 4 * self.edges + (8 + 2 * 4 + 3 * 4) * self.nodes

    @property
    def gpu_bytes(self) -> float:
        """The graph on a device: sources and offsets, factors, order, places of the seeds, a byte for dangling."""
        return 4 * self.edges + (8 + 3 * 4 + 1) * self.nodes

    @property
    def column_bytes(self) -> float:
        """One query of a block in float32: the vector and its successor."""
        return 8 * self.nodes


@dataclass(frozen=True)
class Machine:
    """Somebody who computes.

    Attributes
    ----------
    memory : bytes of the device, or of the host.
    bandwidth : bytes a second that useful work gets of it.
    price : of an hour.
    gpu : whether it is one.
    """

    name: str
    memory: float
    bandwidth: float
    price: float
    gpu: bool

    def graph_bytes(self, graph: Graph) -> float:
        """What the graph takes there."""
        return graph.gpu_bytes if self.gpu else graph.cpu_bytes

    def product_bytes(self, graph: Graph, width: int) -> float:
        """Bytes that one product moves at most: an edge, its row of the matrix each time, both matrices once."""
        row = max(4 * width, SECTOR if self.gpu else LINE)
        return (4 + row) * graph.edges + width * graph.column_bytes

    def product_seconds(self, graph: Graph, width: int) -> float:
        """Seconds of one product with a block of so many queries."""
        return self.product_bytes(graph, width) / self.bandwidth

    def width(self, graph: Graph) -> int:
        """Queries of a block beside the graph; 0 where not even one fits."""
        column = graph.column_bytes + (graph.nodes / 8 if self.gpu else 0)
        left = (self.memory - self.graph_bytes(graph)) * (USABLE if self.gpu else 1)
        return max(0, math.floor(min(left / column, WIDEST)))

    def largest(self, width: int, degree: float) -> float:
        """Edges of the largest graph of that many edges a node that leaves room for a block of so many queries."""
        one = Graph("", 1 / degree, 1)
        column = one.column_bytes + (one.nodes / 8 if self.gpu else 0)
        return self.memory / (self.graph_bytes(one) + width * column / (USABLE if self.gpu else 1))


@dataclass(frozen=True)
class Assumptions:
    """What is not measured; the command line has all of it.

    Attributes
    ----------
    queries : how many are wanted.
    products : products with the graph that a query takes.
    useful : share of a GPU's data sheet bandwidth that the product gets. Never measured.
    link : bytes a second of one GPU's link to the others.
    disk : bytes a second that slabs of a graph larger than memory are read with.
    server : bytes a second that useful work gets of the memory of a large server.
    prices : of an hour, by name.
    """

    queries: float
    products: int
    useful: float
    link: float
    disk: float
    server: float
    prices: dict[str, float]


#: Memory and bandwidth of the data sheets, and a price of an hour to calculate with.
DEVICES = {
    "H200": (141e9, 4.8e12, 4.0),
    "H100": (80e9, 3.35e12, 3.0),
    "A100-80": (80e9, 2.04e12, 2.0),
    "A100-40": (40e9, 1.56e12, 1.5),
}
GRAPHS = (Graph("one billion", 5e7, 1e9), Graph("one hundred billion", 2e9, 1e11))
#: Hosts have the memory that it takes: name and price of an hour.
MEASURED, SERVER = "2 cores, measured", "server, assumed"
DEFAULTS = Assumptions(
    queries=1e7,
    products=20,
    useful=0.5,
    link=50e9,
    disk=5e9,
    server=300e9,
    prices={"cores": 0.1, "server": 5.0, **{name: price for name, (_, _, price) in DEVICES.items()}},
)


def read(name: str) -> dict[str, Any] | None:
    """A committed result, or None where it was never measured."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def machines(assumed: Assumptions) -> list[Machine]:
    """The host that was measured and a larger one, with the memory that it takes, and the devices."""
    profile = read("profile")
    assert profile is not None
    # The measured product moves its bytes at most in less than the copy rate would take: hubs stay in the caches. Of a
    # graph a hundred times as large less of it does, so that the copy rate alone counts.
    found = [
        Machine(MEASURED, math.inf, profile["copy_bytes_per_second"], assumed.prices["cores"], gpu=False),
        Machine(SERVER, math.inf, assumed.server, assumed.prices["server"], gpu=False),
    ]
    for name, (memory, bandwidth, _) in DEVICES.items():
        found.append(Machine(name, memory, bandwidth * assumed.useful, assumed.prices[name], gpu=True))
    return found
