"""The steps of a series of checkpoints, from what varies among their names, and short names that tell them apart.

``step100-bf16`` and ``step200-bf16`` differ in one number, 100 and 200; which other numbers a name holds does not matter. A number
may be written ``1e3``, ``1.5k``, ``10k``, ``2M``, ``10B`` or ``1T``, also before a word such as ``tokens``. Where what varies could
be read in two ways (``1_000``, ``1m``, ``1k5``, ``0x10``, ``2^10``, a date), be part of a decimal without a point (``1p5M``,
``1_5k``, ``1,5``, ``1½``) or without digits before it (``.5M``), or stand next to a word that is not known to go with steps
(``seed1``, ``Q4_0``), none is guessed. Nor is it where millions or more stand without a word for steps (``1B``, ``7B``: sizes of
models?) or behind a minus (``-100``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.errors import UsageError, shown, whole

__all__ = ["given_steps", "labels", "short", "steps_of"]

COUNTED = r"(?i:steps?|tok(?:en)?s?|iter(?:ation)?s?)"
# a power of ten or a letter belongs to a number only where a word ends, or before what is counted
NUMBER = re.compile(rf"(\d++(?:\.\d++)?+)([eE][+-]?\d{{1,2}}|[kKMGBT])?(?={COUNTED}?(?![^\W_]))|\d++(?:\.\d++)?+")
UNITS = {"k": 3, "K": 3, "M": 6, "G": 9, "B": 9, "T": 12}
MARKS = "[_,'’ \u00a0\u2000-\u200a\u202f\u205f]"  # between thousands; so does a point, unless a letter follows
GROUPS = re.compile(rf"(?<![\d.])(?<!\d{MARKS})[1-9]\d{{0,2}}({MARKS}|\.(?=\d{{3}}(?![^\W_])))\d{{3}}(?:\1\d{{3}})*(?!\d)")
UNREAD = re.compile(  # what follows a number and may change it
    r"(?:(?:[kmgbt]|[kmgt]i|mn|bn|tn|mio|mrd|bio|e)(?:[tb]|t?tok(?:en)?s?)?(?![^\W\d_])"
    r"|[ ._-]?(?:hundred|thousand|lakh|crore|[mbt]r?ill?i(?:on|ard)|mln|mio|mrd|bio|tsd|mn|bn|tn)"
    r"|[ ._-][kmgbt](?:[ _-]?tok|(?=steps?|iter|sampl|[ ._-]*$))|[ .][kmgbt](?![^\W\d_])|\.e[+-]?\d"
    r"|[ _-]of[ _-]0*[1-9]|[ _-](?:left|remaining|to[ _-]?go)(?![^\W\d_])|[:*×·^]\d|[%‰])",
    re.IGNORECASE,
)
BEYOND = re.compile(r" *([^\W\d_]+)")  # letters that a number runs into, or a word after a space, as units are written
KNOWN = re.compile(rf"{COUNTED}|(?:bf|fp|f|int)\d+|(?i:final|last|best|ema|hf|copy)")  # of these, what changes no number
POINTS = ",·٫pP"  # that some write for a decimal point
# what stands before one, and changes it: a power, a base, or a unit between digits
POWER = re.compile(r"(?:\^|\*\*|(?<=\d)[*×+:]|(?<!\d)0[xob]|(?<!\d)\d+(?:\.\d+)?(?:[kmgbt]|[kmgt]i|bn|mn|tn))$", re.IGNORECASE)
POINT = re.compile(rf"(?:^|(?<=\D))[.{POINTS[:3]}]$")  # before a number, without digits before it
WHOLE = re.compile(r"(?<![\d.])(?<!\d[^\d/\\])\d+([^\d./\\])$")  # digits before a number, and what joins them to it
FRACTION = re.compile(rf"[{POINTS}]\d+")  # what may follow one
YEAR, MONTH, DAY = r"(?:19|20)\d\d", "(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
SHORT_YEAR = r"(?:1[5-9]|[23]\d)"
DATES = [  # in any of the usual orders; in six digits those of our time, since any might be a step
    re.compile(rf"(?<!\d){first}([-_.]?){second}\1{third}(?!\d)")
    for year in (YEAR, SHORT_YEAR)
    for first, second, third in ((year, MONTH, DAY), (DAY, MONTH, year), (MONTH, DAY, year))
]
WORD = re.compile(r"(?<![^\W_])([^\W\d_]+)[\W_]*$")  # the last word before a number, unless digits are part of it
STEP = re.compile(  # how such a word ends where the number counts steps, or orders what was saved along training
    r"(?:steps?|stp|tok(?:en)?s?|iter(?:ation)?s?|ch?k?pts?|checkpoints?|epochs?|updates?|samples?|examples?|sequences|batches"
    r"|after|time|model|weights|state|train(?:ing|ed)?|saved?|snapshots?|revision)$|^(?:it|ep|at|main|global|opt|net|e|t)$",
    re.IGNORECASE,
)
OTHER = re.compile(  # what a number counts that is no step, as the end of the folder's name before it
    r"(?:^|[\W\d_]|(?<=[a-z])(?=[A-Z]))((?i:seed|rng|rank|fold|split|run|replica|repeat|repetition|rep|trial|attempt|try|worker|shard|node"
    r"|device|gpu|job|member|version|init|initiali[sz]ation|replicate|sd|lr|rate|bs|batch|batch[-_]?size|rc|wd|decay|width|depth"
    r"|dim|hidden|head|layer|size|warmup|context|ctx|temperature|temp|dropout|beta|alpha|gamma|rho|eps|s|r))(?i:e?s)?[^\w]*_*(?i:(?:no|nr|num|number|id|idx|index)[\W_]*)?$"
)
SIZES = tuple("MGBT")  # units in which sizes of models are written, too
SIZED = r"(?i:.*model|.*weights|net)"  # words that go with steps, but with sizes, too
MINUS = re.compile(r"(?:^|[/\\=: (\[])[-\u2212]$")  # before a number, at the beginning of a name or after what ends a word
LISTED = 6  # names in a message
LARGEST = 2**63 - 1  # step


def steps_of(names: Sequence[str]) -> list[int] | None:
    """The number in each name that is not the same in all; None where no name holds a number: their order is all there is.

    Raises:
        UsageError: for names that differ in something else or in several numbers, equal names or numbers, numbers that are not
            whole, numbers that can be read in two ways, and numbers of something else, such as seeds and runs.
    """
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UsageError(f"{shown(twice[0])} is not allowed twice in a series")
    if not any(NUMBER.search(name) for name in names):
        return None
    matches = _varying(names, names)
    joined = [GROUPS.sub(lambda match: re.sub(r"\D", "", match[0]), name) for name in names]
    try:
        others = matches if joined == list(names) else _varying(joined, names)
    except UsageError:
        others = matches  # they can be read in one way only
    steps = [int(_value(match)) for match in matches]
    if [int(_value(match)) for match in others] != steps:
        raise _ambiguous(names, "hold a number that is one or several")
    if decimals := [what for match in matches if (what := _decimal(match))]:
        raise _ambiguous(names, f"differ in {decimals[0]}, which can be read in several ways")
    if signed := [match for match in matches if MINUS.search(match.string[: match.start()])]:
        raise _ambiguous(names, f"differ in {signed[0].string[signed[0].start() - 1]}{signed[0][0]}, which may be below 0")
    if sizes := [match for match in matches if _may_be_size(match)]:
        raise _ambiguous(names, f"differ in {sizes[0][0]}, which may be the size of a model")
    if other := [word for match in matches if (word := _of_other(match))]:
        raise _ambiguous(names, f"differ in a number next to {other[0]!r}, which may be no step")
    return steps


def _of_other(match: re.Match[str]) -> str:
    """The word next to a number that is not known to go with steps; "" where the number stands alone or the word is known."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    own = re.split(r"[/\\]", before)[-1]
    beyond = BEYOND.match(after)
    if beyond and not re.match(rf"(?:{KNOWN.pattern})(?![^\W\d_])", after.lstrip(" ")):
        return beyond[1]
    if re.match(COUNTED, after) or ((word := WORD.search(own)) and STEP.search(word[1])):
        return ""
    if word is not None:
        return word[1]
    found = None if own else OTHER.search(before)
    return "" if found is None else found[1]


