"""``seedrank plan``."""

from __future__ import annotations

from seedrank.config import ScoreOptions
from seedrank.jobs.cli.options import GroupedOption
from seedrank.jobs.cli.without_running import job_question
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.plan import Plan, run_plan

_PROBE = GroupedOption(
    ["--probe"],
    group="Run",
    is_flag=True,
    help="For ppr: measure one product on a small random graph, some seconds, and estimate the seconds of the job.",
)


@job_question("plan", example="graph --queries hits.parquet --json", title="plan", own=(_PROBE,))
def command(inputs: JobInputs, *, out: str | None, options: ScoreOptions, probe: bool) -> Plan:
    """Say what score with the same arguments would do: sizes, parts, block, memory, backend. Writes nothing."""
    return run_plan(inputs, out=out, options=options, probed=probe)
