"""Theorem 4 of Li2: the three energies against dense algebra, the flow against an ODE solver, and judges on planted laws."""

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
from jaxdyn import flow
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.claims import retention
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import retention as theory

FOLDER = Path(__file__).parents[3] / "experiments"
RIDGE = 1e-3


def subsets(name, n, count=2, number=0):
    group = parse(name)
    seen = (theory.draw(jax.random.key(number), group.order, count) < n).astype(jnp.float64)
    return group, seen, jax.random.normal(jax.random.key(number + 1), (2 * group.order, count), jnp.float64)


def climbed(group, kind):
    """Energy and gradient as one program."""
    return jax.jit(lambda w, seen: theory.value_and_gradient(w, group, theory.make_data(seen, group, kind, RIDGE), kind))


def flowed(group, kind, steps, step):
    """The flow as one program."""
    return jax.jit(lambda w, seen: theory.flow(w, group, theory.make_data(seen, group, kind, RIDGE), kind, steps, step))


def dense(group, seen, kind):
    """The energy of one subset from its definition: n by n matrices and autodiff."""
    rows = np.argwhere(np.asarray(seen) > 0)
    y = np.eye(group.order)[group.table[rows[:, 0], rows[:, 1]]]
    n = len(rows)
    centring = np.eye(n) - 1 / n
    b = centring
    if kind == "whitened":
        shared = (rows[:, None] == rows[None]).sum(-1)
        b = np.linalg.inv(centring @ (4 + 2 * shared**2) @ centring + RIDGE * np.eye(n))

    def value(w):
        u, v = w[rows[:, 0]], w[group.order + rows[:, 1]]
        f = 2 * u * v if kind == "cross" else (u + v) ** 2
        return jnp.sum(jnp.square((centring @ y).T @ b @ f)) / 2

    return value


@pytest.mark.parametrize("kind", theory.OBJECTS)
@pytest.mark.parametrize(("name", "n"), [("5", 13), ("S3", 20), ("S3", 36)])
def test_energy_and_gradient_against_dense_matrices(x64, kind, name, n):
    group, seen, w = subsets(name, n)
    e, g = climbed(group, kind)(w, seen)
    for i in range(w.shape[1]):
        value, gradient = jax.jit(jax.value_and_grad(dense(group, seen[..., i], kind)))(w[:, i])
        np.testing.assert_allclose(e[i], value, rtol=1e-8)
        np.testing.assert_allclose(g[:, i], gradient, atol=1e-8 * float(jnp.abs(gradient).max()))


def test_the_whole_energy_is_that_of_partial_data(x64):
    group, seen, w = subsets("S3", 22)
    e, g = climbed(group, "plain")(w, seen)
    for i in range(w.shape[1]):
        value, gradient = energy.value_and_gradient(w[:, i : i + 1], group, seen=seen[..., i])
        np.testing.assert_allclose(e[i], value[0], rtol=1e-12)
        np.testing.assert_allclose(g[:, i], gradient[:, 0], atol=1e-12)


@pytest.mark.parametrize("kind", theory.OBJECTS)
@pytest.mark.parametrize(("name", "k"), [("5", 1), ("S3", 2)])
def test_all_pairs_keep_every_maximum(x64, kind, name, k):
    irreps = decompose(parse(name))
    group = irreps.group
    w = energy.random_maximum(jax.random.key(3), irreps, k, 4)
    end = flowed(group, kind, 20, 0.4)(w, jnp.ones((group.order, group.order, 4), jnp.float64))
    np.testing.assert_allclose(end.w, w, atol=1e-9)
    assert float(end.gradient.max()) < 1e-9


def test_what_is_left_has_mean_zero_and_rows_and_columns_are_damped(x64):
    group, seen, w = subsets("7", 30, 2)
    data = theory.make_data(seen, group, "whitened", RIDGE)

    @jax.jit
    def left(f):
        a, b = data.effects(seen * f)
        return seen * (f - a[:, None] - b) / data.scale

    noise = jax.random.normal(jax.random.key(9), seen.shape, jnp.float64)
    np.testing.assert_allclose(jnp.sum(left(noise), (0, 1)), 0, atol=1e-10)
    effect = jnp.broadcast_to(w[:7, None], seen.shape)
    size = [jnp.linalg.norm(left(f)) / jnp.linalg.norm(seen * f) for f in (effect - jnp.mean(effect, 0), noise)]
    assert size[0] < size[1] / 2


def test_subsets_are_drawn_without_replacement_and_grow():
    ranks = np.asarray(theory.draw(jax.random.key(0), 5, 3))
    np.testing.assert_array_equal(np.sort(ranks.reshape(25, 3), 0), np.arange(25)[:, None] * np.ones(3))
    assert len({tuple(r) for r in ranks.reshape(25, 3).T}) == 3
    many = np.asarray(theory.draw(jax.random.key(1), 3, 4000)) < 4
    np.testing.assert_allclose(many.mean(-1), 4 / 9, atol=4 * np.sqrt(20 / 81 / 4000))


