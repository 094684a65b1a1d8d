"""Values of fields in words, with digits that tell them apart, and the set-up of a claim's test, which is filled in with them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.claims.grid import field_table
from jaxdyn.wording import FORMULAS

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim
    from jaxdyn.engine.claims.grid import Grid

__all__ = ["digits_between", "digits_of_field", "field_texts", "outside", "span_text", "tested", "texts", "values_text"]

LISTED = 5  # up to this many values of a field are listed
LEAST, FIELD = 4, 6  # digits of values that are measured, and of fields
WRITTEN, ALL = 12, 17  # digits that people write at most, and of a whole float
EXACT = 2**53  # up to here every whole number is a float
PLACEHOLDER = re.compile(r"\{(\w+)\}")
TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\s+|\d[\d.]*|\[[^\]{}]*\]|.", re.S)  # of LaTeX; an optional argument is one
OPENING = "$([{,;:=+-−*/·&~"  # a brace after one of these, a mathematical sign or a blank belongs to nothing before it
TWO = re.compile(r"\\(?:[cdt]?frac|[dt]?binom|overset|underset|stackrel|textcolor)")  # LaTeX's commands with two arguments
ONE = re.compile(  # and with one
    r"\\(?:sqrt|operatorname\*?|boldsymbol|bm|pmb|math[a-z]{2,}|text\w*|mbox|boxed|phantom|(?:wide)?(?:hat|tilde|check)|bar|vec|d?dot"
    r"|acute|grave|breve|(?:over|under)(?:line|brace|bracket)|norm|abs|pmod|substack|begin|end)"
)
ESCAPED = str.maketrans({c: rf"\{c}" for c in "_%#&${}"} | {"\\": r"\textbackslash ", "^": " ", "~": " "})


def tested(claim: Claim, grid: Grid, seeds: int) -> str | None:
    r"""The set-up of a claim's test, with ``{field}`` replaced by a field's values and ``{seeds}`` by the number of seeds.

    Between dollar signs ``{field}`` is replaced only after a blank, an opening bracket, an operator, a comma or the opening dollar;
    an argument of LaTeX (``x_{n}``, ``\frac{1}{n}``, ``\sqrt {n}``) stays, and so does every brace without the name of a field.
    None if the author wrote no text.
    """
    if claim.tested is None:
        return None
    known: dict[str, Sequence[Any]] = {
        row["name"]: row["value"] if row["name"] in grid.axes or isinstance(row["value"], tuple) else [row["value"]]
        for row in field_table(grid)
    } | {"seeds": [seeds]}
    return "".join(
        _in_formula(piece, known)
        if len(piece) > 2 and piece[0] == piece[-1] == "$"
        else PLACEHOLDER.sub(lambda found: values_text(known[found[1]]) if found[1] in known else found[0], piece)
        for piece in FORMULAS.split(claim.tested)
    )


def _in_formula(latex: str, known: Mapping[str, Sequence[Any]]) -> str:
    """A formula with values in the places of placeholders; a dot separates a number from the digits of another."""
    written, end, number = "", 0, False  # number: what was written last is a value
    groups, wanted = list[int](), 0  # arguments that LaTeX still expects: outside of the groups that are open, and here
    for token in TOKEN.finditer(latex):
        text, before = token[0], latex[: token.start()]
        if text.isspace() or token.start() < end:
            written += text if token.start() >= end else ""
            continue
        found = PLACEHOLDER.match(latex, token.start())
        if found and found[1] in known and not wanted and _free(before):
            value, end = _value_in_formula(known[found[1]], latex[found.end() :]), found.end()
            written += (r"\cdot " if value[0].isdigit() and written.rstrip()[-1:].isdigit() else "") + value
            number = value[-1].isdigit()
            continue
        written += (r"\cdot " if number and text[0].isdigit() else "") + text
        number = False
        if text == "{":
            groups, wanted = [*groups, max(wanted - 1, 0)], 0
        elif text == "}":
            wanted = groups.pop() if groups else 0
        else:
            wanted = _arguments(text) or max(wanted - _taken(text), 0)
    return written


def _arguments(token: str) -> int:
    """How many arguments a token of LaTeX expects."""
    return 2 if TWO.fullmatch(token) else int(token in "^_" or ONE.fullmatch(token) is not None)


def _taken(token: str) -> int:
    """How many arguments a token can be: as many as it has digits, none if it is optional."""
    return len(token) if token[0].isdigit() else int(token[0] != "[")


def _free(before: str) -> bool:
    """Whether a brace after this part of a formula belongs to nothing in front of it."""
    last = before[-1]
    return last.isspace() or last in OPENING or unicodedata.category(last) == "Sm" or re.search(r"\\[^\w\\]$", before) is not None


def _value_in_formula(values: Sequence[Any], after: str) -> str:
    """Values in LaTeX; in parentheses where a power follows something other than a number without a sign."""
    text = _listed(values, _formula_word, lambda words: rf"\text{{{words}}}")
    plain = re.fullmatch(r"[\d.]+", text) is not None
    return text if plain or not after.lstrip().startswith("^") else rf"\left({text}\right)"


def _formula_word(value: Any, digits: int) -> str:
    r"""A value in LaTeX: ``2048``, ``2.5 \cdot 10^{-9}``, ``\text{gd}``."""
    if isinstance(value, tuple | list):
        inner = digits_of_field(value)
        return "{:}".join(_formula_word(v, inner) for v in value)
    word = _word(value, digits)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return rf"\text{{{word.translate(ESCAPED)}}}"
    mantissa, _, power = word.replace(",", "").partition("e")
    if not power:
        return mantissa
    return f"10^{{{int(power)}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{int(power)}}}"


def span_text(name: str, low: float, high: float) -> str:
    """A stated domain in words; a single value where both ends are the same."""
    return f"{name} = {low:g}" if low == high else f"{name} from {low:g} to {high:g}"


def outside(claim: Claim, grid: Grid) -> str:
    """The values of a grid that lie outside the domain for which a claim is stated, in words; empty where none does."""
    found = []
    for name, (low, high) in claim.holds.items():
        own = grid.axes.get(name, (getattr(grid.base, name, None),))
        if values := [v for v in own if isinstance(v, int | float) and not low <= v <= high]:
            found.append(f"{name} = {values_text(values)}")
    return f"{'; '.join(found)} outside the domain for which the claim is stated" if found else ""


def values_text(values: Sequence[Any]) -> str:
    """Values in words: ``.1, 1 and 10``; for many numbers the smallest and the largest: ``1 to 100 (12 values)``."""
    return _listed(values, _word, str)


def _listed(values: Sequence[Any], write: Callable[[Any, int], str], say: Callable[[str], str]) -> str:
    """Values, each written with the digits of all, and the words between them."""
    digits = digits_of_field(values)
    words = [write(value, digits) for value in values] or [say("none")]
    if len(words) > LISTED and all(isinstance(v, int | float) for v in values):
        return f"{write(min(values), digits)}{say(' to ')}{write(max(values), digits)}{say(f' ({len(words)} values)')}"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}{say(' and ')}{words[-1]}"


def _word(value: Any, digits: int) -> str:
    if isinstance(value, tuple | list):
        inner = digits_of_field(value)
        return ":".join(_word(v, inner) for v in value)  # as on the command line
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}g}" if isinstance(value, float) else "none" if value is None else str(value)


def digits_between(values: Iterable[Any], least: int = LEAST) -> int:
    """The fewest digits, ``least`` or more, with which finite numbers that differ look different; anything else needs none."""
    different = set(_finite(values))
    enough = (digits for digits in range(least, ALL) if len({f"{v:.{digits}g}" for v in different}) == len(different))
    return next(enough, ALL)


def digits_of_field(values: Iterable[Any]) -> int:
    """Digits for values of one field, six or more: they look different if they differ, and as written if they have few digits."""
    known = _finite(values)
    return max([digits_between(known, FIELD), *map(_written, known)])


def _finite(values: Iterable[Any]) -> list[float]:
    """Those values that are finite numbers; whole ones beyond those of floats are left out, as they are written in full."""
    numbers = [v for v in values if isinstance(v, float) or (isinstance(v, int) and abs(v) <= EXACT)]
    return [float(v) for v in numbers if math.isfinite(v)]


def _written(value: float) -> int:
    """The digits of a number that has few of them; six for any other, which was calculated."""
    return next((digits for digits in range(FIELD, WRITTEN + 1) if float(f"{value:.{digits}g}") == value), FIELD)


def texts(values: Sequence[Any], least: int = LEAST) -> list[str]:
    """Values as text: floats with the fewest digits that tell them apart, anything else as Python writes it."""
    return _texts(values, digits_between(values, least))


def field_texts(values: Sequence[Any]) -> list[str]:
    """Values of one field as text, floats with :func:`digits_of_field`."""
    return _texts(values, digits_of_field(values))


def _texts(values: Sequence[Any], digits: int) -> list[str]:
    return [f"{v + 0.0:.{digits}g}" if isinstance(v, float) else str(v) for v in values]  # -0.0 is 0
