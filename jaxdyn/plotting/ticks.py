"""What stands on axes: numbers as plain text (10⁻³; set as mathematics, each would be parsed anew), labels that have room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axis import XAxis
from matplotlib.ticker import Formatter, LogFormatterSciNotation, MaxNLocator, NullFormatter, ScalarFormatter

if TYPE_CHECKING:
    from matplotlib.axis import Axis

__all__ = ["RAISED", "Logarithmic", "Scalar", "fold", "keep_apart", "overlapping", "plain_numbers", "told_apart"]

GAP = 1.0  # points between two labels
SLANT = 35.0  # degrees of names that have no room side by side
SHORTEST, LONGEST = 1e-3, 1e4  # decimals between these are no longer than powers
FEW = 30.0  # ratio of an axis' ends, below which multiples of powers are labelled
RAISED = str.maketrans("-−0123456789.", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹·")


def _plain(text: str) -> str:
    r"""``$\mathdefault{2\times10^{-3}}$`` as ``2×10⁻³``."""
    text = re.sub(r"^\$\\mathdefault\{(.*)\}\$$", r"\1", text).replace(r"\times", "×")
    return re.sub(r"\^\{([^}]*)\}", lambda power: power[1].translate(RAISED), text).replace("-", "−")


class Logarithmic(LogFormatterSciNotation):
    """Powers of the base, and their small multiples where an axis spans few decades; there as decimals, unless these are long."""

    def __call__(self, x: float, pos: Any = None) -> str:
        """The label of one tick."""
        text = super().__call__(x, pos)
        return f"{x:g}" if text and self._short() else _plain(text)

    def _short(self) -> bool:
        assert self.axis is not None, "labels are of an axis"
        low, high = sorted(abs(float(end)) for end in self.axis.get_view_interval())
        ten: bool = getattr(self, "_base", None) == 10
        return ten and SHORTEST <= low and high <= LONGEST and high < FEW * low


class Scalar(ScalarFormatter):
    """Decimal numbers; a common factor or offset stands at the end of the axis."""

    def get_offset(self) -> str:
        """The common factor and offset, ``×10⁻³``; empty if there is none."""
        return re.sub(r"1e([-−]?\d+)", lambda power: f"×10{power[1].translate(RAISED)}", super().get_offset())


def plain_numbers(axis: Axis) -> None:
    """Replace matplotlib's own formatters of an axis; what a plot set itself stays."""
    major, minor = _instead(axis, axis.get_major_formatter()), _instead(axis, axis.get_minor_formatter())
    if major is not None:
        axis.set_major_formatter(major)
    if minor is not None:
        axis.set_minor_formatter(minor)


def _instead(axis: Axis, formatter: Formatter) -> Formatter | None:
    if type(formatter) is LogFormatterSciNotation:
        base = getattr(axis.get_transform(), "base", 10.0)
        return Logarithmic(base, labelOnlyBase=formatter.labelOnlyBase)
    if type(formatter) is ScalarFormatter:
        return Scalar(useMathText=False)
    return None


def overlapping(axis: Axis) -> bool:
    """Whether labels of a horizontal axis, as it is laid out, run into each other."""
    boxes = [t.get_window_extent() for t in axis.get_ticklabels(which="both") if t.get_visible() and t.get_text().strip()]
    ends = sorted((box.x0, box.x1) for box in boxes if box.width > 0)
    return any(before[1] + GAP > after[0] for before, after in zip(ends, ends[1:], strict=False))


def keep_apart(axis: Axis) -> bool:
    """Make labels of a horizontal axis that run into each other fewer, or slant them if a plot chose them; whether it did."""
    if any(label.get_rotation() for label in axis.get_ticklabels(which="both")) or not overlapping(axis):
        return False
    axis.set_minor_formatter(NullFormatter())
    chosen = not isinstance(axis.get_major_formatter(), Logarithmic | Scalar)
    if overlapping(axis) and chosen:
        axis.set_tick_params(which="major", labelrotation=SLANT)
        for label in axis.get_ticklabels():
            label.set(ha="right", rotation_mode="anchor")
    locator = axis.get_major_locator()
    for most in (5, 4, 3, 2):
        if isinstance(locator, MaxNLocator) and overlapping(axis):
            locator.set_params(nbins=most)
    return True


def fold(axis: Axis) -> bool:
    """Write a label that is longer than the figure in two lines, broken between words; whether it was."""
    figure = axis.get_figure(root=True)
    assert figure is not None, "axes belong to a figure"
    box, room = axis.label.get_window_extent(), figure.bbox
    along, size = (box.width, room.width) if isinstance(axis, XAxis) else (box.height, room.height)
    text = axis.label.get_text()
    gaps = [i for i, letter in enumerate(text) if letter == " " and text[:i].count("$") % 2 == 0]
    if along <= size or not gaps or "\n" in text:
        return False
    middle = min(gaps, key=lambda i: abs(i - len(text) / 2))
    axis.label.set_text(f"{text[:middle]}\n{text[middle + 1 :]}")
    return True


def told_apart(values: Sequence[float], least: int) -> dict[float, str]:
    """Numbers and their texts, with the fewest digits, ``least`` or more, with which different numbers look different."""
    texts = ({v: f"{v:.{digits}g}" for v in values} for digits in range(least, 18))
    return next((found for found in texts if len({*found.values()}) == len(found)), {v: repr(v) for v in values})
