"""Figures of the report: packed, each drawn once."""

from jaxdyn.report.figures import Figures, inflate
from tests.report.handmade import DRAWING, FIGURES


def test_figures_inflate_to_what_was_drawn():
    stored = Figures(FIGURES | {"other": DRAWING.replace("4 2", "8 2"), "odd": "<p>No figure: a &amp; b</p>"})
    assert stored["joma.entropy"].same_as == "joma.invariant" and stored["other"].same_as is None
    assert stored["other"].width == "8" and stored["other"].label == "Loss against time $t$."
    assert inflate(stored["other"].packed).startswith('<svg class="figure" viewBox="0 0 8 2"')
    assert stored["odd"].text == "No figure: a & b" and Figures({}).glyphs == ""
