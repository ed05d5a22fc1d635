"""Presets: option values that go by one name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Preset = Literal["memgraphrag", "hipporag"]

#: A preset is nothing more: whatever is given beside it wins.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "memgraphrag": {
        "restart": (0.5,),
        "max_iterations": 10,
        "tolerance": 0.0,
        "direction": "both",
        "fallback": "rrf",
        "include_seeds": True,
    },
    "hipporag": {
        "restart": (0.5,),
        "direction": "both",
        "source_normalization": "none",
        "include_seeds": True,
    },
}


def preset_values(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values that the preset among some given options adds to them; damping is restart by another name."""
    preset = values.get("preset")
    chosen = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
    return {
        name: value
        for name, value in chosen.items()
        if name not in values and not (name == "restart" and values.get("damping"))
    }
