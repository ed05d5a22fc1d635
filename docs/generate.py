"""Rewrite the generated blocks of README.md and docs/*.md from the code that they describe.

``python docs/generate.py`` rewrites what follows from the code alone: options, help texts, schemas, toy graphs.
``python docs/generate.py --demo`` also runs the demo and puts its output into the README; that block depends on the
Python that runs it and is therefore not rewritten by default. `tests/test_docs.py` fails when a block is stale.

A block stands between ``<!-- generated: NAME -->`` and ``<!-- end: NAME -->``.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from seedrank.config import BuildOptions, ScoreOptions
from seedrank.config.names import Group, OptionInfo
from seedrank.io.candidates import FURTHER_COLUMNS, candidates_schema, queries_schema
from seedrank.io.graph.paths_of_tests import PATHS_OF_TESTS
from seedrank.io.records import GraphFacts, RunManifest
from seedrank.jobs.cli.main import COMMANDS, run
from seedrank.jobs.methods import METHODS
from seedrank.jobs.planning.planner import (
    BUDGETS,
    NEEDS,
    PLANS,
    RULES,
    WITHOUT_GRAPH,
    Capabilities,
    PlanName,
    Rule,
    Signals,
    choose,
)
from seedrank.jobs.planning.signals import TEXT_RULES
from seedrank.testing.toys import TOYS

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
HELP_COLUMNS = 100
SHOWN_QUESTIONS = 3
BLOCK = re.compile(r"<!-- generated: (?P<name>[a-z. -]+) -->\n(?P<body>.*?)<!-- end: (?P=name) -->\n", re.DOTALL)


def table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Return a Markdown table; pipes inside cells are escaped."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def options() -> str:
    """Return one table per option group, from the fields of the option models."""
    parts = []
    for group in get_args(Group):
        rows = [
            (f"`{_flag(name, field)}`", _values(field), _default(field), _unit(field), field.description or "")
            for name, field in ScoreOptions.model_fields.items()
            if _info(field).group == group
        ]
        if rows:
            header = ("option", "values", "default", "unit", "meaning")
            parts.append(f"**{group}**\n\n" + table(header, iter(rows)))
    build = ", ".join(f"`--{name.replace('_', '-')}`" for name in BuildOptions.model_fields)
    return "\n".join(parts) + f"\n`seedrank build` takes these of them: {build}.\n"


def help_texts() -> str:
    """Return the help of the group and of every command, as a terminal of `HELP_COLUMNS` columns shows it."""
    parts = []
    for arguments in ([], *([name] for name in COMMANDS)):
        title = " ".join(["seedrank", *arguments])
        parts.append(f"### `{title}`\n\n```text\n{_help(arguments)}```\n")
    return "\n".join(parts)


def candidates_table() -> str:
    """Return the columns of ``RUN/candidates``."""
    schema = candidates_schema(
        query_type=pa.string(),
        node_type=pa.string(),
        precision="float32",
        facts={},
        meaning=METHODS["ppr"].meaning,
        components=("LIST",),
        columns=FURTHER_COLUMNS,
    )
    return _schema_table(schema)


def queries_table() -> str:
    """Return the columns of ``RUN/queries``."""
    return _schema_table(queries_schema(query_type=pa.string(), facts={}, reranked=True))


def planner_rules() -> str:
    """Return the rules of the planner, in the order in which they are tried."""

    def when(rule: Rule) -> str:
        signals = [f"{name}" if wanted else f"not {name}" for name, wanted in rule.signals.items()]
        return ", ".join([*signals, *([] if rule.channel is None else [f"{rule.channel} is there"])]) or "else"

    return table(
        ("rule", "when", "plan"),
        ((str(number), when(rule), f"`{rule.plan}`") for number, rule in enumerate(RULES, start=1)),
    )


def planner_plans() -> str:
    """Return what each plan does and needs, in the order in which they give way."""

    def what(plan: PlanName) -> str:
        steps = PLANS[plan]
        sources = " and ".join(f"{role} sources" for role in steps.ranked) or "all sources"
        seeds = f"from the seeds of {' and '.join(steps.seeds)} sources, else from all seeds"
        if steps.method != "ppr":
            return f"`{steps.method}` of {sources}"
        fusion = f", fused with {sources} (`{WITHOUT_GRAPH}` of them without the graph)" if steps.fused else ""
        return f"`{steps.method}` {seeds}{fusion}"

    def need(plan: PlanName) -> str:
        least, channels = NEEDS[plan]
        return channels[0] if len(channels) == 1 else f"{least} of {', '.join(channels)}"

    return table(("plan", "what runs", "needs"), ((f"`{plan}`", what(plan), need(plan)) for plan in NEEDS))


def planner_budgets() -> str:
    """Return what the budgets allow and set."""
    rows = (
        (
            f"`{name}`",
            "yes" if budget.graph else "no",
            "yes" if budget.rerank else "no",
            ", ".join(f"`--{option.replace('_', '-')} {value}`" for option, value in budget.depths.items()) or "–",
        )
        for name, budget in BUDGETS.items()
    )
    return table(("budget", "graph", "rerank", "depths"), rows)


def planner_outcomes() -> str:
    """Return the plan of every combination of signals, budget and channels."""
    truth = (False, True)
    channels = [Capabilities(*values) for values in product(truth, repeat=3)]
    header = ("signals", *(_true_names(there) or "nothing" for there in channels))
    parts = []
    for budgets in (("fast",), ("balanced", "thorough")):
        rows = {
            budget: [
                (
                    _true_names(signals) or "none",
                    *(f"`{plan}`" if (plan := choose(signals, budget, there).plan) else "–" for there in channels),
                )
                for signals in (Signals(*values) for values in product(truth, repeat=3))
            ]
            for budget in budgets
        }
        if len({str(found) for found in rows.values()}) != 1:
            raise RuntimeError(f"{budgets} differ in more than depths: show each by itself")
        names = " and ".join(f"`{budget}`" for budget in budgets)
        parts.append(f"**Budget {names}**\n\n" + table(header, iter(rows[budgets[0]])))
    return "\n".join(parts)


def text_rules() -> str:
    """Return the rules that find signals in a text."""
    rows = (
        (rule.signal, rule.name, f"`{rule.pattern}`", "no" if rule.ignore_case else "yes", f"“{rule.example}”")
        for rule in TEXT_RULES
    )
    return table(("signal", "rule", "pattern", "case matters", "example"), rows)


def run_json() -> str:
    """Return the fields of ``run.json``, those of inner documents with dotted names."""
    return table(("field", "type", "meaning"), _document_rows(RunManifest))


def graph_json() -> str:
    """Return the fields of ``graph.json``."""
    return table(("field", "type", "meaning"), _document_rows(GraphFacts))


def toys() -> str:
    """Return the toy graphs with their settings and exact answers."""
    rows = (
        (
            toy.name,
            toy.about,
            ", ".join([f"damping {toy.damping}", *([toy.direction] if toy.direction != "out" else [])]),
            ", ".join(f"{node} {score}" for node, score in toy.expected.items()),
        )
        for toy in TOYS
    )
    return table(("toy", "graph and seeds", "setting", "exact scores"), rows)


def tests() -> str:
    """Return the globs of paths of tests, and who has the convention."""
    rows = ((convention.used_by, ", ".join(f"`{glob}`" for glob in convention.globs)) for convention in PATHS_OF_TESTS)
    return table(("convention of", "globs"), rows)


def scale_model() -> str:
    """Run the script of docs/scale.md and return what it prints."""
    command = [sys.executable, str(ROOT / "benchmarks" / "scale_model.py")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def demo() -> str:
    """Run ``seedrank demo`` and return what the README shows of it."""
    command = [sys.executable, "-m", "seedrank", "demo"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603
    return demo_excerpt(done.stdout)


def demo_excerpt(printed: str) -> str:
    """Cut the last questions out of the demo's output and name the Python that printed it."""
    first, *questions, last = printed.split("\n\n")
    cut = len(questions) - SHOWN_QUESTIONS
    shown = [first, *questions[:SHOWN_QUESTIONS], f"[… {cut} more questions …]", last.rstrip("\n")]
    return (
        f"Printed by Python {platform.python_version()}; another Python has other modules and other numbers.\n\n"
        "```text\n" + "\n\n".join(shown) + "\n```\n"
    )


