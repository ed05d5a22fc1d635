"""click options made from the option models: names, defaults, ranges, units and help come from `seedrank.config`.

Every option may come from a flag, from ``SEEDRANK_<COMMAND>_<OPTION>`` or from a table of ``--config``; the origin of
each value is kept for ``run.json``.
"""

from __future__ import annotations

import difflib
import os
import tomllib
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click
from click.core import ParameterSource
from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from seedrank.config import make_options
from seedrank.config.model import OptionsT
from seedrank.config.names import Group, OptionInfo
from seedrank.errors import ConfigError

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_BYTES = "BYTES"
#: Unit of an option that is a number or a word.
_WORKERS = "N|gpu"
_ORIGIN = {
    ParameterSource.COMMANDLINE: "flag",
    ParameterSource.ENVIRONMENT: "env",
    ParameterSource.DEFAULT_MAP: "file",
}
_STRENGTH = {"flag": 3, "env": 2, "file": 1}
#: Flags that switch something off by a name of their own.
_OFF_SWITCH = {"include_seeds": "exclude-seeds"}


class GroupedOption(click.Option):
    """An option that help shows in a group; the default group is for how a command runs."""

    def __init__(self, *arguments: Any, group: Group = "Run", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help shows its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per option group, in the order of the model's groups."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in get_args(Group)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections[getattr(parameter, "group", "Run")].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(f"{name} options"):
                    formatter.write_dl(records)


def model_options(model: type[BaseModel]) -> Callable[[CommandT], CommandT]:
    """Decorate a command with ``--config`` and one option for every field of a model."""

    def decorate(command: CommandT) -> CommandT:
        for name, field in reversed(model.model_fields.items()):
            command = _option(name, field)(command)
        return click.option(
            "--config",
            type=click.Path(dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=_read_config,
            help="TOML file with a table per command; flags and environment variables win over it.",
        )(command)

    return decorate


def input_option(
    flag: str,
    *,
    help: str,  # noqa: A002  # click's word
    required: bool = False,
) -> Callable[[CommandT], CommandT]:
    """Declare an option that takes a table: file, folder, glob or URL, several times."""
    return click.option(
        flag, cls=GroupedOption, group="Input", multiple=True, metavar="PARQUET", help=help, required=required
    )


def collect(ctx: click.Context, model: type[OptionsT], values: Mapping[str, Any]) -> tuple[OptionsT, dict[str, Any]]:
    """Return the validated options of a command and the origin of each value that is not a default.

    Raises
    ------
    ConfigError
        Bad values; restart and damping both given at one origin.
    """
    _refuse_unknown_variables(ctx)
    given, origins = {}, {}
    for name in model.model_fields:
        source = ctx.get_parameter_source(name)
        if source in _ORIGIN:
            given[name], origins[name] = values[name], _ORIGIN[source]
    if "restart" in given and "damping" in given:
        strength = {name: _STRENGTH[origins[name]] for name in ("restart", "damping")}
        if strength["restart"] != strength["damping"]:
            weaker = min(strength, key=strength.__getitem__)
            del given[weaker], origins[weaker]
    return make_options(model, given), origins


def _option(name: str, field: FieldInfo) -> Callable[[CommandT], CommandT]:
    info = next((item for item in field.metadata if isinstance(item, OptionInfo)), OptionInfo("Run"))
    flag = "--" + name.replace("_", "-")
    settings: dict[str, Any] = {"help": _help(field, info), "default": None, "cls": GroupedOption, "group": info.group}
    kind = _plain(field.annotation)
    if kind is bool:
        flag = f"{flag}/--{_OFF_SWITCH[name]}" if name in _OFF_SWITCH else flag
        settings["is_flag"] = True
    elif get_origin(kind) is Literal:
        settings["type"] = click.Choice(get_args(kind))
    elif get_origin(kind) is tuple:
        item = _item(kind)
        settings |= {"multiple": True, "type": item, "metavar": (info.unit or "NAME") if item is str else None}
    elif get_origin(kind) is dict:
        settings |= {"multiple": True, "metavar": info.unit, "callback": _Pairs(_words(kind))}
    elif kind is ByteSize:
        settings |= {"type": str, "metavar": _BYTES}
    else:
        settings |= {"type": kind, "metavar": info.unit if kind is str and info.unit else None}
    return click.option(flag, name, **settings)


def _plain(annotation: Any) -> Any:
    """Return the type without ``| None``."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(item for item in get_args(annotation) if item is not type(None))
    return annotation


def _words(kind: Any) -> tuple[str, ...] | None:
    """Return the words that the values of a mapping may be; None for numbers."""
    value = get_args(kind)[1]
    return get_args(value) if get_origin(value) is Literal else None


def _item(kind: Any) -> Any:
    """Return the type of the elements of a tuple, without its limits."""
    item = get_args(kind)[0]
    return get_args(item)[0] if get_origin(item) is Annotated else item


def _help(field: FieldInfo, info: OptionInfo) -> str:
    notes = []
    element: Any = get_args(field.annotation)[0] if get_origin(field.annotation) is tuple else None
    of_elements = element.__metadata__[0].metadata if get_origin(element) is Annotated else []
    limits = {
        key: getattr(item, key)
        for item in [*field.metadata, *of_elements]
        for key in ("ge", "gt", "le", "lt")
        if hasattr(item, key)
    }
    if limits:
        low = f"[{limits['ge']}" if "ge" in limits else f"({limits['gt']}" if "gt" in limits else "(-inf"
        high = f"{limits['le']}]" if "le" in limits else f"{limits['lt']})" if "lt" in limits else "inf)"
        notes.append(f"range {low}, {high}")
    if info.unit and not _is_text(_plain(field.annotation)):
        notes.append(f"unit: {info.unit}")
    if isinstance(field.default, bool):
        notes.append(f"default: {'yes' if field.default else 'no'}")
    elif field.default is not None and field.default not in ((), {}):
        default = field.default if not isinstance(field.default, tuple) else " ".join(map(str, field.default))
        notes.append(f"default: {default}")
    return f"{field.description}" + (f"  [{'; '.join(notes)}]" if notes else "")


def _is_text(kind: Any) -> bool:
    """Whether a value is a name or made of names; the unit of such an option is its metavar."""
    return kind is str or get_origin(kind) is dict or (get_origin(kind) is tuple and _item(kind) is str)


class _Pairs:
    """Takes ``NAME=VALUE`` apart, several times: a number, or one of some words.

    Attributes
    ----------
    words : the words, or None where the value is a number.
    """

    def __init__(self, words: tuple[str, ...] | None) -> None:
        self.words = words

    def __call__(
        self, ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...] | None
    ) -> dict[str, float | str]:
        pairs: dict[str, float | str] = {}
        for text in values or ():
            name, separator, right = text.rpartition("=")
            value = self._value(right)
            if not separator or value is None or name in pairs:
                expected = "NUMBER" if self.words is None else "|".join(self.words)
                raise ConfigError(
                    f"--{(parameter.name or '').replace('_', '-')} {text!r}"
                    + (" repeats a name" if name in pairs else ""),
                    expected=f"NAME={expected}, each name once",
                    fix=f"for example {'likes=0.5' if self.words is None else f'likes={self.words[0]}'}",
                )
            pairs[name] = value
        return pairs

    def _value(self, text: str) -> float | str | None:
        if self.words is not None:
            return text if text in self.words else None
        try:
            return float(text)
        except ValueError:
            return None


def _read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Make the table of this command the context's default map; unknown keys and tables are errors."""
    if path is None:
        return
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"--config {path} cannot be read ({error.strerror})", expected="a TOML file", fix="check the path"
        ) from None
    except ValueError as error:
        raise ConfigError(f"--config {path} is not TOML: {error}", expected="valid TOML", fix="correct it") from None
    from seedrank.jobs.cli.main import COMMANDS  # noqa: PLC0415  # the group imports its commands lazily

    _refuse_unknown(path, "table", document, COMMANDS)
    command = ctx.command.name or ""
    table = document.get(command, {})
    if not isinstance(table, dict):
        raise ConfigError(f"--config {path}: {command!r} is not a table", expected=f"[{command}]", fix="make it one")
    options = {
        item.name: item for item in ctx.command.params if isinstance(item, click.Option) and item.name != "config"
    }
    values = {key.replace("-", "_"): value for key, value in table.items()}
    _refuse_unknown(path, f"key in [{command}]", values, options)
    for name, value in values.items():
        _check_type(path, name, value, options[name])
        if isinstance(value, dict):
            values[name] = [f"{key}={weight}" for key, weight in value.items()]
        elif options[name].multiple and not isinstance(value, list):
            values[name] = [value]
    ctx.default_map = values


def _check_type(path: Path, name: str, value: Any, option: click.Option) -> None:
    """Refuse a value of another type than the option's: click would make 1 of 1.5 and stumble over a number."""
    if option.is_flag:
        kinds: tuple[type, ...] = (bool,)
    elif option.type is click.INT:
        kinds = (int,)
    elif option.type is click.FLOAT:
        kinds = (int, float)
    elif option.metavar in (_BYTES, _WORKERS):
        kinds = (int, str)
    else:
        kinds = (str,)
    items = value if option.multiple and isinstance(value, list) else [value]
    if isinstance(option.callback, _Pairs) and isinstance(value, dict):
        items, kinds = list(value.values()), (int, float) if option.callback.words is None else (str,)
    for item in items:
        if not isinstance(item, kinds) or (isinstance(item, bool) and bool not in kinds):
            raise ConfigError(
                f"--config {path}: {name} is {item!r}",
                expected=" or ".join(_KINDS[kind] for kind in kinds)
                + (", or a list of these" if option.multiple else ""),
                fix='write the value in TOML\'s form: true, 3, 0.5, "text"',
            )


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}


def _refuse_unknown_variables(ctx: click.Context) -> None:
    """Refuse a variable that looks like an option of this command and is none, as a key of the file would be."""
    command = (ctx.command.name or "").upper()
    prefix = f"SEEDRANK_{command}_"
    known = {f"{prefix}{(item.name or '').upper()}": item for item in ctx.command.params}
    for name in sorted(os.environ):
        if name.startswith(prefix) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(
                f"unknown environment variable {name}",
                expected=f"{prefix}<OPTION>, as `seedrank {command.lower()} --help` names the options",
                fix=f"did you mean {near[0]}?" if near else "unset it",
            )


def _refuse_unknown(path: Path, what: str, found: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(
                f"--config {path}: unknown {what} {name!r}",
                expected="one of " + ", ".join(sorted(map(str, known))),
                fix=f"did you mean {near[0]!r}?" if near else "remove it",
            )
