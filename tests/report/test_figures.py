"""Figures of the report: packed, each drawn once."""

import zlib
from base64 import b64decode

import pytest

from jaxdyn.report.figures import Figures, inflate
from tests.report.handmade import DRAWING, FIGURES


def test_figures_inflate_to_what_was_drawn():
    stored = Figures(FIGURES | {"other": DRAWING.replace("4 2", "8 2"), "odd": "<p>No figure: a &amp; b</p>"})
    assert stored["joma.entropy"].same_as == "joma.invariant" and stored["other"].same_as is None
    assert stored["other"].width == "8" and stored["other"].label == "Loss against time $t$."
    assert inflate(stored["other"].packed).startswith('<svg class="figure" viewBox="0 0 8 2"')
    assert stored["odd"].text == "No figure: a & b" and Figures({}).glyphs == ""


@pytest.mark.parametrize("letter", ["w", "é", "𝑤", "👍"])
def test_many_figures_begin_with_their_own_drawing_as_the_pages_script_counts(letter):
    """The script of the page counts in units of UTF-16, of which some letters have two."""
    drawings = {f"c.{i}": DRAWING.replace("4 2", f"{i} 2").replace("<svg", f"<svg aria-label='{letter * i}'") for i in range(40)}
    stored = Figures(drawings)
    assert stored.common and stored.skip
    whole = zlib.decompress(b64decode(stored.common) + b64decode(stored["c.7"].packed), -zlib.MAX_WBITS).decode()
    units = whole.encode("utf-16-le")[2 * stored.skip :].decode("utf-16-le")
    assert units.startswith("<svg") and units == inflate(stored["c.7"].packed, stored.common, stored.skip)
