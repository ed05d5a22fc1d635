"""The command line: exit codes, messages, where option values come from, what goes to which stream."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seedrank.config import BuildOptions, ScoreOptions
from seedrank.jobs.cli.main import COMMANDS

Write = Callable[..., Path]
Command = Callable[..., Any]

CYCLE = {"src": [1, 2, 3], "dst": [2, 3, 1]}
HITS = {"query_id": ["q1"], "node_id": [1]}


@pytest.fixture
def edges(write: Write) -> Path:
    return write("edges.parquet", CYCLE)


@pytest.fixture
def hits(write: Write) -> Path:
    return write("hits.parquet", HITS)


def test_every_command_has_help_with_an_example_and_its_line_in_the_group(seedrank_command: Command) -> None:
    overview = seedrank_command("--help")
    assert overview.code == 0
    for name, line in COMMANDS.items():
        assert line in overview.out
        page = seedrank_command(name, "--help")
        assert page.code == 0
        assert f"Example: seedrank {name}" in " ".join(page.out.split())


@pytest.mark.parametrize(("name", "model"), [("build", BuildOptions), ("score", ScoreOptions), ("plan", ScoreOptions)])
def test_help_shows_every_option_with_its_description(
    seedrank_command: Command, name: str, model: type[BuildOptions]
) -> None:
    page = " ".join(seedrank_command(name, "--help").out.split())
    for option, field in model.model_fields.items():
        assert f"--{option.replace('_', '-')}" in page
        assert " ".join((field.description or "?").split()) in page


def test_version(seedrank_command: Command) -> None:
    result = seedrank_command("--version")
    assert result.code == 0
    assert re.fullmatch(r"seedrank, version \d+\.\d+\.\d+\n", result.out)


def test_build_then_score_prints_summaries_on_stdout_and_events_on_stderr(
    seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path
) -> None:
    built = seedrank_command("build", edges, "--out", tmp_path / "graph")
    assert built.code == 0
    assert re.search(r"nodes\s+3\n", built.out)
    scored = seedrank_command("score", tmp_path / "graph", "--queries", hits, "--out", tmp_path / "run")
    assert scored.code == 0
    assert re.search(r"status\s+ok 1\n", scored.out)
    assert "part_done" in scored.err
    assert (tmp_path / "run" / "_SUCCESS").read_bytes() == b""


def test_json_output_is_one_document_and_json_logs_are_one_object_a_line(
    seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path
) -> None:
    result = seedrank_command(
        "score", edges, "--queries", hits, "--out", tmp_path / "run", "--json", "--log-format", "json"
    )
    assert json.loads(result.out) == json.loads((tmp_path / "run" / "run.json").read_text())
    events = [json.loads(line) for line in result.err.splitlines()]
    assert {"graph_written", "backend_chosen", "part_done", "run_closed"} <= {event["event"] for event in events}
    assert all(event["timestamp"].endswith("Z") and event["level"] for event in events)


def test_quiet_says_nothing(seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path) -> None:
    assert seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run", "-q").err == ""


def test_case_64_no_carriage_return_or_colour_without_a_terminal(edges: Path, hits: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seedrank", "score", edges, "--queries", hits, "--out", tmp_path / "run"],
        capture_output=True,
        check=True,
    )
    assert b"\r" not in done.stderr + done.stdout
    assert b"\x1b" not in done.stderr + done.stdout
    assert b"part_done" in done.stderr
    assert b"part_done" not in done.stdout


class TestExitCodes:
    """Design, section 2: one table of codes."""

    def check(self, result: Any, code: int, *needles: str) -> None:
        assert result.code == code, result.err
        assert "Traceback" not in result.err
        for needle in needles:
            assert needle in result.err

    def test_2_unknown_command_option_and_value(self, seedrank_command: Command, edges: Path) -> None:
        self.check(seedrank_command("scores"), 2, "No such command")
        self.check(seedrank_command("build", edges, "--ouT", "x"), 2, "No such option", "--out")
        self.check(seedrank_command("build", edges), 2, "--out")
        self.check(seedrank_command("build", edges, "--out", "x", "--duplicate-edges", "first"), 2, "sum", "mean")

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("--top-k", "0"), ("--top-k", "-1"), ("--restart", "0"), ("--restart", "1.5"), ("--damping", "1"),
            ("--max-iterations", "0"), ("--tolerance", "-1"), ("--tolerance", "nan"), ("--min-score", "2"),
            ("--type-weight", "likes"), ("--type-weight", "likes=-1"), ("--type-weight", "likes=nan"),
            ("--block-size", "0"), ("--part-size", "0"), ("--memory-limit", "much"),
        ],
    )  # fmt: skip
    def test_2_value_out_of_range(
        self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path, option: str, value: str
    ) -> None:
        result = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run", option, value)
        self.check(result, 2, option.removeprefix("--").replace("-", "_") if "weight" not in option else "weight")
        assert not (tmp_path / "run").exists()

    def test_2_neither_or_both_ways_of_giving_queries(
        self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path
    ) -> None:
        self.check(seedrank_command("score", edges, "--out", tmp_path / "run"), 2, "--queries", "--all-nodes")
        both = ("--queries", hits, "--all-nodes", "t")
        self.check(seedrank_command("score", edges, *both, "--out", tmp_path / "run"), 2, "both given")

    def test_3_bad_data_names_file_column_and_row(
        self, seedrank_command: Command, write: Write, hits: Path, tmp_path: Path
    ) -> None:
        bad = write("bad.parquet", {"src": [1, 2], "dst": [2, 3], "weight": [1.0, -1.0]})
        result = seedrank_command("score", bad, "--queries", hits, "--out", tmp_path / "run")
        self.check(result, 3, "bad.parquet", "weight", "-1.0", "expected:", "fix:")

    def test_3_input_that_does_not_exist(self, seedrank_command: Command, tmp_path: Path) -> None:
        result = seedrank_command("build", tmp_path / "nowhere.parquet", "--out", tmp_path / "graph")
        self.check(result, 3, "nowhere.parquet")

    def test_4_memory_that_does_not_hold_one_query(
        self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path
    ) -> None:
        result = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run", "--memory-limit", "10B")
        self.check(result, 4, "memory")
        assert not (tmp_path / "run" / "_SUCCESS").exists()

    def test_5_output_that_cannot_be_written(self, seedrank_command: Command, edges: Path, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        self.check(seedrank_command("build", edges, "--out", tmp_path / "file" / "graph"), 5, "file")

    def test_6_strict_with_a_query_without_seeds(
        self, seedrank_command: Command, edges: Path, write: Write, tmp_path: Path
    ) -> None:
        hits = write("lost.parquet", {"query_id": ["q1", "q2"], "node_id": [1, 99]})
        lenient = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "a")
        assert lenient.code == 0
        strict = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "b", "--strict")
        self.check(strict, 6, "1 of 2 queries", "no_valid_seeds")
        assert not (tmp_path / "b" / "_SUCCESS").exists()
        assert (tmp_path / "b" / "candidates" / "part-00000.parquet").exists()

    def test_1_a_bug_shows_its_traceback(
        self, seedrank_command: Command, edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("seedrank.jobs.cli.build.run_build", broken)
        result = seedrank_command("build", edges, "--out", tmp_path / "graph")
        assert result.code == 1
        assert "ZeroDivisionError" in result.err

    def test_130_interrupted(
        self, seedrank_command: Command, edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("seedrank.jobs.cli.build.run_build", interrupted)
        assert seedrank_command("build", edges, "--out", tmp_path / "graph").code == 130


class TestOrigins:
    """Flag > environment > file > default; run.json records value and origin."""

    def run(self, command: Command, edges: Path, hits: Path, out: Path, *arguments: str) -> dict[str, Any]:
        result = command("score", edges, "--queries", hits, "--out", out, *arguments)
        assert result.code == 0, result.err
        options: dict[str, Any] = json.loads((out / "run.json").read_text())["options"]
        return options

    def test_precedence(
        self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = tmp_path / "run.toml"
        config.write_text("[score]\ntop_k = 7\nmax-iterations = 50\ntolerance = 1e-3\n[build]\nnull_weight = 'one'\n")
        monkeypatch.setenv("SEEDRANK_SCORE_MAX_ITERATIONS", "60")
        monkeypatch.setenv("SEEDRANK_SCORE_TOLERANCE", "1e-4")
        options = self.run(
            seedrank_command, edges, hits, tmp_path / "run", "--config", str(config), "--tolerance", "1e-5"
        )
        assert options["top_k"] == {"value": 7, "origin": "file"}
        assert options["max_iterations"] == {"value": 60, "origin": "env"}
        assert options["tolerance"] == {"value": 1e-5, "origin": "flag"}
        assert options["precision"] == {"value": "float32", "origin": "default"}
        assert options["null_weight"] == {"value": "error", "origin": "default"}

    def test_restart_and_damping_are_one_setting_and_the_stronger_origin_wins(
        self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SEEDRANK_SCORE_RESTART", "0.9")
        options = self.run(seedrank_command, edges, hits, tmp_path / "a", "--damping", "0.85")
        assert options["restart"] == {"value": pytest.approx(0.15), "origin": "flag"}
        assert "damping" not in options
        monkeypatch.setenv("SEEDRANK_SCORE_DAMPING", "0.2")
        clash = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "b")
        assert clash.code == 2
        assert "one setting" in clash.err
        clash = seedrank_command(
            "score", edges, "--queries", hits, "--out", tmp_path / "b", "--restart", ".5", "--damping", ".5"
        )
        assert clash.code == 2

    def test_tables_lists_and_switches_in_the_file(
        self, seedrank_command: Command, write: Write, hits: Path, tmp_path: Path
    ) -> None:
        edges = write("typed.parquet", {"src": [1, 1], "dst": [2, 3], "type": ["a", "b"]})
        config = tmp_path / "run.toml"
        config.write_text(
            "[score]\nedge_type = ['a', 'b']\ninclude_seeds = true\nmemory_limit = '1GiB'\n"
            "[score.type_weight]\na = 2\nb = 0.5\n"
        )
        options = self.run(seedrank_command, edges, hits, tmp_path / "run", "--config", str(config))
        assert options["type_weight"] == {"value": {"a": 2.0, "b": 0.5}, "origin": "file"}
        assert options["edge_type"] == {"value": ["a", "b"], "origin": "file"}
        assert options["include_seeds"] == {"value": True, "origin": "file"}
        assert options["memory_limit"] == {"value": 1 << 30, "origin": "file"}

    @pytest.mark.parametrize(
        ("text", "needle"),
        [
            ("[score]\ntopk = 7\n", "did you mean 'top_k'"),
            ("[scores]\n", "did you mean 'score'"),
            ("[score\n", "not TOML"),
            ("score = 3\n", "not a table"),
            ("[score]\ntop_k = 'many'\n", "top_k is 'many'"),
            ("[score]\ntop_k = 1.5\n", "expected: a whole number"),
            ("[score]\ntop_k = true\n", "top_k is True"),
            ("[score]\ninclude_seeds = 1\n", "expected: true or false"),
            ("[score]\nedge_type = 3\n", "expected: a text in quotes, or a list of these"),
            ("[score]\nedge_type = ['a', 3]\n", "edge_type is 3"),
            ("[score]\nrestart = [0.5, 'x']\n", "restart is 'x'"),
            ("[score.type_weight]\na = 'heavy'\n", "type_weight is 'heavy'"),
            ("[score]\nmemory_limit = 1.5\n", "memory_limit is 1.5"),
        ],
    )
    def test_bad_files_are_usage_errors(
        self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path, text: str, needle: str
    ) -> None:
        config = tmp_path / "run.toml"
        config.write_text(text)
        result = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run", "--config", str(config))
        assert result.code == 2
        assert needle in result.err

    def test_a_config_file_that_is_missing(self, seedrank_command: Command, edges: Path, tmp_path: Path) -> None:
        result = seedrank_command("build", edges, "--out", tmp_path / "g", "--config", tmp_path / "none.toml")
        assert result.code == 2
        assert "none.toml" in result.err


def test_unset_options_of_the_environment_are_not_values(
    seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEDRANK_SCORE_EDGE_TYPE", "nothing")
    result = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run")
    assert result.code == 3
    assert "--edge-type 'nothing'" in result.err


@pytest.mark.parametrize(("name", "near"), [("TOPK", "TOP_K"), ("EDGE_TYPES", "EDGE_TYPE")])
def test_a_variable_that_is_no_option_is_refused(
    seedrank_command: Command,
    edges: Path,
    hits: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    near: str,
) -> None:
    monkeypatch.setenv(f"SEEDRANK_SCORE_{name}", "3")
    assert seedrank_command("build", edges, "--out", tmp_path / "graph").code == 0
    result = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run")
    assert result.code == 2
    assert f"did you mean SEEDRANK_SCORE_{near}?" in result.err


class TestNoTracebacks:
    """What the operating system refuses is told in three lines."""

    def told(self, result: Any, code: int, needle: str) -> None:
        assert result.code == code, result.err
        assert needle in result.err
        assert "expected:" in result.err
        assert "Traceback" not in result.err

    def test_names_that_are_too_long(self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path) -> None:
        name = tmp_path / ("x" * 300)
        self.told(seedrank_command("score", edges, "--queries", hits, "--out", name), 5, "File name too long")
        self.told(seedrank_command("score", name, "--queries", hits, "--out", tmp_path / "r"), 5, "File name too long")

    def test_names_that_are_not_utf8(self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path) -> None:
        name = os.fsdecode(b"na\xffme")
        self.told(seedrank_command("score", edges, "--queries", hits, "--out", name), 2, "is not UTF-8")
        self.told(seedrank_command("score", name, "--queries", hits, "--out", tmp_path / "r"), 3, "is not UTF-8")

    def test_an_archive_that_is_not_there(self, seedrank_command: Command, hits: Path, tmp_path: Path) -> None:
        source = f"zip://e.parquet::{tmp_path}/none.zip"
        self.told(seedrank_command("score", source, "--queries", hits, "--out", tmp_path / "r"), 5, "cannot be reached")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
    def test_output_that_nobody_takes(self, edges: Path, hits: Path, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "seedrank", "score", str(edges), "--queries", str(hits)]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*command, "--out", str(tmp_path / "a")], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 5
        assert "No space left on device" in done.stderr
        closed = f"{shlex.join([*command, '--out', str(tmp_path / 'b')])} 2>&- >&-"
        assert subprocess.run(["/bin/sh", "-c", closed], check=False).returncode == 0
        assert (tmp_path / "b" / "_SUCCESS").exists()

    @pytest.mark.parametrize("name", ["by_destination_neighbors", "by_source_neighbors", "order", "inverse_order"])
    def test_a_graph_whose_numbers_lead_astray(
        self, seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path, name: str
    ) -> None:
        """Compiled kernels trust their input: a number out of range would be a crash, or somebody else's memory."""
        assert seedrank_command("build", edges, "--out", tmp_path / "graph").code == 0
        file = tmp_path / "graph" / f"{name}.npy"
        file.write_bytes(file.read_bytes()[:-4] + b"\xff\xff\xff\x7f")
        result = seedrank_command("score", tmp_path / "graph", "--queries", hits, "--out", tmp_path / "run")
        self.told(result, 3, f"{name}.npy holds numbers that no graph has")


def test_the_summary_names_an_error_bound_where_there_is_one(
    seedrank_command: Command, edges: Path, hits: Path, tmp_path: Path
) -> None:
    arguments = ["score", edges, "--queries", hits]
    assert "largest error bound" in seedrank_command(*arguments, "--out", tmp_path / "ppr").out
    assert "largest error bound" not in seedrank_command(*arguments, "--out", tmp_path / "bfs", "--method", "bfs").out
