"""The judge of when orders part, on made-up networks whose parting is known."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.cogo.trained import parting
from tests.theories.cogo.oracle import passes

DECAYS = np.array(parting.SPREAD)
(CLAIM,) = parting.CLAIMS


def networks(power=-0.7, until=0.5, seeds=8, count=10):
    """Half of the frequencies end with six nodes; they have more energy from when ``until`` nodes are left, and none before.

    All have 30 exp(-epoch / time) nodes more than at the end (minus what is left of these at the last record).
    """
    rng = np.random.default_rng(1)
    epoch = np.arange(0, 10000, 50)
    order = rng.permuted(np.tile([4.0, 6.0], (len(DECAYS), seeds, count // 2)), axis=-1)
    time = 600 * (DECAYS / DECAYS[0]) ** power
    more = 30 * np.exp(-epoch / time[:, None])
    more -= more[:, -1:]
    nodes = order[:, :, None] + more[:, None, :, None]
    blind = rng.normal(size=(len(DECAYS), seeds, 1, count)) * np.ones((len(epoch), 1))
    energy = np.where(more[:, None, :, None] > until, blind, order[:, :, None])
    curve = ("decay", "seed", "epoch", "frequency")
    return xr.Dataset(
        {
            "curve_order": (curve, nodes),
            "curve_energy": (curve, energy),
            "curve_test_accuracy": (curve[:3], np.ones(nodes.shape[:3])),
            "order": (("decay", "seed", "frequency"), order),
        },
        {"decay": DECAYS, "epoch": epoch, "seed": np.arange(seeds)},
    )


def test_parts_of_the_judge_are_those_of_their_definitions():
    ds = networks()
    share = parting.favoured(ds)
    run = ds.isel(decay=1, seed=2, epoch=3)
    energy, order = run.curve_energy.values, run.order.values
    pairs = [(a, b) for a in energy[order == 6] for b in energy[order == 4]]
    assert float(share.isel(decay=1, seed=2, epoch=3)) == pytest.approx(np.mean([a > b for a, b in pairs]))
    np.testing.assert_allclose(share.isel(epoch=-1), 1)
    time = 600 * (DECAYS / DECAYS[0]) ** -0.7
    last = 30 * np.exp(-ds.epoch.values[-1] / time)
    np.testing.assert_allclose(parting.parting(ds).isel(seed=0), time * np.log(30 / (1 + last)), rtol=5e-3)
    at = parting.last_above(ds, 6.0).isel(seed=0)
    assert all(
        parting.left(ds).isel(seed=0, decay=i)[int(n)] > 6 >= parting.left(ds).isel(seed=0, decay=i)[int(n) + 1]
        for i, n in enumerate(at)
    )


def test_one_order_in_a_network_tells_nothing():
    ds = networks()
    share = parting.favoured(ds.assign(order=ds.order.where(ds.seed > 0, 6.0)))
    assert np.isnan(share.isel(seed=0)).all() and share.isel(seed=1).notnull().all()


def test_judge_accepts_late_parting_and_nothing_else():
    good = networks()
    assert passes(parting.judge_parting, good), [str(c) for c in parting.judge_parting(good)]
    assert [c.passed for c in parting.judge_parting(networks(until=15.0))] == [True, False, True, True]
    assert [c.passed for c in parting.judge_parting(networks(until=0.01))][2] is False
    for power in (0.0, -0.4, -1.0):
        assert [c.passed for c in parting.judge_parting(networks(power=power))][3] is False
    for breach in (*(c.breach for c in CLAIM.controls.values()), *CLAIM.rivals.values()):
        assert not passes(parting.judge_parting, breach(good))
    slow = good.assign(curve_test_accuracy=0.9 * good.curve_test_accuracy)
    assert [c.passed for c in parting.judge_parting(slow)][0] is False
    with pytest.raises(jd.Inconclusive, match="at least 3 values of decay are needed"):
        parting.judge_parting(good.isel(decay=[0, 1]))


def test_the_clock_of_decay_times_epochs_reads_the_least_decay_earlier():
    ds = parting.clock(1.0)(networks())
    least = ds.curve_order.isel(decay=0)
    np.testing.assert_array_equal(ds.curve_order.isel(decay=2).sel(epoch=300), least.sel(epoch=3000))
    np.testing.assert_array_equal(ds.curve_order.isel(decay=2).sel(epoch=5000), least.isel(epoch=-1))


def test_figure_shows_both_orders_and_every_decay():
    fig = Figure()
    CLAIM.plot(networks(), fig)
    one, both = fig.axes
    assert len(one.lines) == 10 and len(both.lines) == 3