def _may_be_size(match: re.Match[str]) -> bool:
    """Whether a number in millions or more is all that tells the step, without a word that goes with steps: ``1B``, ``net-7B``."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    word = WORD.search(re.split(r"[/\\]", before)[-1])
    counted = re.match(rf" ?{COUNTED}", after) or (word and STEP.search(word[1]) and not re.fullmatch(SIZED, word[1]))
    return match[2] in SIZES and not counted


def _varying(names: Sequence[str], given: Sequence[str]) -> list[re.Match[str]]:
    """The numbers that are the steps, where a mark between digits ends one; refusals show the names that were given."""
    if len({NUMBER.sub("0", name) for name in names}) > 1:
        raise _ambiguous(given, "differ in more than a number")
    columns = list(zip(*(NUMBER.finditer(name) for name in names), strict=True))
    varying = [column for column in columns if len(set(map(_value, column))) > 1]
    if len(varying) != 1:
        raise _ambiguous(given, "differ in several numbers" if varying else "hold the same numbers")
    (matches,) = varying
    values = [_value(match) for match in matches]
    if len(set(values)) < len(values):
        raise _ambiguous(given, "hold the same number more than once")
    if unclear := [what for match in matches if (what := _unclear(match))]:
        raise _ambiguous(given, f"differ in {unclear[0]}")
    if all(map(_in_date, matches)):
        raise _ambiguous(given, "differ in a date")
    if any(value != int(value) for value in values):
        raise _ambiguous(given, "differ in a number that is not whole")
    if max(values) > LARGEST:
        raise _ambiguous(given, f"differ in a number above {LARGEST}")
    return list(matches)


def given_steps(steps: Any, count: int) -> list[int]:
    """Steps from a list or, as on the command line, from a text with commas: one for each of the models, all different.

    Raises:
        UsageError: for anything else.
    """
    parts = steps.split(",") if isinstance(steps, str) else steps
    if isinstance(steps, str) and not all(re.fullmatch(r"\s*\d+\s*", part) for part in parts):
        raise UsageError(f"steps={shown(steps)} is not allowed: steps are whole numbers with commas between them")
    if not isinstance(parts, Sequence | np.ndarray) or getattr(parts, "ndim", 1) != 1:
        raise UsageError(f"steps={shown(steps)} is not allowed: steps are a list of whole numbers")
    found = [whole("an entry of steps", int(step) if isinstance(step, str) else step, least=0, most=LARGEST) for step in parts]
    if len(found) != count or len(set(found)) < count or count < 2:
        there = "1 model" if count == 1 else f"a series of {count} models"
        raise UsageError(f"steps={shown(steps)} is not allowed: each of two or more models has its own, and there is {there}")
    return found


def short(name: str) -> str:
    """A path without its folders; names on the hub stay unchanged, and ``.`` is the name of the folder that it stands for."""
    if name.count("/") == 1 and not name.startswith(("/", ".")) and not Path(name).exists():
        return name
    last = Path(name).name
    return last if last not in ("", "..") else Path(name).resolve().name or name


def labels(names: Sequence[str], steps: Sequence[int | None]) -> list[str]:
    """What a page calls the models of a series: the folders in which their paths differ, and the step where these do not tell it.

    Models of the same name are told apart by their steps or, without steps, by their places in the series. A single one has its
    :func:`short` name.
    """
    if len(names) == 1:
        return [short(names[0])]
    paths = [Path(name).parts for name in names]
    if len(set(names)) < len(names):
        own = [short(name) for name in names]
    else:
        first = _shared(paths)
        last = min(_shared([path[::-1] for path in paths]), min(map(len, paths)) - first)
        own = ["/".join(path[first : len(path) - last]) or short(name) for path, name in zip(paths, names, strict=True)]
    found = []
    for place, (step, one) in enumerate(zip(steps, own, strict=True), 1):
        which = f"checkpoint {place}" if step is None else f"step {step:,}"
        told = own.count(one) == 1 if step is None else str(step) in re.findall(r"\d+", one)
        found.append(one if told else f"{which} ({one})")
    return found


def _shared(rows: Sequence[Sequence[str]]) -> int:
    """How many entries at the beginning are the same in all rows."""
    return next((i for i, column in enumerate(zip(*rows, strict=False)) if len(set(column)) > 1), min(map(len, rows)))


def _value(match: re.Match[str]) -> Decimal:
    """The number as written."""
    digits, power = match[1] or match[0], match[2] or ""
    return Decimal(digits).scaleb(UNITS[power] if power in UNITS else int(power[1:] or 0))


def _unclear(match: re.Match[str]) -> str:
    """A number with what stands around it, if that may change it; otherwise nothing."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    if hidden := [c for c in (before[-1:], after[:1]) if c and unicodedata.category(c) in ("Cf", "Me", "Mn")]:
        return f"{match[0]} next to {hidden[0]!r}, which can be read in several ways"
    power, unit = POWER.search(before), None if match[2] else re.match(rf"(?:{UNREAD.pattern})[^\W_]*", after, re.IGNORECASE)
    written = f"{power[0] if power else ''}{match[0]}{unit[0] if unit else ''}"
    return f"{written}, which can be read in several ways" if power or unit else ""