GENERATORS: dict[str, Callable[[], str]] = {
    "options": options,
    "help": help_texts,
    "candidates": candidates_table,
    "queries": queries_table,
    "planner rules": planner_rules,
    "planner plans": planner_plans,
    "planner budgets": planner_budgets,
    "planner outcomes": planner_outcomes,
    "text rules": text_rules,
    "run.json": run_json,
    "graph.json": graph_json,
    "toys": toys,
    "tests": tests,
    "scale model": scale_model,
}


def rewritten(text: str, *, generators: dict[str, Callable[[], str]] | None = None) -> str:
    """Return a page with its generated blocks as they should be; blocks without a generator stay."""
    known = GENERATORS if generators is None else generators

    def replace(block: re.Match[str]) -> str:
        name = block["name"]
        if name not in known:
            return block[0]
        return f"<!-- generated: {name} -->\n{known[name]()}<!-- end: {name} -->\n"

    return BLOCK.sub(replace, text)


def main(arguments: list[str]) -> None:
    """Rewrite all pages; ``--demo`` includes the demo's output."""
    generators = GENERATORS | ({"demo": demo} if "--demo" in arguments else {})
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = rewritten(before, generators=generators)
        if after != before:
            page.write_text(after, encoding="utf-8")
            sys.stdout.write(f"rewrote {page.relative_to(ROOT)}\n")


