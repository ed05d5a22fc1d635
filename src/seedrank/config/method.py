"""Options of `score` about the method."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from seedrank.config.model import OptionModel
from seedrank.config.names import Dangling, Direction, Method, Stop, option
from seedrank.presets import Preset


class MethodOptions(OptionModel):
    """What is computed in the graph, and how far it may go."""

    method: Annotated[Method, option("Method")] = Field(
        "ppr",
        description="What to compute: personalized PageRank, random walks with restart, breadth-first or depth-first "
        "traversal, one-hop neighbors; the fusion of the hits (fuse) or the hits by their scores (semantic), both "
        "without a graph; these scores with bonuses for edges around the hits "
        "(hybrid); or what a planner chooses for every query (auto).",
    )
    preset: Annotated[Preset | None, option("Method")] = Field(
        None, description="A set of option values by its name; options that are given win over it."
    )
    restart: Annotated[tuple[Annotated[float, Field(ge=1e-9, le=1)], ...], option("Method")] = Field(
        (0.5,),
        description="Restart probability: chance to jump back to the seeds at each step; of a walk 0.2 by default. "
        "Several, with ppr: one result for each, in one pass (repeatable).",
    )
    damping: Annotated[tuple[Annotated[float, Field(ge=0, le=1 - 1e-9)], ...], option("Method")] = Field(
        (), description="Damping factor, 1 - restart probability: the same setting by its other name (repeatable)."
    )
    max_iterations: Annotated[int, option("Method", "iterations")] = Field(
        100, ge=1, le=1_000_000, description="Iterations after which a query is delivered, converged or not."
    )
    tolerance: Annotated[float, option("Method", "L1 distance")] = Field(
        1e-6,
        ge=0,
        le=2,
        description="Stop a query when its truncation bound is at most this; 0 = exactly --max-iterations.",
    )
    stop: Annotated[Stop, option("Method")] = Field(
        "tolerance",
        description="Stop a query at --tolerance, or (top-k) as soon as its error bound proves that the set of its "
        "--top-k candidates is final.",
    )
    dangling: Annotated[Dangling, option("Method")] = Field(
        "seeds",
        description="Where the mass of nodes without out-edges goes: to the seeds, nowhere, to every node.",
    )
    direction: Annotated[Direction, option("Method")] = Field(
        "out", description="Follow edges from source to target, backwards, or both ways."
    )
    edge_type: Annotated[tuple[str, ...], option("Method")] = Field(
        (), description="Use only edges of these types (repeatable)."
    )
    type_weight: Annotated[dict[str, float], option("Method", "TYPE=WEIGHT")] = Field(
        {}, description="Multiply the weights of an edge type; 0 removes it (repeatable)."
    )
    max_hops: Annotated[int | None, option("Method", "edges")] = Field(
        None,
        ge=0,
        le=2**31 - 1,
        description="Go no further from a seed than this; with ppr, return nothing that is further away.",
    )
    max_visited_nodes: Annotated[int | None, option("Method", "nodes")] = Field(
        None, ge=1, le=2**62, description="Visit at most so many nodes for a query; its seeds do not count."
    )
    max_visited_edges: Annotated[int | None, option("Method", "edges")] = Field(
        None, ge=1, le=2**62, description="Follow at most so many edges for a query."
    )
    walk_steps: Annotated[int, option("Method", "steps")] = Field(
        1000, ge=1, le=1_000_000_000, description="Steps of the walk from each seed."
    )
    random_seed: Annotated[int, option("Method")] = Field(
        0, ge=0, le=2**64 - 1, description="What the random numbers of walks start from."
    )
    hop_decay: Annotated[float, option("Method")] = Field(
        0.5, gt=0, le=1, description="Score of a node that a traversal reached: this, to the power of its hops."
    )
    neighbors_per_seed: Annotated[int | None, option("Method", "neighbors")] = Field(
        None, ge=1, le=2**31 - 1, description="Take at most so many neighbors of each seed, the lowest ids first."
    )
    expand_depth: Annotated[int, option("Method", "edges")] = Field(
        1,
        ge=0,
        le=2**31 - 1,
        description="How far around the hits the subgraph of hybrid goes; 0 = the hits alone, which needs no graph.",
    )
    include_expanded: Annotated[bool, option("Method")] = Field(
        False, description="Whether nodes of the subgraph that are no hits are candidates, with a semantic score of 0."
    )
    edge_bonus: Annotated[float, option("Method", "score")] = Field(
        0.1, ge=0, le=1e9, description="Score for every unit of weight of a node's edges in the subgraph."
    )
    centrality_bonus: Annotated[float, option("Method", "score")] = Field(
        0.1, ge=0, le=1e9, description="Score of a node that has an edge with every other node of the subgraph."
    )
