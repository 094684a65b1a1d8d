"""Networks trained with a penalty, and what their setting refuses."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.morwani.dynamics import largest as theory
from jaxdyn.theories.morwani.trials.trained import Trained, trial


def test_penalty_raises_the_margin_and_shares_sum_to_one():
    ds = jd.sweep(trial, jd.grid(Trained, modulus=5, nodes=16, steps=800), seeds=2)
    ratio = (ds.measured_margin / ds.predicted_margin).values
    assert float(ds.predicted_margin.max()) == pytest.approx(theory.largest(5))
    assert ratio.min() > 0.5 and ratio.max() < 1 + 1e-5
    assert bool((ds.measured_margin > ds.initial_margin).all())
    assert ds.measured_share.sum("frequency").values == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"modulus": 9}, "odd prime"),
        ({"nodes": 30}, "at least 4"),
        ({"steps": 30}, "multiple of 40"),
        ({"lr": 0.0}, "positive"),
        ({"weight": -1.0}, "at least 0"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Trained(**fields)
