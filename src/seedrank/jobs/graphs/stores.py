"""Finding graph stores: on disks, where they are mapped, and on object stores, from where they are copied first."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

from seedrank.io.graph.remote_graph import fetch_graph_store, remote_graph_facts
from seedrank.io.graphstore import GraphStore, is_graph_store, open_graph_store
from seedrank.io.storage.objects import object_folder
from seedrank.io.uri import PARQUET_SUFFIXES
from seedrank.jobs.locations import MAGIC, local_path, remote_url
from seedrank.jobs.work_dir import work_folder


def store_of(graph: Any, *, work_dir: str | None = None, fetch: bool = True) -> GraphStore | None:
    """Return the graph store that a positional argument names, or None when it is an edge list.

    Parameters
    ----------
    graph : graph store, path, URL, or anything else, which is an edge list then.
    work_dir : where the store of a URL is copied to (`seedrank.jobs.work_dir`).
    fetch : whether it is; without, only the facts of the store may be used.

    Raises
    ------
    InputDataError, StorageError
        The store is damaged, or cannot be reached.
    """
    if isinstance(graph, GraphStore):
        return graph
    if isinstance(graph, (str, os.PathLike)):
        path, url = local_path(graph), remote_url(graph)
        if path is not None and is_graph_store(path):
            return open_graph_store(path)
        if url is not None and _may_be_a_store(url):
            return _remote_store(url, work_dir=work_dir, fetch=fetch)
    return None


def open_graph(path: str | os.PathLike[str], *, work_dir: str | None = None) -> GraphStore:
    """Open a graph store in milliseconds, whatever its size; one at a URL is copied first, unless it was before.

    Parameters
    ----------
    path : folder, or URL of a prefix.
    work_dir : local folder for copies; by default ``seedrank`` in the user's cache folder.

    Raises
    ------
    InputDataError
        Not a graph store, another format version, or a file is missing or has another size than recorded.
    StorageError
        The URL cannot be read.
    """
    found = store_of(path, work_dir=work_dir)
    return open_graph_store(path) if found is None else found


def _may_be_a_store(url: str) -> bool:
    """Whether to look for ``graph.json`` there: not for a pattern, a file, or a signed URL."""
    return not MAGIC & set(url) and PurePosixPath(url).suffix.lower() not in PARQUET_SUFFIXES


def _remote_store(url: str, *, work_dir: str | None, fetch: bool) -> GraphStore | None:
    objects = object_folder(url, what="the graph")
    facts = remote_graph_facts(objects)
    if facts is None:
        return None
    if not fetch:
        return GraphStore(Path(os.devnull), facts, objects.url)
    return fetch_graph_store(objects, facts, cache=work_folder(work_dir))
