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
INSTEAD = {  # phrase, a regular expression -> what to write
    r"\bastride\b": "straddles",
    r"\bdealt\b(?! with)": "distributed",
    r"\bgone on with\b|\bgo(?:es|ing)? on where\b": "resumed, resumes",
    r"\bcalled as\b": "named after",
    r"\bis over\b(?= for|[.,;:]|$)": "ends, is ignored",
    r"\bno machine has met\b": "never timed",
    r"\bwhatever company\b": "does not depend on the others",
    r"(?<!or )(?<!no )\bless (?:its|nothing|that|the|their|those|of the|base|untrained|formula|\d|1/)\b": "minus, excess over",
    r"\bbeside\b": "next to, compared with",
    rf"\b(?:a|an|one|two|three|\d+) [a-z]+s? an? (?:{UNIT})(?=[.,;:)]|$)": "per",
    r"\bnetworks? of squares\b": "two-layer network with quadratic activation",
    r"\b[Ww]hat a place is worth\b": "score of each slot",
    r"\bboth machines\b": "both max-margin solutions",
    r"\b[Ww]here the paper is read\b": "URL of the abstract",
    r"\bshares that are none\b": "invalid shares",
    r"\bof them more\b": "percentage points more",
}
NOUNS = {"dealt", "found", "held", "keep", "kept", "made", "mapped", "plate", "said", "seen", "told"}  # name no function or class


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


@pytest.mark.parametrize("phrase", INSTEAD)
def test_words_are_plain(phrase):
    files = sorted(file for kind in ("py", "html", "js") for file in PACKAGE.rglob(f"*.{kind}"))
    hits = [(f, line, m) for f in files for line, text in texts(f) for m in re.finditer(phrase, text)]
    places = [f"{f.relative_to(PACKAGE)}:{line}: {m.string[max(m.start() - 30, 0) : m.end() + 30]}" for f, line, m in hits]
    assert places == [], f"write: {INSTEAD[phrase]}"


def test_functions_say_what_they_do():
    """No function or class has a name that leaves open what it returns or does."""
    nodes = [(f, node) for f in sorted(PACKAGE.rglob("*.py")) for node in ast.walk(ast.parse(f.read_text(encoding="utf-8")))]
    named = [(f, node) for f, node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    odd = [f"{f.relative_to(PACKAGE)}:{node.lineno}: {node.name}" for f, node in named if node.name.strip("_").lower() in NOUNS]
    assert odd == []
