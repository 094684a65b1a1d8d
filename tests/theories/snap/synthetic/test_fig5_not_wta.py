"""The judges of Figure 5 and of the order of attention, on made-up data."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic import fig5_not_wta, syn


def made_up_fig5(shift=0.0):
    """Runs with the reference's own numbers, moved, and with a standard deviation of .0005 over seeds."""
    axes = ("optimizer", "momentum", "ratio")
    values, known = np.full((2, 2, 2, 4, 4), 0.5), np.zeros((2, 2, 2, 4))
    for row in published.FIG5:
        place = (syn.OPTIMIZERS.index(row.optimizer), (0.9, 0.0).index(row.momentum), (1.0, 10.0).index(row.ratio))
        values[place], known[place] = row.numbers, 1
    noise = 0.0005 * np.array([1, -1, 1, -1])[:, None] * np.sqrt(3) / 2
    return xr.Dataset(
        {
            "predicted_numbers": ((*axes, "seed", "quantity"), values),
            "measured_numbers": ((*axes, "seed", "quantity"), values + noise + shift),
            "predicted_attention": ((*axes, "seed", "class", "token"), np.full((2, 2, 2, 4, 2, 3), 1 / 3)),
            "law": ((*axes, "seed", "token"), np.broadcast_to([0.2, 0.3, 0.5], (2, 2, 2, 4, 3))),
            "known": ((*axes, "seed"), known),
        },
        coords={
            "optimizer": list(syn.OPTIMIZERS),
            "momentum": [0.9, 0.0],
            "ratio": [1.0, 10.0],
            "quantity": list(published.QUANTITIES),
        },
    )


def test_judge_of_figure_5():
    passes = lambda ds: all(c.passed for c in fig5_not_wta.judge_fig5(ds))  # noqa: E731
    ds = made_up_fig5()
    assert passes(ds) and passes(made_up_fig5(fig5_not_wta.NEAR / 2))
    assert [c.passed for c in fig5_not_wta.judge_fig5(made_up_fig5(1.5 * fig5_not_wta.NEAR))] == [True, True, False, False]
    assert [c.passed for c in fig5_not_wta.judge_fig5(made_up_fig5(fig5_not_wta.NEAR))] == [True, True, None, None]
    assert not any(c.passed for c in fig5_not_wta.judge_fig5(made_up_fig5(1.5 * fig5_not_wta.FAR)))
    for rival in (fig5_not_wta.STILL, jd.rolled(predicted_numbers="momentum")):
        assert not passes(rival(ds))
    with pytest.raises(jd.Inconclusive):
        fig5_not_wta.judge_fig5(ds.assign(known=0 * ds.known))


def test_judge_of_order():
    p = np.linspace(0.1, 1, 10) / 5.5
    c = syn.sharpened(jnp.asarray(p), jnp.asarray([p**2, p**1.1]))
    rng = np.random.default_rng(0)
    runs = np.sort(c * (1 + 0.01 * rng.normal(size=(6, 2, 10))), -1)
    dims = ("seed", "class", "token")
    ds = xr.Dataset(
        {
            "predicted_attention": (dims, np.broadcast_to(c, runs.shape)),
            "measured_attention": (dims, runs / runs.sum(-1, keepdims=True)),
            "law": (("seed", "token"), np.broadcast_to(p, (6, 10))),
        }
    )
    passes = lambda ds: all(check.passed for check in fig5_not_wta.judge_not_wta(ds))  # noqa: E731
    assert passes(ds)
    assert not passes(fig5_not_wta.ONE_WINNER(ds))
    assert not passes(ds.assign(predicted_attention=(ds.law + 0 * ds.predicted_attention).transpose(*dims)))
    swapped = runs.copy()
    swapped[0, 1, [3, 4]] = swapped[0, 1, [4, 3]]
    assert not passes(ds.assign(measured_attention=(dims, swapped)))


def test_numbers_of_tokens_that_share_the_attention():
    shares = xr.DataArray([[0.5, 0.5, 0.0, 0.0], [0.25] * 4], dims=("class", "token"))
    np.testing.assert_allclose(fig5_not_wta.effective_tokens(shares), [2.0, 4.0])
