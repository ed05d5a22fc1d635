"""The run key: all that makes the bytes of a run's parts, and so decides whether a run may go on where one ended."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import xxhash

from seedrank.config import BuildOptions, ScoreOptions
from seedrank.errors import ConfigError
from seedrank.io.candidates import CANDIDATES_SCHEMA_VERSION, QUERIES_SCHEMA_VERSION
from seedrank.io.records import RunManifest
from seedrank.jobs.inputs import DESCRIPTIONS, QUERY_INPUTS

#: Options that change no byte of a part. What edges and hits said under the names of their columns is in the
#: fingerprints of the inputs; of ``backend`` the one that ran counts, and of ``preset`` the values that it set; parts
#: that the deadline cut are computed again.
NOT_IN_KEY = frozenset(
    {"backend", "preset", "block_size", "threads", "memory_limit", "deadline_s", "strict", "resume"}
    | {"metrics_file", "lineage_file", "lineage_job", "parts", "since", "fallback_node_column", "workers", "scheduler"}
    | {"graph_memory"}
    | set(BuildOptions.model_fields)
    | {name for name in ScoreOptions.model_fields if name.startswith(("hit_", "vector_")) and name.endswith("_column")}
)
#: Of a node table only the graph is left.
_INPUTS = ("graph", *QUERY_INPUTS)


def run_key(manifest: RunManifest) -> str:
    """xxh3-128 over all that makes the bytes of the parts; inputs and backend are recorded already."""
    assert manifest.backend is not None
    text = json.dumps(_ingredients(manifest, manifest.backend.name), sort_keys=True)
    return xxhash.xxh3_128_hexdigest(text.encode())


def check_same_run(recorded: RunManifest, wanted: RunManifest, *, backend: str, name: str) -> None:
    """Refuse to go on with a run that would have given other parts.

    Parameters
    ----------
    recorded : the run that began.
    wanted : the run that would go on, with its inputs recorded.
    backend : the one that would compute.
    name : the run folder, for the message.

    Raises
    ------
    ConfigError
        Everything that differs is named, with its old and its new value.
    """
    before = _ingredients(recorded, recorded.backend.name if recorded.backend else None)
    after = _ingredients(wanted, backend)
    different = _differences(before, after)
    if different:
        raise ConfigError(
            f"--out {name} holds the parts of another run: " + "; ".join(different),
            expected="the inputs and options that the run began with",
            fix="repeat its command to go on with it, pass --overwrite to replace it, or choose another --out",
        )


def check_same_results(recorded: RunManifest, wanted: RunManifest, *, since: str) -> None:
    """Refuse to take results over from a run in which the same query may have another one.

    What queries bring is compared query by query, and parts may be cut elsewhere.

    Raises
    ------
    ConfigError
        Everything that differs is named, with its old and its new value.
    """
    apart = {DESCRIPTIONS[name] for name in QUERY_INPUTS} | {"--part-size"}
    before = _ingredients(recorded, recorded.backend.name if recorded.backend else None)
    after = _ingredients(wanted, wanted.backend.name if wanted.backend else None)
    different = _differences(before, after, apart)
    if different:
        raise ConfigError(
            f"--since {since} is a run in which queries may have other results: " + "; ".join(different),
            expected="an earlier run on the same graph, under the same options and with the same backend",
            fix="leave --since out, or name another run",
        )


def have_same_options(recorded: RunManifest, wanted: RunManifest) -> bool:
    """Whether a run could go on where the other ended, as far as that is seen without reading inputs."""
    return (
        _options(recorded) == _options(wanted)
        and recorded.planner_rules == wanted.planner_rules
        and recorded.seedrank_version == wanted.seedrank_version
    )


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], apart: Collection[str] = ()) -> list[str]:
    """Say what differs, some names apart."""
    return [
        f"{name}: {_shown(before.get(name))} there, {_shown(after.get(name))} here"
        for name in {**before, **after}
        if name not in apart and before.get(name) != after.get(name)
    ]


def _ingredients(manifest: RunManifest, backend: str | None) -> dict[str, Any]:
    """Name what makes the bytes of a run, as a reader of messages knows it."""
    inputs = {
        DESCRIPTIONS[name]: manifest.inputs[name].fingerprint if name in manifest.inputs else None for name in _INPUTS
    }
    return {
        **inputs,
        **_options(manifest),
        "--backend": backend,
        "the rules of the planner": manifest.planner_rules,
        "the version of seedrank": manifest.seedrank_version,
        "the format": [manifest.schema_version, CANDIDATES_SCHEMA_VERSION, QUERIES_SCHEMA_VERSION],
    }


def _options(manifest: RunManifest) -> dict[str, Any]:
    return {
        f"--{name.replace('_', '-')}": record.value
        for name, record in manifest.options.items()
        if name not in NOT_IN_KEY
    }


def _shown(value: Any) -> str:
    return "none" if value in (None, [], {}) else " ".join(map(str, value)) if isinstance(value, list) else str(value)
