"""Write synthetic inputs as Parquet: an RMAT edge list, the table of all its nodes, and hits.

The same arguments give the same rows on every machine.

    python benchmarks/generate.py edges --scale 20 --rows 16000000 --out edges.parquet
    python benchmarks/generate.py edges --scale 20 --rows 16000000 --ids string --out edges.parquet
    python benchmarks/generate.py nodes --scale 20 --out nodes.parquet
    python benchmarks/generate.py hits --scale 20 --queries 5000 --out hits.parquet
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Int64Array = npt.NDArray[np.int64]

CHUNK_ROWS = 1 << 20

# Quadrant probabilities of Graph500: both ends in the lower half; only dst in the upper; only src; both.
BOTH_LOW, DST_HIGH, SRC_HIGH = 0.57, 0.19, 0.19

SEEDS_PER_QUERY = 5


def rmat_edges(scale: int, rows: int, random_seed: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield chunks of an RMAT graph on 2**scale nodes, duplicates and self loops kept, as Graph500 has them.

    Parameters
    ----------
    scale : int
        Logarithm of the number of node ids, 0 to 31.
    rows : int
        Edges in total.
    random_seed : int
        Each chunk has a generator of its own, so a longer list starts like a shorter one.

    Yields
    ------
    tuple of ndarray
        Sources and destinations, int64, at most `CHUNK_ROWS` long. Ids are shuffled: without that, hubs are
        the small ids and memory access is better than real data allows.
    """
    names = np.random.default_rng([random_seed, 0]).permutation(np.int64(1) << scale)
    for chunk, first in enumerate(range(0, rows, CHUNK_ROWS)):
        generator = np.random.default_rng([random_seed, 1, chunk])
        source, destination = np.zeros((2, CHUNK_ROWS), dtype=np.int64)
        for _ in range(scale):
            draw = generator.random(CHUNK_ROWS, dtype=np.float32)
            source_bit = draw >= BOTH_LOW + DST_HIGH
            destination_bit = draw >= BOTH_LOW
            destination_bit &= ~source_bit | (draw >= BOTH_LOW + DST_HIGH + SRC_HIGH)
            source = source << 1 | source_bit
            destination = destination << 1 | destination_bit
        kept = min(CHUNK_ROWS, rows - first)
        yield names[source[:kept]], names[destination[:kept]]


def write_edges(path: str, *, scale: int, rows: int, random_seed: int, ids: str) -> None:
    """Write ``src`` and ``dst``, int64 or strings like ``v00000042``, one row group per chunk."""
    id_type = pa.string() if ids == "string" else pa.int64()
    schema = pa.schema([("src", id_type), ("dst", id_type)])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for ends in rmat_edges(scale, rows, random_seed):
            columns = [as_text(numbers) if ids == "string" else pa.array(numbers) for numbers in ends]
            writer.write_table(pa.table(columns, schema=schema))


def as_text(numbers: Int64Array) -> pa.Array:
    """Names of nine characters whose order is that of the numbers."""
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width=8, padding="0")
    return pc.binary_join_element_wise("v", digits, "")


def write_nodes(path: str, *, scale: int) -> None:
    """Write ``id``, int64: every id of the scale, so that the graph has exactly 2**scale nodes."""
    pq.write_table(pa.table({"id": np.arange(1 << scale)}), path, compression="zstd")


def write_hits(path: str, *, scale: int, queries: int, random_seed: int) -> None:
    """Write ``query_id``, ``node_id`` (int64) and ``weight`` (float64 in (0, 1]); five hits a query."""
    generator = np.random.default_rng([random_seed, 2])
    count = queries * SEEDS_PER_QUERY
    table = pa.table(
        {
            "query_id": np.repeat(np.arange(queries), SEEDS_PER_QUERY),
            "node_id": generator.integers(0, 1 << scale, count),
            "weight": 1.0 - generator.random(count),
        }
    )
    pq.write_table(table, path, compression="zstd")


def main() -> None:
    """Write what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["edges", "nodes", "hits"])
    parser.add_argument("--scale", type=int, default=20, help="2**SCALE nodes (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=16_000_000, help="edges (default: %(default)s)")
    parser.add_argument("--ids", choices=["int64", "string"], default="int64", help="of edges (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=5_000, help="queries (default: %(default)s)")
    parser.add_argument("--random-seed", type=int, default=42, help="(default: %(default)s)")
    parser.add_argument("--out", required=True, metavar="FILE")
    chosen = parser.parse_args()
    if chosen.what == "edges":
        write_edges(
            chosen.out,
            scale=chosen.scale,
            rows=chosen.rows,
            random_seed=chosen.random_seed,
            ids=chosen.ids,
        )
    elif chosen.what == "nodes":
        write_nodes(chosen.out, scale=chosen.scale)
    else:
        write_hits(chosen.out, scale=chosen.scale, queries=chosen.queries, random_seed=chosen.random_seed)


if __name__ == "__main__":
    main()