def test_the_flow_follows_the_ode(x64, kind="whitened"):
    """Short times: Euler steps of .01 are off by about that. The end of a climb with steps of .4 is where small ones end."""
    irreps = decompose(parse("7"))
    group = irreps.group
    seen = (theory.draw(jax.random.key(5), 7, 16) < 35).astype(jnp.float64)
    data = theory.make_data(seen, group, kind, RIDGE)
    w = energy.random_maximum(jax.random.key(6), irreps, 1, 16)

    def field(t, w, args):
        g = theory.value_and_gradient(w, group, data, kind)[1]
        g = g / jnp.linalg.norm(g, axis=0)
        return g - w * jnp.sum(w * g, 0)

    exact = flow.solve(field, w, np.array([0.0, 2.0]), rtol=1e-8, atol=1e-10).ys[-1]
    np.testing.assert_allclose(flowed(group, kind, 400, 0.005)(w, seen).w, exact, atol=0.01)
    coarse, fine = (flowed(group, kind, steps, step)(w, seen) for steps, step in ((300, 0.4), (1200, 0.1)))
    np.testing.assert_allclose(jnp.linalg.norm(coarse.w, axis=0), 1, rtol=1e-12)
    assert bool((coarse.energy >= climbed(group, kind)(w, seen)[0] * (1 - 1e-9)).all())
    assert float(jnp.mean(jnp.abs(jnp.sum(coarse.w * fine.w, 0)) > 0.99)) > 0.9


SMALL = jd.grid(retention.Retention, c=[0.7, 1.3, 2.4, 4.5], spread=1.85, starts=("11", "S3/2"), subsets=8, steps=60)


@functools.cache
def runs():
    return jd.sweep(retention.trial, SMALL, 2)


def test_trial_keeps_more_with_more_pairs():
    ds = runs()
    assert (ds.status == 0).all() and ds.measured_mass.dims == ("c", "seed", "object", "start", "subset")
    np.testing.assert_allclose(ds.share.isel(c=0, seed=0), [2 / 11, 4 / 6])
    np.testing.assert_allclose(ds.degree.isel(c=0, seed=0), [1, 2])
    whole = ds.measured_mass.where(ds.p == 1)
    assert int((ds.p == 1).sum()) > 5
    np.testing.assert_allclose(whole.min(), 1, atol=1e-9)
    kept = (ds.measured_mass > 0.6).mean(["seed", "subset"]).sel(start="11")
    assert bool((kept.isel(c=-1) > kept.isel(c=0)).all())
    assert bool((ds.p.diff("c") >= 0).all())


def test_a_start_draws_the_same_in_other_company():
    other = jd.sweep(retention.trial, SMALL.replace(starts=("11",), c=[1.3]), 1)
    ours = runs().sel(start=["11"], c=[1.3], seed=[0])
    np.testing.assert_array_equal(other.p, ours.p)
    np.testing.assert_allclose(other.measured_mass, ours.measured_mass, atol=1e-6)


def planted(exponent=1.0, degree=2.0, noise=0.1, units=60):
    """Masses of .95 above each subset's own p and .1 below it: medians 2 (ln M / M)^exponent, and c_50 = d^degree / 2."""
    rng = np.random.default_rng(1)
    starts = ("31", "101", "331", "D30/1", "D30/2", "A5/3")
    order, d = np.array([31, 101, 331, 60, 60, 60.0]), np.array([1, 1, 1, 1, 2, 3.0])
    c = 0.3 * 1.2 ** np.arange(24)
    law = np.log(order) / order
    own = np.where(np.arange(6) < 3, law**exponent * 2 * law[0] ** (1 - exponent), d**degree * law / 2)
    own = own * np.exp(noise * rng.standard_normal((3, units, 6)))
    p = np.minimum(c[:, None, None] * 1.2 ** rng.uniform(-0.5, 0.5, (units, 6)) * law, 1)
    mass = np.where(p[:, None] >= own, 0.95, 0.1)
    coords = {"c": c, "seed": [0], "object": list(theory.OBJECTS), "start": list(starts), "subset": np.arange(units)}
    axes = ("c", "seed", "object", "start", "subset")
    data = {name: (axes, np.moveaxis(x, -1, -2)[:, None]) for name, x in (("measured_mass", mass), ("gradient", 0 * mass))}
    data["p"] = (("c", "seed", "start", "subset"), np.moveaxis(p, -1, -2)[:, None])
    data |= {name: ("start", values) for name, values in (("order", order), ("degree", d), ("share", 0.01 * d))}
    return xr.Dataset(data, coords)


def test_medians_of_planted_thresholds_and_their_intervals():
    found = retention.halves(planted())
    order = np.array([31, 101, 331.0])
    truth = 2 * np.log(order) / order
    low, high = found.interval()
    assert found.p.shape == (3, 6, 5) and found.drawn.shape == (3, 6, 5, retention.DRAWS)
    np.testing.assert_allclose(found.p[:, :3, 1], np.tile(truth, (3, 1)), rtol=0.08)
    assert np.mean((low[:, :3] <= truth[:, None]) & (truth[:, None] <= high[:, :3])) >= 0.8


