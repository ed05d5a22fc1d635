"""Inputs that should not be there end with 0, 2 or 3 and a message, whatever they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import seedrank
from seedrank.testing.odd_tables import damaged_files, odd_files

PROGRAM = Path(__file__).parent / "fuzzing.py"
#: Inputs of the run in one warm process; more by this variable of the environment.
INPUTS = int(os.environ.get("SEEDRANK_TEST_FUZZ", "500"))
COMMANDS = 24

EDGES = pa.table({"src": [0, 1, 2], "dst": [1, 2, 0], "weight": [1.0, 2.0, 0.5]})


def test_inputs_in_one_warm_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = subprocess.run(
        [sys.executable, PROGRAM, tmp_path, "--inputs", str(INPUTS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout)
    with capsys.disabled():
        sys.stdout.write(f" [{found['inputs']} inputs, by exit code {found['by_exit_code']}] ")
    assert found["inputs"] == INPUTS
    assert found["by_exit_code"]["0"] > INPUTS // 20  # some are read to the end,
    assert found["by_exit_code"]["3"] > INPUTS // 3  # and many are not


def test_inputs_through_the_real_command(tmp_path: Path, forked_commands: Any) -> None:
    ended: list[int] = []

    def run_with(data: bytes) -> None:
        (tmp_path / "input.parquet").write_bytes(data)
        command = ["build", "input.parquet", "--out", "graph", "--overwrite"]
        done = forked_commands.run(command, folder=tmp_path, timeout_s=60)
        assert done.returncode in (0, 3), done.stderr
        assert "Traceback" not in done.stderr
        assert done.returncode == 0 or "input.parquet" in done.stderr
        ended.append(done.returncode)

    options: dict[str, Any] = {
        "max_examples": COMMANDS // 2,
        "database": None,
        "deadline": None,
        "derandomize": True,
        "phases": [Phase.generate],
        "suppress_health_check": list(HealthCheck),
    }
    settings(**options)(given(odd_files("edges"))(run_with))()
    settings(**options)(given(damaged_files(EDGES))(run_with))()
    assert len(ended) == COMMANDS


def test_a_file_that_promises_more_rows_than_it_can_hold(tmp_path: Path, seedrank_command: Any) -> None:
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    data = (tmp_path / "edges.parquet").read_bytes()
    # Both numbers of rows, of the file and of its row group, are 3: as varints of thrift 6.
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    promised = footer.replace(b"\x16\x06", b"\x16" + b"\x80" * 6 + b"\x01")
    assert promised != footer
    bomb = data[: -8 - length] + promised + len(promised).to_bytes(4, "little") + b"PAR1"
    (tmp_path / "bomb.parquet").write_bytes(bomb)
    result = seedrank_command("build", tmp_path / "bomb.parquet", "--out", tmp_path / "graph")
    assert result.code == 3
    assert "bomb.parquet cannot be read as Parquet" in result.err
    assert "2,199,023,255,552 rows in" in result.err


@pytest.mark.parametrize("depth", [90, 400])
def test_columns_of_lists_within_lists(tmp_path: Path, seedrank_command: Any, depth: int) -> None:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    table = EDGES.append_column("deep", pa.nulls(3, kind))
    pq.write_table(table, tmp_path / "edges.parquet", store_schema=False)
    result = seedrank_command("build", tmp_path / "edges.parquet", "--out", tmp_path / "graph")
    assert result.code in (0, 3), result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("name", ["\x1b[31mred\x07", "a\nerror: forged", "\u202egnp"])
def test_names_do_not_reach_the_terminal_as_they_are(tmp_path: Path, seedrank_command: Any, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    pq.write_table(pa.table({name: [1], "dst": [2]}), folder / "edges.parquet")
    result = seedrank_command("build", folder / "edges.parquet", "--out", folder / "graph")
    assert result.code == 3
    assert not set("\x1b\x07\u202e") & set(result.err)
    assert [line.partition(":")[0] for line in result.err.splitlines() if not line.startswith(" ")] == ["error"]
    hits = pa.table({"query_id": [name], "node_id": [1]})
    pq.write_table(hits, folder / "hits.parquet")
    pq.write_table(pa.table({"src": [1], "dst": [2]}), folder / "good.parquet")
    done = seedrank_command(
        "score", folder / "good.parquet", "--queries", folder / "hits.parquet", "--out", folder / "run"
    )
    assert done.code == 0, done.err
    assert not set("\x1b\x07\u202e") & set(done.err + done.out)
    shown = seedrank_command("explain", folder / "run", "--query", name, "--node", "2")
    assert shown.code == 0, shown.err
    assert not set("\x1b\x07\u202e") & set(shown.err + shown.out)


def test_a_node_that_looks_like_markup(tmp_path: Path, seedrank_command: Any) -> None:
    pq.write_table(pa.table({"src": ["[/bold]"], "dst": ["[red]"]}), tmp_path / "edges.parquet")
    pq.write_table(pa.table({"query_id": ["q"], "node_id": ["[/bold]"]}), tmp_path / "hits.parquet")
    run = ("score", tmp_path / "edges.parquet", "--queries", tmp_path / "hits.parquet", "--out", tmp_path / "run")
    assert seedrank_command(*run).code == 0
    shown = seedrank_command("explain", tmp_path / "run", "--query", "q", "--node", "[red]")
    assert shown.code == 0, shown.err
    assert "[/bold]" in shown.out


def test_ids_are_never_names_of_files(tmp_path: Path, seedrank_command: Any) -> None:
    ids = ["../../escape", "/etc/passwd", "C:\\x", "a/b", ".."]
    pq.write_table(pa.table({"src": ids, "dst": ids[1:] + ids[:1], "type": ids}), tmp_path / "edges.parquet")
    pq.write_table(pa.table({"query_id": ids, "node_id": ids, "source": ids}), tmp_path / "hits.parquet")
    result = seedrank_command(
        "score", tmp_path / "edges.parquet", "--queries", tmp_path / "hits.parquet", "--out", tmp_path / "run",
        "--fusion", "rrf", "--part-size", "1",
    )  # fmt: skip
    assert result.code == 0, result.err
    names = {file.name for file in tmp_path.rglob("*") if file.is_file()}
    assert names <= {"edges.parquet", "hits.parquet", "run.json", "_SUCCESS", "graph.json"} | {
        f"part-{part:05d}.parquet" for part in range(5)
    } | {name for name in names if name.endswith((".npy", ".arrow"))}


def test_a_time_outside_the_calendar_of_python_is_shown(tmp_path: Path, seedrank_command: Any) -> None:
    times = pa.array(np.array([2**62, 0]), pa.timestamp("us"))
    edges = pa.table({"src": pa.array([None, 1], pa.int64()), "dst": [1, 2], "weight": times})
    pq.write_table(edges, tmp_path / "e.parquet")
    result = seedrank_command("build", tmp_path / "e.parquet", "--out", tmp_path / "graph")
    assert result.code == 3
    assert "e.parquet, row group 0, column 'src' is null" in result.err
    assert "weight=a timestamp[us] that Python has no value for" in result.err


def test_nothing_is_unpickled_or_evaluated() -> None:
    unsafe = re.compile(r"\bpickle\.|import pickle|\beval\(|\bexec\(|\bnp\.load\(|yaml\.load|marshal|shelve")
    source = Path(seedrank.__file__).parent
    found = [
        f"{file.relative_to(source)}: {line.strip()}"
        for file in source.rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if unsafe.search(line) and "allow_pickle=False" not in line
    ]
    assert found == []
