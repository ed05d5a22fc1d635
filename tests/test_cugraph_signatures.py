"""What is called of pylibcugraph exists, in the order in which it is given: held against its source, not its import.

The table was read in the sources that the wheel of release 26.10 carries (``*.pyx``). Where pylibcugraph is installed,
its own sources are read; importing it would load CUDA's libraries, and shows no signatures of compiled functions.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from inspect import Parameter, Signature
from pathlib import Path

import pytest

import seedrank

TESTS = Path(__file__).parent
SOURCES = [
    Path(seedrank.__file__).parent / "kernels" / name for name in ("backends/cugraph.py", "_gpu/cugraph_graph.py")
]

RELEASE = "26.10"

#: Name → (file of its source, parameters in their order; the last so many have a default).
SIGNATURES: dict[str, tuple[str, tuple[str, ...], int]] = {
    "ResourceHandle": ("resource_handle.pyx", ("handle",), 1),
    "GraphProperties": ("graph_properties.pyx", ("is_symmetric", "is_multigraph"), 2),
    "SGGraph": (
        "graphs.pyx",
        (
            "resource_handle", "graph_properties", "src_or_offset_array", "dst_or_index_array", "weight_array",
            "store_transposed", "renumber", "do_expensive_check", "edge_id_array", "edge_type_array",
            "edge_start_time_array", "edge_end_time_array", "input_array_format", "vertices_array", "drop_self_loops",
            "drop_multi_edges", "symmetrize",
        ),
        13,
    ),
    "personalized_pagerank": (
        "personalized_pagerank.pyx",
        (
            "resource_handle", "graph", "precomputed_vertex_out_weight_vertices", "precomputed_vertex_out_weight_sums",
            "initial_guess_vertices", "initial_guess_values", "personalization_vertices", "personalization_values",
            "alpha", "epsilon", "max_iterations", "do_expensive_check", "fail_on_nonconvergence",
        ),
        1,
    ),
}  # fmt: skip


def signature(name: str) -> Signature:
    _, names, optional = SIGNATURES[name]
    return Signature(
        [
            Parameter(
                parameter,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=None if place >= len(names) - optional else Parameter.empty,
            )
            for place, parameter in enumerate(names)
        ]
    )


def calls() -> list[tuple[str, ast.Call]]:
    """Every call of pylibcugraph in the package."""
    found = []
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            function = node.func if isinstance(node, ast.Call) else None
            if isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "pylibcugraph":
                assert isinstance(node, ast.Call)
                found.append((function.attr, node))
    return found


def test_every_call_fits_the_signature() -> None:
    made = calls()
    assert {name for name, _ in made} == set(SIGNATURES)
    for name, call in made:
        keywords = {keyword.arg: None for keyword in call.keywords if keyword.arg is not None}
        signature(name).bind(*call.args, **keywords)


def test_no_other_use_is_made_of_it() -> None:
    """So that the table is complete: attributes beside the calls are the names of types and the version."""
    package = Path(seedrank.__file__).parent
    used = set()
    for source in package.rglob("*.py"):
        used |= set(re.findall(r"\bpylibcugraph\.(\w+)", source.read_text(encoding="utf-8")))
    assert used == {*SIGNATURES, "__version__"}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_stand_in_has_the_same_signature(name: str, cugraph_device: None) -> None:
    """It may lack parameters at the end that nobody gives; what it has stands in its place, or goes by its name."""
    library = importlib.import_module("pylibcugraph")
    if not library.__version__.endswith("fake"):
        pytest.skip("there is a real cuGraph here")
    assert library.__version__.startswith(RELEASE)
    parameters = inspect.signature(getattr(library, name)).parameters.values()
    positional = [parameter.name for parameter in parameters if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    assert tuple(positional) == SIGNATURES[name][1][: len(positional)]
    assert {parameter.name for parameter in parameters} <= set(SIGNATURES[name][1])
    for parameter in parameters:
        optional = signature(name).parameters[parameter.name].default is not Parameter.empty
        assert optional == (parameter.default is not Parameter.empty)


def parameters_in(source: str, name: str) -> list[str]:
    """Parameters of a function, or of the constructor of a class, in Cython: types before names are dropped."""
    _, of_class, body = source.partition(f"cdef class {name}")
    heading, body = ("__cinit__", body) if of_class else (name, source)
    found = re.search(rf"def {heading}\((.*?)\):", body, re.DOTALL)
    assert found is not None
    return [entry.split()[-1] if "=" not in entry else entry for entry in map(str.strip, found[1].split(","))]


def test_parameters_are_read_from_cython() -> None:
    source = 'cdef class Thing(Base):\n  """f(x)"""\n  def __cinit__(self,\n   Handle handle,\n   flag=False):\n'
    assert parameters_in(source, "Thing") == ["self", "handle", "flag=False"]
    assert parameters_in("def work(Handle handle,\n  double alpha, x=True):\n", "work") == ["handle", "alpha", "x=True"]


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_installed_sources_have_the_signature(name: str) -> None:
    spec = None if "pylibcugraph" in sys.modules else importlib.util.find_spec("pylibcugraph")
    if spec is None or spec.origin is None:
        pytest.skip("pylibcugraph is not installed; its wheel of 26.10 was read when this was written")
    file, names, optional = SIGNATURES[name]
    folder = Path(spec.origin).parent
    if not (folder / file).is_file():
        pytest.skip("this pylibcugraph brings no sources")
    given = [entry for entry in parameters_in((folder / file).read_text(encoding="utf-8"), name) if entry != "self"]
    assert tuple(entry.partition("=")[0] for entry in given) == names
    assert sum("=" in entry for entry in given) == optional
    assert "pylibcugraph" not in sys.modules
