"""The pages are true: every code block runs, what it prints is what the page shows, generated blocks are fresh.

Blocks run in order, page by page, in a temporary folder: ``python`` by `exec` in one namespace per page, ``bash`` by
a shell that finds ``seedrank``, ``toml`` as a file whose name its first line gives; ``yaml`` and
``json`` are parsed. A ``text`` block shows what the block before it printed, but for `normalised`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import runpy
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import seedrank
from seedrank import errors
from seedrank.config import ScoreOptions
from seedrank.jobs.cli.main import COMMANDS
from seedrank.jobs.stdlib_graph import DEMO_QUESTIONS

ROOT = Path(__file__).parents[1]

if not (ROOT / "docs" / "generate.py").is_file():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

GENERATE: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate.py"))
PAGES: tuple[Path, ...] = GENERATE["PAGES"]

ON_S3 = (ROOT / "docs" / "object_stores.md").read_text(encoding="utf-8").partition("```bash\n")[2].partition("\n```")[0]
ON_A_CLUSTER = (ROOT / "docs" / "workers.md").read_text(encoding="utf-8").split("```bash\n")[2].partition("\n```")[0]

#: Blocks that are shown and not run, each with its reason.
NOT_RUN = {
    "make demo": "makes .venv and installs the package; the demo itself is run below",
    "make test": "would run these tests again",
    "pip install -e .": "installs",
    ON_S3: "needs a bucket; tests/test_storage/test_s3_documented.py runs it on one of its own",
    ON_A_CLUSTER: "needs hosts; tests/test_jobs/test_scaleout_faults.py runs it on two of its own",
}
#: Pages whose commands are the installed ones: what users see first, every way to configure them, and one that starts
#: more processes. On other pages they are forked (`tests/forked_commands.py`), which saves the start of each.
WITH_THE_INSTALLED_COMMAND = {"README.md", "cli.md", "workers.md"}
LANGUAGES = {"bash", "json", "python", "python airflow", "text", "toml", "yaml"}
FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z \[.*\n", re.MULTILINE)
SECONDS = re.compile(r"^ *seconds\b.*$", re.MULTILINE)
#: Where the pages say that their examples ran.
SHOWN_FOLDER = "/data"


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its fence."""

    language: str
    code: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page outside its generated parts, in order."""
    text = GENERATE["BLOCK"].sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    return [
        Block(block["language"], block["code"], text[: block.start()].count("\n") + 1) for block in FENCE.finditer(text)
    ]


def normalised(printed: str, folder: Path | None = None) -> str:
    """Drop what may differ: log lines, digits of seconds, the temporary folder, spaces at the ends of lines."""
    if folder is not None:
        printed = printed.replace(str(folder), SHOWN_FOLDER)
    printed = LOG_LINE.sub("", printed)
    printed = SECONDS.sub(lambda line: re.sub(r"\d[\d.e-]*", "N", line[0]), printed)
    return "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())


def run_bash(code: str, folder: Path, programs: Path = Path(sys.executable).parent) -> str:
    """Run a block; a command that fails without ``||`` after it fails the test. Returns stdout and stderr."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEEDRANK_")}
    environment |= {
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(GENERATE["HELP_COLUMNS"]),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_python(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    """Run a block in the page's namespace; returns what it printed. Warnings of seedrank itself are errors."""
    # Lines are shifted so that a traceback points into the page.
    source = compile("\n" * block.line + block.code, str(page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", module=r"seedrank\b")
        exec(source, namespace)  # noqa: S102
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_commands: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    installed, forked = Path(sys.executable).parent, Path(forked_commands.program).parent
    programs = installed if page.name in WITH_THE_INSTALLED_COMMAND else forked
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for block in blocks_of(page):
        where = f"{page.name}, line {block.line}"
        if block.language == "text":
            assert printed is not None, f"{where}: no block before this one printed anything"
            assert normalised(block.code) == normalised(printed, tmp_path), where
            printed = None
        elif block.code.strip() in NOT_RUN:
            printed = None
        elif block.language == "bash":
            printed = run_bash(block.code, tmp_path, programs)
        elif block.language == "python":
            printed = run_python(block, page, namespace)
        elif block.language == "python airflow":  # tests/test_operations.py runs it, with stand-ins
            compile(block.code, where, "exec")
            printed = None
        elif block.language == "toml":
            name = re.match(r"# ([\w.-]+)\n", block.code)
            assert name is not None, f"{where}: the first line must be the file's name, as a comment"
            (tmp_path / name[1]).write_text(block.code, encoding="utf-8")
            printed = None
        elif block.language == "json":
            assert json.loads(block.code), where
            printed = None
        elif block.language == "yaml":
            assert yaml.safe_load(block.code), where
            printed = None
        else:
            pytest.fail(f"{where}: a block of language {block.language!r}, expected one of {sorted(LANGUAGES)}")


def test_blocks_that_are_not_run_are_all_there() -> None:
    shown = {block.code.strip() for page in PAGES for block in blocks_of(page) if block.language == "bash"}
    assert set(NOT_RUN) <= shown


def test_generated_blocks_are_fresh() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert GENERATE["rewritten"](text) == text, f"{page.name} is stale: run python docs/generate.py"


def test_every_generated_block_is_on_some_page_and_none_is_unknown() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    named = sorted(name for text in texts for name in re.findall(r"<!-- generated: (.+?) -->", text))
    closed = sorted(block["name"] for text in texts for block in GENERATE["BLOCK"].finditer(text))
    assert named == closed == sorted([*GENERATE["GENERATORS"], "demo"])


def test_readme_shows_the_demo_as_the_command_prints_it(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = next(block["body"] for block in GENERATE["BLOCK"].finditer(text) if block["name"] == "demo")
    fresh: str = GENERATE["demo_excerpt"](run_bash("seedrank demo", tmp_path))
    assert structure(shown) == structure(fresh)
    for question in DEMO_QUESTIONS[: GENERATE["SHOWN_QUESTIONS"]]:
        assert f"{question.query_id}: {question.description}\n  seeds: {', '.join(question.seeds)}\n" in shown
    nodes = pq.read_table(tmp_path / "seedrank-demo" / "nodes.parquet", columns=["id"])
    known = set(nodes.column("id").to_pylist())
    named = re.findall(r"^ +\d+  \d\.\d{4}  ([\w.]+)$", shown, re.MULTILINE)
    assert len(named) == 5 * GENERATE["SHOWN_QUESTIONS"]
    assert set(named) <= known
    # The same Python with the same library must give the very same numbers.
    if shown.splitlines()[:4] == fresh.splitlines()[:4]:
        assert without_timings(shown) == without_timings(fresh)


def structure(output: str) -> str:
    """Replace what depends on the Python: versions, counts, scores, modules, seconds."""
    output = re.sub(r"^( +\d+)  \d\.\d{4}  [\w.]+$", r"\1  SCORE  MODULE", output, flags=re.MULTILINE)
    output = re.sub(r"Python 3\.[\w.+]+", "Python VERSION", output)
    return re.sub(r"\d[\d,]* (modules|edges)", r"N \1", without_timings(output))


def without_timings(output: str) -> str:
    return re.sub(r"\d+\.\d\d\b(?!\d)", "N", output)


@pytest.mark.parametrize("name", seedrank.__all__)
def test_python_page_has_a_section_with_the_arguments_of_every_public_name(name: str) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    heading = re.search(rf"^## `seedrank\.{re.escape(name)}\b.*`$", text, re.MULTILINE)
    assert heading is not None
    section = text[heading.end() :].partition("\n## ")[0]
    value = getattr(seedrank, name)
    if inspect.isclass(value):
        public = [member for member in [*value.__dict__, *value.__annotations__] if not member.startswith("_")]
        assert [member for member in public if f"`{member}" not in section and f".{member}" not in section] == []
    elif callable(value):
        assert [parameter for parameter in inspect.signature(value).parameters if f"`{parameter}" not in section] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_the_command_line_page_and_in_the_readme(name: str) -> None:
    assert f"### `seedrank {name}`" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"`seedrank {name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md"])
def test_exit_codes_are_all_listed(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    codes = {0, 1, 99, 143} | {value.exit_code for value in classes if issubclass(value, errors.SeedrankError)}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == codes


def test_every_score_option_is_explained_outside_the_generated_tables() -> None:
    prose = "".join(GENERATE["BLOCK"].sub("", page.read_text(encoding="utf-8")) for page in PAGES)
    flags = {name: "--" + name.replace("_", "-") for name in ScoreOptions.model_fields}
    assert [flag for name, flag in flags.items() if flag not in prose and f"`{name}`" not in prose] == []


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
