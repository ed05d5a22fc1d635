"""What docs/operations.md tells schedulers is what the command does."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import seedrank
from seedrank import errors

Command = Callable[..., Any]

PAGE = Path(__file__).parents[1] / "docs" / "operations.md"

if not PAGE.is_file():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

TEXT = PAGE.read_text(encoding="utf-8")
SKIPPED, KILLED = 99, 137


@pytest.fixture
def job() -> Any:
    """The Kubernetes Job of the page."""
    found = re.search(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return yaml.safe_load(found[1])["spec"]


def codes() -> set[int]:
    """Every exit code but success."""
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    return {1, 143} | {value.exit_code for value in classes if issubclass(value, errors.SeedrankError)}


def test_the_policy_of_the_job_decides_about_every_exit_code_once(job: Any) -> None:
    (container,) = job["template"]["spec"]["containers"]
    rules = [rule for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert {rule["onExitCodes"]["containerName"] for rule in rules} == {container["name"]}
    assert {rule["onExitCodes"]["operator"] for rule in rules} == {"In"}
    decided = [(code, rule["action"]) for rule in rules for code in rule["onExitCodes"]["values"]]
    assert len(decided) == len(dict(decided))
    assert dict(decided).keys() == codes() | {KILLED}
    assert {code for code, action in decided if action == "FailJob"} == {1, 2, 3, 6}
    assert job["template"]["spec"]["restartPolicy"] == "Never"  # Kubernetes refuses the policy otherwise


def test_the_command_of_the_job_runs_and_runs_again(job: Any, seedrank_command: Command, tmp_path: Path) -> None:
    (container,) = job["template"]["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    program, *arguments = [
        text.replace(mount["mountPath"], str(tmp_path)) for text in container["command"] + container["args"]
    ]
    assert program == "seedrank"
    seedrank.build(pa.table({"src": [1, 2], "dst": [2, 3]}), out=tmp_path / "graph")
    pq.write_table(pa.table({"query_id": ["q"], "node_id": [1]}), tmp_path / "hits.parquet")
    for event in ("part_done", "already_done"):
        result = seedrank_command(*arguments)
        assert result.code == 0, result.err
        assert f'"event": "{event}"' in result.err
    assert (tmp_path / "runs" / "tonight" / "_SUCCESS").exists()


def test_every_exit_code_is_in_the_table_for_troubleshooting() -> None:
    table = TEXT.partition("## Troubleshooting by exit code")[2]
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert listed == codes() | {0, SKIPPED, KILLED}
