"""Reconstruction, retention and nodes over time: trials on small runs, judges on planted laws and curves, refused settings."""

import dataclasses
import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.errors import UsageError
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.dynamics import reconstruct as theory
from jaxdyn.theories.li2.dynamics import retention
from jaxdyn.theories.li2.dynamics.nodes import END
from jaxdyn.theories.li2.features import stage2_curves, thm4_retention
from jaxdyn.theories.li2.features import thm3_reconstruct as claims
from jaxdyn.theories.li2.features.thm4_retention import Retention, trial
from jaxdyn.theories.li2.training import Training
from tests.theories.li2.helpers import opponents, planted_masses, read, refused, refuses_opponents
from tests.theories.li2.helpers import passes as stage2_curves_passes

SMALL = ("5", "4", "S3")


@functools.cache
def runs(missing=0.0):
    return jd.sweep(claims.trial, jd.grid(claims.Layers, groups=SMALL, missing=missing), 2)


def data(claim, missing=0.0, form=None):
    return runs(missing).sel(form=form or claim.form, drop=True)


def passes(claim, ds):
    return all(check.passed for check in claim.judge(ds))


@pytest.mark.slow
@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refuses_everything_else(claim):
    assert passes(claim, data(claim)) == (claim.expected == "upheld")
    if claim.counterpart:
        assert passes(claim, data(claim, form=claim.counterpart))
        return
    for control in claim.controls.values():
        breach = control.breach
        assert not passes(claim, breach(data(claim)) if callable(breach) else data(claim, breach["missing"]))
    read = {"li2.thm3_complex": ("complex",), "li2.thm3_tight": ("coefficients",), "li2.thm3_real": ("maxima",)}
    for name in read.get(claim.id, ("tied", "share")):
        ds = data(claim)
        assert not passes(claim, ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})), name


@pytest.mark.slow
@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(data(claim), fig)
    assert all(ax.has_data() for ax in fig.axes)


def test_numbers_of_nodes_and_the_printed_bound():
    nodes = {name: [2 * sum(theory.count(layer, "any", int(d)) for d in decompose(parse(name)).degrees[1:])
                    for layer in ("complex", "coefficients")] for name in ("7", "S3", "D5", "Q8", "A4", "S4")}  # fmt: skip
    assert nodes == {"7": [12, 12], "S3": [34, 18], "D5": [66, 34], "Q8": [38, 22], "A4": [166, 58], "S4": [358, 126]}
    for name, (complex_, _) in nodes.items():  # the printed bound
        order, others = parse(name).order, len(decompose(parse(name))) - 1
        assert complex_ <= 2 * ((order - others) ** 2 + others - 1)


@pytest.mark.slow
def test_a_whole_run_counts_its_nodes_and_symmetric_shares():
    ds = runs().isel(seed=0)
    np.testing.assert_array_equal(ds.measured_maxima_nodes, [16, 10, 26])  # 4 (M - 1) for odd M
    np.testing.assert_allclose(ds.predicted_share, [0.5, 1 / 3, 0.2])


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"groups": ()}, "at least one group"), ({"missing": 0.5}, "missing"), ({"groups": ("X9",)}, "X9")],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(claims.Layers, **fields)


THM4_RETENTION_SMALL = jd.grid(Retention, c=[0.7, 1.3, 2.4, 4.5], spread=1.85, starts=("11", "S3/2"), subsets=8, steps=60)


@functools.cache
def thm4_retention_runs():
    return jd.sweep(trial, THM4_RETENTION_SMALL, 2)