def _true_names(flags: Signals | Capabilities) -> str:
    return ", ".join(name for name, value in flags._asdict().items() if value)


def _info(field: FieldInfo) -> OptionInfo:
    return next(item for item in field.metadata if isinstance(item, OptionInfo))


def _plain(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next(item for item in get_args(annotation) if item is not type(None))
    return annotation


def _flag(name: str, field: FieldInfo) -> str:
    flag = "--" + name.replace("_", "-")
    if name == "include_seeds":
        return f"{flag}` / `--exclude-seeds"
    return f"{flag} …" if get_origin(_plain(field.annotation)) in (tuple, dict) else flag


def _values(field: FieldInfo) -> str:
    kind = _plain(field.annotation)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    names = {bool: "flag", str: "text", int: "integer", float: "number", ByteSize: "bytes"}
    name = "names" if get_origin(kind) is tuple else "`NAME=VALUE`" if get_origin(kind) is dict else names[kind]
    bounds = ("ge", "gt", "le", "lt")
    limits = {key: getattr(item, key) for item in field.metadata for key in bounds if hasattr(item, key)}
    if not limits:
        return name
    low = f"[{limits['ge']}" if "ge" in limits else f"({limits['gt']}"
    high = f"{limits['le']}]" if "le" in limits else f"{limits['lt']})" if "lt" in limits else "∞)"
    return f"{name} in {low}, {high}"


def _default(field: FieldInfo) -> str:
    if isinstance(field.default, bool):
        return "yes" if field.default else "no"
    return "–" if field.default in (None, (), {}) else f"`{field.default}`"


def _unit(field: FieldInfo) -> str:
    return _info(field).unit or "–"


def _help(arguments: list[str]) -> str:
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(HELP_COLUMNS)  # click asks for the width of the terminal, and this decides it
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = run([*arguments, "--help"])
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    if code:
        raise RuntimeError(printed.getvalue())
    return printed.getvalue()


def _schema_table(schema: pa.Schema) -> str:
    def type_name(field: pa.Field) -> str:
        varying = {"query_id": "as in the input", "node_id": "as in the input", "score": "float or double"}
        return varying.get(field.name, str(field.type))

    def note(field: pa.Field, key: str) -> str:
        text: str = field.metadata.get(key.encode(), "–".encode()).decode()
        return text

    rows = (
        (
            f"`{field.name}`",
            type_name(field),
            "yes" if field.nullable else "no",
            note(field, "description"),
            note(field, "unit"),
        )
        for field in schema
    )
    return table(("column", "type", "may be null", "meaning", "unit"), rows)


def _document_rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        inner, path = _inner_model(field.annotation)
        if inner is None:
            yield f"`{prefix}{name}`", f"`{_type_name(field.annotation)}`", field.description or "–"
        else:
            yield from _document_rows(inner, f"{prefix}{name}{path}.")


def _inner_model(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """Return the document that a field holds, and how a path goes on into it: ``[]`` a list, ``.*`` any key."""
    kind = _plain(annotation)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind, ""
    if get_origin(kind) in (list, dict):
        inner, path = _inner_model(get_args(kind)[-1])
        return inner, ("[]" if get_origin(kind) is list else ".*") + path
    return None, ""


def _type_name(annotation: Any) -> str:
    plain = isinstance(annotation, type) and not get_args(annotation)
    return annotation.__name__ if plain else str(annotation).replace("typing.", "")


if __name__ == "__main__":
    main(sys.argv[1:])
