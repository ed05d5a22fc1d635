"""docker/Dockerfile, read as a text: no container engine is needed."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docker" / "Dockerfile"

if not FILE.is_file():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

TARGETS = ("cpu", "cuda")


@dataclass
class Stage:
    """A stage: its name, what it begins with, and its instructions as (name, rest) in their order."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == instruction]


def instructions(text: str) -> list[tuple[str, str]]:
    """Logical lines: comments dropped, continuations joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    parsed = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(name, rest) for name, rest in parsed]


def read() -> tuple[dict[str, str], dict[str, Stage]]:
    """Arguments that come before the first stage, and the stages by name."""
    arguments: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for name, rest in instructions(FILE.read_text(encoding="utf-8")):
        if name == "FROM":
            match = re.fullmatch(r"(\S+) AS ([a-z-]+)", rest)
            assert match, f"every stage has a name: {rest}"
            stage = stages[match[2]] = Stage(match[2], match[1])
        elif stage is None:
            assert name == "ARG"
            key, _, value = rest.partition("=")
            arguments[key] = value
        else:
            stage.instructions.append((name, rest))
    return arguments, stages


ARGUMENTS, STAGES = read()


def line_of(target: str) -> list[Stage]:
    """A stage and those that it begins with, oldest first."""
    stage = STAGES[target]
    return [*(line_of(stage.base) if stage.base in STAGES else []), stage]


def last(target: str, instruction: str) -> str:
    return [rest for stage in line_of(target) for rest in stage.all(instruction)][-1]


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return table


def copies() -> list[tuple[Stage, str | None, list[str], str]]:
    """Every COPY: its stage, the stage that it copies from, what, and where to."""
    found = []
    for stage in STAGES.values():
        for rest in stage.all("COPY"):
            words = shlex.split(rest)
            origin = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
            found.append((stage, origin, words[:-1], words[-1]))
    return found


def sent(path: Path) -> bool:
    """Whether docker/Dockerfile.dockerignore lets a file of the checkout through; the last pattern that fits counts."""
    through = True
    relative = path.relative_to(ROOT)
    names = [str(relative), *map(str, relative.parents)]
    for line in (FILE.parent / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        anywhere = line.startswith("**/")
        candidates = [part for name in names for part in name.split("/")] if anywhere else names
        if line and not line.startswith("#") and any(fnmatch.fnmatchcase(name, pattern) for name in candidates):
            through = line.startswith("!")
    return through


def test_the_targets_are_there_and_nothing_is_built_for_nobody() -> None:
    used = {origin for _, origin, _, _ in copies()} | {stage.base for stage in STAGES.values()}
    assert set(STAGES) - used == set(TARGETS)


def test_stages_begin_with_fixed_tags_or_with_earlier_stages() -> None:
    earlier: set[str] = set()
    for stage in STAGES.values():
        image = re.sub(r"\$\{(\w+)\}", lambda match: ARGUMENTS[match[1]], stage.base)
        if image not in earlier:
            name, _, tag = image.partition(":")
            assert tag, f"{name} has no tag"
            assert "latest" not in tag
            assert re.search(r"\d+\.\d+", tag)
        earlier.add(stage.name)
    for stage, origin, _, _ in copies():
        if origin is not None:
            assert list(STAGES).index(origin) < list(STAGES).index(stage.name)


def test_the_python_of_the_image_is_one_that_the_package_takes() -> None:
    version = re.search(r":(\d+\.\d+)", ARGUMENTS["PYTHON_IMAGE"])
    assert version
    assert version[1] in SpecifierSet(project()["project"]["requires-python"])
    assert f"Programming Language :: Python :: {version[1]}" in project()["project"]["classifiers"]


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_runs_the_command_without_rights(target: str) -> None:
    user = last(target, "USER")
    assert user.isdecimal(), "Kubernetes checks runAsNonRoot by number"
    assert int(user) >= 10_000
    assert any(f"--uid {user} " in rest for stage in line_of(target) for rest in stage.all("RUN"))
    assert json.loads(last(target, "ENTRYPOINT")) == ["seedrank"]
    assert json.loads(last(target, "CMD")) == ["--help"]
    assert last(target, "HEALTHCHECK") == "NONE"


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_are_compiled_by_the_user_who_runs(target: str) -> None:
    """Into the folder that the environment names, which that user may write."""
    stage = STAGES[target]
    order = [name for name, _ in stage.instructions]
    assert order.index("USER") < order.index("RUN")
    assert stage.all("RUN")[-1].startswith("seedrank demo ")
    environment = " ".join(rest for each in line_of(target) for rest in each.all("ENV"))
    cache = re.search(r"NUMBA_CACHE_DIR=(\S+)", environment)
    assert cache
    owned = re.findall(r"install -d -o seedrank -m 755 (\S+)", " ".join(STAGES["runtime"].all("RUN")))
    assert any(cache[1].startswith(folder) for folder in owned)


def test_what_is_copied_exists_and_is_sent() -> None:
    for _, origin, sources, _ in copies():
        for source in sources if origin is None else []:
            path = ROOT / source
            assert path.exists(), source
            files = [file for file in path.rglob("*.py") if file.is_file()] if path.is_dir() else [path]
            assert files
            assert all(sent(file) for file in files), source
    for kept_out in ("docs/gpu.md", "tests/conftest.py", ".git/HEAD", "src/seedrank/__pycache__/errors.pyc"):
        assert not sent(ROOT / kept_out)


def test_the_wheel_has_all_that_it_is_made_of() -> None:
    table = project()
    needed = {"pyproject.toml", table["project"]["readme"], *table["project"]["license-files"]}
    needed |= {f"{Path(table['tool']['hatch']['version']['path']).parts[0]}/"}
    (sources,) = [words for stage, origin, words, _ in copies() if stage.name == "wheel" and words == ["src/"]]
    assert needed == {*sources, *(w for s, o, words, _ in copies() if s.name == "wheel" and o is None for w in words)}


def test_extras_are_those_of_the_package() -> None:
    extras = project()["project"]["optional-dependencies"]
    given = {
        key: value.split(",")
        for stage in STAGES.values()
        for key, _, value in (rest.partition("=") for rest in stage.all("ARG"))
    }
    assert set(given) == {"EXTRAS", "CUDA_EXTRA"}
    assert {extra for values in given.values() for extra in values} <= set(extras)
    page = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([A-Z_]+)` \| `([^`]+)` \|", page, re.MULTILINE)
    assert dict(listed) == {**ARGUMENTS, **{key: ",".join(values) for key, values in given.items()}}


def test_house_rules_of_dockerfiles() -> None:
    """Those of hadolint that apply here; it has no finding itself."""
    for stage in STAGES.values():
        assert not stage.all("ADD"), "COPY does not unpack or fetch"
        assert not stage.all("MAINTAINER")
        for command in stage.all("RUN"):
            assert "sudo" not in command
            for install in re.findall(r"pip (?:install|wheel)[^&]*", command):
                assert "--no-cache-dir" in install
            for install in re.findall(r"apt-get install[^&]*", command):
                assert "--no-install-recommends" in install
        for folder in stage.all("WORKDIR"):
            assert folder.startswith("/")


def test_installing_is_bound_by_the_constraints() -> None:
    installs = [
        install
        for stage in STAGES.values()
        for command in stage.all("RUN")
        for install in re.findall(r"pip install[^&]*", command)
    ]
    assert len(installs) == 2
    assert all("-c /wheels/constraints.txt" in install for install in installs)
