"""Signals of texts: every rule by its example, and texts that should have one signal or none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seedrank.jobs.planning.signals import SIGNALS, TEXT_RULES, TextRule, text_signals


def signals_of(text: str) -> set[str]:
    matched = text_signals(pa.array([text]))[:, 0]
    return {rule.signal for rule, found in zip(TEXT_RULES, matched, strict=True) if found}


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.name)
def test_every_rule_matches_its_example(rule: TextRule) -> None:
    assert text_signals(pa.array([rule.example]))[TEXT_RULES.index(rule), 0]


def test_rules_have_names_of_their_own() -> None:
    assert len({rule.name for rule in TEXT_RULES}) == len(TEXT_RULES)
    assert {rule.signal for rule in TEXT_RULES} == set(SIGNALS)


@pytest.mark.parametrize(
    ("text", "signals"),
    [
        ("", set()),
        ("steam engines", set()),
        ("Ada Lovelace", set()),
        ("John F. Kennedy", set()),
        ("what callers does parse_footer() have", {"structural", "lexical"}),
        ("KeyError in io.queries", {"lexical"}),
        ("How does garbage collection work?", {"semantic"}),
        ("Explain what `yield from` does", {"lexical", "semantic"}),
        ("When did the father of the man who built the bridge die?", {"structural"}),
        ("WHY IS THE JOB SLOW", {"semantic"}),
        ("¿por qué?", set()),
    ],
)
def test_texts(text: str, signals: set[str]) -> None:
    assert signals_of(text) == signals


def test_null_texts_and_types() -> None:
    for kind in (pa.string(), pa.large_string()):
        found = text_signals(pa.array([None, "why is it slow", None], kind))
        assert found.shape == (len(TEXT_RULES), 3)
        assert found[:, [0, 2]].sum() == 0
        assert found[:, 1].any()
    assert text_signals(pa.array([], pa.string())).shape == (len(TEXT_RULES), 0)
