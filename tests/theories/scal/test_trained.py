"""A rung of the ladder: counts of steps, schedules, short training; the judge on tables made from a law."""

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.theories.scal import trained
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.trained import Rung

TINY = {"width": 4, "vocabulary": 32, "least": 6.7, "budgets": 3, "windows": 2, "length": 16}


def test_counts_follow_the_compute_rule():
    s = Rung(**TINY)
    params = nn.network(s.shape).init(jax.random.key(0))
    size = trained.weights(s.shape)
    assert size == sum(x.size for x in jax.tree.leaves(params)) == 32 * 4 + 4 * 16 + 3 * 4 * 11 + 3 * 4
    for (stem, branch), budget in zip(trained.counts(s), s.operations, strict=True):
        assert 6 * size * (stem + branch) * s.batch * s.length == pytest.approx(budget, rel=0.05)
        assert branch == round(0.3 * (stem + branch))
    steps, kinds = trained.phases(s)
    assert kinds.tolist() == [0, *3 * [0, 1, 2]]
    stems = [stem for stem, _ in trained.counts(s)]
    assert steps[0] == 0 and np.cumsum(steps[1::3])[-1] + steps[3::3][:-1].sum() == stems[-1]


def test_rare_bytes_share_the_last_number():
    s = Rung(**TINY)
    tokens, data = trained.tokens_of(s, "train"), s.corpus().train
    assert tokens.min() == 0 and tokens.max() == 31 and (tokens[data == np.bincount(data).argmax()] == 0).all()
    assert np.unique(data[tokens == 31]).size > 1 and np.unique(data[tokens == 30]).size == 1


@pytest.mark.slow
def test_losses_fall_with_the_budget():
    ds = jd.sweep(trained.trial, jd.grid(Rung, factor=[0.5, 1.0], **TINY), 2)
    assert (ds.status == 0).all()
    loss = ds.measured_loss.sel(part="valid").mean("seed")
    assert (loss.isel(budget=-1) < loss.isel(budget=0)).all() and (ds.start > ds.measured_loss.isel(budget=0)).all()
    assert abs(ds.start - np.log(32)).max() < 0.5
    np.testing.assert_allclose(ds.rate.mean("seed"), (0.01, 0.02))
    np.testing.assert_allclose(6 * ds.weights * ds.tokens / ds.budget, 1, atol=0.05)


@pytest.mark.parametrize("wrong", [{"width": 5}, {"text": "markov"}, {"least": 4.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Rung(**wrong)


WIDTHS, N = [4, 8, 12, 16, 20], np.array([464.0, 1296, 2532, 4160, 6120])
BUDGETS = 2e8 * 2.0 ** np.arange(5)
LAW = laws.Law(e=1.8, a=13.0, b=120.0, alpha=0.5, beta=0.5)


def made(noise=0.001):
    rng = np.random.default_rng(0)
    losses = laws.loss(LAW, N[:, None], BUDGETS / (6 * N[:, None]))
    losses = losses[:, None] * (1 + noise * rng.normal(size=(5, 4, 5)))
    both = np.stack([losses, losses], -1)
    dims = ("width", "seed", "budget", "part")
    ds = {
        "measured_loss": (dims, both),
        "measured_undecayed": (dims, both + 0.02 + 0.002 * rng.normal(size=(5, 4, 5, 1))),
        "start": (("width", "seed", "part"), np.full((5, 4, 2), 4.2)),
        "weights": (("width", "seed"), np.repeat(N[:, None], 4, 1)),
        "status": (("width", "seed"), np.zeros((5, 4))),
    }
    return xr.Dataset(ds, coords={"width": WIDTHS, "budget": BUDGETS, "part": ["valid", "test"], "seed": range(4)})


@pytest.mark.slow
def test_a_ladder_that_follows_a_law():
    gate, *readings = trained.judge(made())
    assert gate.gate and gate.passed
    values = {r.name: r for r in readings}
    fit = values[trained.BEST.format("parametric fit")]
    assert abs(fit.value - 0.5) < 0.02 and fit.interval[0] < 0.5 < fit.interval[1]
    assert values[trained.WORTH].value == pytest.approx(0.02, abs=2e-3)


@pytest.mark.slow
def test_sizes_in_reverse():
    ds = made()
    other = trained.CLAIMS[0].controls["sizes in reverse"].breach(ds)
    np.testing.assert_array_equal(other.measured_loss.sel(width=4), ds.measured_loss.sel(width=20))
    names = [r.name for r in trained.judge(ds)]
    assert all(set(getattr(rival, "rival", rival)) <= set(names) for rival in trained.CLAIMS[0].rivals.values())


def test_each_model_at_its_own_rate():
    ds = xr.concat([made(), made() + 1.0], "factor").assign_coords(factor=[1.0, 2.0])
    ds["measured_loss"][1, 0, :, 2] = 1.5
    best = trained.table(ds)
    assert best.shape == (4, 5, 5)
    assert (best[:, 0, 2] == 1.5).all() and (best[:, 1] < 3.5).all()
    np.testing.assert_array_equal(trained.sizes(made()), N)
    single = trained.one_schedule(made())
    np.testing.assert_array_equal(single[..., -1], trained.table(made())[..., -1])
    assert (single[..., :-1] > trained.table(made())[..., :-1]).all()