@pytest.mark.slow
def test_trial_keeps_more_with_more_pairs():
    ds = thm4_retention_runs()
    assert (ds.status == 0).all() and ds.measured_mass.dims == ("c", "seed", "object", "start", "subset")
    np.testing.assert_allclose(ds.share.isel(c=0, seed=0), [2 / 11, 4 / 6])
    np.testing.assert_allclose(ds.degree.isel(c=0, seed=0), [1, 2])
    whole = ds.measured_mass.where(ds.p == 1)
    assert int((ds.p == 1).sum()) > 5
    np.testing.assert_allclose(whole.min(), 1, atol=1e-9)
    retained = (ds.measured_mass > 0.6).mean(["seed", "subset"]).sel(start="11")
    assert bool((retained.isel(c=-1) > retained.isel(c=0)).all())
    assert bool((ds.p.diff("c") >= 0).all())


@pytest.mark.slow
def test_blocks_of_subsets_change_nothing(monkeypatch):
    s = Retention(c=1.3, spread=1.85, starts=("11",), subsets=8, steps=60)

    def run():
        with jax.enable_x64(True):
            return jax.jit(lambda key: trial(s, key))(jax.random.key(0))

    whole = run()
    monkeypatch.setattr(thm4_retention, "LARGE", 5)
    monkeypatch.setattr(thm4_retention, "SOME", 3)
    assert thm4_retention.block(11, 8) == 2 and thm4_retention.block(4, 8) == 8
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), run(), whole)


@pytest.mark.slow
def test_the_draws_of_a_start_do_not_depend_on_the_other_starts():
    other = jd.sweep(trial, THM4_RETENTION_SMALL.replace(starts=("11",), c=[1.3]), 1)
    ours = thm4_retention_runs().sel(start=["11"], c=[1.3], seed=[0])
    np.testing.assert_array_equal(other.p, ours.p)
    np.testing.assert_allclose(other.measured_mass, ours.measured_mass, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"starts": ()}, "at least one"),
        ({"starts": ("7", "7")}, "differ"),
        ({"starts": ("S3/3",)}, "no irrep of degree 3"),
        ({"starts": ("S3/x",)}, "group/degree"),
        ({"starts": ("X9",)}, "X9"),
    ],
)
def test_thm4_retention_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Retention, **fields)


def test_a_degree_that_only_the_irreps_can_tell_is_refused_by_the_trial(x64):
    """No group of order 12 is refused degree 2 at once, but A4 has degrees 1, 1, 1, 3."""
    s = Retention(starts=("A4/2",), subsets=1, steps=1)
    with pytest.raises(jd.UsageError, match="A4 has no irrep of degree 2"):
        trial(s, jax.random.key(0))


FOLDER = Path(__file__).parents[3] / "experiments"


THM4, DELTA, WHITENED = thm4_retention.CLAIMS


def test_planted_powers_and_degrees_are_read():
    right, slower, linear = planted_masses(), planted_masses(0.8), planted_masses(degree=1.0)
    order = np.array([31, 101, 331.0])
    for kind in retention.OBJECTS:
        name = thm4_retention.POWER.format(kind)
        found = read(THM4, right)
        assert found[name].value == pytest.approx(1, abs=0.1) and read(THM4, slower)[name].value == pytest.approx(0.8, abs=0.1)
        np.testing.assert_allclose([found[f"c_50, {kind}, M = {m:g}"].value for m in order], 2, rtol=0.1)
        assert found[thm4_retention.RISE.format(kind)].value == pytest.approx(1, abs=0.1)
        degree = thm4_retention.DEGREE.format(kind)
        assert found[degree].value == pytest.approx(2, abs=0.1) and read(THM4, linear)[degree].value == pytest.approx(1, abs=0.1)
    assert [one.value for one in read(WHITENED, right).values() if "power" in one.name] == pytest.approx([1] * 5, abs=0.1)


def test_rivals_are_told_apart_unless_they_are_what_is_planted():
    for ds, own in ((planted_masses(), "the theorem's number is also needed"), (planted_masses(0.8), None)):
        for name, rival in opponents(THM4).items():
            assert refused(THM4, ds, rival) == (name != own), name
    rivals = opponents(WHITENED)
    assert not refused(WHITENED, planted_masses(), rivals["one number for all M"])
    assert all(refused(WHITENED, planted_masses(0.5), rival) for rival in rivals.values())


