"""The demo graph: which module of the running Python's standard library imports which.

Every machine that can run seedrank has this graph, it is real (hubs, cycles, dangling nodes, typed and
weighted edges), and every Python programmer can judge the answers.
"""

from __future__ import annotations

import ast
import platform
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pyarrow as pa

from seedrank.errors import ResourceError

# Folders whose modules no program imports: test suites, the IDLE application, installed packages.
SKIPPED_FOLDERS = {"__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"}

NODE_SCHEMA = pa.schema([("id", pa.string()), ("type", pa.string()), ("path", pa.string())])
EDGE_SCHEMA = pa.schema([("src", pa.string()), ("dst", pa.string()), ("type", pa.string()), ("weight", pa.float64())])
HIT_SCHEMA = pa.schema([("query_id", pa.string()), ("node_id", pa.string()), ("weight", pa.float64())])


@dataclass(frozen=True, kw_only=True)
class StdlibGraph:
    """The standard library as a node table and an edge table.

    Parameters
    ----------
    nodes : pa.Table
        ``id`` (dotted module name, unique, ascending), ``type`` (``"module"`` or ``"package"``) and ``path``
        (below the library folder, with forward slashes; null for modules built into the interpreter).
    edges : pa.Table
        ``src``, ``dst``, ``type`` and ``weight`` (float64), ascending, one row per (src, dst, type), no self
        loops, every endpoint is a node. Types: ``imports`` (``import x``) and ``from_imports`` (``from x
        import y``: to ``x.y`` where that is a module, else to ``x``), weighted by the number of such
        statements in the file; ``contains`` (package to its direct submodules and subpackages), weight 1.
    parsed_files : int
        Source files whose imports are in the table.
    unparsable_files : int
        Source files that could not be read or parsed; their modules are nodes without imports.
    python_version : str
        Version of the interpreter whose library this is.
    """

    nodes: pa.Table
    edges: pa.Table
    parsed_files: int
    unparsable_files: int
    python_version: str


@dataclass(frozen=True)
class DemoQuestion:
    """One query of the demo.

    Parameters
    ----------
    query_id : str
        Short name, unique.
    description : str
        What is asked, in one line.
    seeds : tuple of str
        Module names; each exists on Python 3.11 and newer and gets weight 1.
    """

    query_id: str
    description: str
    seeds: tuple[str, ...]


DEMO_QUESTIONS = (
    DemoQuestion("archives", "What stands behind reading zip and tar archives?", ("tarfile", "zipfile")),
    DemoQuestion("async-tls", "What does an asynchronous client with TLS rest on?", ("asyncio", "ssl")),
    DemoQuestion("database", "What belongs to the embedded SQL database?", ("sqlite3",)),
    DemoQuestion("email", "What is needed to build and parse an e-mail message?", ("email.message",)),
    DemoQuestion("json", "What is close to JSON reading and writing?", ("json",)),
    DemoQuestion("logging", "What do log handlers for files, sockets and mail use?", ("logging.handlers",)),
    DemoQuestion("mocking", "What do mock objects for unit tests lean on?", ("unittest.mock",)),
    DemoQuestion("parallel", "What runs work in threads and processes?", ("concurrent.futures", "multiprocessing")),
    DemoQuestion("records", "What is behind typed record classes?", ("dataclasses", "typing")),
    DemoQuestion("web-server", "What is a small HTTP server made of?", ("http.server",)),
)


@dataclass(frozen=True)
class _Module:
    """One module: its kind, its path below the library folder, and the file to parse (None: compiled)."""

    kind: str
    path: str | None
    source: Path | None


