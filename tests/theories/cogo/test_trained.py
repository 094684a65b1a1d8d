"""Claims on trained networks: their formulas on exact solutions and against loops, and their judges on made-up data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import classify, gram, model
from jaxdyn.theories.cogo.claims import carriers as claims
from jaxdyn.theories.cogo.claims import overparam, trained
from jaxdyn.theories.cogo import published
from jaxdyn.theories.cogo.dynamics import carriers, semiring, solutions, spectrum
from jaxdyn.theories.cogo.training import Training

EVERYTHING = (*trained.CLAIMS, *claims.CLAIMS, *overparam.CLAIMS)
TINY = {"group": "7", "hidden": 15, "epochs": 40, "every": 20}


def composed(group, sixes, seed=0):
    """Weights (code scale) of the composed solution with that many order-6 groups."""

    @jax.jit
    def make(key):
        n = solutions.draw(key, group)
        x = solutions.f46(group, solutions.first(group, sixes), n.nu, n.xi, n.phases)
        return model.to_scale(semiring.weights(x, group), group, "code")

    w = np.asarray(make(jax.random.key(seed)))
    return jnp.asarray(w[..., np.abs(w).max((0, 1)) > 0])


@pytest.mark.parametrize("name", ["7", "8"])
def test_means_of_all_nodes_are_those_of_the_loss(x64, name):
    group = parse(name)
    w = jax.random.normal(jax.random.key(1), (3, group.order, 9), jnp.float64)

    @jax.jit
    def both(w):
        z = spectrum.transform(model.to_scale(w, group, "paper"), group)
        s = spectrum.sums(spectrum.autopotentials(z), group)
        whole = spectrum.potentials(z)[0, 0] + (s[0, 0] + s[1, 0]) / 2
        return carriers.means(classify.nodes(w, group, 0.6), group), whole

    parts, whole = both(w)
    np.testing.assert_allclose(parts.sum(0), whole[group.pairs], rtol=1e-10)


def taken_apart(w, group):
    found = classify.nodes(w, group)
    return found, carriers.means(found, group), trained.ablation(w, found, group)


@pytest.mark.parametrize("sixes", [3])
def test_in_the_composed_solution_order_6_nodes_carry_all(x64, sixes):
    group = parse("11")
    w = composed(group, sixes)
    found, parts, rise = jax.jit(taken_apart, static_argnums=1)(w, group)
    own, six, four, rest = parts[:, sixes:]
    assert list(found.order) == [6] * sixes + [4] * (5 - sixes)
    np.testing.assert_allclose(np.abs(own), carriers.OWN, rtol=1e-12)
    np.testing.assert_allclose(own + six, 0, atol=1e-12)
    np.testing.assert_allclose(np.abs([four, rest]), 0, atol=1e-12)
    order = carriers.node_orders(found)
    assert sorted(np.asarray(order)) == [4] * 4 * (5 - sixes) + [6] * 6 * sixes
    assert rise["six"] == pytest.approx(float(carriers.rise(group, 5.0 - sixes)), rel=1e-12)
    assert rise["four"] == pytest.approx(0, abs=1e-13)
    norm = carriers.trained_norm(group, solutions.energy(5, sixes))
    assert jnp.sum(w**2) == pytest.approx(float(norm), rel=1e-12)


def test_without_carriers_the_loss_is_that_of_blocks_of_order_4(x64):
    group = parse("11")
    w = composed(group, 1)

    @jax.jit
    def cut(w):
        found = classify.nodes(w, group)
        bare = carriers.ablated(found, group, carriers.node_orders(found) == 6)
        return bare, model.loss(bare, group, "code")

    bare, loss = cut(w)
    assert loss == pytest.approx(16 / 11, rel=1e-12)
    assert jnp.sum(jnp.any(jnp.abs(bare - w) > 1e-9, (0, 1))) == 6


def test_a_network_held_by_decay_has_the_predicted_diagonal(x64):
    group, decay = parse("5"), 2e-3
    start = composed(group, 2)

    def held(flat):
        w = flat.reshape(start.shape)
        return gram.loss(w, group, "code") + decay / 2 * jnp.sum(w**2)

    both = jax.jit(jax.value_and_grad(held))
    best = scipy.optimize.minimize(lambda x: [np.asarray(v) for v in both(x)], start.ravel(), jac=True, tol=1e-14)
    w = best.x.reshape(start.shape)
    assert np.abs(best.jac).max() < 1e-7
    z = np.fft.fft(w, axis=1)[:, 1:] / 5
    diagonal = 2 * 5 * np.sum(z[0] * z[1] * z[2].conj()).real
    norm = np.sum(w**2)
    predicted = carriers.diagonal_under_decay(group, decay, norm, best.fun - decay / 2 * norm)
    assert diagonal == pytest.approx(float(predicted), rel=1e-6)
    assert 4 - diagonal > 0.02


@pytest.fixture(scope="module")
def data():
    return jd.sweep(trained.trial, jd.grid(Training, decay=[5e-5, 5e-4], **TINY), 2)


def test_a_trial_takes_the_trained_network_apart(data):
    assert int(data.status.sum()) == 0
    assert data.measured_column.dims == ("decay", "seed", "column") and data.curve_train_loss.sizes["epoch"] == 3
    four, six = (data.order == 4).sum("frequency"), (data.order == 6).sum("frequency")
    np.testing.assert_array_equal(data.fours, four)
    np.testing.assert_array_equal(data.measured_n6, six)
    np.testing.assert_allclose(data.measured_orders, (four + six) / 3)
    assert np.all(np.isin(data.measured_column.sum("column").round(9), [0, 100]))
    np.testing.assert_allclose(data.measured_diagonal, data.curve_diagonal.isel(epoch=-1))
    np.testing.assert_allclose(data.predicted_diagonal, 6)
    assert np.all(data.predicted_n6 == solutions.best_carriers(3)) and np.all(data.predicted_share < 1)
    np.testing.assert_allclose(data.predicted_column.isel(decay=0, seed=0), published.cells(7))


def test_every_figure_can_be_drawn(data):
    for claim in EVERYTHING:
        fig = Figure()
        claim.plot(widths() if claim in overparam.CLAIMS else data, fig)
        assert fig.axes


def test_a_trial_of_widths():
    assert jd.sweep(overparam.trial, jd.grid(Training, **TINY), 1).measured_rate == 0  # not solved in 40 epochs


def runs(seeds=5, **values):
    """A Dataset of runs that differ in decay and seed; a value may depend on the decay."""
    decays = [0.0, *trained.DECAYS]
    arrays = {}
    for name, v in values.items():
        arrays[name] = (("decay", "seed"), np.repeat(np.broadcast_to(np.asarray(v, float), len(decays))[:, None], seeds, 1))
    return xr.Dataset(arrays, coords={"decay": decays, "seed": np.arange(seeds)})


def passes(judge, ds):
    return all(check.passed for check in judge(ds))


def test_judge_of_orders_and_of_decay():
    good = runs(measured_orders=0.98, predicted_orders=1.0)
    assert passes(trained.judge_orders, good) and not passes(
        trained.judge_orders, good.assign(predicted_orders=1.1 * good.predicted_orders)
    )
    share = runs(measured_share=[0, 0.1, 0.45, 0.46, 0.5, 0.55], predicted_share=0.65)
    assert passes(trained.judge_wd, share)
    assert not passes(trained.judge_wd, trained.without_decay(share))
    assert not passes(trained.judge_wd, share.assign(measured_share=share.measured_share[::-1].values + 0 * share.measured_share))
    with pytest.raises(jd.Inconclusive, match="4 values of decay"):
        trained.judge_wd(share.isel(decay=[0, 1]))


def table(first, named):
    """Percentages at all decays."""
    columns = np.array([first, (named - first) / 2, (named - first) / 2, 100 - named])
    ds = runs(x=1.0)
    measured = ds.x * xr.DataArray(columns, dims="column")
    known = ds.x * xr.DataArray(np.array(published.cells(23)), dims="column")
    return xr.Dataset({"measured_column": measured, "predicted_column": known, "random_column": 0 * measured})


def test_judge_of_the_table():
    assert passes(trained.judge_table, table(47.0, 100.0))
    assert not passes(trained.judge_table, table(33.0, 100.0))
    assert not passes(trained.judge_table, table(47.0, 60.0))
    assert not passes(trained.judge_table, trained.chance(table(47.0, 100.0)))
    with pytest.raises(jd.Inconclusive, match="published"):
        trained.judge_table(table(47.0, 100.0).sel(decay=[1e-4]))


def test_judge_of_carriers():
    ds = runs(
        predicted_own=2**0.5, measured_own=1.39, fours=5, measured_n6=6, predicted_n6=3.8, predicted_rise=0.9, measured_rise=0.85
    )
    ds = ds.assign(rise_four=0 * ds.measured_rise, predicted_norm=ds.fours * 40, measured_norm=ds.fours * 39.8)
    two = xr.DataArray([1.0, -1.0], dims="part")
    ds = ds.assign(predicted_bias=ds.fours / 5 * two, measured_bias=ds.fours / 5 * two * 1.01, from_four=ds.fours * two * 0)
    ds = ds.assign(memory_norm=ds.predicted_norm * 5)
    assert passes(claims.judge_bias, ds) and passes(claims.judge_one, ds) and passes(claims.judge_n6, ds)
    for judge, breach in (
        (claims.judge_bias, claims.by_fours),
        (claims.judge_bias, claims.dropped),
        (claims.judge_one, claims.four_ablated),
        (claims.judge_n6, claims.no_bias),
        (claims.judge_n6, claims.memorised),
        (claims.judge_one, lambda d: d.assign(measured_n6=0 * d.measured_n6)),
        (claims.judge_one, lambda d: d.assign(predicted_rise=1.1 * d.predicted_rise)),
        (claims.judge_bias, lambda d: d.assign(predicted_bias=1.1 * d.predicted_bias)),
        (claims.judge_n6, lambda d: d.assign(predicted_norm=1.1 * d.predicted_norm)),
    ):
        assert not passes(judge, breach(ds))


def test_judge_of_the_diagonal():
    ds = runs(predicted_diagonal=22, measured_diagonal=21.95, predicted_shortfall=0.04, measured_shortfall=0.042)
    end = xr.DataArray([0.0, 1.0], dims="epoch")
    ds = ds.assign(curve_diagonal=ds.measured_diagonal * end, curve_cross=0.001 * ds.measured_diagonal * end)
    assert passes(claims.judge_diagonal, ds)
    for breach in (
        claims.untrained,
        claims.without_factor,
        lambda d: d.assign(predicted_diagonal=1.1 * d.predicted_diagonal),
        lambda d: d.assign(curve_cross=0.1 * d.curve_diagonal),
        lambda d: d.assign(measured_shortfall=2 * d.measured_shortfall),
    ):
        assert not passes(claims.judge_diagonal, breach(ds))


def widths():
    """Made-up runs whose rate rises with the width."""
    widths, rng = [46, 66, 256, 512], np.random.default_rng(0)
    rate = np.array([0.0, 0.006, 0.011, 0.0125])[:, None] * (1 + 0.05 * rng.normal(size=(4, 20)))
    return xr.Dataset(
        {
            "measured_rate": (("hidden", "seed"), rate),
            "predicted_rate": (("hidden", "seed"), np.repeat([[1.0], [1.2], [2.0], [3.0]], 20, 1)),
            "enough": (("hidden", "seed"), np.full((4, 20), 66.0)),
        },
        coords={"hidden": widths},
    )


def test_judge_of_widths():
    ds = widths()
    assert passes(overparam.judge, ds)
    slow = ds.assign(measured_rate=ds.measured_rate.where(ds.hidden != 256, 0.0))
    for bad in (overparam.same_width(ds), overparam.narrow_first(ds), slow):
        assert not passes(overparam.judge, bad)
    with pytest.raises(jd.Inconclusive, match="two widths"):
        overparam.judge(ds.isel(hidden=[0]))


def test_the_starting_rate_is_the_decoupled_one(x64):
    group, hidden = parse("7"), 4096
    z = spectrum.transform(model.to_scale(model.init(jax.random.key(0), group, hidden, "float64"), group, "paper"), group)
    a, b, c = np.mean(np.abs(np.asarray(z)[:, 1:]) ** 2, (1, 2))
    assert overparam.start_rate(7, hidden) == pytest.approx(2 * hidden * (b * c + a * c + a * b) / 49, rel=0.03)  # 24576 draws


def test_angles_are_folded_by_the_symmetries_of_a_pairing():
    angle = np.array([0.3, -0.3, 0.3 + np.pi / 2, np.pi - 0.3])
    np.testing.assert_allclose(trained.fold(angle, np.pi / 2), 0.3)
    names = classify.NAMES
    ds = xr.Dataset(
        {
            "order": ("frequency", [4, 4, 6, 6]),
            "first_label": ("frequency", [names.index(n) for n in ("nu=i", "xi", "nu", "unknown")]),
            "second_label": ("frequency", [names.index(n) for n in ("xi", "nu=i", "syn", "syn")]),
            "first_angle": ("frequency", [1.0, np.pi / 4, np.pi / 3 + 0.1, 0.2]),
            "second_angle": ("frequency", [0.2, 2.0, 0.0, 0.0]),
        }
    )
    found = trained.angles(ds)
    np.testing.assert_allclose(found["xi"], [0.2, np.pi / 4, np.nan, np.nan])
    np.testing.assert_allclose(found["nu"], [np.nan, np.nan, 0.1, np.nan])
    assert [round(c.value, 3) for c in trained.judge_angles(ds)] == [0.5, 1.0, 0.0]


def test_published_cells_add_up():
    for row in published.TABLE.values():
        assert sum(mean for mean, _ in row.columns) == pytest.approx(100, abs=0.02)
    assert published.cells(23)[0] == 47.07 and published.cells(101) == published.cells(127)
    for row in published.REPRODUCED:
        assert row.columns is None or sum(row.columns) == pytest.approx(100, abs=0.11)
