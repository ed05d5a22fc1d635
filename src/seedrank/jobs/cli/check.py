"""``seedrank check``."""

from __future__ import annotations

from seedrank.config import ScoreOptions
from seedrank.jobs.check import CheckReport, run_check
from seedrank.jobs.cli.without_running import job_question
from seedrank.jobs.inputs import JobInputs


@job_question("check", example="edges.parquet --queries hits.parquet", title="inputs are valid")
def command(inputs: JobInputs, *, out: str | None, options: ScoreOptions) -> CheckReport:
    """Validate every row that score would read, and every stored byte; compute nothing, keep nothing."""
    return run_check(inputs, out=out, options=options)
