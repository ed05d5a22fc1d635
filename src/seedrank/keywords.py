"""Keyword arguments of the Python calls, as type checkers and editors see them: the fields of the option models."""

from __future__ import annotations

from typing import TypedDict

from seedrank.config.names import (
    BackendName,
    BadRows,
    Budget,
    Dangling,
    Direction,
    DuplicateEdges,
    Fallback,
    Fusion,
    GraphForm,
    Method,
    Normalization,
    NullWeight,
    Precision,
    Rerank,
    Resume,
    SeedWeighting,
    SourceRole,
    Stop,
)
from seedrank.presets import Preset


class BuildKeywords(TypedDict, total=False):
    """Keyword arguments of `seedrank.build`: the fields of `BuildOptions`."""

    src_column: str
    dst_column: str
    weight_column: str
    type_column: str
    node_id_column: str
    node_type_column: str
    duplicate_edges: DuplicateEdges
    null_weight: NullWeight
    on_bad_rows: BadRows
    memory_limit: int | str | None
    overwrite: bool
    work_dir: str | None


class ScoreKeywords(BuildKeywords, total=False):
    """Keyword arguments of `seedrank.score`, `seedrank.plan` and `seedrank.check`: the fields of `ScoreOptions`."""

    hit_query_column: str
    hit_node_column: str
    hit_weight_column: str
    hit_source_column: str
    hit_seeds_column: str
    hit_rank_column: str
    hit_retriever_weight_column: str
    fallback_node_column: str | None
    all_nodes: str | None
    method: Method
    preset: Preset | None
    restart: float | tuple[float, ...] | list[float]
    damping: float | tuple[float, ...] | list[float]
    max_iterations: int
    tolerance: float
    stop: Stop
    dangling: Dangling
    direction: Direction
    edge_type: tuple[str, ...] | list[str]
    type_weight: dict[str, float]
    max_hops: int | None
    max_visited_nodes: int | None
    max_visited_edges: int | None
    walk_steps: int
    random_seed: int
    hop_decay: float
    neighbors_per_seed: int | None
    expand_depth: int
    include_expanded: bool
    edge_bonus: float
    centrality_bonus: float
    budget: Budget
    source_role: dict[str, SourceRole]
    vector_column: str
    vector_node_column: str
    vector_query_column: str
    vector_depth: int
    rerank: Rerank
    rerank_depth: int
    source: tuple[str, ...] | list[str]
    source_normalization: Normalization
    seed_weighting: SeedWeighting
    seed_node_type: tuple[str, ...] | list[str]
    seed_source_weight: dict[str, float]
    lower_is_better: tuple[str, ...] | list[str]
    fusion: Fusion
    source_weight: dict[str, float]
    rrf_k: int
    fusion_depth: int
    fallback: Fallback
    top_k: int
    node_type: tuple[str, ...] | list[str]
    include_seeds: bool
    min_score: float
    exclude_neighbors: bool
    where: tuple[str, ...] | list[str]
    require: tuple[str, ...] | list[str]
    include_glob: tuple[str, ...] | list[str]
    exclude_glob: tuple[str, ...] | list[str]
    no_tests: str | None
    group_by: str | None
    paths: bool
    part_size: int
    backend: BackendName
    precision: Precision
    block_size: int | None
    threads: int | None
    workers: int | str | None
    scheduler: str | None
    graph_memory: GraphForm
    timeout_s: float | None
    deadline_s: float | None
    resume: Resume
    since: str | None
    parts: str | None
    metrics_file: str | None
    lineage_file: str | None
    lineage_job: str
    strict: bool
