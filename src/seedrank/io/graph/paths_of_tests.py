"""Which paths are test code, by the conventions of languages and frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class PathsOfTests(NamedTuple):
    """A convention for the names of tests: path globs (see `seedrank.io.graph.globs`), and who has it."""

    globs: Sequence[str]
    used_by: str


def _directory(*names: str) -> tuple[str, ...]:
    return tuple(f"**/{name}/**" for name in names)


def _file(*names: str) -> tuple[str, ...]:
    return tuple(f"**/{name}" for name in names)


_SCRIPTS = ("js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts")

#: A path is a test if one of these globs matches it. Directories count at any depth, the file itself is none.
PATHS_OF_TESTS: tuple[PathsOfTests, ...] = (
    PathsOfTests(_directory("test", "tests", "testing"), "most languages"),
    PathsOfTests(_directory("spec", "specs"), "Ruby, JavaScript"),
    PathsOfTests(_directory("__tests__", "__test__", "__mocks__", "__snapshots__"), "JavaScript, TypeScript (Jest)"),
    PathsOfTests(_directory("testdata", "test_data"), "Go and others: what tests read"),
    PathsOfTests(_directory("androidTest", "integrationTest"), "Java, Kotlin (Gradle)"),
    PathsOfTests(_file("test_*.py", "*_test.py", "tests.py", "conftest.py"), "Python (pytest, unittest, Django)"),
    PathsOfTests(_file("*_test.go"), "Go"),
    PathsOfTests(
        _file(*(f"*.{kind}.{end}" for kind in ("test", "spec") for end in _SCRIPTS)), "JavaScript, TypeScript"
    ),
    PathsOfTests(_file("*Test.java", "*Tests.java", "*TestCase.java", "*IT.java"), "Java (JUnit, Maven)"),
    PathsOfTests(_file("*Test.kt", "*Tests.kt", "*Test.scala", "*Spec.scala", "*Spec.groovy"), "Kotlin and kin"),
    PathsOfTests(_file("*Test.cs", "*Tests.cs"), "C#"),
    PathsOfTests(_file("*_spec.rb", "*_test.rb"), "Ruby (RSpec, Minitest)"),
    PathsOfTests(_file("*Test.php"), "PHP (PHPUnit)"),
    PathsOfTests(_file("*Tests.swift", "*Test.swift"), "Swift (XCTest)"),
    PathsOfTests(_file("*_test.c", "*_test.cc", "*_test.cpp", "*_unittest.cc", "*_unittest.cpp"), "C++ (GoogleTest)"),
    PathsOfTests(_file("*_test.rs", "*_test.exs", "*_test.dart", "*_test.lua"), "Rust, Elixir, Dart, Lua"),
)

#: All of them.
TEST_GLOBS: tuple[str, ...] = tuple(glob for convention in PATHS_OF_TESTS for glob in convention.globs)
