"""Judge of the bound, for both theorems, on made-up sequences that follow gradient flow."""

import numpy as np
import pytest
import scipy.optimize
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.rev import bounds
from jaxdyn.theories.rev.one_layer import EXPONENT
from tests.theories.rev.helpers import distorted, passed, rejected, theory

M = 200


@pytest.fixture
def flowing():
    """Eight runs of 300 sequences whose 1 - p scatters by 5% around gradient flow's."""
    rng, s = np.random.default_rng(0), np.geomspace(3e4, 2e5, 5)
    u = np.array([scipy.optimize.brentq(lambda u, s=s: (M - 1) * u + np.exp(u) - 1 - s, 0, 20) for s in s])
    missing = (M - 1) / (M - 1 + np.exp(u))
    each = missing * np.exp(0.05 * rng.normal(size=(8, 300, 5)))
    run, record = ("seed", "record"), np.ones((8, 1))
    exponent = np.log((M - 1) / (2 * missing)) / np.log(s)
    mean = each.mean(1)
    return xr.Dataset(
        {
            "measured_bound": (("seed", "sequence", "record"), 1 - each),
            "predicted_bound": (run, record * (1 - (M - 1) / (2 * s**EXPONENT))),
            "measured_missing": (run, mean),
            "predicted_mean": (("token", *run), np.stack([record * (1 - missing), record * missing / (M - 1)])),
            "measured_exponent": (run, np.log((M - 1) / (2 * mean)) / np.log(s)),
            "predicted_exponent": (run, record * exponent),
            "drawn": (("seed", "sequence"), np.ones((8, 300), bool)),
            "late": ("record", np.linspace(12, 80, 5)),
            "s": (run, record * s),
            "size": ("seed", np.full(8, float(M))),
        },
        {"token": ["target", "other"]},
    )


def test_sequences_of_the_flow_are_upheld(flowing):
    assert passed(bounds.judge_bound, flowing)


@pytest.mark.parametrize("name", list(bounds.RIVALS))
def test_rivals_are_rejected(flowing, name):
    with np.errstate(over="ignore"):
        rival = theory(bounds.RIVALS[name])(flowing)
    assert rejected(bounds.judge_bound, rival)


@pytest.mark.parametrize(("name", "factor"), [("exponent", 1.1), ("mean", 1.001), ("mean", 0.999), ("bound", 1.01)])
def test_distortions_are_rejected(flowing, name, factor):
    assert not passed(bounds.judge_bound, distorted(flowing, name, factor))


def test_a_few_sequences_may_break_the_bound_and_more_may_not(flowing):
    def broken(count):
        where = (flowing.sequence if "sequence" in flowing.coords else xr.DataArray(np.arange(300), dims="sequence")) < count
        return flowing.assign(measured_bound=flowing.measured_bound.where(~where, 0.0))

    assert bounds.judge_bound(broken(0))[0].value == 1.0
    assert bounds.judge_bound(broken(30))[0].passed is False


def test_the_bound_is_judged_late(flowing):
    with pytest.raises(jd.Inconclusive, match="no record is late enough"):
        bounds.judge_bound(flowing.assign(late=flowing.late / 100))