def test_pairs_for_a_higher_probability_are_read():
    """Thresholds with a log-normal spread: their .9 quantile over their median, over the theorem's ratio."""
    order = np.array([31, 101, 331.0])
    for noise in (0.1, 0.2):
        truth = np.exp(1.2816 * noise) / np.exp(np.mean(np.log(np.log(10 * order) / np.log(2 * order))))
        found = [one.value for one in read(DELTA, planted_masses(noise=noise)).values()]
        np.testing.assert_allclose(found, truth, rtol=0.08)
    assert all(refused(DELTA, planted_masses(noise=0.1), rival) for rival in opponents(DELTA).values())


def test_what_is_said_of_other_powers():
    order = np.array([31, 101, 331.0])
    slope = np.polyfit(np.log(np.log(order) / order), -0.5 * np.log(order), 1)[0]
    assert opponents(THM4)["a share of one over the root of M"][thm4_retention.POWER.format("cross")](planted_masses()) == (
        pytest.approx(slope)
    )


def test_a_threshold_beyond_the_grid_is_no_number():
    found = thm4_retention.judge_whitened(planted_masses().isel(c=slice(0, 4)))
    assert np.isnan([one.value for one in found]).all()


def test_too_little_data_decides_nothing():
    for part, words in (
        (planted_masses().isel(c=[3]), "at least 3 values of c"),
        (planted_masses().isel(subset=slice(4)), "8 subsets"),
        (planted_masses().isel(start=[0, 1, 3, 4, 5]), "at least 3 cyclic groups"),
    ):
        with pytest.raises(jd.Inconclusive, match=words):
            thm4_retention.judge(part)


@pytest.mark.parametrize("claim", thm4_retention.CLAIMS, ids=lambda c: c.id)
def test_thm4_retention_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(planted_masses(), fig)
    assert len(fig.axes) >= 2 and all(ax.has_data() for ax in fig.axes)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import li2_thm4

    yield li2_thm4
    sys.modules.pop("li2_thm4", None)


@pytest.mark.slow
def test_the_script_writes_tables_and_figures(script, monkeypatch, tmp_path):
    monkeypatch.setitem(script.SCALES, "quick", {"groups": ("31", "101", "331"), "degrees": ("D30/1", "D30/2", "A5/3")})
    monkeypatch.setattr(script, "swept", lambda out, start, case: planted_masses().sel(start=[start]))
    script.run("quick", tmp_path)
    found = {name: (tmp_path / f"{name}.csv").read_text(encoding="utf-8") for name in ("halves", "slopes", "degrees")}
    assert found["halves"].count("\n") == 10 and found["slopes"].count("\n") == 16 and "exponent of d" in found["degrees"]
    assert all((tmp_path / f"li2_thm4{end}.{kind}").exists() for end in ("", "_halves") for kind in ("svg", "png"))


@pytest.mark.slow
def test_a_sweep_of_the_script_resumes(script, tmp_path):
    case = {"c": [1.0, 1.5], "spread": 1.5, "subsets": 2, "steps": 5, "seeds": 2}
    ds = script.swept(tmp_path, "S3/2", case)
    assert ds.sizes["start"] == 1 and "status" not in ds
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "S3_d2").rglob("*.nc")}
    xr.testing.assert_identical(ds.measured_mass, script.swept(tmp_path, "S3/2", case).measured_mass)
    assert written and written == {path: path.stat().st_mtime_ns for path in written}


S = Training(group="5", hidden=6, share=0.6, lr=0.5, epochs=40, every=2, optimizer="sgd")


def test_a_level_is_crossed_between_records_by_a_power():
    x = np.arange(0, 20.0, 2)
    with jax.enable_x64(True):
        assert float(stage2_curves.crossed(jnp.asarray(x), jnp.asarray(0.01 * x**2), 0.5)) == pytest.approx(50**0.5, rel=1e-9)
        assert float(stage2_curves.crossed(jnp.asarray(x), jnp.asarray(0.0001 * x), 0.5)) == 0
        assert float(stage2_curves.crossed(jnp.asarray(x), jnp.ones(10), 0.5)) == 0


