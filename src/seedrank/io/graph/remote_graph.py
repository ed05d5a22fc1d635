"""Graph stores on object stores: copied to a local folder before they are used, as they are mapped into memory."""

from __future__ import annotations

import logging
import re
import uuid
from pathlib import Path

from seedrank.errors import ConfigError, InputDataError
from seedrank.io.graph.graph_facts import FACTS_FILE, parse_graph_facts
from seedrank.io.graphstore import GraphStore, is_graph_store, open_graph_store
from seedrank.io.records import GraphFacts
from seedrank.io.run.lease import LOCK_KEY, Lease
from seedrank.io.run.lock import in_turn
from seedrank.io.run.owned import Ownership
from seedrank.io.storage.files import hash_file, publish, remove_tree, storage_errors
from seedrank.io.storage.objects import ObjectFolder

log = logging.getLogger(__name__)

#: What a store may hold. A name from elsewhere becomes the name of a local file, so nothing else is taken.
_FILE_NAME = re.compile(r"[a-z_]+\.(?:npy|arrow)")
_FINGERPRINT = re.compile(r"[0-9a-f]{32}")


def remote_graph_facts(objects: ObjectFolder) -> GraphFacts | None:
    """Read the facts of the graph store below a prefix; None if there is none.

    Raises
    ------
    InputDataError
        Another format version, a damaged ``graph.json``, or one that names files as ``build`` does not.
    StorageError
        The storage refused or failed.
    """
    text = objects.read(FACTS_FILE)
    if text is None:
        return None
    facts = parse_graph_facts(text, name=objects.url)
    odd = [name for name in facts.files if not _FILE_NAME.fullmatch(name)]
    if odd or not _FINGERPRINT.fullmatch(facts.fingerprint):
        raise InputDataError(
            f"{objects.url}/{FACTS_FILE} names {odd[0] if odd else facts.fingerprint!r}",
            expected="names as `seedrank build` writes them",
            fix="do not use this store: it was not written by seedrank, or tampered with",
        )
    return facts


def fetch_graph_store(objects: ObjectFolder, facts: GraphFacts, *, cache: Path) -> GraphStore:
    """Copy a graph store below ``cache/graphs``, unless it is there; every file is compared with its recorded hash.

    Stores are kept by the fingerprint of their content: the same graph is copied once, whatever its URL, also when
    many jobs of a machine ask for it together. Nothing removes them; a store that no job uses may be deleted.

    Raises
    ------
    InputDataError
        A file is missing, or its content is not what ``build`` wrote.
    StorageError
        Reading or writing failed.
    """
    place = cache / "graphs" / facts.fingerprint
    with in_turn(place):
        if is_graph_store(place):
            try:
                return GraphStore(place, open_graph_store(place).facts.model_copy(update=dict(facts)), objects.url)
            except InputDataError as error:
                log.warning("cached_graph_damaged", extra={"path": str(place), "reason": error.found})
        staged = cache / "copies" / uuid.uuid4().hex
        ownership = Ownership(staged)
        with storage_errors(f"copying {objects.url} to {place}"):
            try:
                staged.mkdir()
                for name, record in facts.files.items():
                    _fetch(objects, name, staged / name, expected=record.xxh3_128)
                (staged / FACTS_FILE).write_text(facts.model_dump_json(indent=2) + "\n", encoding="utf-8")
                remove_tree(place)
                publish(staged, place)
            finally:
                remove_tree(staged)
                ownership.give_back()
        log.info("graph_fetched", extra={"url": objects.url, "path": str(place)})
    return GraphStore(place, facts, objects.url)


def check_graph_replaceable(objects: ObjectFolder, *, overwrite: bool) -> None:
    """Refuse to put a graph store where something else is, or, unless allowed, another store.

    Raises
    ------
    ConfigError
        Nothing was touched.
    """
    names = objects.names()
    foreign = min(
        (name for name in names if not _FILE_NAME.fullmatch(name) and name not in (FACTS_FILE, LOCK_KEY)), default=None
    )
    if foreign is not None:
        raise ConfigError(
            f"--out {objects.url} holds {foreign!r}, which is not part of a graph store",
            expected="a prefix without objects, or that of a graph store",
            fix="choose another --out; seedrank never deletes what it did not write",
        )
    if not overwrite and objects.read(FACTS_FILE) is not None:
        raise ConfigError(
            f"--out {objects.url} already holds a graph store",
            expected="a prefix without objects",
            fix="pass --overwrite to replace it, or choose another --out",
        )


def put_graph_store(store: GraphStore, lease: Lease) -> None:
    """Put the files of a local store below a prefix, ``graph.json`` last; that of a store before goes first.

    Raises
    ------
    ConfigError
        Another process has taken the prefix over.
    StorageError
        Putting failed; without ``graph.json`` what is there counts as no store, and the next build replaces it.
    """
    objects = lease.objects
    lease.check()
    objects.remove(FACTS_FILE)
    for name in [*store.facts.files, FACTS_FILE]:
        lease.check()
        objects.upload(name, store.path / name)
    wanted = {*store.facts.files, FACTS_FILE, LOCK_KEY}
    for name in objects.names():
        if name not in wanted:  # of an earlier store with weights, types or attributes
            objects.remove(name)


def keep_copy(store: GraphStore, objects: ObjectFolder, *, cache: Path) -> GraphStore:
    """Move a local store that was put to where `fetch_graph_store` looks for it, unless it has it already."""
    place = cache / "graphs" / store.facts.fingerprint
    with in_turn(place), storage_errors(f"keeping a copy at {place}"):
        if not is_graph_store(place):
            publish(store.path, place)
    return GraphStore(place, store.facts, objects.url)


def _fetch(objects: ObjectFolder, name: str, file: Path, *, expected: str) -> None:
    found = hash_file(file) if objects.download(name, file) else None
    if found != expected:
        raise InputDataError(
            f"{objects.url}/{name} " + ("is missing" if found is None else f"has the content hash {found}"),
            expected=f"{expected}, as recorded in {FACTS_FILE}",
            fix=f"rebuild it: seedrank build EDGES --out {objects.url} --overwrite",
        )
