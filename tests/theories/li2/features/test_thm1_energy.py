"""The energy of a node: the judges on small runs, settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.features.thm1_energy import CLAIMS, Gradients, Weights, decomposition_trial, gradient_trial
from tests.theories.li2.helpers import Small

SMALL = Small({decomposition_trial: jd.grid(Weights, groups=("4", "S3")), gradient_trial: jd.grid(Gradients)})


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refutes_what_is_printed(claim):
    SMALL.upholds_what_is_right(claim)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"nodes": 0}, "node"), ({"groups": ()}, "at least one group")],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Weights, **fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"samples": 1000}, "samples"), ({"hidden": 0}, "hidden")],
)
def test_impossible_networks_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Gradients, **fields)
