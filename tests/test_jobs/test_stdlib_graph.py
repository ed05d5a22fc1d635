"""The demo graph: facts that every Python from 3.11 on has, and a small library with known answers."""

from __future__ import annotations

import platform
import time
import warnings
from pathlib import Path

import pytest

from seedrank.errors import ResourceError
from seedrank.jobs.stdlib_graph import DEMO_QUESTIONS, StdlibGraph, demo_hits, stdlib_graph

Edge = tuple[str, str, str]


def edges_of(graph: StdlibGraph) -> dict[Edge, float]:
    return {(row["src"], row["dst"], row["type"]): row["weight"] for row in graph.edges.to_pylist()}


def nodes_of(graph: StdlibGraph) -> dict[str, dict[str, str | None]]:
    return {row["id"]: row for row in graph.nodes.to_pylist()}


@pytest.fixture(scope="module")
def graph() -> StdlibGraph:
    return stdlib_graph()


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_known_facts_of_the_running_library(graph: StdlibGraph) -> None:
    edges = edges_of(graph)
    assert edges["json", "json.decoder", "contains"] == 1.0
    assert edges["asyncio", "asyncio.events", "contains"] == 1.0
    assert edges["json", "json.decoder", "from_imports"] >= 1.0
    # ``from json import scanner``: scanner is a submodule, so the edge goes to it and not to the package.
    assert edges["json.decoder", "json.scanner", "from_imports"] == 1.0
    assert ("json.decoder", "json", "from_imports") not in edges
    assert edges["ssl", "_ssl", "imports"] == 1.0
    assert graph.python_version == platform.python_version()


def test_nodes_have_their_kind_and_path(graph: StdlibGraph) -> None:
    nodes = nodes_of(graph)
    assert nodes["json"] == {"id": "json", "type": "package", "path": "json/__init__.py"}
    assert nodes["json.decoder"] == {"id": "json.decoder", "type": "module", "path": "json/decoder.py"}
    assert nodes["sys"] == {"id": "sys", "type": "module", "path": None}
    assert {node["type"] for node in nodes.values()} == {"module", "package"}
    assert len(nodes) == graph.nodes.num_rows > 400


def test_edges_are_well_formed(graph: StdlibGraph) -> None:
    nodes = nodes_of(graph)
    edges = edges_of(graph)
    assert len(edges) == graph.edges.num_rows > 1500
    assert {kind for _, _, kind in edges} == {"imports", "from_imports", "contains"}
    for (source, target, kind), weight in edges.items():
        assert source in nodes
        assert target in nodes
        assert source != target
        assert weight >= 1.0
        assert weight == int(weight)
        if kind == "contains":
            assert target.rpartition(".")[0] == source
            assert nodes[source]["type"] == "package"


def test_no_test_module_and_no_installed_package_is_a_node(graph: StdlibGraph) -> None:
    for name in nodes_of(graph):
        assert not {"test", "tests", "idlelib", "lib2to3", "__pycache__"} & set(name.split(".")), name
    assert not {"_testcapi", "numpy", "pytest", "seedrank"} & set(nodes_of(graph))


def test_every_file_parses_quickly_and_silently_and_every_call_gives_the_same_order(graph: StdlibGraph) -> None:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = stdlib_graph()
    assert time.process_time() - started < 8
    assert again.unparsable_files == 0
    assert again.parsed_files > 300
    assert again.nodes.equals(graph.nodes, check_metadata=True)
    assert again.edges.equals(graph.edges, check_metadata=True)
    assert list(nodes_of(graph)) == sorted(nodes_of(graph))
    assert list(edges_of(graph)) == sorted(edges_of(graph))


def test_demo_seeds_are_modules_and_hits_match_the_questions(graph: StdlibGraph) -> None:
    assert len(DEMO_QUESTIONS) == 10
    assert len({question.query_id for question in DEMO_QUESTIONS}) == 10
    seeds = [(question.query_id, seed) for question in DEMO_QUESTIONS for seed in question.seeds]
    assert {seed for _, seed in seeds} <= set(nodes_of(graph))
    rows = demo_hits().to_pylist()
    assert [(row["query_id"], row["node_id"]) for row in rows] == seeds
    assert {row["weight"] for row in rows} == {1.0}


