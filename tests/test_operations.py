"""What docs/operations.md and docs/containers.md tell schedulers is what the command does."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import seedrank
from seedrank import errors
from seedrank.jobs.cli.main import cli

Command = Callable[..., Any]

PAGE = Path(__file__).parents[1] / "docs" / "operations.md"

if not PAGE.is_file():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

TEXT = PAGE.read_text(encoding="utf-8")
CONTAINERS = (PAGE.parent / "containers.md").read_text(encoding="utf-8")
SKIPPED, KILLED = 99, 137
AIRFLOW_EXCEPTIONS = ("AirflowException", "AirflowFailException", "AirflowSkipException")


@pytest.fixture
def job() -> Any:
    """The Kubernetes Job of the page."""
    return yaml_of(TEXT)["spec"]


def yaml_of(page: str) -> Any:
    """The one block of YAML of a page."""
    (found,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return yaml.safe_load(found)


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


def with_gpu(job: Any) -> Any:
    """The Job with the parts of docs/containers.md."""
    parts = yaml_of(CONTAINERS)
    (changes,), pod = parts.pop("containers"), job["template"]["spec"]
    (container,) = pod["containers"]
    assert changes["name"] == container["name"]
    assert {"image", "args", "resources"} < set(changes)
    return {**job, "template": {"spec": {**pod, **parts, "containers": [{**container, **changes}]}}}


def test_the_job_with_a_gpu_asks_for_one_and_has_no_rights(job: Any) -> None:
    """A GPU is a limit (Kubernetes sets the request to it), and the user is the one of the image."""
    pod = with_gpu(job)["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    dockerfile = (PAGE.parents[1] / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert f"\nUSER {pod['securityContext']['runAsUser']}\n" in dockerfile
    (mount,) = container["volumeMounts"]
    for variable in container["env"]:
        assert variable["value"].startswith(mount["mountPath"] + "/")
        assert f"{variable['name']}=" in dockerfile


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_command_of_the_job_runs_and_runs_again(
    job: Any, device: str, seedrank_command: Command, tmp_path: Path
) -> None:
    if device == "gpu":
        job = with_gpu(job)
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


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 6, 99, 130, -9, 137, 143])
def test_the_task_of_airflow_decides_about_every_exit_code(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of the page, run with stand-ins of the names that it takes from Airflow."""
    assert codes() <= {1, 2, 3, 4, 5, 6, 130, 143}
    kinds = {name: type(name, (Exception,), {}) for name in AIRFLOW_EXCEPTIONS}
    ran: list[list[str]] = []

    def decorator(*_: Any, **__: Any) -> Callable[[Any], Any]:
        return lambda function: function

    def run(command: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, code)

    for name, content in {"airflow": {}, "airflow.decorators": dict.fromkeys(("dag", "task"), decorator)}.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    monkeypatch.setitem(sys.modules, "airflow.exceptions", SimpleNamespace(**kinds))
    monkeypatch.setattr(subprocess, "run", run)
    (block,) = re.findall(r"^```python airflow\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    raised = ""
    try:
        exec(compile(block, str(PAGE), "exec"), {})  # noqa: S102  # of the page itself
    except Exception as error:
        raised = type(error).__name__
    expected = {0: "", SKIPPED: "AirflowSkipException", **dict.fromkeys((1, 2, 3, 6), "AirflowFailException")}
    assert raised == expected.get(code, "AirflowException")
    ((program, *arguments),) = ran
    assert program == "seedrank"
    with pytest.raises(SystemExit) as ended:  # the command line takes it as it is
        cli.main([*arguments, "--help"], prog_name=program)
    assert ended.value.code == 0


def test_every_exit_code_is_in_the_table_for_troubleshooting() -> None:
    table = TEXT.partition("## Troubleshooting by exit code")[2]
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert listed == codes() | {0, SKIPPED, KILLED}
