"""The files around the package agree with each other: dependencies, licence, version, Makefile, house rules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]

if not (ROOT / "pyproject.toml").is_file():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

# conda-forge and rapidsai names of what PyPI calls otherwise.
PYPI_NAMES = {"python-xxhash": "xxhash", "cupy": "cupy-cuda13x", "pylibcugraph": "pylibcugraph-cu13"}

# Absolute paths of somebody's machine: the three folders that sources have leaked from.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:work|home|tmp/w)/")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return table


def specifiers(requirements: list[str]) -> dict[str, SpecifierSet]:
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in parsed}


def conda_environment() -> dict[str, Any]:
    environment: dict[str, Any] = yaml.safe_load(read("environment.yml"))
    return environment


def conda_specifiers() -> dict[str, SpecifierSet]:
    """Conda's ``name=1.2`` means the release series 1.2, which is ``==1.2.*`` for pip."""
    found = {}
    for text in conda_environment()["dependencies"]:
        name, rest = re.fullmatch(r"([a-z0-9-]+)(.*)", text).groups()  # type: ignore[union-attr]
        series = re.fullmatch(r"=([0-9.]+)", rest)
        found[name] = SpecifierSet(f"=={series[1]}.*" if series else rest)
    return found


def repository_files() -> list[Path]:
    """Return the files that git tracks or would track."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a clone")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip(f"git cannot list the files: {listed.stderr.strip()}")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def test_conda_channels_are_rapids_then_conda_forge_and_nothing_else() -> None:
    assert conda_environment()["channels"] == ["rapidsai", "conda-forge"]
    assert "never solved" in read("environment.yml")


def test_conda_ranges_agree_with_the_base_dependencies() -> None:
    conda = {PYPI_NAMES.get(name, name): specifier for name, specifier in conda_specifiers().items()}
    for name, specifier in specifiers(project()["dependencies"]).items():
        assert conda[name] == specifier, name


def test_conda_gpu_pins_agree_with_the_cuda_13_extras() -> None:
    extras = project()["optional-dependencies"]
    gpu = specifiers(extras["gpu-cu13"]) | specifiers(extras["cugraph-cu13"])
    conda = conda_specifiers()
    for name in ("cupy", "pylibcugraph"):
        assert conda[name] == gpu[canonicalize_name(PYPI_NAMES[name])], name
    assert conda["dask-cuda"] == conda["rapids-dask-dependency"] == conda["pylibcugraph"]
    assert str(conda["cuda-version"]).startswith("==13.")


def test_conda_python_range_starts_where_the_package_does() -> None:
    lowest = min(Version(part.version) for part in conda_specifiers()["python"] if part.operator == ">=")
    assert SpecifierSet(f">={lowest}") == SpecifierSet(project()["requires-python"])


@pytest.mark.parametrize("stack", ["gpu", "cugraph"])
def test_cuda_12_and_cuda_13_extras_mirror_each_other(stack: str) -> None:
    extras = project()["optional-dependencies"]
    cuda_12 = [re.sub(r"-cuda12x|-cu12", "", text) for text in extras[f"{stack}-cu12"]]
    cuda_13 = [re.sub(r"-cuda13x|-cu13", "", text) for text in extras[f"{stack}-cu13"]]
    assert cuda_12 == cuda_13
    assert cuda_12 != extras[f"{stack}-cu12"]


def test_constraints_pin_what_pyproject_names_inside_its_ranges() -> None:
    lines = [line for line in read("constraints.txt").splitlines() if line and not line.startswith("#")]
    pins: dict[str, Version] = {}
    for line in lines:
        requirement = Requirement(line)
        (part,) = requirement.specifier
        assert part.operator == "==", line
        pins[canonicalize_name(requirement.name)] = Version(part.version)
    assert len(pins) == len(lines)
    wanted = specifiers(project()["dependencies"])
    wanted |= specifiers(project()["optional-dependencies"]["dev"])
    wanted |= specifiers(project()["optional-dependencies"]["testing"])
    del wanted[canonicalize_name("seedrank")]
    for name, specifier in wanted.items():
        assert name in pins, f"constraints.txt has no version of {name}"
        assert specifier.contains(pins[name]), f"{name}: {pins[name]} is not in {specifier}"


def test_licence_is_apache_2() -> None:
    text = read("LICENSE")
    assert re.search(r"^\s+Apache License\n\s+Version 2\.0, January 2004$", text, re.MULTILINE)
    assert "END OF TERMS AND CONDITIONS" in text
    assert all(f"\n   {number}. " in text for number in range(1, 10))
    assert project()["license"] == "Apache-2.0"


def test_version_is_in_the_changelog() -> None:
    version = re.search(r'^__version__ = "(.+)"$', read("src/seedrank/_version.py"), re.MULTILINE)
    assert version is not None
    assert re.search(rf"^## {re.escape(version[1])}\b", read("CHANGELOG.md"), re.MULTILINE)


def test_makefile_has_every_target_that_the_readme_names() -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    assert {"demo", "test", "lint", "format", "bench", "clean", "help"} <= targets
    assert set(re.findall(r"\bmake ([a-z]+)\b(?=[\s`]*$)", read("README.md"), re.MULTILINE)) <= targets


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_demo_installs_the_base_package_only_and_test_the_development_tools() -> None:
    def planned(target: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        command = ["make", "--dry-run", "--always-make", "--no-print-directory", target]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment)
        return done.stdout

    assert "-m pip install" in planned("demo")
    assert ".venv/bin/seedrank demo" in planned("demo")
    assert "[dev]" not in planned("demo")
    assert "-e '.[dev]'" in planned("test")
    assert "-c constraints.txt" in planned("test")


def test_ci_script_can_be_executed() -> None:
    script = ROOT / ".ci" / "run"
    if not script.is_file():
        pytest.skip("a source distribution has no CI")
    assert os.access(script, os.X_OK)


def test_no_python_file_is_over_400_lines() -> None:
    sizes = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines())
        for file in repository_files()
        if file.suffix == ".py"
    }
    assert len(sizes) > 10
    assert {name: lines for name, lines in sizes.items() if lines > 400} == {}


def test_machine_path_pattern_finds_paths_and_leaves_addresses_alone() -> None:
    slash = "/"
    for folder in ("work", "home", "tmp/w"):
        assert MACHINE_PATH.search(f"read('{slash}{folder}/file')")
        assert MACHINE_PATH.search(f"file:{slash}{slash}{slash}{folder}/file")
        assert not MACHINE_PATH.search(f"https://example.org{slash}{folder}/file")
        assert not MACHINE_PATH.search(f"src{slash}{folder}/file")


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    found = []
    for file in repository_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if MACHINE_PATH.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
