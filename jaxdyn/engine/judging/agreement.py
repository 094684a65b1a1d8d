r"""Agreement of a measured claim's readings with their record, and their difference from opponents' readings.

A record is an estimate m from n seeds with an interval from :math:`m - h_-` to :math:`m + h_+`. Another estimate, from n' seeds,
differs from it by the errors of both, so that it lies in the prediction interval

.. math:: [m - r h_-,\; m + r h_+], \qquad r = \sqrt{1 + n / n'}

at the level of the record. Intervals narrow with the root of the number of runs. A rerun with so few seeds that its interval is
expected to be more than :data:`WIDEST` times as wide as the record's cannot agree with it: few seeds would agree too easily. The
number of seeds decides, not the width that came out: the second of two samples of eight normal numbers has a standard deviation
1.5 times as large as the first's in one case of seven.

Source: Hahn and Meeker, Statistical Intervals (1991), section 4.
"""

from __future__ import annotations

import math

from jaxdyn.engine.claims.description import digits_between
from jaxdyn.engine.judging.check import Reading
from jaxdyn.wording import plural

__all__ = ["WIDEST", "apart", "differs", "predicted", "too_few_to_agree"]

WIDEST = 1.5  # times the record's interval
EXACT = 1e-6  # relative difference allowed between numbers that are not estimated

Record = float | tuple[float, float, float]


def predicted(record: Record, ratio: float = 1.0) -> tuple[float, float]:
    """The prediction interval of another estimate; ``ratio`` is the record's number of seeds over the other's."""
    low, value, high = _ends(record)
    reach = math.sqrt(1 + ratio)
    below, above = value - reach * (value - low), value + reach * (high - value)
    slack = EXACT * abs(value)
    return below - slack, above + slack


def differs(reading: Reading, record: Record, ratio: float = 1.0) -> str | None:
    """Why a reading does not agree with its record; None if it does. ``ratio`` as in :func:`predicted`."""
    low, value, high = _ends(record)
    below, above = predicted(record, ratio)
    if below <= reading.value <= above and not any(map(math.isnan, reading.ends)):
        return None
    recorded = Reading(reading.name, value, None if low == high else (low, high))
    digits = max(digits_between((reading.value, other)) for other in (value, below, above))
    agree = f"with which values from {below:.{digits}g} to {above:.{digits}g} agree"
    return f"{reading.name}: {reading.estimate(digits)}, recorded was {recorded.estimate(digits)}, {agree}"


def too_few_to_agree(seeds: int, recorded: int) -> str | None:
    """Why a rerun on this number of seeds cannot agree with a record; None if it can."""
    if seeds * WIDEST**2 >= recorded:
        return None
    few = f"{plural(seeds, 'seed')} {'is' if seeds == 1 else 'are'} too few"
    return f"{few} to agree with the record of {recorded}: intervals are more than {WIDEST:g} times as wide"


def apart(own: Reading, other: Reading, record: Record | None) -> bool:
    """Whether an opponent's reading differs from the claim's own: each value lies outside the other's interval.

    The opponent's value must lie outside the record's interval as well. NaN differs from nothing.
    """
    low, _, high = (own.ends[0], own.value, own.ends[1]) if record is None else _ends(record)
    sizes = [abs(v) for v in (own.value, other.value) if math.isfinite(v)]
    slack = EXACT * max(sizes, default=0.0)
    theirs = other.ends
    return (
        _outside(other.value, own.ends, slack) and _outside(other.value, (low, high), slack) and _outside(own.value, theirs, slack)
    )


def _outside(value: float, ends: tuple[float, float], slack: float) -> bool:
    return value < ends[0] - slack or value > ends[1] + slack


def _ends(record: Record) -> tuple[float, float, float]:
    """Lower end, value and upper end of a record; all equal for a number without an interval."""
    return record if isinstance(record, tuple) else (record, record, record)
