"""Memorisation: the judges on small runs, probabilities that are given, settings that are refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.features import thm5_memorisation
from jaxdyn.theories.li2.features.thm5_memorisation import CLAIMS, OneTarget, trial
from tests.theories.li2.helpers import Small

SMALL = Small({trial: jd.grid(OneTarget, starts=256)})


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


def test_distinct_ends_are_counted(x64):
    assert thm5_memorisation.distinct(jnp.asarray([[0.0, 1.0, 0.0, 1.0, 0.5], [1.0, 0.0, 1.0, 1e-5, 0.5]])) == 3


@pytest.mark.slow
def test_probabilities_that_are_given_are_used():
    ds = jd.sweep(trial, jd.grid(OneTarget, group="3", p=(1.0, 3.0, 6.0), starts=256), 1)
    np.testing.assert_allclose(ds.p.isel(seed=0), (0.1, 0.3, 0.6))
    relu = np.array([1, 3, 6]) * np.sqrt(2 / 46)
    np.testing.assert_allclose(ds.measured_strength.sel(activation="relu").isel(seed=0), relu, atol=1e-6)
    assert all(check.passed for check in thm5_memorisation.judge(ds.sel(form="derived")))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ratio": 1.0}, "ratio"),
        ({"group": "9"}, "2 to 8 elements"),
        ({"group": "3", "p": (1.0, 2.0)}, "one probability for each of the 3 pairs"),
        ({"group": "2", "p": (0.0, 1.0)}, "positive"),
        ({"group": "2", "p": (1.0, 1.0)}, "most probable"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(OneTarget, **fields)
