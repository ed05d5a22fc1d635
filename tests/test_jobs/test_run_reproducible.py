"""What must not change a run: time, file names, order of rows, block size. And ids come back as they went in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank

Write = Callable[..., Path]

NODES, EDGES, QUERIES = 60, 300, 70
OPTIONS: dict[str, Any] = {"damping": 0.7, "direction": "both", "top_k": 20, "part_size": 32}


def random_tables(seed: int = 5) -> tuple[pa.Table, pa.Table]:
    """Weighted, typed edges with duplicates and loops; weighted hits of two sources, some unknown or null."""
    random = np.random.default_rng(seed)
    edges = pa.table(
        {
            "src": random.integers(0, NODES, EDGES),
            "dst": random.integers(0, NODES, EDGES),
            "weight": random.integers(0, 9, EDGES) / 7,
            "type": [("cites", "likes", None)[i] for i in random.integers(0, 3, EDGES)],
        }
    )
    rows = QUERIES * 4
    nodes = random.integers(0, NODES + 3, rows)
    hits = pa.table(
        {
            "query_id": [f"q{i:02d}" for i in random.permutation(np.arange(rows) % QUERIES)],
            "node_id": pa.array(nodes, mask=nodes == 0),
            "weight": random.random(rows),
            "source": [("dense", "sparse")[i] for i in random.integers(0, 2, rows)],
        }
    )
    return edges, hits


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def part_bytes(run: seedrank.Run) -> dict[str, bytes]:
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in run.candidates.files + run.queries.files}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> seedrank.Run:
    edges, hits = random_tables()
    return seedrank.score(edges, queries=hits, out=tmp_path_factory.mktemp("reference") / "run", **OPTIONS)


def test_the_reference_is_worth_comparing(reference: seedrank.Run) -> None:
    assert len(part_bytes(reference)) == 6
    assert len(reference.candidates) > QUERIES * 15
    iterations = reference.queries.to_arrow().column("iterations").to_pylist()
    assert len(set(iterations)) > 1  # columns of one block finish at different times


@pytest.mark.parametrize("block_size", [1, 7, 64])
@pytest.mark.parametrize(
    ("options", "solver"),
    [
        ({}, "sweeps"),
        ({"precision": "float64"}, "sweeps"),
        ({"dangling": "uniform"}, "steps"),
        ({"backend": "scipy"}, "steps"),
        ({"backend": "scipy", "precision": "float64"}, "steps"),
    ],
    ids=str,
)
def test_block_size_changes_no_byte(
    reference: seedrank.Run, tmp_path: Path, block_size: int, options: dict[str, Any], solver: str
) -> None:
    edges, hits = random_tables()
    options = {**OPTIONS, **options}
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", block_size=block_size, **options)
    if options != OPTIONS:
        reference = seedrank.score(edges, queries=hits, out=tmp_path / "wide", block_size=QUERIES, **options)
    assert reference.manifest.backend is not None
    assert reference.manifest.backend.solver.startswith(solver)
    if solver == "steps":
        assert len(set(reference.queries.to_arrow().column("iterations").to_pylist())) > 3
    assert part_bytes(run) == part_bytes(reference)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_no_byte(
    seedrank_command: Callable[..., Any], reference: seedrank.Run, write: Write, tmp_path: Path, threads: int
) -> None:
    edges, hits = random_tables()
    options = [text for name, value in OPTIONS.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    result = seedrank_command(
        "score", write("edges.parquet", edges), "--queries", write("hits.parquet", hits), "--out", tmp_path / "run",
        "--threads", str(threads), *options,
    )  # fmt: skip
    assert result.code == 0, result.err
    run = seedrank.open_run(tmp_path / "run")
    assert part_bytes(run) == part_bytes(reference)
    recorded = run.manifest.options["threads"]
    assert (recorded.value, recorded.origin) == (threads, "flag")
    unset = reference.manifest.options["threads"]
    assert (unset.value, unset.origin) == (None, "default")


def test_backends_agree_on_every_candidate(reference: seedrank.Run, tmp_path: Path) -> None:
    """Other bytes, the same rows within 1e-6 in float32 and 1e-12 in float64."""
    edges, hits = random_tables()
    for precision, close in (("float32", 1e-6), ("float64", 1e-12)):
        tables = []
        for backend in ("cpu", "scipy"):
            options = {**OPTIONS, "precision": precision, "tolerance": 1e-12, "top_k": NODES}
            run = seedrank.score(
                edges, queries=hits, out=tmp_path / f"{backend}-{precision}", backend=backend, **options
            )
            assert run.manifest.backend is not None
            assert (run.manifest.backend.name, run.manifest.backend.reason) == (backend, "asked for by name")
            tables.append(run.candidates.to_arrow().sort_by([("query_id", "ascending"), ("node_id", "ascending")]))
        ours, theirs = tables
        assert ours.num_rows > 10 * QUERIES
        assert ours.select(["query_id", "node_id"]).equals(theirs.select(["query_id", "node_id"]))
        np.testing.assert_allclose(ours["score"].to_numpy(), theirs["score"].to_numpy(), rtol=0, atol=close)


def test_two_runs_of_one_command_give_the_same_bytes(reference: seedrank.Run, write: Write, tmp_path: Path) -> None:
    edges, hits = random_tables()
    from_files = seedrank.score(
        write("any/name.parquet", edges), queries=write("other.parquet", hits), out=tmp_path / "b", **OPTIONS
    )
    store = seedrank.build(edges, out=tmp_path / "graph")
    from_store = seedrank.score(store, queries=hits, out=tmp_path / "c", **OPTIONS)
    assert part_bytes(from_files) == part_bytes(reference)
    assert part_bytes(from_store) == part_bytes(reference)


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_rows_and_files_changes_nothing(
    reference: seedrank.Run, write: Write, tmp_path: Path, seed: int
) -> None:
    edges, hits = (shuffled(table, seed) for table in random_tables())
    for part, first in enumerate(range(0, EDGES, 77)):
        write(f"edges/part-{part}.parquet", edges.slice(first, 77))
    for part, first in enumerate(range(0, hits.num_rows, 99)):
        write(f"hits/part-{part}.parquet", hits.slice(first, 99))
    run = seedrank.score(tmp_path / "edges", queries=tmp_path / "hits", out=tmp_path / "run", **OPTIONS)
    assert part_bytes(run) == part_bytes(reference)
    for name, record in reference.manifest.inputs.items():
        assert run.manifest.inputs[name].fingerprint == record.fingerprint, name


def test_part_size_changes_the_cut_and_no_row(reference: seedrank.Run, tmp_path: Path) -> None:
    edges, hits = random_tables()
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", **{**OPTIONS, "part_size": 7})
    assert len(run.candidates.files) == 10
    assert run.candidates.to_arrow().equals(reference.candidates.to_arrow())
    assert run.queries.to_arrow().equals(reference.queries.to_arrow())


def test_fingerprints_tell_different_content_apart(reference: seedrank.Run, tmp_path: Path) -> None:
    edges, hits = random_tables()
    changed_edges = edges.set_column(2, "weight", pa.array([1.5, *edges.column("weight").to_pylist()[1:]]))
    changed_hits = hits.set_column(2, "weight", pa.array([1.5, *hits.column("weight").to_pylist()[1:]]))
    found = set()
    for number, (graph, queries) in enumerate([(edges, changed_hits), (changed_edges, hits)]):
        run = seedrank.score(graph, queries=queries, out=tmp_path / str(number), **OPTIONS)
        found.add(tuple(record.fingerprint for _, record in sorted(run.manifest.inputs.items())))
    found.add(tuple(record.fingerprint for _, record in sorted(reference.manifest.inputs.items())))
    assert len(found) == 3
    assert len({fingerprint for pair in found for fingerprint in pair}) == 4


INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integer_ids_come_back_in_their_type(tmp_path: Path, kind: pa.DataType) -> None:
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = pa.table({"src": pa.array([low, 7], kind), "dst": pa.array([high, low], kind)})
    hits = pa.table({"query_id": pa.array([high, low], kind), "node_id": pa.array([low, 7], kind)})
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", include_seeds=True)
    table = run.candidates.to_arrow()
    assert table.schema.field("query_id").type == table.schema.field("node_id").type == kind
    assert run.queries.schema.field("query_id").type == kind
    assert set(zip(table.column("query_id").to_pylist(), table.column("node_id").to_pylist(), strict=True)) == {
        (low, 7), (low, low), (low, high), (high, low), (high, high),
    }  # fmt: skip
    assert run.manifest.graph is not None
    assert run.manifest.graph.id_type == str(kind)


def test_neighbours_beyond_2_to_the_53_stay_apart(tmp_path: Path) -> None:
    big = 2**53
    edges = pa.table({"src": [big, big + 1], "dst": [big + 2, big + 3]})
    hits = pa.table({"query_id": [big + 1], "node_id": [big + 1]})
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", include_seeds=True)
    assert run.candidates.to_arrow().column("node_id").to_pylist() == [big + 1, big + 3]
    assert run.queries.to_arrow().column("query_id").to_pylist() == [big + 1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_string_ids_come_back_in_their_type(tmp_path: Path, kind: pa.DataType) -> None:
    edges = pa.table({"src": pa.array(["ä", "z", "0"], kind), "dst": pa.array(["z", "0", "ä"], kind)})
    hits = pa.table({"query_id": pa.array(["q", ""], kind), "node_id": pa.array(["ä", "0"], kind)})
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", include_seeds=True)
    table = run.candidates.to_arrow()
    assert table.schema.field("query_id").type == table.schema.field("node_id").type == kind
    assert table.column("query_id").to_pylist() == [""] * 3 + ["q"] * 3
    assert table.column("node_id").to_pylist() == ["0", "ä", "z", "ä", "z", "0"]


@pytest.mark.parametrize("values", [pa.string(), pa.large_string(), pa.int32()], ids=str)
def test_dictionary_ids_come_back_as_their_values(tmp_path: Path, values: pa.DataType) -> None:
    def column(*items: int) -> pa.Array:
        return pa.array(items).cast(values).dictionary_encode()

    # Tables in memory: a Parquet file itself forgets the large_string of a dictionary.
    edges = pa.table({"src": column(1, 2, 3), "dst": column(2, 3, 1)})
    hits = pa.table({"query_id": column(9, 8), "node_id": column(1, 2)})
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run")
    table = pq.read_table(run.candidates.files[0])
    assert table.schema.field("query_id").type == table.schema.field("node_id").type == values
    expected = [(8, 3), (8, 1), (9, 2), (9, 3)]
    found = zip(table.column("query_id").to_pylist(), table.column("node_id").to_pylist(), strict=True)
    assert [(int(query), int(node)) for query, node in found] == expected
