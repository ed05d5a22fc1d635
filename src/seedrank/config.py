"""Every option, once: name, type, default, unit, range and meaning.

The command line, the environment variables, the configuration file, the Python keyword arguments and ``run.json``
all use these names. Models are frozen; what is not listed here is refused.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError, field_validator, model_validator

from seedrank.errors import ConfigError
from seedrank.presets import Preset, preset_values

Group = Literal["Input", "Graph", "Method", "Seeds", "Fusion", "Output", "Run"]
Direction = Literal["out", "in", "both"]
Dangling = Literal["seeds", "self", "uniform"]
DuplicateEdges = Literal["sum", "max", "min", "mean"]
NullWeight = Literal["error", "drop", "one"]
BadRows = Literal["error", "drop"]
Normalization = Literal["sum", "none", "minmax", "max"]
Precision = Literal["float32", "float64"]
BackendName = Literal["auto", "cpu", "scipy"]
Method = Literal["ppr", "walk", "bfs", "dfs", "neighbors", "fuse"]
Fusion = Literal["rrf", "weighted", "none"]
Fallback = Literal["rrf", "none"]
Stop = Literal["tolerance", "top-k"]
Resume = Literal["auto", "never"]

#: Restart probability of a walk that is given none: walks are for going some way, PageRank for staying near.
WALK_RESTART = 0.2

#: Name of the channel that brings what a method found in the graph, beside the sources of the hits.
GRAPH_CHANNEL = "graph"

#: How an option's value came about, weakest first. ``argument`` is a keyword argument of the Python call.
ORIGINS = ("default", "preset", "file", "env", "flag", "argument")


class OptionInfo(NamedTuple):
    """What the command line shows of an option besides its type and range."""

    group: Group
    unit: str = ""


def _option(group: Group, unit: str = "") -> OptionInfo:
    return OptionInfo(group, unit)


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=False)


class BuildOptions(_Options):
    """Options of ``seedrank build``: how an edge list becomes a graph store."""

    src_column: Annotated[str, _option("Input")] = Field("src", description="Column of the edge's source id.")
    dst_column: Annotated[str, _option("Input")] = Field("dst", description="Column of the edge's target id.")
    weight_column: Annotated[str, _option("Input")] = Field(
        "weight", description="Column of the edge weight; without the column every edge weighs 1."
    )
    type_column: Annotated[str, _option("Input")] = Field(
        "type", description="Column of the edge type; without the column edges have no type."
    )
    node_id_column: Annotated[str, _option("Input")] = Field("id", description="Id column of the node table.")
    node_type_column: Annotated[str, _option("Input")] = Field("type", description="Type column of the node table.")
    duplicate_edges: Annotated[DuplicateEdges, _option("Graph")] = Field(
        "sum", description="How rows with equal (src, dst, type) become one edge; unweighted rows count 1."
    )
    null_weight: Annotated[NullWeight, _option("Graph")] = Field(
        "error", description="What a null edge weight means: refuse the input, drop the row, or weight 1."
    )
    on_bad_rows: Annotated[BadRows, _option("Graph")] = Field(
        "error",
        description="Rows with a null endpoint or a NaN, infinite or negative weight: refuse the input, or drop "
        "and count them.",
    )
    overwrite: Annotated[bool, _option("Run")] = Field(
        False, description="Replace an earlier result at the output path (never anything else)."
    )


class ScoreOptions(BuildOptions):
    """Options of ``seedrank score``; the first block belongs to edge lists (see `BuildOptions`)."""

    hit_query_column: Annotated[str, _option("Input")] = Field(
        "query_id", description="Query id column of the hits and exclusions."
    )
    hit_node_column: Annotated[str, _option("Input")] = Field(
        "node_id", description="Node id column of the hits and exclusions."
    )
    hit_weight_column: Annotated[str, _option("Input")] = Field(
        "weight", description="Weight column of the hits; without the column every hit weighs 1."
    )
    hit_source_column: Annotated[str, _option("Input")] = Field("source", description="Source column of the hits.")
    hit_seeds_column: Annotated[str, _option("Input")] = Field(
        "seeds", description="List column of nested hits (one row per query)."
    )
    hit_rank_column: Annotated[str, _option("Input")] = Field(
        "rank",
        description="Rank column of the hits, from 1, for reciprocal rank fusion; without the column ranks follow "
        "from the weights.",
    )
    all_nodes: Annotated[str | None, _option("Input")] = Field(
        None, description="Make every node of this type its own query, instead of reading hits."
    )

    method: Annotated[Method, _option("Method")] = Field(
        "ppr",
        description="What to compute: personalized PageRank, random walks with restart, breadth-first or depth-first "
        "traversal, one-hop neighbors, or the fusion of the hits alone, which needs no graph.",
    )
    preset: Annotated[Preset | None, _option("Method")] = Field(
        None, description="A set of option values by its name; options that are given win over it."
    )
    restart: Annotated[tuple[Annotated[float, Field(ge=1e-9, le=1)], ...], _option("Method")] = Field(
        (0.5,),
        description="Restart probability: chance to jump back to the seeds at each step; of a walk 0.2 by default. "
        "Several, with ppr: one result for each, in one pass (repeatable).",
    )
    damping: Annotated[tuple[Annotated[float, Field(ge=0, le=1 - 1e-9)], ...], _option("Method")] = Field(
        (), description="Damping factor, 1 - restart probability: the same setting by its other name (repeatable)."
    )
    max_iterations: Annotated[int, _option("Method", "iterations")] = Field(
        100, ge=1, le=1_000_000, description="Iterations after which a query is delivered, converged or not."
    )
    tolerance: Annotated[float, _option("Method", "L1 distance")] = Field(
        1e-6,
        ge=0,
        le=2,
        description="Stop a query when its truncation bound is at most this; 0 = exactly --max-iterations.",
    )
    stop: Annotated[Stop, _option("Method")] = Field(
        "tolerance",
        description="Stop a query at --tolerance, or (top-k) as soon as its error bound proves that the set of its "
        "--top-k candidates is final.",
    )
    dangling: Annotated[Dangling, _option("Method")] = Field(
        "seeds",
        description="Where the mass of nodes without out-edges goes: to the seeds, nowhere, to every node.",
    )
    direction: Annotated[Direction, _option("Method")] = Field(
        "out", description="Follow edges from source to target, backwards, or both ways."
    )
    edge_type: Annotated[tuple[str, ...], _option("Method")] = Field(
        (), description="Use only edges of these types (repeatable)."
    )
    type_weight: Annotated[dict[str, float], _option("Method", "TYPE=WEIGHT")] = Field(
        {}, description="Multiply the weights of an edge type; 0 removes it (repeatable)."
    )
    max_hops: Annotated[int | None, _option("Method", "edges")] = Field(
        None,
        ge=0,
        le=2**31 - 1,
        description="Go no further from a seed than this; with ppr, return nothing that is further away.",
    )
    max_visited_nodes: Annotated[int | None, _option("Method", "nodes")] = Field(
        None, ge=1, le=2**62, description="Visit at most so many nodes for a query; its seeds do not count."
    )
    max_visited_edges: Annotated[int | None, _option("Method", "edges")] = Field(
        None, ge=1, le=2**62, description="Follow at most so many edges for a query."
    )
    walk_steps: Annotated[int, _option("Method", "steps")] = Field(
        1000, ge=1, le=1_000_000_000, description="Steps of the walk from each seed."
    )
    random_seed: Annotated[int, _option("Method")] = Field(
        0, ge=0, le=2**64 - 1, description="What the random numbers of walks start from."
    )
    hop_decay: Annotated[float, _option("Method")] = Field(
        0.5, gt=0, le=1, description="Score of a node that a traversal reached: this, to the power of its hops."
    )
    neighbors_per_seed: Annotated[int | None, _option("Method", "neighbors")] = Field(
        None, ge=1, le=2**31 - 1, description="Take at most so many neighbors of each seed, the lowest ids first."
    )

    source: Annotated[tuple[str, ...], _option("Seeds")] = Field(
        (), description="Use only hits of these sources (repeatable)."
    )
    source_normalization: Annotated[Normalization, _option("Seeds")] = Field(
        "sum", description="How the weights of each source of a query are normalised before they are added."
    )
    seed_source_weight: Annotated[dict[str, float], _option("Seeds", "SOURCE=WEIGHT")] = Field(
        {}, description="Multiply the normalised weights of a source (repeatable)."
    )
    lower_is_better: Annotated[tuple[str, ...], _option("Seeds")] = Field(
        (), description="The weights of this source are distances (repeatable)."
    )

    fusion: Annotated[Fusion, _option("Fusion")] = Field(
        "none",
        description="Rank the hits of the sources and what the graph brings together: by reciprocal ranks, or by "
        "weighted scores between 0 and 1. With fuse, rrf by default.",
    )
    source_weight: Annotated[dict[str, float], _option("Fusion", "SOURCE=WEIGHT")] = Field(
        {},
        description=f"Weight of a source in the fusion, 1 by default; {GRAPH_CHANNEL} is what the graph brings, 0 "
        "silences (repeatable).",
    )
    rrf_k: Annotated[int, _option("Fusion")] = Field(
        60, ge=0, le=1_000_000, description="k of reciprocal rank fusion, 1 / (k + rank)."
    )
    fusion_depth: Annotated[int, _option("Fusion", "candidates")] = Field(
        1000, ge=1, le=2**31 - 1, description="How many of the best nodes of the graph take part in the fusion."
    )
    fallback: Annotated[Fallback, _option("Fusion")] = Field(
        "none", description="What a query returns for which the graph brings nothing: its hits by reciprocal ranks."
    )

    top_k: Annotated[int, _option("Output", "candidates")] = Field(
        100, ge=1, le=2**31 - 1, description="Candidates per query."
    )
    node_type: Annotated[tuple[str, ...], _option("Output")] = Field(
        (), description="Return only nodes of these types (repeatable)."
    )
    include_seeds: Annotated[bool, _option("Output")] = Field(
        False, description="Whether the hits of a query may be among its candidates; yes by default with fusion."
    )
    min_score: Annotated[float, _option("Output", "score")] = Field(
        0.0, ge=0, le=1e9, description="Return only candidates with at least this score."
    )
    paths: Annotated[bool, _option("Output")] = Field(
        False, description="Return the shortest path from a seed with every candidate."
    )
    part_size: Annotated[int, _option("Output", "queries")] = Field(
        4096, ge=1, le=10_000_000, description="Queries per output file."
    )

    backend: Annotated[BackendName, _option("Run")] = Field(
        "auto", description="Who computes: the best available backend, or one by name."
    )
    precision: Annotated[Precision, _option("Run")] = Field(
        "float32", description="Storage precision of scores and of the block being iterated."
    )
    block_size: Annotated[int | None, _option("Run", "queries")] = Field(
        None,
        ge=1,
        le=4096,
        description="Queries scored together, at most what the method takes (64, traversals 256); by default what "
        "memory allows.",
    )
    threads: Annotated[int | None, _option("Run")] = Field(
        None, ge=1, le=4096, description="Threads of the cpu backend; by default one per processor. Changes no result."
    )
    memory_limit: Annotated[ByteSize | None, _option("Run", "bytes, or 12GiB")] = Field(
        None, description="Memory that the block of scores may plan with; by default half of what is free."
    )
    timeout_s: Annotated[float | None, _option("Run", "seconds")] = Field(
        None, gt=0, le=1e9, description="End a query after this time, with what it has found until then."
    )
    deadline_s: Annotated[float | None, _option("Run", "seconds")] = Field(
        None, gt=0, le=1e9, description="End the job after this time; queries that are left have no candidates."
    )
    resume: Annotated[Resume, _option("Run")] = Field(
        "auto",
        description="What parts at the output path mean: go on with their run, if it is the same one (auto), or refuse "
        "the folder unless --overwrite is given (never).",
    )
    strict: Annotated[bool, _option("Run")] = Field(
        False, description="Exit with 6 when any query ends with a status other than ok."
    )

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: Any) -> Any:
        """Put in what preset and method give to options that are not given."""
        if not isinstance(values, dict):
            return values
        filled = preset_values(values)
        fused = {**filled, **values}
        if values.get("method") == "fuse":
            fused.setdefault("fusion", "rrf")
        if fused.get("fusion", "none") != "none":
            fused.setdefault("include_seeds", True)
        return fused

    @field_validator("restart", "damping", mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, value: Any) -> Any:
        if value is None:
            return ()
        return value if isinstance(value, list | tuple) else (value,)

    @field_validator("type_weight", "seed_source_weight", "source_weight")
    @classmethod
    def _weights_are_not_negative(cls, value: dict[str, float]) -> dict[str, float]:
        for name, weight in value.items():
            if not (math.isfinite(weight) and weight >= 0):
                msg = f"the weight of {name!r} is {weight}, it must be a number >= 0"
                raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _one_name_for_the_restart(self) -> ScoreOptions:
        if self.damping and "restart" in self.model_fields_set:
            msg = "restart and damping are one setting (damping = 1 - restart) and both are given: give one of them"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _certificates_need_a_bound(self) -> ScoreOptions:
        if self.stop == "top-k" and self.tolerance == 0:
            msg = "--stop top-k is given with --tolerance 0, which fixes the number of iterations: give a tolerance > 0"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _several_restarts_share_their_products(self) -> ScoreOptions:
        given = self.damping or self.restart
        if not given:
            msg = "restart is given without a value: give one or more"
        elif len(set(given)) < len(given):
            msg = "a restart probability is given twice: give each once"
        elif len(given) > 1 and self.tolerance == 0:
            msg = "several restart probabilities need --tolerance > 0: each ends at its own iteration"
        elif len(given) > 1 and self.stop != "tolerance":
            msg = "several restart probabilities are given with --stop top-k: give one, or drop --stop"
        else:
            return self
        raise ValueError(msg)

    @property
    def ranks_hits(self) -> bool:
        """Whether hits are ranked, and may be candidates although the graph does not have them."""
        return self.fusion != "none" or self.fallback != "none"

    @property
    def uses_ranks(self) -> bool:
        """Whether positions in the lists of the sources matter."""
        return "rrf" in (self.fusion, self.fallback)

    @property
    def restart_probabilities(self) -> tuple[float, ...]:
        """Every λ, whichever of the two names it was given by, ascending; each in (0, 1]. Walks default to another."""
        if self.damping:
            return tuple(sorted(1.0 - value for value in self.damping))
        if self.method == "walk" and "restart" not in self.model_fields_set:
            return (WALK_RESTART,)
        return tuple(sorted(self.restart))

    @property
    def restart_probability(self) -> float:
        """λ, where there is one; the lowest of several."""
        return self.restart_probabilities[0]


OptionsT = TypeVar("OptionsT", bound=_Options)


def make_options(model: type[OptionsT], values: Mapping[str, Any]) -> OptionsT:
    """Validate option values, with the uniform message.

    Parameters
    ----------
    model : BuildOptions or ScoreOptions
    values : mapping from option name to value; absent names take their default.

    Raises
    ------
    ConfigError
        An unknown name (with the nearest known one), a wrong type or a value out of range.
    """
    unknown = [name for name in values if name not in model.model_fields]
    if unknown:
        near = difflib.get_close_matches(unknown[0], model.model_fields, n=1)
        raise ConfigError(
            f"unknown option {unknown[0]!r}",
            expected="one of " + ", ".join(sorted(model.model_fields)),
            fix=f"did you mean {near[0]!r}?" if near else "remove it",
        )
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        message = first["msg"].removeprefix("Value error, ")
        if not name:
            raise ConfigError(message, fix="see `seedrank score --help`") from None
        raise ConfigError(
            f"option {name!r} has the value {values.get(name)!r}",
            expected=message[0].lower() + message[1:],
            fix=f"--{name.replace('_', '-')}: {model.model_fields[name].description}",
        ) from None
