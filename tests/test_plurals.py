"""Counts agree with their nouns: "1 instrument", never "1 instruments"."""

import ast
import functools
import re
from pathlib import Path

import pytest

import jaxdyn
from jaxdyn.report.formatting import count
from jaxdyn.wording import plural

PACKAGE = Path(jaxdyn.__file__).parent
FILES = sorted(file for file in PACKAGE.rglob("*.py") if not file.is_relative_to(PACKAGE / "theories"))
TEMPLATES = sorted(file for kind in ("html", "js") for file in PACKAGE.rglob(f"*.{kind}"))
HELPERS = {"plural", "count"}


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "program", "1 program"),
        (0, "program", "0 programs"),
        (2500, "open finding", "2,500 open findings"),
        (2, "entry", "2 entries"),
        (2, "key", "2 keys"),
        (3, "axis", "3 axes"),
        (3, "batch", "3 batches"),
        (2, "class", "2 classes"),
        (2, "vertex", "2 vertices"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(number, noun, words):
    assert plural(number, noun) == words
    assert count(number, noun) == words.replace(" ", "\u00a0", 1)


@functools.cache
def tree(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def named(node):
    return getattr(node, "id", getattr(node, "attr", None))


@functools.cache
def nouns():
    """The nouns that the package counts, in the plural."""
    calls = (node for file in FILES for node in ast.walk(tree(file)) if isinstance(node, ast.Call) and named(node.func) in HELPERS)
    counted = {a.value.split()[-1] for node in calls for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    return {plural(2, noun).split()[-1] for noun in counted if noun.isalpha()}


def known(value):
    """Whether it is no count, but one that a helper wrote, or a number in capitals, which its author knew."""
    return str(named(value)).isupper() or (isinstance(value, ast.Call) and named(value.func) in HELPERS)


EXEMPT = ("data", "nn", "optim", "text", "stats.py", "models/tokenizer.py")  # stored runs are known by the sources of these


def hits(file):
    """F-strings in which a number stands before a noun in the plural, whatever the number is."""
    for node in ast.walk(tree(file)):
        for number, text in zip(node.values, node.values[1:], strict=False) if isinstance(node, ast.JoinedStr) else ():
            if isinstance(number, ast.FormattedValue) and isinstance(text, ast.Constant) and not known(number.value):
                match = re.match(r"[ \u00a0](?!has |holds )(?:[a-z]+ )?([a-z]+)\b", text.value)
                words = [] if match is None else match[0].split()
                if any(word in nouns() for word in words):
                    yield f"{file.relative_to(PACKAGE)}:{node.lineno}: {{{ast.unparse(number.value)}}}{text.value[:40]}"


def test_no_text_counts_by_hand():
    assert {"instruments", "claims", "runs", "programs", "seeds", "tokens"} <= nouns()
    assert [hit for file in FILES if not str(file.relative_to(PACKAGE)).startswith(EXEMPT) for hit in hits(file)] == [], (
        "use plural or count"
    )


def test_no_template_counts_by_hand():
    known = "|".join(sorted(nouns()))
    found = [
        f"{file.name}: {match[0]}"
        for file in TEMPLATES
        for match in re.finditer(rf"\}}\}}? (?:{known})\b(?! shown)", file.read_text(encoding="utf-8"))
    ]
    assert found == []
