"""What importing costs: heavy libraries stay out of ``import seedrank`` and of ``seedrank --help``."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Runs a statement and prints, for each forbidden library, the chain of modules that led to it.
PROBE = """
import sys
import traceback

forbidden, chains = set({forbidden!r}), {{}}


class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in forbidden and name not in chains:
            frames = (frame for frame, _ in traceback.walk_stack(None))
            modules = [frame.f_globals.get("__name__", "?") for frame in frames]
            modules = [module for module in modules[::-1] if "importlib" not in module]
            chains[name] = " -> ".join([*dict.fromkeys(modules), name])
        return None


early = forbidden & set(sys.modules)
sys.meta_path.insert(0, Watch())
try:
{statement}
except SystemExit as leave:
    assert not leave.code, leave.code
found = [f"{{name}}: loaded before the test began" for name in sorted(early)] + list(chains.values())
print(*("imported: " + line for line in found), sep="\\n")
"""
HEAVY = ("numba", "cupy", "dask", "distributed", "pandas", "pyarrow", "scipy")
RUN_MODULE = 'import runpy; sys.argv = ["seedrank", {}]; runpy.run_module("seedrank", run_name="__main__")'


def chains(statement: str, forbidden: tuple[str, ...]) -> list[str]:
    """Import chains to forbidden libraries that a fresh interpreter follows for a statement."""
    code = PROBE.format(forbidden=forbidden, statement=textwrap.indent(statement, "    "))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [line.removeprefix("imported: ") for line in lines if line.startswith("imported: ")]


def test_import_of_the_package_loads_nothing_heavy() -> None:
    assert chains("import seedrank", (*HEAVY, "numpy", "click", "pydantic", "rich", "fsspec")) == []


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)], ids=" ".join)
def test_help_and_version_load_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert chains(RUN_MODULE.format(", ".join(map(repr, arguments))), (*HEAVY, "numpy")) == []


@pytest.mark.parametrize("command", ["build", "score", "plan", "check", "info", "demo"])
def test_help_of_a_command_loads_no_optional_library(command: str) -> None:
    assert chains(RUN_MODULE.format(f'"{command}", "--help"'), ("numba", "cupy", "dask", "distributed", "pandas")) == []


def test_a_command_does_not_load_pandas(tmp_path: Path) -> None:
    """PyArrow does where it makes its first array, unless it is kept from it; afterwards pandas can be imported."""
    pytest.importorskip("pandas")
    edges, hits = tmp_path / "edges.parquet", tmp_path / "hits.parquet"
    pq.write_table(pa.table({"src": ["a", "b"], "dst": ["b", "c"]}), edges)
    pq.write_table(pa.table({"query_id": ["q"], "node_id": ["a"]}), hits)
    given = ["score", edges, "--queries", hits, "--out", tmp_path / "run", "--backend", "scipy"]
    assert chains(RUN_MODULE.format(", ".join(repr(str(word)) for word in given)), ("pandas",)) == []
    assert (tmp_path / "run" / "_SUCCESS").exists()


def test_every_public_name_loads_no_optional_library() -> None:
    statement = "import seedrank; [getattr(seedrank, name) for name in seedrank.__all__]"
    assert chains(statement, ("numba", "cupy", "dask", "distributed", "pandas")) == []


def test_the_probe_names_the_chain_to_the_culprit() -> None:
    # The option models need pydantic, reached through the build command.
    found = chains("import seedrank; seedrank.build", ("pydantic",))
    assert len(found) == 1
    assert found[0].startswith("__main__ -> seedrank")
    assert found[0].endswith("-> seedrank.config -> seedrank.config.build -> pydantic")
