"""The maxima of a node's energy: the judges on small runs, settings that are refused, other activations."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.features import maxima
from jaxdyn.theories.li2.features.maxima import Maxima, trial
from tests.theories.li2.helpers import Small


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"groups": ()}, "at least one group"),
        ({"groups": ("X9",)}, "X9"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Maxima, **fields)


CLAIMS = maxima.CLAIMS
SMALL = Small({trial: jd.grid(Maxima, groups=("5", "4", "S3"), steps=150)})


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


def test_few_starts_decide_nothing():
    ds = SMALL.runs(trial).sel(form="derived", drop=True)
    with pytest.raises(jd.Inconclusive, match="at least 7 values of seed"):
        maxima.judge_values(ds.isel(seed=slice(2)))
    with pytest.raises(jd.Inconclusive, match="odd and of even"):
        maxima.judge_cyclic(ds.sel(group=["5", "S3"]))


@pytest.mark.slow
def test_relu_ends_elsewhere():
    ds = jd.sweep(trial, jd.grid(Maxima, groups=("S3",), activation="relu"), 8).sel(form="derived", drop=True)
    energies = np.unique(np.round(ds.measured_energy.values, 4))
    assert len(energies) > 5 and float(ds.measured_purity.min()) < 0.8
    assert not all(check.passed for check in maxima.judge_values(ds))
