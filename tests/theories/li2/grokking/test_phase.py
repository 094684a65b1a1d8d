"""How many pairs networks need: the trial on planted curves, p_50 of planted transitions, judges on planted laws and decay."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.li2.dynamics.critical import order_share
from jaxdyn.theories.li2.grokking import phase
from jaxdyn.theories.li2.training import Run, Training


@pytest.mark.parametrize(("group", "order"), [("13", 13), ("D12", 24), ("5x5", 25)])
def test_the_trial_records_the_share_its_critical_value_and_all_curves(monkeypatch, x64, group, order):
    s = Training(group=group, share=0.7, critical=True, epochs=4, every=2)
    curves, asked = {"train_accuracy": jnp.arange(3.0), "test_accuracy": jnp.arange(3.0) / 2}, []

    def train(s, key, known):
        asked.append(known)
        return Run(None, curves)

    monkeypatch.setattr(phase, "train", train)
    run = phase.trial(s, jax.random.key(0))
    critical = 2.7482 * math.log(order) / order
    assert asked == [1.0] and float(run.recorded["order"].value) == order
    np.testing.assert_allclose(run.predicted["critical"].value, critical, rtol=1e-12)
    np.testing.assert_allclose(run.measured["critical"].value, 0.7 * critical, rtol=1e-12)
    for name, curve in curves.items():
        np.testing.assert_array_equal(run.recorded[name].value, curve)


PHASE, DECAY = phase.CLAIMS


def planted(excess=0.0, sooner=0.3, noise=0.01, dihedral=1.0):
    """Logistic transitions at p_c M^excess, lower by ``sooner`` in ln p after all of the training."""
    rng = np.random.default_rng(3)
    groups = ["13", "23", "37", "53", "5x5", "D12"]
    order = np.array([13, 23, 37, 53, 25, 24.0])
    critical = np.array([order_share(int(m)) for m in order])
    share, epoch = np.geomspace(0.5, 2, 9), np.arange(0, 900, 100)
    middle = np.log(critical * (order / 24) ** excess * np.where(order == 24, dihedral, 1.0))
    middle = middle[:, None, None] + noise * rng.standard_normal((6, 8, 1)) + sooner * (0.5 - epoch / 800)
    x = np.log(share[:, None] * critical)[:, :, None, None]
    accuracy = 1 / (1 + np.exp(-(x - middle) / 0.03))
    coords = {"share": share, "group": groups, "seed": np.arange(8), "epoch": epoch}
    axes = ("share", "group", "seed", "epoch")
    data = {
        "test_accuracy": (axes, accuracy),
        "measured_critical": (axes[:3], (share[:, None] * critical)[..., None] + np.zeros(8)),
    }
    data |= {n: (axes[:3], v[:, None] + np.zeros((9, 6, 8))) for n, v in (("predicted_critical", critical), ("order", order))}
    return xr.Dataset(data, coords)


def outcome(ds, words):
    return [c.passed for c in phase.judge_phase(ds) if words in c.name]


def test_the_law_is_recognised_and_others_are_refused():
    right = planted()
    assert all(c.passed for c in phase.judge_phase(right))
    np.testing.assert_allclose(phase.halves(right).sel(group="37").mean(), order_share(37) * np.exp(-0.15), rtol=0.06)
    assert outcome(planted(excess=0.4), "power of M") == [False] * 6
    assert outcome(planted(sooner=0.0), "four times the epochs") == [False]
    assert outcome(planted(dihedral=1.8), "D12") == [False] and outcome(planted(dihedral=1.8), "5x5") == [True]


def test_rivals_are_refused_where_the_law_holds():
    right = planted()
    for name, rival in PHASE.rivals.items():
        assert False in [c.passed for c in PHASE.judge(rival(right))], name


def test_few_transitions_beyond_the_shares_are_passed_over_and_many_decide_nothing():
    ds = planted()
    for seeds, few in (([3], True), ([1, 2, 3], False)):
        beyond = ds.seed.isin(seeds) & (ds.group == "37")
        gate, *checks = phase.judge_phase(ds.assign(test_accuracy=ds.test_accuracy.where(~beyond, 0.0)))
        assert gate.gate and gate.passed == few and np.isclose(gate.value, len(seeds) / (ds.sizes["seed"] * ds.sizes["group"]))
        assert np.isfinite([c.value for c in checks]).all()
    with pytest.raises(jd.Inconclusive, match="at least 3 points"):
        phase.judge_phase(ds.isel(share=slice(0, 4)))


def test_figures_can_be_drawn():
    for claim, ds in ((PHASE, planted()), (DECAY, decays())):
        fig = Figure()
        claim.plot(ds, fig)
        assert all(ax.has_data() for ax in fig.axes)


def decays(top=0.1):
    ends = {"both": 1.0, "top": top, "hidden": 0.97, "neither": 0.08}
    test = np.array([*ends.values()])[:, None, None] * np.ones((4, 8, 3))
    coords = {"decayed": list(ends), "seed": np.arange(8), "epoch": [0, 1, 2]}
    names = ("test_accuracy", "train_accuracy")
    return xr.Dataset({n: (("decayed", "seed", "epoch"), v) for n, v in zip(names, (test, 0 * test + 1), strict=True)}, coords)


def test_decay_is_judged_layer_by_layer():
    assert all(c.passed for c in DECAY.judge(decays()))
    assert not all(c.passed for c in DECAY.judge(decays(top=1.0)))
    opponents = {name: control.breach for name, control in DECAY.controls.items()} | dict(DECAY.rivals)
    for name, opponent in opponents.items():
        assert not all(c.passed for c in DECAY.judge(opponent(decays()))), name
    with pytest.raises(jd.Inconclusive, match="decayed"):
        DECAY.judge(decays().isel(decayed=[0, 3]))
