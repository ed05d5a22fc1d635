"""``graph.json``: reading the facts of a graph store, wherever it stands."""

from __future__ import annotations

import json

from pydantic import ValidationError

from seedrank.errors import InputDataError
from seedrank.io.records import GraphFacts

FORMAT_VERSION = 1
FACTS_FILE = "graph.json"


def parse_graph_facts(text: str | bytes, *, name: str) -> GraphFacts:
    """Return the facts that ``graph.json`` tells.

    Parameters
    ----------
    text : content of the file.
    name : folder or URL of the store, for messages.

    Raises
    ------
    InputDataError
        Another format version, or not what ``seedrank build`` writes.
    """
    rebuild = f"rebuild it: seedrank build EDGES --out {name} --overwrite"
    try:
        version = json.loads(text).get("format_version")
        if version != FORMAT_VERSION:
            raise InputDataError(
                f"{name} has graph store format {version!r}", expected=f"format {FORMAT_VERSION}", fix=rebuild
            )
        return GraphFacts.model_validate_json(text)
    except (ValidationError, ValueError, AttributeError) as error:
        if isinstance(error, InputDataError):
            raise
        raise InputDataError(
            f"{name}/{FACTS_FILE} cannot be understood", expected="the file that build wrote", fix=rebuild
        ) from None
