"""Options of `score` about the run itself; they change no result, or only cut it short."""

from __future__ import annotations

from typing import Annotated

from pydantic import ByteSize, Field

from seedrank.config.model import OptionModel
from seedrank.config.names import BackendName, GraphForm, Precision, Resume, option


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
        None, ge=1, le=4096, description="Threads of the cpu backend; by default one per processor. Changes no result."
    )
    memory_limit: Annotated[ByteSize | None, option("Run", "bytes, or 12GiB")] = Field(
        None,
        description="Memory that the block of scores may plan with; by default half of what is free. A graph that does "
        "not fit beside it is streamed, and then counts.",
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
    metrics_file: Annotated[str | None, option("Run", "path")] = Field(
        None,
        description="File for metrics in the text format of Prometheus, rewritten after every part.",
    )
    strict: Annotated[bool, option("Run")] = Field(
        False, description="Exit with 6 when any query ends with a status other than ok."
    )