def test_small_library_with_known_edges(tmp_path: Path) -> None:
    """Relative imports, attributes, nested scopes, repeated statements, skipped folders."""
    write(
        tmp_path,
        {
            "email/__init__.py": "from . import charset, missing\nfrom .mime.base import Base\n",
            "email/__main__.py": "import email\nfrom . import charset\n",
            "email/charset.py": "import email.charset\nfrom .charset import itself\n",
            "email/mime/__init__.py": "",
            "email/mime/base.py": "from .. import charset\nfrom ..charset import x\nfrom .... import json\n",
            "email/tests/__init__.py": "import json\n",
            "email/tests/test_email.py": "import json\n",
            "email/notes.txt": "import json\n",
            "email/data/table.py": "import json\n",
            "json.py": (
                "import os.path, sys\nimport sys\n"
                "def late():\n    if True:\n        import email.mime.base as base\n"
                "    else:\n        import os\n"
                "try:\n    import numpy\nexcept ImportError:\n    from os.path import join, split\n"
                "finally:\n    from sys import *\n"
                "match late:\n    case 1:\n        from email import mime, other\n"
            ),
            "os.py": "from . import json\n",
            "numpy.py": "import json\n",
            "lib-dynload/_json.cpython-311-x86_64-linux-gnu.so": "",
            "lib-dynload/_testcapi.so": "",
        },
    )
    graph = stdlib_graph(tmp_path)
    expected = {
        ("email", "email.charset", "from_imports"): 1.0,
        ("email", "email.mime.base", "from_imports"): 1.0,
        ("email.__main__", "email", "imports"): 1.0,
        ("email.__main__", "email.charset", "from_imports"): 1.0,
        ("email.mime.base", "email.charset", "from_imports"): 2.0,
        ("json", "os", "imports"): 2.0,
        ("json", "os", "from_imports"): 1.0,
        ("json", "sys", "imports"): 2.0,
        ("json", "sys", "from_imports"): 1.0,
        ("json", "email.mime.base", "imports"): 1.0,
        ("json", "email.mime", "from_imports"): 1.0,
        ("json", "email", "from_imports"): 1.0,
        ("email", "email.__main__", "contains"): 1.0,
        ("email", "email.charset", "contains"): 1.0,
        ("email", "email.mime", "contains"): 1.0,
        ("email.mime", "email.mime.base", "contains"): 1.0,
    }
    assert edges_of(graph) == expected
    nodes = nodes_of(graph)
    assert {"email.tests", "email.data", "numpy", "_testcapi"}.isdisjoint(nodes)
    assert graph.parsed_files == 7


def test_extension_module_beside_its_source_is_one_node(tmp_path: Path) -> None:
    # ".so" is an extension suffix on every POSIX system, whatever the interpreter's own tag is.
    write(tmp_path, {"json.py": "import _json\n", "lib-dynload/_json.so": "", "lib-dynload/json.so": ""})
    nodes = nodes_of(stdlib_graph(tmp_path))
    assert nodes["_json"] == {"id": "_json", "type": "module", "path": "lib-dynload/_json.so"}
    assert nodes["json"]["path"] == "json.py"


def test_unparsable_files_are_counted_and_stay_nodes(tmp_path: Path) -> None:
    write(tmp_path, {"json.py": "import sys\n", "ast.py": "print 'Python 2'\n"})
    (tmp_path / "csv.py").write_bytes(b"import sys\n\xff\xfe\x00")
    (tmp_path / "bz2.py").symlink_to(tmp_path / "nowhere.py")
    graph = stdlib_graph(tmp_path)
    assert (graph.parsed_files, graph.unparsable_files) == (1, 3)
    assert {"ast", "bz2", "csv"} <= set(nodes_of(graph))
    assert edges_of(graph) == {("json", "sys", "imports"): 1.0}


def test_folder_without_source_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="no readable Python source file"):
        stdlib_graph(tmp_path)
