"""The graph store: the folder that ``seedrank build`` writes and everything else opens by memory map.

Layout (format version 1)::

    GRAPH/graph.json                    facts, options, file hashes; written last
    GRAPH/ids.arrow                     node ids, sorted: position = tie rank
    GRAPH/node_attributes.arrow         attributes of the nodes, in the order of ids (only with a node table)
    GRAPH/order.npy                     int32 (nodes): internal node -> tie rank
    GRAPH/inverse_order.npy             int32 (nodes): tie rank -> internal node
    GRAPH/by_source_{offsets,neighbors[,weights][,types]}.npy
    GRAPH/by_destination_{offsets,neighbors[,weights][,types]}.npy

Offsets are int64 (nodes + 1), neighbors int32 internal nodes, weights float64 (absent when every edge weighs 1),
types the smallest unsigned integers (absent when edges have no type). A store depends on the set of edges and
attributes alone: two builds of the same rows in any order give the same bytes but for ``graph.json``'s inputs.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from seedrank.errors import ConfigError, InputDataError
from seedrank.io.graph.graph_facts import FACTS_FILE, FORMAT_VERSION, parse_graph_facts
from seedrank.io.graph.graph_files import RowStream, StoredRows, write_graph_files
from seedrank.io.graph.soundness import refuse_unsound_numbering, refuse_unsound_rows
from seedrank.io.records import GraphFacts, StoredFile
from seedrank.io.storage.files import (
    aside,
    hash_file,
    mapping_errors,
    publish,
    remove_tree,
    storage_errors,
    write_text_atomically,
)


@dataclass(frozen=True)
class GraphStore:
    """An open graph store; arrays are read-only memory maps, nothing is loaded before it is used.

    Attributes
    ----------
    path : the local folder.
    facts : what it holds.
    origin : URL that it was copied from, without credentials; None for one that stands where it was built.
    """

    path: Path
    facts: GraphFacts
    origin: str | None = None

    def _array(self, name: str) -> npt.NDArray[Any]:
        path = self.path / f"{name}.npy"
        array: npt.NDArray[Any]
        with _damage(path), mapping_errors(path):
            try:
                array = np.load(path, mmap_mode="r", allow_pickle=False)
            except ValueError:  # an empty array cannot be mapped
                array = np.load(path, allow_pickle=False)
        return array

    def _rows(self, side: str) -> StoredRows:
        has = self.facts.files
        rows = StoredRows(
            offsets=self._array(f"{side}_offsets"),
            neighbors=self._array(f"{side}_neighbors"),
            weights=self._array(f"{side}_weights") if f"{side}_weights.npy" in has else None,
            types=self._array(f"{side}_types") if f"{side}_types.npy" in has else None,
        )
        refuse_unsound_rows(rows, side, store=self.path, facts=self.facts)
        return rows

    def _numbering(self, name: str) -> npt.NDArray[np.int32]:
        array = self._array(name)
        refuse_unsound_numbering(array, name, store=self.path, nodes=self.facts.nodes)
        return array

    @cached_property
    def ids(self) -> pa.Array:
        """Node ids in sorted order, in the input's type."""
        table = _read_arrow(self.path / "ids.arrow")
        column = table.column("id")
        return column.chunk(0) if column.num_chunks else pa.array([], column.type)

    @cached_property
    def order(self) -> npt.NDArray[np.int32]:
        """Internal node -> tie rank."""
        return self._numbering("order")

    @cached_property
    def inverse_order(self) -> npt.NDArray[np.int32]:
        """Tie rank -> internal node."""
        return self._numbering("inverse_order")

    @cached_property
    def by_source(self) -> StoredRows:
        """Out-edges of each internal node."""
        return self._rows("by_source")

    @cached_property
    def by_destination(self) -> StoredRows:
        """In-edges of each internal node."""
        return self._rows("by_destination")

    @cached_property
    def attributes(self) -> pa.Table | None:
        """Node attributes in tie-rank order, or None without a node table."""
        name = "node_attributes.arrow"
        return _read_arrow(self.path / name) if name in self.facts.files else None

    @property
    def store_bytes(self) -> int:
        """Size of the store's files in bytes."""
        return sum(file.bytes for file in self.facts.files.values())

    def check_node_types(self, names: tuple[str, ...], *, option: str) -> None:
        """Refuse names of node types that no node has; ``option`` is what the user wrote them for.

        Raises
        ------
        InputDataError
            The store has no node types, or not one of the names.
        """
        known = self.facts.node_types
        if known is None:
            raise InputDataError(
                f"{option} names a node type, but the graph has no node types",
                expected="a node table with a type column",
                fix="pass --nodes NODES with the edge list (to build, for a graph store), or drop the option",
            )
        missing = [name for name in names if name not in known]
        if missing:
            raise InputDataError(
                f"{option} {missing[0]!r}: no node has this type",
                expected="one of " + ", ".join(repr(name) for name in sorted(known)[:20]),
                fix="correct the name",
            )

    def nodes_of_types(self, names: tuple[str, ...], *, option: str) -> npt.NDArray[np.bool_]:
        """Boolean mask over tie ranks: the node's type is one of ``names``, which `check_node_types` checks."""
        self.check_node_types(names, option=option)
        assert self.attributes is not None
        return np.asarray(pc.is_in(self.attributes.column("type"), value_set=pa.array(names, pa.string())))


