"""Contextual sparsity: trials and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.dejavu.contextual import claims
from jaxdyn.theories.dejavu.contextual.trial import HEAD_MODES, HEAD_SHARES, SHARES, Parts, sloped, trial
from jaxdyn.theories.dejavu.model import MODES, SOURCES
from tests.theories.galore.helpers import passed

# Short training on a text, then all parts.

SMALL = {"width": 8, "hidden": 20, "length": 8, "batch": 4, "steps": 30, "fitted": 8, "fits": 20, "texts": 4}


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Parts, lr=[1e-2, 2e-2], **SMALL), 2)
    assert ds["mode"].values.tolist() == list(MODES) and ds.share.values.tolist() == list(SHARES)
    assert ds.head_share.values.tolist() == list(HEAD_SHARES)
    assert float((ds.start - ds.whole).min()) > 0
    assert float((ds.measured_units.sel(mode="random", share=0.1) - ds.measured_units.sel(mode="own", share=0.5)).mean()) > 0
    for name in ("measured_units", "measured_heads", "measured_recall", "measured_union", "measured_cosine"):
        assert bool(np.isfinite(ds[name]).all()), name
    assert bool((ds.measured_recall >= 0).all() and (ds.measured_recall <= 1).all())
    assert bool((ds.measured_union >= 1).all() and (ds.measured_room > -1e-5).all())
    assert bool((ds.measured_void >= 0).all() and (ds.measured_void <= 1).all() and (ds.active < 1).all())


def test_predictors_follow_the_gradient_of_the_cross_entropy():
    logits = jnp.linspace(-4.0, 4.0, 20)
    labels = (jnp.arange(20) % 3 == 0).astype(logits.dtype)
    ours, theirs = (jax.grad(lambda z, f=f: jnp.sum(f(z, labels)))(logits) for f in (sloped, optax.sigmoid_binary_cross_entropy))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [{"width": 30}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Parts(**wrong)


# Judges of networks that run in parts, on made-up losses.

COST = {"own": 0.01, "other": 0.8, "mean": 0.4, "frequency": 0.5, "random": 1.0, "same": 0.1, "previous": 0.15, "shuffled": 0.7}


RECALL = {"same": 0.8, "previous": 0.75, "shuffled": 0.4, "frequency": 0.45}


def made(runs=8):
    """Eight runs with costs that do not depend on the share, and cosines below one."""
    noise = 0.005 * np.random.default_rng(0).normal(size=(runs, 1, 1))

    def table(values, axis):
        return np.asarray(values)[None, :, None] + noise + np.zeros((1, 1, axis))

    layers = ("seed", "layer", "half")
    return xr.Dataset(
        {
            "measured_units": (("seed", "mode", "share"), 2 + table([COST[m] for m in MODES], 3)),
            "measured_heads": (("seed", "head_mode", "head_share"), 2 + table([0.1 + COST[m] for m in HEAD_MODES], 2)),
            "measured_recall": (("seed", "predictor", "share"), table(list(RECALL.values()), 3)),
            "measured_union": (("seed", "share"), np.full((runs, 3), 6.0) + noise[..., 0]),
            "measured_cosine": (layers, np.full((runs, 2, 2), 0.8) + noise),
            "measured_inside": (layers, np.full((runs, 2, 2), 0.85) + noise),
            "measured_bound": (layers, np.full((runs, 2, 2), 0.7) + noise),
            "measured_room": (layers, np.full((runs, 2, 2), 0.05)),
            "measured_void": (layers, np.full((runs, 2, 2), 0.1) + noise),
            "start_cosine": (layers, np.full((runs, 2, 2), 0.95)),
            "whole": (("seed",), np.full(runs, 2.0)),
            "start": (("seed",), np.full(runs, 6.0)),
        },
        coords={
            "mode": list(MODES),
            "share": list(SHARES),
            "head_mode": list(HEAD_MODES),
            "head_share": list(HEAD_SHARES),
            "predictor": list(RECALL),
            "half": ["attention", "mlp"],
        },
    )


def decided(checks):
    return passed([c for c in checks if not c.gate])


def readings(found):
    return {r.name: r.value for r in found if not hasattr(r, "gate")}


def test_own_units_against_static_ones():
    assert SOURCES == tuple(RECALL)[:2]
    np.testing.assert_allclose(claims.static(made()), made().measured_units.sel(mode="mean"))
    assert decided(claims.judge_contextual(made())) == [True] * 4
    assert claims.UNCHANGING.keys() < {c.name for c in claims.judge_contextual(made())}
    other = claims.replaced("other", "other", "shuffled")(made())
    assert decided(claims.judge_contextual(other))[:3] == [False] * 3
    untrained = made().assign(start=made().whole)
    assert [c.passed for c in claims.judge_contextual(untrained) if c.gate] == [False, True]


def test_heads():
    found = readings(claims.judge_heads(made()))
    costs = [COST["mean"] - COST["own"], COST["random"] - COST["own"], 0.1 + COST["own"]]
    assert list(found.values()) == pytest.approx([cost for cost in costs for _ in HEAD_SHARES], abs=0.01)
    random = readings(claims.judge_heads(claims.replaced("random", "random", "shuffled")(made())))
    assert list(random.values())[2:4] == [0, 0] and claims.FOUND_HEADS.keys() == found.keys()
    assert claims.all_that_was_learned(made()) == pytest.approx(float((made().start - made().whole).mean()))


def test_predictors():
    assert decided(claims.judge_predictor(made())) == [True] * 6
    assert claims.FREQUENT.keys() == {c.name for c in claims.judge_predictor(made()) if not c.gate}
    assert decided(claims.judge_predictor(claims.replaced("shuffled", "other", "shuffled")(made()))) == [False] * 6
    half = claims.judge_predictor(made().assign(measured_units=made().measured_units.where(made().share < 0.5, 2.0)))
    assert decided(half) == [True, False, True, True, False, True], "half of the units is judged by itself"


def test_cosines():
    found = readings(claims.judge_cosines(made()))
    assert list(found.values()) == pytest.approx([0.8, 0.1, 0.8, 0.1, 0.8, 0.8], abs=0.01)
    unmoved = {name: number(made()) for name, number in claims.UNMOVED.items()}
    assert unmoved == pytest.approx({name: 0.95 for name in found if "cosine" in name})
    beyond = made().assign(measured_room=made().measured_room - 0.1)
    assert [c.passed for c in claims.judge_cosines(beyond) if hasattr(c, "gate")] == [True, True, False]


@pytest.mark.parametrize("plot", [claims.plot_units, claims.plot_recall, claims.plot_cosines])
def test_plots(plot):
    fig = Figure()
    plot(made(), fig)
    assert fig.axes and all(ax.lines for ax in fig.axes)
