"""Words that a native reader has to read twice are kept out of strings, docstrings and comments of the package."""

import ast
import functools
import io
import re
import tokenize
from pathlib import Path

import pytest

import jaxdyn

PACKAGE = Path(jaxdyn.__file__).parent
UNIT = "cell|chunk|claim|day|file|head|layer|line|map|panel|question|row|run|seed|setting|step|text|theory|token|word"
INSTEAD = {  # phrase, a regular expression -> what to write, and how often the theories may still have it: numbers only fall
    r"\bastride\b": ("straddles", 0),
    r"\bdealt\b(?! with)": ("distributed", 1),
    r"\bgone on with\b|\bgo(?:es|ing)? on where\b": ("resumed, resumes", 0),
    r"\bcalled as\b": ("named after", 0),
    r"\bis over\b(?= for|[.,;:]|$)": ("ends, is ignored", 0),
    r"\bno machine has met\b": ("never timed", 0),
    r"\bwhatever company\b": ("does not depend on the others", 0),
    r"(?<!or )\bless (?:its|nothing|that of|the|their)\b": ("minus, excess over", 78),
    r"\bbeside\b": ("next to, compared with", 49),
    rf"\b(?:a|an|one|two|three|\d+) [a-z]+s? an? (?:{UNIT})(?=[.,;:)]|$)": ("per", 25),
    r"\bnetworks? of squares\b": ("two-layer network with quadratic activation", 10),
    r"\b[Ww]hat a place is worth\b": ("score of each slot", 0),
    r"\bboth machines\b": ("both max-margin solutions", 0),
    r"\b[Ww]here the paper is read\b": ("URL of the abstract", 0),
    r"\bshares that are none\b": ("invalid shares", 0),
    r"\bof them more\b": ("percentage points more", 4),
}
NOUNS = {"dealt", "found", "held", "keep", "kept", "made", "mapped", "plate", "said", "seen", "told"}  # name no function or class
IN_THEORIES = 7  # functions that still have one of these names


@functools.cache
def texts(file: Path) -> list[tuple[int, str]]:
    """Strings, docstrings and comments of a module with their line numbers, each on one line; all lines of other files."""
    source = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return list(enumerate(source.splitlines(), 1))
    strings = [(n.lineno, n.value) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]
    return [(line, " ".join(text.split())) for line, text in (*strings, *comments)]


def places(phrase: str, in_theories: bool) -> list[str]:
    """Where the phrase stands: file, line and words."""
    theories = PACKAGE / "theories"
    sources = sorted(file for kind in ("py", "html", "js") for file in PACKAGE.rglob(f"*.{kind}"))
    files = [f for f in sources if f.is_relative_to(theories) == in_theories]
    hits = [(f, line, m) for f in files for line, text in texts(f) for m in re.finditer(phrase, text)]
    return [f"{f.relative_to(PACKAGE)}:{line}: {m.string[max(m.start() - 30, 0) : m.end() + 30]}" for f, line, m in hits]


@pytest.mark.parametrize("phrase", INSTEAD)
def test_plain_words_outside_theories(phrase):
    assert places(phrase, in_theories=False) == [], f"write: {INSTEAD[phrase][0]}"


@pytest.mark.parametrize("phrase", INSTEAD)
def test_plain_words_in_theories(phrase):
    """A number that could be lower is lowered by whoever mends the words."""
    better, allowed = INSTEAD[phrase]
    assert len(found := places(phrase, in_theories=True)) <= allowed, f"write: {better}\n" + "\n".join(found)


def oddly_named(in_theories: bool) -> list[str]:
    """Functions and classes whose names do not say what they return or do."""
    theories, hits = PACKAGE / "theories", []
    for file in (f for f in sorted(PACKAGE.rglob("*.py")) if f.is_relative_to(theories) == in_theories):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.strip("_").lower() in NOUNS:
                hits.append(f"{file.relative_to(PACKAGE)}:{node.lineno}: {node.name}")
    return hits


def test_functions_say_what_they_do():
    assert oddly_named(in_theories=False) == []
    assert len(found := oddly_named(in_theories=True)) <= IN_THEORIES, "\n".join(found)