def test_the_largest_record_is_found_and_none_at_the_ends():
    x = np.arange(0, 60.0, 2)
    with jax.enable_x64(True):
        for top in (25.0, 30.7):
            assert float(stage2_curves.highest(jnp.asarray(x), jnp.asarray(1 - (x - top) ** 2 / 1e4))) == pytest.approx(
                top, abs=1e-6
            )
        assert float(stage2_curves.highest(jnp.asarray(x), jnp.asarray(x))) == 0


@pytest.mark.slow
def test_the_heights_of_a_maximum_are_one():
    """A node in one frequency of Z_5: cosines of any phases, by hand."""
    from jaxdyn.data.groups import parse
    from jaxdyn.data.irreps import decompose

    g = np.arange(5)
    w = np.concatenate([np.cos(2 * np.pi * (2 * g) / 5 + 0.3), np.cos(2 * np.pi * (2 * g) / 5 + 1.1)])[:, None]
    with jax.enable_x64(True):
        np.testing.assert_allclose(stage2_curves.heights(jnp.asarray(w), decompose(parse("5")))[:, 0], 1, rtol=1e-6)


@pytest.mark.slow
def test_network_and_flow_start_together_and_the_rest_is_recorded():
    with jax.enable_x64(True):
        run = stage2_curves.trial(S, jax.random.key(0))
        predicted, measured = (np.asarray(group["height"].value) for group in (run.predicted, run.measured))
        assert predicted.shape == measured.shape == (21, 2, 6)
        np.testing.assert_allclose(predicted[0], measured[0], rtol=1e-4)
        assert np.all(np.isfinite(predicted)) and set(stage2_curves.WORLDS[1:]) <= set(run.recorded)
        size = np.asarray(run.recorded["outputs"].value)
        assert np.all(size <= END * (1 + 1e-9)) and np.all(np.diff(size) >= -1e-3)
        late = stage2_curves.until(S, jax.random.key(0))
        np.testing.assert_allclose(late.recorded["curve_energy"].value, measured[:, 0].mean(-1), rtol=1e-4)
        time = 0.5 * np.arange(0, 41, 2)
        assert float(late.predicted["until"].value) == pytest.approx(float(stage2_curves.crossed(time, size, stage2_curves.SMALL)))


def test_other_trainers_are_refused():
    with pytest.raises(UsageError, match="gradient descent with momentum"):
        stage2_curves.trial(dataclasses.replace(S, optimizer="adam"), jax.random.key(0))


def test_the_momentum_is_the_trainers():
    """Two steps of constant force move by 1 and then 1 + momentum."""
    still, pull = (model.Params(jnp.full((10, 6), x), jnp.full((6, 5), x)) for x in (0.0, 1.0))
    tx = training.make_optimizer(S)
    first, state = tx.update(pull, tx.init(still), still)
    second, _ = tx.update(pull, state, still)
    np.testing.assert_allclose(second.w / first.w, 1 + training.MOMENTUM, rtol=1e-6)


CURVES, UNTIL = stage2_curves.CLAIMS


def planted(error=0.02, seed=0):
    """Each node grows as its own exponential; the network's is slower by a part ``error``; outputs are .02 e^(t / 10)."""
    rng = np.random.default_rng(seed)
    t, rate = np.arange(0, 121, 3.0), rng.uniform(0.02, 0.06, (8, 1, 1, 24))
    dims = ("seed", "epoch", "quantity", "node")
    grown = np.minimum(0.1 * np.exp(rate * t[:, None, None] + np.zeros((1, 1, 2, 1))), 1.0)
    told = xr.DataArray(grown, dims=dims)
    outputs = xr.DataArray(np.minimum(0.02 * np.exp(t / 10), 2) + np.zeros((8, 1)), dims=("seed", "epoch"))
    late = told.isel(epoch=0) + (told - told.isel(epoch=0)) * 2
    ds = xr.Dataset({"predicted_height": told, "measured_height": told.isel(epoch=0) + (told - told.isel(epoch=0)) * (1 - error)})
    ds = ds.assign(outputs=outputs, factor=late.mean("node"), other=xr.zeros_like(late.mean("node")) + 0.1)
    return ds.assign(curve_test=xr.ones_like(outputs)).assign_coords(seed=np.arange(8), epoch=t, quantity=["energy", "purity"])