def _decimal(match: re.Match[str]) -> str:
    """A number with what makes it part of a decimal without a point, or of one with a fraction's sign; otherwise nothing.

    A point may be any character between digits, before a number in thousands or millions: of others it would leave a fraction.
    """
    before, after = match.string[: match.start()], match.string[match.end() :]
    whole_part, fraction, point = WHOLE.search(before), FRACTION.match(after), POINT.search(before)
    if point and (match[2] or not before[:-1][-1:].isalnum()):  # ckpt.5 is the fifth
        return f"{point[0]}{match[0]}"
    if whole_part and (match[2] or whole_part[1] in POINTS):
        return f"{whole_part[0]}{match[0]}"
    if fraction or (after and unicodedata.numeric(after[0], None) is not None):
        return f"{match[0]}{fraction[0] if fraction else after[0]}"
    return ""


def _in_date(match: re.Match[str]) -> bool:
    """Whether the number is part of a date."""
    dates = [date for kind in DATES for date in kind.finditer(match.string)]
    return any(date.start() <= match.start() and match.end() <= date.end() for date in dates)


def _ambiguous(names: Sequence[str], what: str) -> UsageError:
    listed = ", ".join(names[:LISTED]) + ", …" * (len(names) > LISTED)
    return UsageError(f"{listed} are not allowed as a series without steps: they {what}; --steps (steps= in Python) gives them")
