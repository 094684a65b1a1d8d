"""Evidence, assumptions, and provenance of bounds, on which a verdict rests besides the data."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from jaxdyn.errors import UsageError, number, shown

__all__ = [
    "COUNTED",
    "EVIDENCE",
    "MECHANISM",
    "PROVENANCE",
    "REFUTED",
    "Assumption",
    "Bounds",
    "Evidence",
    "TunedBounds",
    "above",
    "below",
    "contradiction",
    "counted_as",
    "is_provenance",
    "provenance",
    "tuned",
]

Evidence: TypeAlias = Literal["model", "network", "flow", "reduced", "algebra", "numbers"]
EVIDENCE: dict[str, str] = {
    "model": "a published model's weights as they are, nothing trained here",
    "network": "parameters moved by optimizer steps on the loss of a model",
    "flow": "gradient flow of the model's loss, by automatic differentiation",
    "reduced": "the theory's own reduced equations, integrated",
    "algebra": "an identity, construction or bound, evaluated at given numbers",
    "numbers": "published figures against each other",
}
PROVENANCE = {"paper": "the paper's own", "derived": "derived"}  # origins of bounds that were not tuned
DERIVED = "derived: "  # before the words that say from what they are derived
REFUTED = ("_as_printed", "_naive", "_beyond")  # suffixes of claims on forms that are expected to fail
COUNTED = ("upheld", "misprint", "beyond print", "measured")  # kinds in which claims are counted
MECHANISM = ("model", "network", "flow")  # kinds of evidence with a mechanism that a rival can switch off


@dataclasses.dataclass(frozen=True)
class Assumption:
    """A hypothesis of the theorem: a scalar that the trial returns under ``assumed`` lies strictly between two bounds."""

    name: str
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise UsageError(f"name={shown(self.name)} is not allowed: it is what the trial calls a scalar under assumed")

    def __str__(self) -> str:
        return f"{self.name} > {self.low:g}" if math.isinf(self.high) else f"{self.name} < {self.high:g}"


def contradiction(assumptions: Sequence[Assumption]) -> str | None:
    """Two assumptions that no number meets together, in words; None if each scalar has numbers between its bounds."""
    for name in dict.fromkeys(one.name for one in assumptions):
        own = [one for one in assumptions if one.name == name]
        lowest, highest = max(own, key=lambda one: one.low), min(own, key=lambda one: one.high)
        if lowest.low >= highest.high:
            return f"{lowest} and {highest}"
    return None


def below(name: str, bound: float) -> Assumption:
    """The assumption that a scalar is below a bound: with ``assumes=jd.below("overlap", 1.0)`` other runs are not judged."""
    return Assumption(name, high=number(name, bound))


def above(name: str, bound: float) -> Assumption:
    """The assumption that a scalar is above a bound: with ``assumes=jd.above("rate_ratio", 10.0)`` other runs are not judged."""
    return Assumption(name, low=number(name, bound))


@dataclasses.dataclass(frozen=True)
class TunedBounds:
    """Provenance of bounds that were tuned on some seeds and confirmed on others; made by :func:`tuned`."""

    on: str
    confirmed_on: str

    def __str__(self) -> str:
        return f"tuned on seeds {self.on}, confirmed on seeds {self.confirmed_on}"


Bounds: TypeAlias = "Literal['paper', 'derived'] | str | TunedBounds"


def tuned(on: str, confirmed_on: str) -> TunedBounds:
    """Provenance of bounds that are neither published nor derived: ``jd.tuned(on="0:8", confirmed_on="4000:4010")``.

    Args:
        on: seeds on which the bounds were chosen, FROM:TO.
        confirmed_on: seeds not used before, on which the claim was upheld afterwards.

    Raises:
        UsageError: these are not two ranges of seeds without a common one.
    """
    first, second = _range(on), _range(confirmed_on)
    if first.start < second.stop and second.start < first.stop:
        raise UsageError(f"confirmed_on={confirmed_on!r} is not allowed: bounds were tuned on {on}; it takes seeds not used before")
    return TunedBounds(on, confirmed_on)


def _range(text: str) -> range:
    match = re.fullmatch(r"(\d+):(\d+)", text) if isinstance(text, str) else None
    if match is None or int(match[1]) >= int(match[2]):
        raise UsageError(f"seeds {text!r} are not allowed: write FROM:TO with FROM below TO")
    return range(int(match[1]), int(match[2]))


def counted_as(claim_id: str, expected: str) -> str:
    """The kind in which a claim is counted, one of :data:`COUNTED`.

    It is the expected verdict, except for forms that are expected to be refuted. A form ``…_as_printed`` is a misprint. One that
    nobody printed (``…_naive``), or that a paper's assumptions exclude (``…_beyond``), is beyond print, and refutes no paper.
    """
    if expected != "refuted":
        return expected
    return "misprint" if claim_id.endswith(REFUTED[0]) else "beyond print"


def is_provenance(bounds: Any) -> bool:
    """Whether this says where bounds come from: ``"paper"``, ``"derived"``, ``"derived: from …"``, or :func:`tuned`."""
    if not isinstance(bounds, str):
        return isinstance(bounds, TunedBounds)
    return bounds in PROVENANCE or (bounds.startswith(DERIVED) and bool(bounds.removeprefix(DERIVED).strip()))


def provenance(bounds: Any) -> str | None:
    """Where bounds come from, in words; None if that is not stated."""
    return PROVENANCE.get(bounds, str(bounds)) if bounds is not None else None
