"""What all option models share, and the one way to make one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from seedrank.errors import ConfigError


class OptionModel(BaseModel):
    """Options of a command, or a group of them: validated, frozen, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=False)


OptionsT = TypeVar("OptionsT", bound=OptionModel)


def make_options(model: type[OptionsT], values: Mapping[str, Any]) -> OptionsT:
    """Validate option values, with the uniform message.

    Parameters
    ----------
    model : BuildOptions or ScoreOptions
    values : mapping from option name to value; absent names take their default.

    Raises
    ------
    ConfigError
        An unknown name (with the nearest known one), a wrong type or a value out of range.
    """
    unknown = [name for name in values if name not in model.model_fields]
    if unknown:
        near = difflib.get_close_matches(unknown[0], model.model_fields, n=1)
        raise ConfigError(
            f"unknown option {unknown[0]!r}",
            expected="one of " + ", ".join(sorted(model.model_fields)),
            fix=f"did you mean {near[0]!r}?" if near else "remove it",
        )
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        message = first["msg"].removeprefix("Value error, ")
        if not name:
            raise ConfigError(message, fix="see `seedrank score --help`") from None
        raise ConfigError(
            f"option {name!r} has the value {values.get(name)!r}",
            expected=message[0].lower() + message[1:],
            fix=f"--{name.replace('_', '-')}: {model.model_fields[name].description}",
        ) from None
