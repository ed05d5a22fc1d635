"""docs/object_stores.md is true: its commands run on S3, and its policy is all the permission that they need."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.io.run import lease
from seedrank.io.storage import retries

PAGE = Path(__file__).parents[2] / "docs" / "object_stores.md"

if not PAGE.is_file():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

TEXT = PAGE.read_text(encoding="utf-8")
BUCKET = "team-graphs"


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def permits(policy: dict[str, Any], request: Any) -> bool:
    """Whether a policy permits a request, by the rules that S3 has for these few actions."""
    bucket, _, key = request.path.partition("/")
    method = "LIST" if request.is_listing else request.method
    action = {"GET": "GetObject", "HEAD": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}.get(method)
    wanted = "s3:ListBucket" if method == "LIST" or not key else f"s3:{action}"
    resource = f"arn:aws:s3:::{bucket}" if wanted == "s3:ListBucket" else f"arn:aws:s3:::{bucket}/{key}"
    for statement in policy["Statement"]:
        prefixes = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix", ["*"])
        if (
            wanted in statement["Action"]
            and any(fnmatch.fnmatchcase(resource, pattern) for pattern in statement["Resource"])
            and any(fnmatch.fnmatchcase(request.prefix or "", pattern) for pattern in prefixes)
        ):
            return True
    return False


def test_the_commands_run_under_the_policy(s3: Any, tmp_path: Path, forked_commands: Any) -> None:
    filesystem = s3.filesystem
    filesystem.mkdir(BUCKET)
    pq.write_table(pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]}), tmp_path / "edges.parquet")
    pq.write_table(pa.table({"query_id": [1, 2], "node_id": [1, 2]}), tmp_path / "hits.parquet")
    for name in ("edges", "hits"):
        filesystem.put_file(str(tmp_path / f"{name}.parquet"), f"{BUCKET}/in/{name}.parquet")
    policy = json.loads(block("json"))
    s3.faults.requests.clear()
    s3.faults.policy = lambda request: permits(policy, request)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEEDRANK_")}
    environment |= s3.environment
    environment |= {
        "PATH": f"{Path(forked_commands.program).parent}{os.pathsep}{os.environ['PATH']}",
        "ENDPOINT": s3.environment["AWS_ENDPOINT_URL_S3"],
        "SEEDRANK_SCORE_BACKEND": "scipy",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block("bash")],
        cwd=tmp_path, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    s3.faults.clear()
    assert seedrank.open_run(f"s3://{BUCKET}/runs/day=1").manifest.state == "finished"
    assert filesystem.exists(f"{BUCKET}/runs/day=1/_SUCCESS")
    assert filesystem.exists(f"{BUCKET}/graphs/today/graph.json")


def test_less_than_the_policy_is_not_enough(s3: Any) -> None:
    policy = json.loads(block("json"))
    used = {"PUT": "s3:PutObject", "DELETE": "s3:DeleteObject", "GET": "s3:GetObject"}
    stated = {action for statement in policy["Statement"] for action in statement["Action"]}
    # Large files go up in pieces, which are given up on failure.
    assert stated == {*used.values(), "s3:ListBucket", "s3:AbortMultipartUpload"}
    outside = [("in/x", "PUT"), ("in/x", "DELETE"), ("other/x", "GET"), ("", "HEAD")]
    for key, method in outside:
        request = type(s3.faults.requests[0])(method, f"{BUCKET}/{key}".rstrip("/"), None)
        assert not permits(policy, request), (key, method)


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    numbers = {6: "six attempts", 15: "every 15 seconds", 60: "for 60 seconds"}
    assert (retries.ATTEMPTS, lease.BEAT_S, lease.LEASE_S) == (6, 15, 60)
    assert all(words in TEXT for words in numbers.values())
    assert (retries.FIRST_WAIT_S, retries.LONGEST_WAIT_S) == (0.5, 8)
    assert "half a second to eight" in TEXT
