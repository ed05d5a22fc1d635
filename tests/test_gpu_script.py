"""benchmarks/gpu/run.sh: every way that a run may go, with programs that do nothing; its tables."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "gpu"

if not FOLDER.is_dir():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

#: Stands in for Python: writes down what it is called with, and ends as the environment says.
PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
*resolve_backend*) [ -z "$NO_GPU" ] || { echo "error: no driver" >&2; exit 1; } ;;
*prepare.py*)
    [ -z "$NO_GRAPH" ] || { echo "no room on the disk"; exit 1; }
    touch "$3/rmat$5.ready" "$3/rmat$6.ready"
    ;;
*/$ENDS_BADLY*) exit "$STATUS" ;;
*table.py*) echo "| table |" ;;
esac
"""

STAGES = ["probe", "compile", "tests", "steps", "selection", "jobs rmat20", "sanitizers", "jobs rmat22", "recall"]

Run = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, str]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a copy of the script; returns the process and the results of its stages."""
    (tmp_path / "benchmarks" / "gpu").mkdir(parents=True)
    (tmp_path / "benchmarks" / "results").mkdir()
    (tmp_path / "bin").mkdir()
    script = Path(shutil.copy(FOLDER / "run.sh", tmp_path / "benchmarks" / "gpu"))

    def program(name: str, text: str) -> Path:
        path = tmp_path / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def call(*arguments: str, sanitizer: str | None = None, **environment: str) -> Any:
        if sanitizer is not None:
            program("compute-sanitizer", sanitizer)
        done = subprocess.run(
            ["bash", str(script), *arguments],
            env={
                "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
                "PYTHON": str(program("python", PYTHON)),
                "CALLS": str(tmp_path / "calls"),
                "TMPDIR": str(tmp_path),
                "ENDS_BADLY": "nothing",
            }
            | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not list(tmp_path.glob("tmp.*")), "its folder is gone"
        (written,) = [*(tmp_path / "benchmarks" / "results").glob("*_stages.json"), None][:1]
        stages = [] if written is None else json.loads(written.read_text())
        return done, {stage["stage"]: stage["result"] for stage in stages}

    return call


def test_all_stages_end_well_without_what_is_not_installed(run: Run, tmp_path: Path) -> None:
    done, stages = run()
    assert done.returncode == 0, done.stderr
    assert list(stages) == STAGES
    assert stages.pop("sanitizers") == "left out: compute-sanitizer is not on PATH"
    assert set(stages.values()) == {"ended well"}
    assert (tmp_path / "benchmarks" / "results" / "gpu_tables.md").read_text() == "| table |\n"
    calls = (tmp_path / "calls").read_text()
    assert "--scales 20 22" in calls
    assert "-k (gpu or cugraph or cupy) and not test_drivers " in calls
    for tested in re.findall(r"(?<= )tests/[\w/.*]+", calls):  # patterns are resolved where it runs, here in a copy
        assert (FOLDER.parents[1] / tested).exists() or "*" in tested


@pytest.mark.parametrize(
    ("status", "code", "result"), [("7", 1, "FAILED with status 7"), ("124", 3, "CUT at its limit of 90 s")]
)
def test_a_stage_that_fails_or_is_cut_leaves_the_others_alone(run: Run, status: str, code: int, result: str) -> None:
    done, stages = run(ENDS_BADLY="step_times.py", STATUS=status)
    assert done.returncode == code
    assert list(stages) == STAGES
    assert {name: found for name, found in stages.items() if found != "ended well"} == {
        "steps": result, "sanitizers": "left out: compute-sanitizer is not on PATH"
    }  # fmt: skip


def test_a_quick_look_measures_small_graphs_under_other_names(run: Run, tmp_path: Path) -> None:
    done, stages = run("--quick")
    assert (done.returncode, "jobs rmat12" in stages) == (0, True)
    calls = (tmp_path / "calls").read_text()
    assert "--scales 10 12" in calls
    assert "--name gpu_" not in calls
    assert (tmp_path / "benchmarks" / "results" / "quick_tables.md").is_file()


def test_time_that_is_used_up_is_said_of_every_stage(run: Run) -> None:
    done, stages = run("--minutes", "0")
    assert done.returncode == 3
    stages.pop("sanitizers")
    assert stages.pop("rmat20", "CUT").startswith("CUT")
    assert stages.pop("rmat22", "CUT").startswith("CUT")
    assert set(stages.values()) == {"not begun: the time is used up"}


def test_no_gpu_is_told_at_once(run: Run) -> None:
    done, stages = run(NO_GPU="1")
    assert (done.returncode, done.stderr, stages) == (4, "error: no driver\n", {})


def test_a_graph_that_was_not_made_costs_what_needs_it(run: Run) -> None:
    done, stages = run(NO_GRAPH="1")
    assert done.returncode == 1
    assert "no room on the disk" in done.stdout
    assert stages["rmat20"] == stages["rmat22"] == "FAILED: the graph was not made"
    assert stages["tests"] == "ended well"
    assert not {"steps", "jobs rmat22", "recall"} & set(stages)


def test_findings_of_a_sanitizer_are_failures(run: Run) -> None:
    done, stages = run(sanitizer='#!/bin/sh\ncase "$*" in *racecheck*) exit 9 ;; esac\n')
    assert done.returncode == 1
    assert [name for name, result in stages.items() if result == "FAILED with status 9"] == [
        "racecheck scenario", "racecheck recall_scenario"
    ]  # fmt: skip
    assert stages["memcheck scenario"] == stages["initcheck recall_scenario"] == stages["recall"] == "ended well"


@pytest.mark.parametrize("arguments", [("--minutes",), ("--minutes", "soon"), ("--slow",)])
def test_arguments_that_it_does_not_know(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0].returncode == 2


def test_tables_show_what_there_is() -> None:
    table = runpy.run_path(str(FOLDER / "table.py"))
    measured = {
        "rmat20": {"64": {"step_s": 0.002, "cusparse_column_major_s": 0.005, "cusparse_row_major_s": "failed: x"}}
    }
    rows = list(table["steps"](measured))
    assert "| rmat20, 64 | 2.000 | – | – | – | 2.5x | – |" in rows
    assert "| rmat20, 32 | – | – | – | – | – | – |" in rows
    facts = {"device": "a card", "cuda": 13020, "cuda_of_driver": 13000, "cupy": "14.2.0", "date": "today"}
    assert table["where"](facts | {"complete": True}) == "a card, CUDA 13.2, driver for 13.0, CuPy 14.2.0, today"
    assert table["where"](facts | {"complete": False}).endswith("; cut short or with failures")
    job = {"parameters": {"queries": 2048}, "rmat20": {"gpu_s": 1.0, "cpu_s": 30.0, "most_score_error": 1e-8}}
    assert "| rmat20 | 2,048 | 1.00 | 30.00 | 30.0x | – % | 1.0e-08 |" in list(table["jobs"]([job]))
    recall = {"rmat20": {"walk": {"gpu_s": 1.0, "cpu_s": 2.0}, "two_hops": "failed: x", "steps_of_walks": 5}}
    assert list(table["recalls"](recall))[2:] == ["| rmat20 | walk | 1.000 | 2.000 | 2.0x |"]
