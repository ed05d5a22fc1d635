"""Options of `score` about the run itself; they change no result, or only cut it short."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from seedrank.config.model import OptionModel
from seedrank.config.names import BackendName, GraphForm, Precision, Resume, option
from seedrank.part_span import PartSpan, parse_part_span


class RunOptions(OptionModel):
    """Who computes, with how much, for how long."""

    backend: Annotated[BackendName, option("Run")] = Field(
        "auto", description="Who computes: the best available backend, or one by name."
    )
    precision: Annotated[Precision, option("Run")] = Field(
        "float32", description="Storage precision of scores and of the block being iterated."
    )
    block_size: Annotated[int | None, option("Run", "queries")] = Field(
        None,
        ge=1,
        le=4096,
        description="Queries scored together, at most what the method takes (64, traversals 256); by default what "
        "memory allows.",
    )
    threads: Annotated[int | None, option("Run")] = Field(
        None,
        ge=1,
        le=4096,
        description="Threads of the cpu backend; by default one per processor, shared out among --workers. Changes "
        "no result.",
    )
    workers: Annotated[str | None, option("Run", "N|gpu")] = Field(
        None,
        pattern=r"^([1-9][0-9]{0,3}|gpu)$",
        description="Score parts in so many processes of this machine, or in one for every GPU (gpu); by default in "
        "the one that runs the command. Changes no result.",
    )
    scheduler: Annotated[str | None, option("Run", "tcp://HOST:PORT")] = Field(
        None,
        pattern=r"^(tcp|tls|ucx|ws|wss)://[^\s/]+$",
        description="Score parts on the workers of this Dask scheduler, which see all inputs and --out under the same "
        "names. Changes no result.",
    )
    graph_memory: Annotated[GraphForm, option("Run")] = Field(
        "auto",
        description="Hold the graph of ppr in memory, or stream it from a file in the work folder for every step: by "
        "default only where it does not fit. Changes no result.",
    )
    timeout_s: Annotated[float | None, option("Run", "seconds")] = Field(
        None, gt=0, le=1e9, description="End a query after this time, with what it has found until then."
    )
    deadline_s: Annotated[float | None, option("Run", "seconds")] = Field(
        None, gt=0, le=1e9, description="End the job after this time; queries that are left have no candidates."
    )
    resume: Annotated[Resume, option("Run")] = Field(
        "auto",
        description="What parts at the output path mean: go on with their run, if it is the same one (auto), or refuse "
        "the folder unless --overwrite is given (never).",
    )
    since: Annotated[str | None, option("Run", "run")] = Field(
        None,
        description="Take the results of queries that have not changed over from this earlier run on the same graph, "
        "under the same options.",
    )
    parts: Annotated[str | None, option("Run", "A:B")] = Field(
        None,
        description="Compute only the parts A to B - 1, counted from 0 (also A:, :B, A): on any machine, several at a "
        "time in one run folder. The same command without it joins them and computes what is missing.",
    )
    metrics_file: Annotated[str | None, option("Run", "path")] = Field(
        None,
        description="File for metrics in the text format of Prometheus, rewritten after every part.",
    )
    lineage_file: Annotated[str | None, option("Run", "path")] = Field(
        None,
        description="File to which events of OpenLineage are added, one line of JSON each, when the run begins and "
        "ends.",
    )
    lineage_job: Annotated[str, option("Run")] = Field(
        "seedrank-score",
        min_length=1,
        description="Name of the job in these events, the same every night; the namespace is that of the variable "
        "OPENLINEAGE_NAMESPACE.",
    )
    strict: Annotated[bool, option("Run")] = Field(
        False, description="Exit with 6 when any query ends with a status other than ok."
    )

    @field_validator("workers", mode="before")
    @classmethod
    def _a_number_of_workers(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _one_kind_of_workers(self) -> RunOptions:
        if self.workers is not None and self.scheduler is not None:
            msg = "--workers starts processes here, --scheduler uses those that are there, and both are given: drop one"
        elif self.workers == "gpu" and self.backend not in ("auto", "gpu", "cugraph"):
            msg = f"--workers gpu is given with --backend {self.backend}: drop one of the two"
        else:
            return self
        raise ValueError(msg)

    @property
    def scales_out(self) -> bool:
        """Whether parts are scored in other processes."""
        return self.workers is not None or self.scheduler is not None

    @field_validator("parts")
    @classmethod
    def _a_range_of_parts(cls, value: str | None) -> str | None:
        return None if value is None else str(parse_part_span(value))

    @property
    def part_span(self) -> PartSpan | None:
        """The parts to compute; None for all of them, as one run."""
        return None if self.parts is None else parse_part_span(self.parts)
