"""Preparing a graph that memory does not hold: from the files of a store to a file of slabs in the work folder."""

from __future__ import annotations

import logging
import shutil

import numpy as np

from seedrank.config import ScoreOptions
from seedrank.errors import StorageError
from seedrank.io.graph.slab_file import SlabFile
from seedrank.io.graph.stored_entries import StoredEntries
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.graphs.followed_graph import type_weights
from seedrank.jobs.graphs.graph_memory import GraphMemory
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.work_dir import work_folder
from seedrank.kernels.arrays import DanglingRule
from seedrank.kernels.backend import Backend, StreamingBackend
from seedrank.kernels.streamed_transition import StreamedTransition, survey_transition

log = logging.getLogger(__name__)


def load_streamed(
    backend: Backend,
    store: GraphStore,
    options: ScoreOptions,
    memory: GraphMemory,
    stopwatch: Stopwatch,
    *,
    dangling: DanglingRule,
) -> StreamedTransition:
    """Load the transition matrix of a store into a backend without ever holding its entries.

    Raises
    ------
    InputDataError
        An edge type that no edge has; a damaged store.
    StorageError
        No room in the work folder, or a disk that cannot be read.
    """
    assert isinstance(backend, StreamingBackend)
    with stopwatch.stage("transition"):
        transition = survey_transition(
            StoredEntries(store, "by_source"),
            StoredEntries(store, "by_destination"),
            direction=options.direction,
            type_weights=type_weights(options, store.facts.edge_types),
            dangling=dangling,
        )
    with stopwatch.stage("load_backend"):
        folder = work_folder(options.work_dir)
        slabs = SlabFile(folder, options.precision if transition.weighted else None)
        scratch, free = transition.entries * slabs.entry_bytes, shutil.disk_usage(folder).free
        if scratch > free:
            raise StorageError(
                f"the work folder {folder} has {free / 1e6:,.0f} MB free",
                expected=f"{scratch / 1e6:,.0f} MB, for the graph in the form in which it is streamed",
                fix="free space, or let --work-dir name a folder on a larger disk",
            )
        log.info(
            "graph_streamed",
            extra={
                "reason": memory.reason,
                "slab_bytes": memory.slab_bytes,
                "scratch_bytes": scratch,
                "entries": transition.entries,
            },
        )
        backend.load_streamed(
            transition,
            slabs,
            precision=options.precision,
            order=np.asarray(store.order),
            slab_entries=max(memory.slab_bytes // slabs.entry_bytes, 1),
        )
    return transition
