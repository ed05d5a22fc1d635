"""Results of an earlier run for the queries that did not change since (``--since``)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.errors import InputDataError
from seedrank.io.records import PartRecord, RunManifest
from seedrank.io.uri import InputFile
from seedrank.jobs.queries.input_hashes import HASH_BYTES
from seedrank.jobs.results import Run, open_run, opened
from seedrank.jobs.run.run_key import check_same_results
from seedrank.jobs.run.run_parts import part_damage, part_file
from seedrank.kernels.runs import gather, offsets_of

log = logging.getLogger(__name__)

#: How queries end whose rows another attempt could change.
_TRIED_AGAIN = ("failed", "timed_out")
#: Hashes as keys that sort and compare as a whole.
_KEY = np.dtype((np.void, HASH_BYTES))


class Ascending(NamedTuple):
    """Ascending, distinct positions, a bit for each from the first one on: the places of millions fit into a message.

    Attributes
    ----------
    first : the smallest one.
    bits : uint8, packed; whether ``first + i`` is among them.
    """

    first: int
    bits: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, positions: npt.NDArray[np.int64]) -> Ascending:
        """Pack positions, of which there is at least one."""
        first = int(positions[0])
        among = np.zeros(int(positions[-1]) - first + 1, dtype=np.bool_)
        among[positions - first] = True
        return cls(first, np.packbits(among))

    def unpacked(self) -> npt.NDArray[np.int64]:
        """Return the positions."""
        return np.flatnonzero(np.unpackbits(self.bits)) + self.first


class TakenFile(NamedTuple):
    """Queries to take from one part of the earlier run.

    Attributes
    ----------
    queries_file, candidates_file : its files.
    queries : positions among the queries of that part.
    """

    queries_file: Path | InputFile
    candidates_file: Path | InputFile
    queries: Ascending

    def read(self, several: int) -> tuple[pa.Table, pa.Table]:
        """Read their rows of both tables; ``several`` rows of the first one a query."""
        wanted = self.queries.unpacked()
        with opened(self.queries_file) as parquet:
            queries = parquet.read()
        counts = np.asarray(queries["candidates"]).astype(np.int64).reshape(-1, several).sum(axis=1)
        rows = (wanted[:, np.newaxis] * several + np.arange(several)).ravel()
        _, found = gather(offsets_of(counts), wanted)
        with opened(self.candidates_file) as parquet:
            candidates = parquet.read()
        return queries.take(pa.array(rows)), candidates.take(pa.array(found))


class TakenPlaces(NamedTuple):
    """Where the rows of some queries of a part are in an earlier run; small enough to be sent to a worker.

    Attributes
    ----------
    queries : positions among the queries of the part.
    files : where they are, in the same order.
    several : rows of `queries` that a query has.
    """

    queries: Ascending
    files: tuple[TakenFile, ...]
    several: int

    def absolute(self) -> TakenPlaces:
        """Return the same for a process with another working directory."""
        files = tuple(
            file._replace(queries_file=_absolute(file.queries_file), candidates_file=_absolute(file.candidates_file))
            for file in self.files
        )
        return self._replace(files=files)

    def read(self) -> TakenRows:
        """Read the rows."""
        queries, candidates = zip(*(file.read(self.several) for file in self.files), strict=True)
        return TakenRows(self.queries.unpacked(), pa.concat_tables(queries), pa.concat_tables(candidates))


class TakenRows(NamedTuple):
    """Rows of some queries of a part, query after query in ascending order, as the earlier run has them.

    Attributes
    ----------
    queries : int64, positions among the queries of the part.
    table, candidates : their rows of both tables; a query has a row of `table` for each restart probability.
    """

    queries: npt.NDArray[np.int64]
    table: pa.Table
    candidates: pa.Table


@dataclass(frozen=True)
class EarlierResults:
    """The queries of an earlier run that may be taken over; e of them.

    Attributes
    ----------
    run, several : the earlier run, and the rows of `queries` that a query has.
    parts : those of its parts that are sound, by number.
    keys : (e,) of `_KEY`, sorted: input hash of each query.
    part, query : int64 (e,): part of each query, and its position among the queries of that part.
    """

    run: Run
    several: int
    parts: Mapping[int, PartRecord]
    keys: npt.NDArray[np.void]
    part: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, hashes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Place of each of some hashes, uint8 (n, 16); -1 where the query is new or changed."""
        if not len(self.keys) or not len(hashes):
            return np.full(len(hashes), -1, dtype=np.int64)
        wanted = _keys(hashes)
        place = np.searchsorted(self.keys, wanted).clip(max=len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, place, -1)

    def places(self, hashes: npt.NDArray[np.uint8]) -> TakenPlaces | None:
        """Find the queries of a part that are there, given the hashes of its queries; None without any."""
        place = self.find(hashes)
        queries = np.flatnonzero(place >= 0)
        if not len(queries):
            return None
        place = place[queries]
        files = []
        # Both runs are sorted by query id: neighbours here are neighbours there.
        cuts = (np.diff(self.part[place]) != 0) | (np.diff(self.query[place]) <= 0)
        for found in np.split(place, np.flatnonzero(cuts) + 1):
            record = self.parts[int(self.part[found[0]])]
            files.append(
                TakenFile(
                    queries_file=part_file(self.run, "queries", record),
                    candidates_file=part_file(self.run, "candidates", record),
                    queries=Ascending.of(self.query[found]),
                )
            )
        return TakenPlaces(Ascending.of(queries), tuple(files), self.several)


