"""The energy of a node: the judges on small runs, settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.features.thm1_energy import CLAIMS, Gradients, Weights, decomposition_trial, gradient_trial
from tests.theories.li2.helpers import Small

SMALL = Small({decomposition_trial: jd.grid(Weights, groups=("4", "S3")), gradient_trial: jd.grid(Gradients)})


@pytest.mark.thinned
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refutes_what_is_printed(claim):
    SMALL.upholds_what_is_right(claim)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


def test_no_groups_are_refused():
    with pytest.raises(jd.UsageError, match="at least one group"):
        jd.grid(Weights, groups=())


def test_more_samples_than_pairs_are_refused():
    with pytest.raises(jd.UsageError, match="samples is at most 36, the number of pairs"):
        jd.grid(Gradients, samples=37)
