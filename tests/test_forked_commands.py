"""What forked commands share with processes of the ordinary kind, so that tests may use them instead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_streams_code_folder_and_environment_are_those_of_the_installed_command(
    tmp_path: Path, forked_commands: Any
) -> None:
    environment = {**os.environ, "SEEDRANK_PLAN_TOP_K": "none", "COLUMNS": "70"}
    forked, installed = (
        [
            subprocess.run([*program, *words], cwd=tmp_path, env=environment, capture_output=True, check=False)
            for words in (
                ["check", "gr\u00e4ph", "--queries", "a b"],
                ["plan", "x", "--queries", "y"],
            )
        ]
        for program in ([forked_commands.program], [sys.executable, "-m", "seedrank"])
    )
    assert [done.returncode for done in forked] == [3, 2]
    for ours, theirs in zip(forked, installed, strict=True):
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    assert "gr\u00e4ph".encode() in forked[0].stderr
    assert b"none" in forked[1].stderr  # of the environment


def test_a_signal_ends_the_program_as_it_ended_the_command(
    tmp_path: Path, write: Callable[..., Path], forked_commands: Any
) -> None:
    environment = {**os.environ, "FAULT": "KILL:0", "FAULT_BELOW": str(tmp_path / "below")}
    command = [forked_commands.program, "build", write("edges.parquet", {"src": [1], "dst": [2]}), "--out", "below/g"]
    assert subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode == -signal.SIGKILL


def test_variables_that_were_read_at_the_start_are_refused(forked_commands: Any) -> None:
    refused = forked_commands.run(["info"], environment={"NUMBA_THAT_NOBODY_SETS": "1"})
    assert refused.returncode == 70
    assert "NUMBA_THAT_NOBODY_SETS" in refused.stderr