def test_judges_recognise_the_theorem_and_refuse_other_laws():
    right, wrong, linear = planted(), planted(0.8), planted(degree=1.0)

    def verdicts(ds, words):
        return [check.passed for check in retention.judge(ds) if words in check.name]

    for words in ("over ln(ln M / M), whitened", "over ln M, plain", "drift", "largest M over"):
        assert all(verdicts(right, words)) and not any(verdicts(wrong, words)), words
    assert all(verdicts(right, ": theorem")) and not any(verdicts(right, "authors"))
    assert all(verdicts(linear, "authors")) and not any(verdicts(linear, ": theorem"))
    assert all(check.passed for check in retention.judge_whitened(right))
    assert not any(check.passed for check in retention.judge_whitened(wrong) if "slope" in check.name)
    assert len([check for check in retention.judge(right) if check.name.startswith("p_50")]) == 9


def test_a_threshold_beyond_the_grid_is_no_number():
    ds = planted()
    found = retention.halves(ds.isel(c=slice(0, 4)))
    assert np.isnan(found.p[:, :3]).all()
    assert not any(check.passed for check in retention.judge_whitened(ds.isel(c=slice(0, 4))))


def test_thresholds_above_chance_are_higher():
    ds = planted().isel(start=[0, 3, 4, 5])
    ds = ds.assign(measured_mass=0.2 + 0.7 * ds.p.broadcast_like(ds.measured_mass))
    plain, above = (retention.halves(ds.assign(share=ds.share + 0.2), (0.6,), above_chance=a).p[0, :, 0] for a in (False, True))
    np.testing.assert_allclose(plain, 0.4 / 0.7, rtol=0.1)
    share = 0.2 + 0.01 * ds.degree.values
    np.testing.assert_allclose(above, (share + 0.6 * (1 - share) - 0.2) / 0.7, rtol=0.1)


def test_too_little_data_decides_nothing():
    for part, words in (
        (planted().isel(c=[3]), "three values of c"),
        (planted().isel(subset=slice(4)), "8 subsets"),
        (planted().isel(start=[0, 1, 3, 4, 5]), "three groups"),
    ):
        with pytest.raises(jd.Inconclusive, match=words):
            retention.judge(part)


@pytest.mark.parametrize("claim", retention.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(planted(), fig)
    assert len(fig.axes) == 2 and all(ax.has_data() for ax in fig.axes)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"starts": ()}, "at least one"),
        ({"starts": ("7", "7")}, "differ"),
        ({"starts": ("S3/3",)}, "no irrep of degree 3"),
        ({"starts": ("S3/x",)}, "group/degree"),
        ({"starts": ("X9",)}, "X9"),
        ({"step": 0.9}, "step between"),
        ({"subsets": 0}, "at least 1"),
        ({"ridge": 0.0}, "positive"),
        ({"spread": 0.5}, "spread"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(retention.Retention, **fields)


def test_a_degree_that_only_the_irreps_can_tell_is_refused_by_the_trial(x64):
    """No group of order 12 is refused degree 2 at once, but A4 has degrees 1, 1, 1, 3."""
    s = retention.Retention(starts=("A4/2",), subsets=1, steps=1)
    with pytest.raises(jd.UsageError, match="A4 has no irrep of degree 2"):
        retention.trial(s, jax.random.key(0))


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import li2_thm4

    yield li2_thm4
    sys.modules.pop("li2_thm4", None)


def test_the_script_writes_tables_and_figures(script, monkeypatch, tmp_path):
    monkeypatch.setitem(script.SCALES, "quick", {"groups": ("31", "101", "331"), "degrees": ("D30/1", "D30/2", "A5/3")})
    monkeypatch.setattr(script, "swept", lambda out, start, case: planted().sel(start=[start]))
    script.run("quick", tmp_path)
    found = {name: (tmp_path / f"{name}.csv").read_text() for name in ("halves", "slopes", "degrees")}
    assert found["halves"].count("\n") == 10 and found["slopes"].count("\n") == 16 and "exponent of d" in found["degrees"]
    assert all((tmp_path / f"li2_thm4{end}.{kind}").exists() for end in ("", "_halves") for kind in ("svg", "png"))


def test_a_sweep_of_the_script_resumes(script, tmp_path):
    case = {"c": [1.0, 1.5], "spread": 1.5, "subsets": 2, "steps": 5, "seeds": 2}
    ds = script.swept(tmp_path, "S3/2", case)
    assert ds.sizes["start"] == 1 and "status" not in ds
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "S3_d2").rglob("*.nc")}
    xr.testing.assert_identical(ds.measured_mass, script.swept(tmp_path, "S3/2", case).measured_mass)
    assert written and written == {path: path.stat().st_mtime_ns for path in written}
