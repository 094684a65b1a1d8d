"""The entropy bounce against the published recursion in NumPy; its judges and figures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxdyn as jd
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.dynamics.thm4 import entropy_of_logits
from jaxdyn.theories.joma.nonlinear import fig4_bounce
from tests.theories.joma.helpers import distorted, inside, panels, upheld


def published_recursion(steps, eta=0.02, temperature=3.0):
    """The recursion behind Fig. 4, in NumPy: entropy at every step."""
    mu, v, h = np.array(published.FIG4_MU), np.full(10, 0.05), []
    for _ in range(steps):
        p = scipy.special.softmax(v**2 / temperature)
        h.append(-np.sum(p * np.log(p)))
        v = v + eta * (mu - v) * p
    return np.array(h)


@pytest.mark.slow
def test_published_numbers(bounce_runs):
    h = published_recursion(5001)
    low, at, last = published.FIG4.values()
    assert abs(h.min() - low) < 5e-5 and h.argmin() == at and abs(h[4999] - last) < 5e-5
    ours = bounce_runs.sel(draw="fig4", logits="law", drive="critical", eta=0.02).isel(seed=0)
    np.testing.assert_allclose(ours.measured_entropy, h[:: fig4_bounce.PREDICTED], atol=1e-11)
    assert float(ours.lowest_at) == at


def test_equal_critical_values_do_not_bounce(x64):
    s = inside(fig4_bounce.Bounce(spread=0.0))

    @jax.jit
    def after_one_step(key):
        mu = fig4_bounce.place(s, key)
        v = jnp.full_like(mu, 0.05)
        return fig4_bounce.step((v, v * v / 3), mu, s.eta, s)

    _, z = after_one_step(jax.random.key(3))
    np.testing.assert_allclose(entropy_of_logits(z), np.log(10), atol=1e-14)


def test_mu_may_be_given(x64):
    """With the figure's own numbers it is the run of the figure; the settings refuse what is no critical point."""
    given = inside(fig4_bounce.Bounce(mu=published.FIG4_MU))
    np.testing.assert_array_equal(fig4_bounce.place(given, jax.random.key(0)), np.array(published.FIG4_MU))
    np.testing.assert_array_equal(
        fig4_bounce.place(inside(fig4_bounce.Bounce(draw="fig4")), jax.random.key(0)), fig4_bounce.place(given, jax.random.key(1))
    )
    grid = jd.grid(fig4_bounce.Bounce).replace(mu="1.5:2.5", tokens=2)
    assert grid.base.mu == (1.5, 2.5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"eta": 0.5}, "whole multiple"),
        ({"start": 1.0}, "start is below mu_low"),
        ({"mu": (1.0, 2.0)}, "one number per token"),
        ({"mu": (0.01, 2.0), "tokens": 2}, "above start"),
    ],
)
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        fig4_bounce.Bounce(**fields)


CLAIMS = {c.id: c for c in fig4_bounce.CLAIMS}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "logits"), [("joma.bounce", ["law", "trained"]), ("joma.bounce_softmax", ["softmax"])])
def test_bounce_judges(bounce_runs, name, logits):
    claim, runs = CLAIMS[name], bounce_runs.sel(logits=logits)
    ds = runs.sel(drive="critical")
    assert upheld(claim.judge, ds)
    assert not upheld(claim.judge, distorted(ds, "entropy", 1.1))
    assert not upheld(claim.judge, distorted(ds, "limit", 1.1))
    for rival in claim.rivals.values():
        assert not upheld(claim.judge, rival(ds))
    assert not upheld(claim.judge, runs.sel(drive="linear"))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        claim.judge(ds.isel(eta=slice(1)))


def test_entropy_only_falls_without_a_critical_point(bounce_runs):
    h = bounce_runs.sel(drive="linear", logits=["law", "trained"]).measured_entropy.isel(seed=0)
    assert float(h.diff("time").max()) < 1e-9 and float(h.isel(time=-1).max()) < 1e-6  # falls, never rises


def test_numbers_of_the_figure(bounce_runs):
    ds = bounce_runs.sel(drive="critical", eta=0.02)
    assert upheld(fig4_bounce.judge_figure, ds.sel(logits="law"))
    assert not upheld(fig4_bounce.judge_figure, ds.sel(logits="softmax"))
    softmax = ds.sel(logits="softmax")
    assert abs(float(softmax.lowest.item()) - 2.11) < 0.01 and abs(float(softmax["last"].item()) - 2.25) < 0.01


def test_figures_draw(bounce_runs):
    ds = bounce_runs.sel(drive="critical", draw="fig4")
    assert panels(CLAIMS["joma.bounce"], ds)
    assert panels(CLAIMS["joma.fig4"], ds.sel(logits="law", eta=0.02))