def is_graph_store(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder that ``seedrank build`` finished."""
    return (Path(path) / FACTS_FILE).is_file()


def write_graph_store(
    path: Path,
    *,
    ids: pa.Array,
    order: npt.NDArray[np.int32],
    inverse_order: npt.NDArray[np.int32],
    rows: Mapping[str, StoredRows | RowStream],
    attributes: pa.Table | None,
    facts: Mapping[str, Any],
    overwrite: bool,
) -> GraphStore:
    """Write a graph store beside its final place, then rename it into place.

    Parameters
    ----------
    path : final folder; its parent is made when missing.
    ids : (nodes,) sorted ids.
    order, inverse_order : int32 (nodes,), the relabelling and its inverse.
    rows : ``{"by_source": …, "by_destination": …}``; streams are read one after the other.
    attributes : table of ``nodes`` rows in the order of ``ids``, or None.
    facts : the fields of `GraphFacts` that are not about files.
    overwrite : whether an earlier graph store at ``path`` is replaced; anything else there is always refused.

    Raises
    ------
    ConfigError
        Something stands at ``path`` that may not be replaced.
    StorageError
        Writing failed; nothing is left at ``path``.
    """
    check_replaceable(path, overwrite=overwrite)
    staged = path.with_name(f".{path.name}.staged-{os.getpid()}")
    with storage_errors(f"writing the graph store {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_tree(staged)
        staged.mkdir()
        try:
            files = write_graph_files(staged, ids, attributes, {"order": order, "inverse_order": inverse_order}, rows)
            written = GraphFacts(
                format_version=FORMAT_VERSION, files=files, fingerprint=_fingerprint(files, facts), **facts
            )
            write_text_atomically(staged / FACTS_FILE, written.model_dump_json(indent=2) + "\n")
            if path.exists():
                path.rename(aside(path))
            publish(staged, path)
        finally:
            recover_graph_store(path)
    return GraphStore(path, written)


def recover_graph_store(path: Path) -> None:
    """Remove what builds leave beside a store, and put back the one that was moved aside and not replaced.

    Only the holder of the store's lock (`seedrank.io.run.lock`) may do so.

    Raises
    ------
    StorageError
        Something could not be removed or moved.
    """
    with storage_errors(f"cleaning up beside the graph store {path}"):
        for staged in path.parent.glob(f".{glob.escape(path.name)}.staged-*"):
            remove_tree(staged)
        if path.exists():
            remove_tree(aside(path))
        elif aside(path).exists():
            publish(aside(path), path)


def open_graph_store(path: str | os.PathLike[str]) -> GraphStore:
    """Open a graph store in milliseconds, whatever its size.

    Raises
    ------
    InputDataError
        Not a graph store, another format version, or a file is missing or has another size than recorded.
    """
    folder = Path(path)
    try:
        text = (folder / FACTS_FILE).read_text(encoding="utf-8")
    except OSError:
        raise InputDataError(
            f"{folder} is not a graph store",
            expected=f"a folder with {FACTS_FILE}, as `seedrank build` writes it",
            fix="run `seedrank build EDGES --out GRAPH` first, or pass the edge list itself",
        ) from None
    facts = parse_graph_facts(text, name=str(folder))
    for name, record in facts.files.items():
        file = folder / name
        size = file.stat().st_size if file.is_file() else None
        if size != record.bytes:
            raise InputDataError(
                f"{file} has {'no file' if size is None else f'{size} bytes'}",
                expected=f"{record.bytes} bytes, as recorded in {FACTS_FILE}",
                fix=f"rebuild it: seedrank build EDGES --out {folder} --overwrite",
            )
    return GraphStore(folder, facts)


def verify_graph_store(store: GraphStore) -> None:
    """Compare the content of every file with its recorded hash (reads the whole store).

    Raises
    ------
    InputDataError
        The first file whose content is not what build wrote.
    """
    for name, record in store.facts.files.items():
        found = hash_file(store.path / name)
        if found != record.xxh3_128:
            raise InputDataError(
                f"{store.path / name} has the content hash {found}",
                expected=f"{record.xxh3_128}, as recorded in {FACTS_FILE}",
                fix=f"rebuild it: seedrank build EDGES --out {store.path} --overwrite",
            )


def check_replaceable(path: Path, *, overwrite: bool) -> None:
    """Refuse to write a graph store over anything but, when allowed, an earlier graph store."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not is_graph_store(path):
        raise ConfigError(
            f"--out {path} exists and is not a graph store",
            expected="a path that does not exist yet",
            fix="choose another --out; seedrank never deletes what it did not write",
        )
    if not overwrite:
        raise ConfigError(
            f"--out {path} already holds a graph store",
            expected="a path that does not exist yet",
            fix="pass --overwrite to replace it, or choose another --out",
        )


def _fingerprint(files: Mapping[str, StoredFile], facts: Mapping[str, Any]) -> str:
    digest = xxhash.xxh3_128()
    content = {"format": FORMAT_VERSION, "edge_types": facts["edge_types"]}
    content |= {name: file.xxh3_128 for name, file in files.items()}
    digest.update(json.dumps(content, sort_keys=True).encode())
    return digest.hexdigest()


def _read_arrow(path: Path) -> pa.Table:
    with _damage(path), pa.memory_map(str(path), "r") as source:
        return pa.ipc.open_file(source).read_all()


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn what NumPy and Arrow say about a file that is not theirs into the uniform message."""
    try:
        yield
    except ValueError as error:  # ArrowInvalid is one, too
        raise InputDataError(
            f"{path} cannot be read ({error})",
            expected=f"the file that build wrote; its hash is in {FACTS_FILE}",
            fix=f"rebuild it: seedrank build EDGES --out {path.parent} --overwrite",
        ) from error
