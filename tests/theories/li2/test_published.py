"""The published numbers are consistent with one another and with the paper grids of the claims."""

import math

from jaxdyn.theories.li2 import published
from jaxdyn.theories.li2.claims import diversity


def test_the_share_of_figure_7_is_that_of_the_claims_grid():
    """At M = 127 the pairs that are trained on are 1.9 times the critical share of the authors' sweeps."""
    share = published.PARTIAL / 127**2 / (published.CRITICAL * math.log(127) / 127)
    grid = diversity.CLAIMS[1].paper
    assert dict(zip(grid.axes["group"], grid.axes["share"], strict=True))["127"] == round(share, 1)
    assert {0.001, 0.002, 0.005} <= set(grid.axes["lr"])


def test_words_for_comparison_hold_the_numbers():
    assert f"{100 * published.OFF_DIAGONAL:.0f}%" in published.FIGURE_3
    assert f"n = {published.PARTIAL}" in published.FIGURE_7 and 0 < published.PARTIAL < 127**2
