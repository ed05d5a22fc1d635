"""Finding files: folders as other tools leave them, globs, lists, URLs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from seedrank.errors import InputDataError, ResourceError, StorageError
from seedrank.io.uri import find_files


def touch(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(source: Any, root: Path) -> list[str]:
    return [str(Path(file.uri).relative_to(root)) for file in find_files(source, what="edges")]


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


def test_case_14_folder_of_spark_hive_and_editors(tmp_path: Path) -> None:
    touch(tmp_path / "part-0.parquet")
    touch(tmp_path / "part-1.parquet")
    for junk in ("_SUCCESS", "_metadata", "_common_metadata", ".part-0.parquet.crc", ".DS_Store"):
        touch(tmp_path / junk, b"")
    touch(tmp_path / "_temporary" / "0" / "x.parquet", b"")
    touch(tmp_path / ".ipynb_checkpoints" / "y.parquet")
    touch(tmp_path / "_delta_log" / "00000.checkpoint.parquet")
    touch(tmp_path / "_delta_log" / "00000.json")
    touch(tmp_path / "README.md")
    touch(tmp_path / "part-0.parquet.crc")
    (tmp_path / "empty").mkdir()
    assert names(tmp_path, tmp_path) == ["part-0.parquet", "part-1.parquet"]


def test_case_14_zero_byte_part_is_an_error_with_its_name(tmp_path: Path) -> None:
    touch(tmp_path / "part-0.parquet")
    touch(tmp_path / "sub" / "part-1.parquet", b"")
    with pytest.raises(InputDataError, match=r"sub/part-1\.parquet has zero bytes") as caught:
        find_files(tmp_path, what="edges")
    assert caught.value.exit_code == 3
    assert caught.value.expected
    assert caught.value.fix


def test_bare_part_without_suffix_is_data(tmp_path: Path) -> None:
    touch(tmp_path / "part-00000")
    touch(tmp_path / "notes")
    touch(tmp_path / "b.PQ")
    touch(tmp_path / "c.parq")
    assert names(tmp_path, tmp_path) == ["b.PQ", "c.parq", "part-00000"]


def test_order_is_by_name_whatever_the_order_of_creation(tmp_path: Path) -> None:
    for name in ("c", "a/z", "b"):
        touch(tmp_path / f"{name}.parquet")
    expected = ["a/z.parquet", "b.parquet", "c.parquet"]
    assert names(tmp_path, tmp_path) == expected
    assert names([tmp_path / "c.parquet", tmp_path / "b.parquet", tmp_path / "a"], tmp_path) == expected


@dataclass(frozen=True)
class PartitionCase:
    folder: str
    expected: dict[str, str | None]


@pytest.mark.parametrize(
    "case",
    [
        PartitionCase("src=007", {"src": "007"}),
        PartitionCase("src=7", {"src": "7"}),
        PartitionCase("year=2024/type=cites", {"year": "2024", "type": "cites"}),
        PartitionCase("_region=eu", {"_region": "eu"}),
        PartitionCase("type=a%2Fb%20c%3Dd", {"type": "a/b c=d"}),
        PartitionCase("the%20type=x", {"the type": "x"}),
        PartitionCase("type=__HIVE_DEFAULT_PARTITION__", {"type": None}),
        PartitionCase("type=a=b", {"type": "a=b"}),
        PartitionCase("type=", {"type": ""}),
        PartitionCase("plain", {}),
    ],
    ids=lambda case: case.folder,
)
def test_hive_folders(tmp_path: Path, case: PartitionCase) -> None:
    path = touch(tmp_path / case.folder / "x.parquet")
    by_folder = find_files(tmp_path, what="edges")
    by_file = find_files(path, what="edges")
    by_glob = find_files(f"{tmp_path}/*/**", what="edges")
    assert [file.partition for file in by_folder] == [case.expected]
    # The same file means the same however it is named.
    assert [file.partition for file in by_file + by_glob] == [case.expected, case.expected]


def test_file_named_explicitly_is_read_whatever_its_name(tmp_path: Path) -> None:
    for name in ("_hidden.parquet", ".dot", "edges.dat", "with space.parquet", "odd[1].parquet"):
        path = touch(tmp_path / name)
        assert names(path, tmp_path) == [name]
        assert names(str(path), tmp_path) == [name]


def test_globs(tmp_path: Path) -> None:
    for name in ("a1.parquet", "a2.parquet", "b1.parquet", "_SUCCESS", "x.dat", "notes.txt", "_temporary/a.parquet"):
        touch(tmp_path / name)
    touch(tmp_path / "day=1" / "p.parquet")
    assert names(f"{tmp_path}/a*.parquet", tmp_path) == ["a1.parquet", "a2.parquet"]
    assert names(f"{tmp_path}/a[2].parquet", tmp_path) == ["a2.parquet"]
    assert names(f"{tmp_path}/*.dat", tmp_path) == ["x.dat"]
    everything = ["a1.parquet", "a2.parquet", "b1.parquet", "day=1/p.parquet"]
    assert names(f"{tmp_path}/*", tmp_path) == everything
    assert names(f"{tmp_path}/**/*.parquet", tmp_path) == everything
    assert names(f"{tmp_path}/day=*", tmp_path) == ["day=1/p.parquet"]


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match=r"nothing at .*absent"):
        find_files(tmp_path / "absent", what="edges")
    with pytest.raises(InputDataError, match="no file matches"):
        find_files(f"{tmp_path}/*.parquet", what="edges")
    with pytest.raises(InputDataError, match="it is empty"):
        find_files(tmp_path, what="edges")
    with pytest.raises(InputDataError, match="empty list"):
        find_files([], what="edges")
    touch(tmp_path / "_SUCCESS")
    touch(tmp_path / "data.csv")
    with pytest.raises(InputDataError, match=r"ignored: _SUCCESS, data\.csv"):
        find_files(tmp_path, what="edges")


def test_one_file_named_twice_would_count_double(tmp_path: Path) -> None:
    path = touch(tmp_path / "a.parquet")
    with pytest.raises(InputDataError, match="named twice"):
        find_files([tmp_path, path], what="edges")


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    target = touch(tmp_path / "elsewhere" / "real.bin", b"12345")
    touch(tmp_path / "elsewhere" / "b.parquet")
    folder = tmp_path / "edges"
    folder.mkdir()
    (folder / "a.parquet").symlink_to(target)
    (folder / "type=x").symlink_to(tmp_path / "elsewhere")
    (folder / "loop").symlink_to(folder)
    found = find_files(folder, what="edges")
    assert [(Path(file.uri).name, file.size) for file in found] == [("a.parquet", 5), ("b.parquet", 1)]
    assert found[1].partition == {"type": "x"}


def test_file_url(tmp_path: Path) -> None:
    path = touch(tmp_path / "a.parquet")
    assert names(f"file://{path}", tmp_path) == ["a.parquet"]


def test_case_62_memory_url_with_folder_markers(memory: MemoryFileSystem) -> None:
    memory.pipe("/bucket/my edges/type=a b/p.parquet", b"x")
    memory.pipe("/bucket/my edges/_SUCCESS", b"")
    memory.pipe("/bucket/my edges/type=a b/", b"")
    found = find_files("memory://bucket/my edges/", what="edges")
    assert [file.uri for file in found] == ["memory:///bucket/my edges/type=a b/p.parquet"]
    assert found[0].partition == {"type": "a b"}
    assert not found[0].is_local


def test_case_62_role_that_may_list_only_below_the_prefix(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe("/bucket/edges/p.parquet", b"x")
    real = MemoryFileSystem.info

    def info(self: MemoryFileSystem, path: str, **options: Any) -> Any:
        if path.rstrip("/").endswith("edges"):
            raise PermissionError("HEAD denied")
        return real(self, path, **options)

    monkeypatch.setattr(MemoryFileSystem, "info", info)
    found = find_files("memory://bucket/edges", what="edges")
    assert [file.path for file in found] == ["/bucket/edges/p.parquet"]


def test_storage_failure_is_exit_code_5(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("token expired")

    monkeypatch.setattr(MemoryFileSystem, "info", refuse)
    with pytest.raises(StorageError, match="token expired") as caught:
        find_files("memory://bucket/edges", what="edges")
    assert caught.value.exit_code == 5


def test_missing_extra_names_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(url: str) -> Any:
        raise ImportError(f"Install s3fs to access {url}")

    monkeypatch.setattr("fsspec.core.url_to_fs", not_installed)
    with pytest.raises(ResourceError, match=r'pip install "seedrank\[s3\]"') as caught:
        find_files("s3://bucket/edges", what="edges")
    assert caught.value.exit_code == 4


def test_unknown_protocol() -> None:
    with pytest.raises(ResourceError, match="carrier-pigeon"):
        find_files("carrier-pigeon://bucket/edges", what="edges")


def test_folder_that_cannot_be_listed_is_not_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / "a.parquet")
    touch(tmp_path / "secret" / "b.parquet")
    real = os.scandir

    def scandir(path: str) -> Any:
        if str(path).endswith("secret"):
            raise PermissionError(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(StorageError, match="cannot be listed"):
        find_files(tmp_path, what="edges")
