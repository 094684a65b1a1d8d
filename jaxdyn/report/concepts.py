"""The table of all words in ``docs/concepts.md``, written by ``make docs`` from the glossary."""

from __future__ import annotations

from jaxdyn.report.formatting import between
from jaxdyn.report.glossary import FIRST, GLOSSARY, PARTS, VERDICTS

__all__ = ["with_words"]

MARKS = ("<!-- words:", "<!-- end of words -->")


def with_words(page: str) -> str:
    """A page with today's table of all words between its two marks.

    Raises:
        UsageError: the page lacks the marks.
    """
    known = {**GLOSSARY, **VERDICTS}
    groups = {
        "enough for a first verdict": {word: known[word] for word in FIRST},
        "other verdicts": {word: text for word, text in VERDICTS.items() if word not in FIRST},
        "what a verdict rests on": {word: text for word, text in GLOSSARY.items() if word not in FIRST},
        "what a claim is made of": PARTS,
    }
    rows = ["| word | meaning |", "|---|---|"]
    for title, words in groups.items():
        rows += [f"| **{title}** | |", *(f"| {word} | {text} |" for word, text in words.items())]
    return between(page, MARKS, "\n".join(rows) + "\n", "the page of concepts")
