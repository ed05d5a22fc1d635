"""What is told of queries that an earlier run has: small whatever their number, and nothing gets lost on the way."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import seedrank
from seedrank.jobs.run.taken_over import Ascending, EarlierResults


@given(st.sets(st.integers(0, 5_000), min_size=1))
def test_ascending_positions_come_back(positions: set[int]) -> None:
    wanted = np.array(sorted(positions), dtype=np.int64)
    assert Ascending.of(wanted).unpacked().tolist() == wanted.tolist()


def test_what_workers_are_told_stays_small(tmp_path: Path) -> None:
    """Half of 400,000 queries did not change, and are in two parts of the earlier run."""
    hits = pa.table({"query_id": [1, 2], "node_id": [1, 2], "weight": [1.0, 1.0]})
    run = seedrank.score(queries=hits, out=tmp_path / "run", method="fuse", part_size=1)
    keys = np.zeros((400_000, 2), dtype=np.uint64)
    keys[:, 0] = np.arange(400_000, dtype=np.uint64).byteswap()
    hashes = keys.view(np.uint8)
    earlier = EarlierResults(
        run=run,
        several=1,
        parts={record.part: record for record in run.manifest.parts},
        keys=np.ascontiguousarray(hashes[::2]).view(np.dtype((np.void, 16))).ravel(),
        part=np.repeat([0, 1], 100_000),
        query=np.tile(np.arange(100_000), 2),
    )
    places = earlier.places(hashes)
    assert places is not None
    assert places.queries.unpacked().tolist() == list(range(0, 400_000, 2))
    assert [len(file.queries.unpacked()) for file in places.files] == [100_000, 100_000]
    assert len(pickle.dumps(places.absolute())) < 100_000
