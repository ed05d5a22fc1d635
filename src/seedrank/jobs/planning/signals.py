r"""What the text of a query says about the kind of answer it wants: three signals, by rules for English.

The rules are a table of regular expressions of RE2, which takes time linear in the text; ``\b`` and ``\w`` speak of
ASCII. A signal is true when one of its rules matches. Texts in other languages get signals as columns of
``--query-info``, which win over the text.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Signal = Literal["structural", "lexical", "semantic"]
SIGNALS: tuple[Signal, ...] = ("structural", "lexical", "semantic")


class TextRule(NamedTuple):
    """One rule: a text that the pattern matches somewhere has the signal.

    Attributes
    ----------
    signal, name : what follows, and what the trace calls the rule.
    pattern : regular expression of RE2.
    ignore_case : whether case does not matter.
    example : a text that this rule matches.
    """

    signal: Signal
    name: str
    pattern: str
    ignore_case: bool
    example: str


TEXT_RULES: tuple[TextRule, ...] = (
    TextRule(
        "structural",
        "dependency",
        r"\b(depends? on|depended on|dependenc(y|ies)|dependents?|imports?|imported by|calls|called by|callers?"
        r"|callees?|inherits?|subclass(es)?|superclass(es)?|upstream|downstream|breaks? if|affected by)\b",
        True,
        "which modules are affected by a change of the parser",
    ),
    TextRule(
        "structural",
        "connection",
        r"\b(connect(s|ed)? (to|with)|connections? (of|between)|linked (to|with)|links? between|path (from|between)"
        r"|relat(es?|ed) to|relations?(hips?)? (of|between|to)|neighbou?rs? of|hops? (from|away))\b",
        True,
        "how is Ada Lovelace related to Lord Byron",
    ),
    TextRule(
        "structural",
        "chain",
        r"\bof the [^,;.?]{1,80}\b(of|who|that|which|whose|in which|where)\b|'s [a-z]+'s\b"
        r"|\b(the|an?) [a-z]+ (who|that|which|whose|in which|where)\b|'s (father|mother|parents?"
        r"|spouse|husband|wife|child|children|son|daughter|grand(father|mother)|director|author|founder|owner|successor"
        r"|predecessor)\b",
        True,
        "where was the director of the film that won the prize born",
    ),
    TextRule(
        "structural",
        "comparison",
        r"\b(in common|both|the same|older|younger|earlier|later|shared? by"
        r"|(first|recently|[a-z]+est),? [^?]{1,120} or)\b",
        True,
        "which film came out earlier, Stalker or Solaris",
    ),
    TextRule("lexical", "quotation", r"\"[^\"]+\"|“[^”]+”|`[^`]+`", False, 'the page that says "out of memory"'),
    TextRule(
        "lexical",
        "identifier",
        r"\b[A-Za-z0-9]+_[A-Za-z0-9_]+\b|\b[a-z]+[0-9]*[A-Z][A-Za-z0-9]*\b|\b[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*\b"
        r"|\b[A-Za-z_][A-Za-z0-9_]*\(\)|\b[A-Za-z_]\w*(\.[A-Za-z_]\w+){1,}\b|::|\b\w+/\w+/\w+|--[a-z]",
        False,
        "where is read_parquet defined",
    ),
    TextRule(
        "lexical",
        "code",
        r"\b[A-Z]{1,10}-?[0-9]{2,}(-[0-9]+)*\b|\b0x[0-9a-fA-F]+\b|#[0-9]+\b|\b[vV]?[0-9]+\.[0-9]+\.[0-9]+\b",
        False,
        "is CVE-2024-3094 fixed in 5.6.2",
    ),
    TextRule(
        "semantic",
        "explanation",
        r"^\W*(why|how (do|does|did|can|could|should|would|is|are|to)|explain|describe|summari[sz]e|compare|discuss"
        r"|what (does .* mean|is meant by|are the (reasons|effects|advantages|differences)|happens))\b",
        True,
        "why does the job run out of memory",
    ),
    TextRule(
        "semantic",
        "likeness",
        r"\b(similar(ity)? (to|of|between)|something like|alternatives? to|meaning of|ideas? (about|for)|overview of"
        r"|introduction to|best way to|advice (on|about))\b",
        True,
        "an overview of graph partitioning",
    ),
)


def text_signals(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Match every rule with some texts.

    Parameters
    ----------
    texts : q strings; a null matches nothing.

    Returns
    -------
    bool (len(TEXT_RULES), q)
    """
    found = [
        pc.match_substring_regex(texts, rule.pattern, ignore_case=rule.ignore_case).fill_null(False)
        for rule in TEXT_RULES
    ]
    return np.array([column.to_numpy(zero_copy_only=False) for column in found], dtype=np.bool_).reshape(
        len(TEXT_RULES), len(texts)
    )
