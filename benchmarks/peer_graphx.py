"""Apache Spark's GraphX, the one mainstream batch interface, from Python through the JVM of the pyspark wheel."""

from __future__ import annotations

import ast
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from graphs import Int32Array, SimpleGraph
from peer import ITERATIONS, RESTART, Peer


class GraphX(Peer):
    """``PageRank.runParallelPersonalizedPageRank`` in local mode; timed until the vectors are there, in the JVM."""

    name = "GraphX parallel PPR"
    computes = (
        "10 iterations, every seed a source of its own, summed; float64, Spark in local mode; each source takes back "
        "its own dangling mass, which with several seeds is another vector; without selecting the top 100"
    )
    install = "pip install pyspark  (and Java 17)"
    goal = "iterations"
    block = 4
    most_edges = 200_000
    too_large = "many seconds a query"

    def __init__(self, graph: SimpleGraph) -> None:
        from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

        if shutil.which("java") is None:
            raise ImportError("no java on PATH")
        super().__init__(graph)
        self._folder = Path(tempfile.mkdtemp(prefix="seedrank-graphx-"))
        edges = self._folder / "edges.txt"
        np.savetxt(edges, np.column_stack((graph.source, graph.target)), fmt="%d")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "6g",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "ERROR",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local[*]").appName("seedrank-benchmark")
        for key, value in settings.items():
            builder = builder.config(key, value)
        self._session: Any = builder.getOrCreate()
        context = self._session.sparkContext
        self._gateway, self._machine = context._gateway, context._jvm  # noqa: SLF001  # the only way to GraphX
        memory = self._machine.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
        parts = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._loaded = self._machine.org.apache.spark.graphx.GraphLoader.edgeListFile(
            context._jsc.sc(),  # noqa: SLF001
            str(edges),
            False,
            parts,
            memory,
            memory,
        )
        self._loaded.edges().count()

    def _vertices(self, seeds: Int32Array) -> tuple[Int32Array, Any]:
        """Sources, and the (lazy) vertices with one rank a source."""
        # Repeated sources collapse: columns are by distinct node.
        sources = np.unique(seeds)
        array = self._gateway.new_array(self._machine.long, len(sources))
        for position, node in enumerate(sources.tolist()):
            array[position] = node
        tag = self._machine.scala.reflect.ClassTag.Int()
        library = self._machine.org.apache.spark.graphx.lib.PageRank
        ranks = library.runParallelPersonalizedPageRank(self._loaded, ITERATIONS, RESTART, array, tag, tag)
        return sources, ranks.vertices()

    def top(self, seeds: Int32Array) -> list[Int32Array]:
        """Compute the vectors, for the time; the best nodes are not selected."""
        for first in range(0, len(seeds), self.block):
            self._vertices(seeds[first : first + self.block])[1].count()
        return []

    def scores(self, seeds: Int32Array) -> npt.NDArray[Any]:
        """See `Peer.scores`; the vectors come through text files."""
        sources, vertices = self._vertices(seeds)
        out = self._folder / "vectors"
        shutil.rmtree(out, ignore_errors=True)
        vertices.saveAsTextFile(str(out))
        by_source = np.zeros((len(sources), self.graph.nodes))
        for part in sorted(out.glob("part-*")):
            for line in part.read_text(encoding="ascii").splitlines():
                node, (_, columns, values) = ast.literal_eval(line)  # (node,(sources,[column,…],[value,…]))
                by_source[columns, node] = values
        return np.stack([by_source[np.searchsorted(sources, row)].mean(axis=0) for row in seeds])

    def close(self) -> None:
        """End Spark and remove its files."""
        self._session.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