def open_earlier(since: str, wanted: RunManifest, *, several: int) -> EarlierResults:
    """Open the run of ``--since``; every byte of its parts is compared with what was written.

    Parameters
    ----------
    since : path or URL.
    wanted : the run that would take over, with graph and backend recorded.
    several : rows of `queries` that a query has.

    Raises
    ------
    ConfigError
        The earlier run has another graph, or other options that shape results; all that differs is named.
    InputDataError
        There is no run.
    """
    run = open_run(since)
    check_same_results(run.manifest, wanted, since=run.name)
    keys, part, query = [np.zeros(0, _KEY)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    parts = {}
    for record, table in _sound_parts(run):
        parts[record.part] = record
        usable = ~np.asarray(pc.is_in(table["status"], pa.array(_TRIED_AGAIN))).reshape(-1, several).any(axis=1)
        hashes = b"".join(map(bytes.fromhex, table["input_hash"].to_pylist()[::several]))
        keys.append(np.frombuffer(hashes, dtype=_KEY)[usable])
        part.append(np.full(int(usable.sum()), record.part))
        query.append(np.flatnonzero(usable))
    order = np.argsort(np.concatenate(keys), kind="stable")
    columns = (np.concatenate(column)[order] for column in (part, query))
    found = EarlierResults(run, several, parts, np.concatenate(keys)[order], *columns)
    log.info("earlier_run_opened", extra={"run": run.name, "queries": len(found)})
    return found


def _absolute(file: Path | InputFile) -> Path | InputFile:
    return file.absolute() if isinstance(file, Path) else file


def splice(
    fresh: pa.Table, taken: pa.Table, of_fresh: npt.NDArray[np.int64], of_taken: npt.NDArray[np.int64]
) -> pa.Table:
    """Put taken rows among fresh ones.

    Parameters
    ----------
    fresh, taken : tables; the schema of the first one stays.
    of_fresh, of_taken : int64, query of each row, ascending; both may have no query in common.

    Raises
    ------
    InputDataError
        The taken rows have values in other columns, or of another type.
    """
    taken = _conformed(taken, fresh.schema)
    order = np.argsort(np.concatenate((of_fresh, of_taken)), kind="stable")
    joined = pa.concat_tables([fresh, taken]).combine_chunks()
    return joined.take(pa.array(order)).combine_chunks()


def _conformed(taken: pa.Table, schema: pa.Schema) -> pa.Table:
    """Bring rows to the columns of this run: where a planner chooses methods, those depend on which ones run at all."""
    lost = [name for name in taken.schema.names if name not in schema.names and taken[name].null_count < len(taken)]
    types = {field.name: field.type for field in taken.schema}
    lost += [field.name for field in schema if types.get(field.name, field.type) != field.type]
    if lost:
        raise InputDataError(
            f"--since: the earlier run has values in a column {lost[0]!r} that this one lacks, or of another type",
            expected="results that can be put beside each other",
            fix="leave --since out",
        )
    columns = [taken[field.name] if field.name in types else pa.nulls(taken.num_rows, field.type) for field in schema]
    return pa.table(columns, schema=schema)


def _sound_parts(run: Run) -> Iterator[tuple[PartRecord, pa.Table]]:
    """Yield every part whose files are what was written, and what its queries say."""
    for record in run.manifest.parts:
        if damage := part_damage(run, record):
            log.warning("part_damaged", extra={"part": record.part, "reason": damage})
            continue
        with opened(part_file(run, "queries", record)) as parquet:
            if "input_hash" in parquet.schema_arrow.names:
                yield record, parquet.read(columns=["status", "input_hash"])


def _keys(hashes: npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    return np.ascontiguousarray(hashes).view(_KEY).ravel()
