"""Verdicts, numbers, shares, times and names as the report writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from jaxdyn.engine.claims.description import digits_of_field
from jaxdyn.engine.judging.check import VALUE_DIGITS
from jaxdyn.errors import UsageError
from jaxdyn.report.glossary import VERDICTS, sentence
from jaxdyn.wording import place, plural

__all__ = [
    "badge",
    "between",
    "breakable",
    "count",
    "diverged",
    "duration",
    "ended",
    "number",
    "percent",
    "placed",
    "runs_drawn",
    "setting",
    "settings",
    "term",
    "unasked",
    "value",
]


def between(page: str, marks: tuple[str, str], text: str, name: str = "the page") -> str:
    """A document with a text between the line of its first mark and its second mark.

    Raises:
        UsageError: the document lacks the marks.
    """
    start, end = page.find(marks[0]), page.find(marks[1])
    if not 0 <= start < end:
        raise UsageError(f"{name} lacks the marks {' and '.join(marks)}")
    return page[: page.index("\n", start) + 1] + text + page[end:]


def badge(verdict: str) -> Markup:
    """A verdict as a coloured word, with its meaning on hover; the style sheet adds its symbol."""
    known = verdict if verdict in VERDICTS else "unknown"
    meaning = Markup(' title="{}"').format(VERDICTS[verdict]) if verdict in VERDICTS else ""
    return Markup('<span class="badge v-{}"{}>{}</span>').format(known.replace(" ", "-"), meaning, verdict)


def term(word: str, meaning: str = "", kind: str = "") -> Markup:
    """A word with its meaning on hover, the glossary's unless another is given; the bare word if there is none."""
    said = meaning or sentence(word)
    of = Markup(' class="{}"').format(kind) if kind else ""
    return Markup('<abbr{} title="{}">{}</abbr>').format(of, said, word) if said else escape(word)


def placed(coordinates: Mapping[str, Any]) -> Markup:
    """The coordinates of an entry in words (:func:`jaxdyn.wording.place`)."""
    safe = {str(escape(axis)): str(escape(value)) if isinstance(value, str) else value for axis, value in coordinates.items()}
    return Markup(place(safe, setting))


def breakable(name: Any) -> Markup:
    """A name that may break after dots, slashes and underscores on narrow screens."""
    return Markup("<wbr>").join(re.split(r"(?<=[./_])", str(name)))


def number(value: Any, digits: int = VALUE_DIGITS) -> Markup:
    """A number for readers: four digits or more, powers of ten written out, a dash for anything that is not a finite number."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return Markup('<span class="nil" title="not a finite number">–</span>')
    if isinstance(value, bool) or not isinstance(value, int | float):
        return escape(str(value))
    if isinstance(value, int) and abs(value) < 2**32:  # seeds are shown in full
        return _whole(value)
    if value == 0 or 1e-3 <= abs(value) < 9999.5:
        return Markup(f"{value:.{digits}g}".replace("-", "−"))
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = "" if float(mantissa) == 1 else f"{float(mantissa):.{digits}g}\u00a0×\u00a0".replace("-", "−")
    return Markup(f"{mantissa}10<sup>{int(exponent)}</sup>".replace("<sup>-", "<sup>−"))


def setting(value: Any) -> Markup:
    """One value of a field, with six digits or as many as it was written with; whole numbers in full."""
    return settings([value])[0]


def settings(values: Sequence[Any]) -> list[Markup]:
    """Values of one field, such that those that differ look different."""
    digits = digits_of_field(values)
    whole = [isinstance(v, int) and not isinstance(v, bool) for v in values]
    return [_whole(v) if full else number(v, digits) for v, full in zip(values, whole, strict=True)]


def _whole(value: int) -> Markup:
    return Markup(f"{value:,}".replace("-", "−"))


def percent(share: Any) -> Markup:
    """A share for readers, in per cent with two digits: 12 %, 0.0015 %, 3 × 10^-7 %."""
    if not isinstance(share, int | float) or not math.isfinite(share):
        return number(None)
    if 0.995 <= share < 1.005:
        return Markup("100\u202f%")
    rounded = float(f"{100 * share:.2g}")
    return (Markup(f"{rounded:.10g}") if rounded >= 1e-3 else number(rounded)) + "\u202f%"


def duration(seconds: Any) -> str:
    """A length of time for readers; empty if unknown."""
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return ""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def value(chosen: Any) -> Markup:
    """The value of a setting's field, or a list of values; a tuple, which is a list in JSON, as on the command line: ``1:2``."""
    if isinstance(chosen, list | tuple):
        flat = all(isinstance(v, int | float) and not isinstance(v, bool) for v in chosen)
        words = settings(chosen) if flat else [value(tuple(v) if isinstance(v, list) else v) for v in chosen]
        return Markup(":" if isinstance(chosen, tuple) else ", ").join(words) or Markup("–")
    return Markup("none") if chosen is None else escape(str(chosen).lower()) if isinstance(chosen, bool) else setting(chosen)


def ended(title: str) -> str:
    """A title as a sentence: with a full stop, unless it is a question."""
    return title if title.endswith("?") else f"{title}."


def runs_drawn(runs: int, diverged: int) -> str:
    """How many runs a figure is of: those that diverged have no values to draw. ``11 of 24 runs; 13 diverged``."""
    return f"{runs - diverged:,} of {count(runs, 'run')}; {diverged:,} diverged" if diverged else count(runs, "run")


def diverged(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line on the cells of a map in which runs have diverged, if there are any."""
    lost = [cell["left_out"] for cell in cells if cell.get("left_out", {}).get("diverged")]
    if not lost:
        return []
    most = max(lost, key=lambda one: one["diverged"] / one["of"])
    return [f"runs diverged in {len(lost):,} of {count(len(cells), 'cell')}, at most {most['diverged']:,} of {most['of']:,}"]


def unasked(rivals: Sequence[Mapping[str, Any]], *, reasons: bool = True) -> list[str]:
    """A line for each rival of :attr:`jaxdyn.engine.verification.verdict_map.Map.unasked`."""
    return [
        f"not asked in {r['cells']:,} of the {count(r['of'], 'cell')} in which all checks pass: rival {r['rival']}"
        + (f" ({r['reason']})" if reasons else "")
        for r in rivals
    ]


def count(n: int, noun: str) -> str:
    """A count with its noun, not to be broken: ``3 claims``, ``1 claim``."""
    return plural(n, noun).replace(" ", "\u00a0", 1)