def stdlib_graph(folder: Path | None = None) -> StdlibGraph:
    """Read the import graph of the standard library from its source files.

    Nothing is imported or executed: files are parsed. Imports inside functions and conditions count. A target
    that is an attribute and not a module (``os.path``) counts for the module that has it (``os``). Two calls
    give equal tables.

    Parameters
    ----------
    folder : Path, optional
        Library folder; default: that of the running interpreter. Only top-level names in
        `sys.stdlib_module_names` are taken from it; built-in modules are always nodes.

    Returns
    -------
    StdlibGraph
        See there. Test suites, ``idlelib``, ``lib2to3`` and installed packages are left out.

    Raises
    ------
    ResourceError
        The folder holds no source file, e.g. because the library is inside a zip archive.
    """
    if folder is None:
        folder = Path(sysconfig.get_path("stdlib"))
    modules = _find_modules(folder)
    counts: Counter[tuple[str, str, str]] = Counter()
    parsed = unparsable = 0
    for name, module in modules.items():
        parent = name.rpartition(".")[0]
        if parent:
            counts[parent, name, "contains"] += 1
        if module.source is None:
            continue
        try:
            tree = _parse(module.source)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            unparsable += 1
            continue
        parsed += 1
        package = name if module.kind == "package" else parent
        for statement in _import_statements(tree):
            kind = "imports" if isinstance(statement, ast.Import) else "from_imports"
            for target in _targets(statement, package, modules) - {name}:
                counts[name, target, kind] += 1
    if not parsed:
        raise ResourceError(
            f"no readable Python source file below {folder}",
            expected="the source files of the standard library",
            fix="use a Python that was installed with its library as plain files",
        )
    nodes = [{"id": name, "type": module.kind, "path": module.path} for name, module in modules.items()]
    edges = [
        {"src": source, "dst": target, "type": kind, "weight": float(counts[source, target, kind])}
        for source, target, kind in sorted(counts)
    ]
    return StdlibGraph(
        nodes=pa.Table.from_pylist(nodes, schema=NODE_SCHEMA),
        edges=pa.Table.from_pylist(edges, schema=EDGE_SCHEMA),
        parsed_files=parsed,
        unparsable_files=unparsable,
        python_version=platform.python_version(),
    )


def demo_hits() -> pa.Table:
    """Return the hits of `DEMO_QUESTIONS`: ``query_id``, ``node_id`` and ``weight`` (always 1)."""
    rows = [
        {"query_id": question.query_id, "node_id": seed, "weight": 1.0}
        for question in DEMO_QUESTIONS
        for seed in question.seeds
    ]
    return pa.Table.from_pylist(rows, schema=HIT_SCHEMA)


def _find_modules(folder: Path) -> dict[str, _Module]:
    """Return every module of the library by its dotted name, in ascending order."""
    found = {name: _Module("module", None, None) for name in sys.builtin_module_names}
    # Extension modules lie in a folder of their own, or beside the sources on some builds.
    for place in (folder / "lib-dynload", folder):
        for suffix in EXTENSION_SUFFIXES:
            for path in sorted(place.glob(f"*{suffix}")):
                # Suffixes overlap: _json.cpython-311-x86_64-linux-gnu.so ends in .so too. Names have no dot.
                name = path.name.partition(".")[0]
                found.setdefault(name, _Module("module", path.relative_to(folder).as_posix(), None))
    # Source files come last: where a name has both, its source is what can be read.
    found.update(_source_modules(folder, folder, ""))
    # This list is CPython's own: no test helpers (_testcapi), no build records, nothing a distributor added.
    return {name: found[name] for name in sorted(found) if name.partition(".")[0] in sys.stdlib_module_names}


def _source_modules(folder: Path, place: Path, prefix: str) -> Iterator[tuple[str, _Module]]:
    """Yield (dotted name, module) for the source files in one folder and, below it, in packages."""
    for path in place.iterdir() if place.is_dir() else ():
        initializer = path / "__init__.py"
        if path.suffix == ".py" and path.stem != "__init__":
            yield prefix + path.stem, _Module("module", path.relative_to(folder).as_posix(), path)
        elif path.name not in SKIPPED_FOLDERS and initializer.is_file():
            name = prefix + path.name
            yield name, _Module("package", initializer.relative_to(folder).as_posix(), initializer)
            yield from _source_modules(folder, path, name + ".")


def _parse(path: Path) -> ast.Module:
    """Parse one file; the library's own invalid escape sequences are not the reader's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # what SyntaxWarning was called before Python 3.12
        return ast.parse(path.read_bytes(), filename=str(path))


def _import_statements(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the import statements of all scopes; expressions are not visited, they cannot hold any."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
            continue
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending.extend(getattr(node, block, ()))


def _targets(statement: ast.Import | ast.ImportFrom, package: str, modules: dict[str, _Module]) -> set[str]:
    """Return the modules that one statement names, inside the library only."""
    if isinstance(statement, ast.Import):
        wanted = [alias.name for alias in statement.names]
    else:
        base = statement.module or ""
        if statement.level:
            # Each dot after the first goes up one package; above the topmost there is nothing.
            for _ in range(statement.level - 1):
                package = package.rpartition(".")[0]
            if not package:
                return set()
            base = f"{package}.{base}" if base else package
        members = [f"{base}.{alias.name}" for alias in statement.names]
        wanted = [member if member in modules else base for member in members]
    return {target for name in wanted if (target := _enclosing_module(name, modules))}


def _enclosing_module(name: str, modules: dict[str, _Module]) -> str:
    """Return the longest prefix of a dotted name that is a module, or ``""``."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name
