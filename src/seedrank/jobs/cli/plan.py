"""``seedrank plan``."""

from __future__ import annotations

from typing import Any

from seedrank.config import ScoreOptions
from seedrank.jobs.cli.options import GroupedOption
from seedrank.jobs.cli.render import echo_table
from seedrank.jobs.cli.without_running import job_question
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.plan import Plan, run_plan

_PROBE = GroupedOption(
    ["--probe"],
    group="Run",
    is_flag=True,
    help="For ppr: measure one product on a small random graph, some seconds, and estimate the seconds of the job.",
)


def _show(plan: dict[str, Any]) -> None:
    echo_table("plan", {name: value for name, value in plan.items() if value is not None})


@job_question("plan", example="graph --queries hits.parquet --json", show=_show, own=(_PROBE,))
def command(inputs: JobInputs, *, out: str | None, options: ScoreOptions, probe: bool) -> Plan:
    """Say what score with the same arguments would do: sizes, parts, block, memory, backend. Writes nothing."""
    return run_plan(inputs, out=out, options=options, probed=probe)
