"""CoGO's chapter on trained networks."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import classify, published
from jaxdyn.theories.cogo.dynamics import flow, solutions
from jaxdyn.theories.cogo.trained import carriers_parting, decomposed, orders, overparam
from jaxdyn.theories.cogo.trained import carriers_parting as claims
from jaxdyn.theories.cogo.training import Training
from tests.theories.cogo.oracle import composed, passes, rejects, runs

# Judges of bias carriers on made-up data, and their figures.


def test_judge_of_carriers():
    ds = runs(
        predicted_own=2**0.5, measured_own=1.39, fours=5, measured_n6=6, predicted_n6=3.8, predicted_rise=0.9, measured_rise=0.89
    )
    ds = ds.assign(rise_four=0 * ds.measured_rise, predicted_norm=ds.fours * 40, measured_norm=ds.fours * 39.8)
    two = xr.DataArray([1.0, -1.0], dims="part")
    ds = ds.assign(predicted_bias=ds.fours / 5 * two, measured_bias=ds.fours / 5 * two * 1.01, from_four=ds.fours * two * 0)
    late = xr.DataArray([2.0, 6.0], dims="epoch")
    ds = ds.assign(curve_fours=ds.fours * late / 6, curve_sixes=ds.measured_n6 * late / 6)
    ds = ds.assign(memory_norm=ds.predicted_norm * 5, sixes_norm=ds.predicted_norm * 1.05, predicted_diagonal=22 + 0 * ds.fours)
    judges = {"bias_carrier": claims.judge_bias, "one_o6": claims.judge_one, "n6_trained": claims.judge_n6}
    for claim in claims.CLAIMS[:3]:
        judge = judges[claim.id.removeprefix("cogo.")]
        assert passes(judge, ds)
        breaches = [c.breach for c in claim.controls.values() if callable(c.breach)]  # others are runs of their own
        for breach in [*breaches, *claim.rivals.values()]:
            assert rejects(judge, ds, breach)
    for judge, name in (
        (claims.judge_one, "rise"),
        (claims.judge_bias, "bias"),
        (claims.judge_bias, "own"),
        (claims.judge_n6, "norm"),
    ):
        assert not passes(judge, ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]}))


def test_judge_of_the_diagonal():
    ds = runs(predicted_diagonal=22, measured_diagonal=21.95, predicted_shortfall=0.04, measured_shortfall=0.042, loss=1e-4)
    end = xr.DataArray([0.0, 1.0], dims="epoch")
    ds = ds.assign(curve_diagonal=ds.measured_diagonal * end, others_square=1e-3 * ds.loss, others_largest=10 * ds.loss)
    ds = ds.assign(shuffled_square=ds.measured_diagonal, shuffled_largest=ds.loss + 0.5)
    assert passes(claims.judge_diagonal, ds)
    claim = claims.CLAIMS[3]
    for breach in [
        *(c.breach for c in claim.controls.values()),
        *claim.rivals.values(),
        lambda d: d.assign(predicted_diagonal=1.1 * d.predicted_diagonal),
        lambda d: d.assign(others_square=0.1 * d.predicted_diagonal),
        lambda d: d.assign(others_largest=d.others_largest + 0.2),
        lambda d: d.assign(measured_shortfall=2 * d.measured_shortfall),
    ]:
        assert rejects(claims.judge_diagonal, ds, breach)


@pytest.mark.slow
def test_figures_can_be_drawn(trained_runs):
    for claim in claims.CLAIMS:
        fig = Figure()
        claim.plot(trained_runs, fig)
        assert fig.axes


# A trained network taken apart: exact solutions, and what a trial returns.


def taken_apart(w, group):
    nodes = classify.nodes(w, group)
    return nodes, classify.means(nodes, group), decomposed.ablation(w, nodes, group)


@pytest.mark.slow
@pytest.mark.parametrize("sixes", [3])
def test_in_the_composed_solution_order_6_nodes_carry_all(x64, sixes):
    group = parse("11")
    w = composed(group, sixes)
    nodes, parts, rise = jax.jit(taken_apart, static_argnums=1)(w, group)
    own, six, four, rest = parts[:, sixes:]
    assert list(nodes.order) == [6] * sixes + [4] * (5 - sixes)
    np.testing.assert_allclose(np.abs(own), solutions.OWN, rtol=1e-12)
    np.testing.assert_allclose(own + six, 0, atol=1e-12)
    np.testing.assert_allclose(np.abs([four, rest]), 0, atol=1e-12)
    order = classify.node_orders(nodes)
    assert sorted(np.asarray(order)) == [4] * 4 * (5 - sixes) + [6] * 6 * sixes
    assert rise["six"] == pytest.approx(4 / 11 * (5 - sixes), rel=1e-12)
    assert float(solutions.rise(group, jnp.abs(own))) == pytest.approx(float(rise["six"]), rel=1e-12)
    assert rise["four"] == pytest.approx(0, abs=1e-13)
    norm = solutions.trained_norm(group, solutions.energy(5, sixes))
    assert jnp.sum(w**2) == pytest.approx(float(norm), rel=1e-12)


def test_potentials_off_the_diagonal_of_a_solution_vanish_unless_its_nodes_are_shuffled(x64):
    group = parse("11")
    others = jax.jit(decomposed.others)
    z = np.array(jax.jit(lambda w: classify.nodes(w, group).spectrum)(composed(group, 2)))
    assert float(others(z)["square"]) < 1e-24
    z[2] = np.roll(z[2], 1, -1)
    r = 22 * np.einsum("aj,bj,cj->abc", *z[:, 1:])
    r[np.arange(10), np.arange(10), np.arange(10)] = 0
    found = others(z)
    assert float(found["square"]) == pytest.approx(np.sum(np.abs(r) ** 2), rel=1e-10)
    assert float(found["largest"]) == pytest.approx(np.abs(r).max(), rel=1e-10)


@pytest.mark.slow
def test_a_trial_takes_the_trained_network_apart(trained_runs):
    data = trained_runs
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


def test_late_means_are_those_of_the_last_tenth_over_all_pairs(x64):
    s = Training(group="5", held_out=0.1)  # 3 of 25 pairs
    curves = {name: jnp.arange(20.0) * factor for name, factor in (("train_loss", 1.0), ("test_loss", 2.0), ("diagonal", -1.0))}
    got = decomposed.late(curves, s)
    assert float(got["loss"]) == pytest.approx(18.5 * (22 + 2 * 3) / 25) and float(got["diagonal"]) == -18.5


# Judges of orders and constructions on made-up data, and their figures.


def test_judge_of_orders():
    good = runs(measured_orders=0.98, predicted_orders=1.0)
    assert passes(orders.judge_orders, good)
    assert not passes(orders.judge_orders, good.assign(predicted_orders=1.1 * good.predicted_orders))
    rise = xr.DataArray(np.linspace(0, 1, 20), dims="epoch")
    early = decomposed.early(
        good.assign(curve_fours=5 * rise, curve_sixes=6 * rise, predicted_diagonal=22 + 0 * good.measured_orders)
    )
    np.testing.assert_allclose(early.measured_orders, 2 / 19, rtol=1e-12)
    np.testing.assert_allclose(early.measured_n6, 12 / 19, rtol=1e-12)
    assert not passes(orders.judge_orders, early)
    one = good.assign(measured_orders=good.measured_orders.where(good.seed > 0, 0.8))
    assert [c.passed for c in orders.judge_orders(one)][1] is False


def test_nodes_spread_at_random_give_four_or_six_to_a_third_of_the_frequencies():
    ds = runs(predicted_orders=1.0).assign(order=("frequency", [5.0] * 11))
    share = sum(math.comb(55, k) * 10.0 ** (55 - k) / 11.0**55 for k in (4, 6))
    np.testing.assert_allclose(orders.scattered(ds).predicted_orders, share, rtol=1e-12)


def decaying(power):
    """Made-up records of five runs at four decays; the share of order 4 grows with (decay / 5e-5)^power times epochs, up to .48."""
    decay, epoch = np.array([5e-5, 1e-4, 2e-4, 5e-4]), np.arange(0, 10000, 100.0)
    share = np.clip(1.8 * (decay[:, None] / 5e-5) ** power * epoch / 9900 - 0.3, 0, 0.48)
    fours = 11 * share[:, None] * (1 + 0.02 * np.random.default_rng(0).normal(size=(4, 5, 1)))
    ds = xr.Dataset({"curve_fours": (("decay", "seed", "epoch"), fours)}, {"decay": decay, "epoch": epoch, "seed": range(5)})
    one = ds.curve_fours.isel(epoch=0, drop=True) * 0
    return ds.assign(predicted_diagonal=one + 22, predicted_share=one + 0.65, measured_share=ds.curve_fours.isel(epoch=-1) / 11)


def test_judge_of_decay_tells_its_clock_from_decay_times_epochs_and_from_epochs():
    assert passes(orders.judge_wd, decaying(0.7)), [str(c) for c in orders.judge_wd(decaying(0.7))]
    assert not passes(orders.judge_wd, decaying(0.0)) and not passes(orders.judge_wd, decaying(1.0))
    (claim,) = (c for c in orders.CLAIMS if c.id == "cogo.wd_order")
    for rival in claim.rivals.values():
        assert rejects(orders.judge_wd, decaying(0.7), rival)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of decay are needed"):
        orders.judge_wd(decaying(1.0).isel(decay=[0, 1]))


def table(first, named):
    """Percentages at all decays."""
    columns = np.array([first, (named - first) / 2, (named - first) / 2, 100 - named])
    ds = runs(x=1.0)
    measured = ds.x * xr.DataArray(columns, dims="column")
    known = ds.x * xr.DataArray(np.array(published.cells(23)), dims="column")
    return xr.Dataset({"measured_column": measured, "predicted_column": known, "random_column": 0 * measured}).assign_coords(
        column=list(classify.COLUMNS)
    )


def test_judge_of_the_table():
    ds = table(47.0, 98.0).assign(predicted_diagonal=22 + 0 * runs(x=1.0).x)
    gaps = orders.judge_table(ds)
    np.testing.assert_allclose([c.value for c in gaps], np.array([47.0, 25.5, 25.5, 2.0]) - published.cells(23))
    np.testing.assert_allclose(np.diff(gaps[0].interval), 2 * 4.315 * published.TABLE[23].columns[0][1], rtol=1e-2)  # t_4, 4 cells
    free = orders.judge_table(orders.FREE_SIXES(ds))
    assert all(abs(a.value - b.value) > 20 for a, b in zip(free[2:], gaps[2:], strict=True))
    with pytest.raises(jd.Inconclusive, match="decay = 5e-05 is needed"):
        orders.judge_table(ds.sel(decay=[1e-4]))


def test_shares_and_errors_of_factorisations():
    order = xr.DataArray([[4.0, 4, 6, 5]], dims=("decay", "frequency")).expand_dims(seed=5).assign_coords(decay=[5e-5])
    flat = {"order": order, "factorable": order.copy(data=np.broadcast_to([1.0, 1, 1, 0], order.shape))}
    flat["err"] = order.copy(data=np.broadcast_to([0.001, 0.003, 0.06, np.nan], order.shape))
    flat["measured_column"] = xr.DataArray([[50.0, 20, 20, 10]], dims=("decay", "column")).expand_dims(seed=5)
    found = {r.name: r.value for r in orders.judge_factorable(xr.Dataset(flat))}
    assert found[orders.FACTORABLE] == pytest.approx(3 / 4) and found[orders.CONSTRUCTED] == pytest.approx(0.9)
    assert found[orders.NOT.format(4)] == 0 and found[orders.ERROR.format(4)] == pytest.approx(0.2)
    assert found[orders.NOT.format(6)] == 0 and found[orders.ERROR.format(6)] == pytest.approx(6.0)


def test_freedom_of_the_table_is_welchs():
    rng, seeds, cells = np.random.default_rng(0), 40, published.TABLE[23].columns
    ds = xr.Dataset(
        {
            "measured_column": (("column", "seed"), 5 * rng.normal(size=(4, seeds))),
            "predicted_column": (("column", "seed"), np.repeat(np.array(published.cells(23))[:, None], seeds, 1)),
            "predicted_diagonal": ("seed", np.full(seeds, 22.0)),
        }
    )
    gap, error, freedom = orders.joint_errors(ds)
    for i, (mean, sem) in enumerate(cells):
        x = ds.measured_column.values[i]
        p = scipy.stats.ttest_ind_from_stats(x.mean(), x.std(ddof=1), seeds, mean, sem * 5**0.5, 5, equal_var=False).pvalue
        np.testing.assert_allclose(2 * scipy.stats.t.sf(abs(gap[i] / error[i]), freedom[i]), p, rtol=1e-6)


def test_errors_of_the_table_are_those_of_each_group():
    order = xr.DataArray([23.0, 71.0, 127.0, 20.0], dims="group")
    errors = orders.published_errors(order).transpose("group", "column")
    for at, d in enumerate((23, 71, 127, 23)):
        np.testing.assert_array_equal(errors[at], [error for _, error in published.TABLE[d].columns])


def test_judge_of_known_constructions():
    ds = table(47.0, 99.0).assign(predicted_orders=1 + 0 * runs(x=1.0).x)
    assert passes(orders.judge_named, ds)
    assert not passes(orders.judge_named, table(47.0, 80.0).assign(predicted_orders=ds.predicted_orders))


def test_angles_are_folded_by_the_symmetries_of_a_pairing():
    angle = np.array([0.3, -0.3, 0.3 + np.pi / 2, np.pi - 0.3])
    np.testing.assert_allclose(orders.fold(angle, np.pi / 2), 0.3)
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
    found = orders.angles(ds)
    np.testing.assert_allclose(found["xi"], [0.2, np.pi / 4, np.nan, np.nan])
    np.testing.assert_allclose(found["nu"], [np.nan, np.nan, 0.1, np.nan])
    two = xr.concat([ds, ds], "seed")
    assert [round(r.value, 3) for r in orders.judge_angles(two)] == [0.5, 0.0]


@pytest.mark.slow
def test_orders_figures_can_be_drawn(trained_runs):
    for claim in orders.CLAIMS:
        fig = Figure()
        claim.plot(trained_runs, fig)
        assert fig.axes


# How fast networks are trained: rates of planted losses, several widths in one short sweep, and the judge on made-up data.


@pytest.mark.parametrize(
    ("loss", "rate"), [([1, 0.1, 9e-4, 5e-4], 1 / 40), ([1, 0.5, 0.2, 1e-3], 0.0), ([5e-4] * 4, 1.0), ([1, 2e-3, 2e-3, 0], 1 / 60)]
)
def test_the_rate_is_one_over_the_first_epoch_below_the_level(monkeypatch, x64, loss, rate):
    asked = []

    def train(s, key, solved):
        asked.append(solved)
        return type("Run", (), {"curves": {"train_loss": jnp.asarray(loss)}})

    monkeypatch.setattr(overparam, "train", train)
    seen = overparam.trial(Training(group="7", hidden=15, epochs=60, every=20), jax.random.key(0))
    np.testing.assert_allclose(seen.measured["rate"].value, rate, rtol=1e-12)
    assert asked == [overparam.SOLVED] and (float(seen.recorded["enough"].value), float(seen.recorded["least"].value)) == (18, 14)


@pytest.mark.slow
def test_a_trial_of_widths():
    grid = jd.grid(Training, width=[7.0, 15.0], group="7", hidden=15, epochs=40, every=20)
    runs = jd.sweep(overparam.trial, grid, 1)
    assert np.all(runs.measured_rate == 0)  # not solved in 40 epochs
    np.testing.assert_allclose(runs.predicted_rate.isel(seed=0), [flow.start_rate(7, q) for q in (7, 15)], rtol=1e-6)


def widths():
    """Made-up runs whose rate rises with the width up to 512 nodes."""
    widths, rng = [46.0, 66.0, 256.0, 512.0, 1024.0, 2048.0], np.random.default_rng(0)
    rate = np.array([0.0, 0.006, 0.011, 0.0133, 0.012, 0.009])[:, None] * (1 + 0.03 * rng.normal(size=(6, 20)))
    return xr.Dataset(
        {
            "measured_rate": (("width", "seed"), rate),
            "predicted_rate": (("width", "seed"), np.repeat([[1.0], [1.2], [2.0], [3.0], [5.0], [9.0]], 20, 1)),
            "enough": (("width", "seed"), np.full((6, 20), 66.0)),
            "least": (("width", "seed"), np.full((6, 20), 46.0)),
            "status": (("width", "seed"), np.zeros((6, 20), int)),
        },
        coords={"width": widths},
    )


def test_judge_of_widths():
    ds = widths()
    assert passes(overparam.judge, ds)
    slow = ds.assign(measured_rate=ds.measured_rate.where(ds.width != 256, 0.0))
    for bad in (
        overparam.same_width(0)(ds),
        overparam.same_width(1)(ds),
        overparam.NARROW_FIRST(ds),
        slow,
    ):
        assert not passes(overparam.judge, bad)
    assert overparam.keeps_pace(ds) == pytest.approx(2)
    with pytest.raises(jd.Inconclusive, match="width = 256, 512, 2048 is needed"):
        overparam.judge(ds.isel(width=[0]))


def test_the_figure_can_be_drawn():
    fig = Figure()
    overparam.CLAIMS[0].plot(widths(), fig)
    assert len(fig.axes) == 2


def test_both_grids_have_the_same_epochs():
    (claim,) = overparam.CLAIMS
    for scale in ("quick", "paper"):
        assert {s.epochs for s in claim.grid(scale).cells()} == {300}
    assert claim.seed_count("paper") > claim.seed_count("quick")


# The judge of when orders part, on made-up networks whose parting is known.

DECAYS = np.array(carriers_parting.SPREAD)


CLAIM = carriers_parting.CLAIMS[-1]


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
    share = carriers_parting.favoured(ds)
    run = ds.isel(decay=1, seed=2, epoch=3)
    energy, order = run.curve_energy.values, run.order.values
    pairs = [(a, b) for a in energy[order == 6] for b in energy[order == 4]]
    assert float(share.isel(decay=1, seed=2, epoch=3)) == pytest.approx(np.mean([a > b for a, b in pairs]))
    np.testing.assert_allclose(share.isel(epoch=-1), 1)
    time = 600 * (DECAYS / DECAYS[0]) ** -0.7
    last = 30 * np.exp(-ds.epoch.values[-1] / time)
    np.testing.assert_allclose(carriers_parting.parting(ds).isel(seed=0), time * np.log(30 / (1 + last)), rtol=5e-3)
    at = carriers_parting.last_above(ds, 6.0).isel(seed=0)
    assert all(
        carriers_parting.left(ds).isel(seed=0, decay=i)[int(n)] > 6 >= carriers_parting.left(ds).isel(seed=0, decay=i)[int(n) + 1]
        for i, n in enumerate(at)
    )


def test_one_order_in_a_network_tells_nothing():
    ds = networks()
    share = carriers_parting.favoured(ds.assign(order=ds.order.where(ds.seed > 0, 6.0)))
    assert np.isnan(share.isel(seed=0)).all() and share.isel(seed=1).notnull().all()


def test_judge_accepts_late_parting_and_nothing_else():
    good = networks()
    assert passes(carriers_parting.judge_parting, good), [str(c) for c in carriers_parting.judge_parting(good)]
    assert [c.passed for c in carriers_parting.judge_parting(networks(until=15.0))] == [True, False, True, True]
    assert [c.passed for c in carriers_parting.judge_parting(networks(until=0.01))][2] is False
    for power in (0.0, -0.4, -1.0):
        assert [c.passed for c in carriers_parting.judge_parting(networks(power=power))][3] is False
    for breach in (*(c.breach for c in CLAIM.controls.values()), *CLAIM.rivals.values()):
        assert rejects(carriers_parting.judge_parting, good, breach)
    slow = good.assign(curve_test_accuracy=0.9 * good.curve_test_accuracy)
    assert [c.passed for c in carriers_parting.judge_parting(slow)][0] is False
    with pytest.raises(jd.Inconclusive, match="at least 3 values of decay are needed"):
        carriers_parting.judge_parting(good.isel(decay=[0, 1]))


def test_figure_shows_both_orders_and_every_decay():
    fig = Figure()
    CLAIM.plot(networks(), fig)
    one, both = fig.axes
    assert len(one.lines) == 10 and len(both.lines) == 3