def test_the_window_ends_where_outputs_stop_being_small():
    """.02 e^(t / 10) is .5 at t = 32.2: records 0, 3, ..., 30 are inside."""
    assert np.all(stage2_curves.window(planted()).sum("epoch") == 11)


def test_errors_are_parts_of_the_change():
    ds = planted(0.05)
    np.testing.assert_allclose(stage2_curves.apart(ds), 0.05 / 0.95, rtol=1e-9)
    own, told = (np.asarray(ds[name].isel(epoch=10) - ds[name].isel(epoch=0)) for name in ("measured_height", "predicted_height"))
    by_hand = 1 - ((own - told) ** 2).sum(-1) / ((own - own.mean(-1, keepdims=True)) ** 2).sum(-1)
    np.testing.assert_allclose(stage2_curves.explained(ds), by_hand, rtol=1e-9)


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert stage2_curves_passes(CURVES, planted())
    refuses_opponents(CURVES, planted())
    assert not stage2_curves_passes(CURVES, planted(0.2))


def test_growth_at_constant_speed_ends_where_the_flow_does():
    ds = planted()
    other = stage2_curves.steady(ds)
    np.testing.assert_allclose(other.isel(epoch=10), ds.predicted_height.isel(epoch=10))
    np.testing.assert_allclose(other.isel(epoch=5) - other.isel(epoch=0), (other.isel(epoch=10) - other.isel(epoch=0)) / 2)


def times(seed=0, width=0.0, rate=0.3):
    """Times that are powers of width and rate, the theory's in the rate alone; 5% noise."""
    rng = np.random.default_rng(seed)
    hidden, lr = np.array([32.0, 96, 256]), np.array([0.4, 0.7, 1.2])
    told = 25 * lr**0.3 * np.ones((16, 3, 1))
    seen = 35 * lr**rate * hidden[:, None] ** width * np.exp(0.05 * rng.normal(size=(16, 3, 3)))
    dims = ("seed", "hidden", "lr")
    ds = xr.Dataset({"predicted_until": (dims, told), "measured_until": (dims, seen), "last": (dims, 120 * lr + 0 * told)})
    return ds.assign_coords(seed=np.arange(16), hidden=hidden, lr=lr)


def test_powers_are_found():
    found = stage2_curves.power(times(width=-0.2).measured_until, "hidden")
    assert float(found.mean()) == pytest.approx(-0.2, abs=0.02)
    assert float(stage2_curves.power(times().measured_until, "lr").mean()) == pytest.approx(0.3, abs=0.03)


def test_until_when_is_read_and_rivals_are_told_apart():
    found = read(UNTIL, times(width=-0.3, rate=0.5))
    assert found[stage2_curves.WIDTH].value == pytest.approx(-0.3, abs=0.02)
    assert found[stage2_curves.RATE].value == pytest.approx(0.2, abs=0.03)
    assert read(UNTIL, times())[stage2_curves.RATIO].value == pytest.approx(np.log(35 / 25), abs=0.05)
    refuses_opponents(UNTIL, times())
    rivals = opponents(UNTIL)
    assert not refused(UNTIL, times(width=-1.0), rivals["outputs are sums over nodes: inverse in K"])
    assert not refused(UNTIL, times(rate=0.0), rivals["momentum is a factor: the same training time at all rates"])
