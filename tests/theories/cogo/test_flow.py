"""CoGO's flows on small groups.

Jacobian, velocities and infinite width against finite differences and samples in NumPy.

The path of zero loss, norms of products and the equilibrium with decay, against NumPy written from their statements.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.errors import Inconclusive
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import flow, semiring, solutions
from jaxdyn.theories.cogo.dynamics import flow as theory
from jaxdyn.theories.cogo.flow import occam
from jaxdyn.theories.cogo.flow import relax as claims
from jaxdyn.theories.cogo.flow.relax import padded, parts

# Occam's razor: live nodes, short training, judges, and settings that are refused.


def test_live_nodes():
    sizes = np.array([[1.0, 0.06, 0.04], [2.0, 0.0, 0.0]])
    assert list(occam.live(sizes)) == [2, 1]


@pytest.mark.parametrize("fields", [{"group": "3"}])
def test_settings_of_factors_are_checked(fields):
    with pytest.raises(jd.UsageError):
        occam.Factored(**fields)


@pytest.mark.parametrize("fields", [{"group": "2x2"}, {"steps": 30}])
def test_settings_of_training_are_checked(fields):
    with pytest.raises(jd.UsageError):
        occam.Pruned(**fields)


@pytest.mark.slow
def test_judges_accept_and_reject():
    ds = jd.sweep(occam.path_trial, jd.grid(occam.Factored, steps=2, draws=4), seeds=2)
    ds = ds.sel(form="printed", drop=True)
    assert all(c.passed for c in occam.judge_path(ds)) and occam.judge_norm(ds)[0].passed
    for name in ("output", "ends"):
        assert not all(c.passed for c in occam.judge_path(ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))
    assert not occam.judge_norm(ds.assign(predicted_floor=2 * ds.measured_floor))[0].passed
    third = occam.judge_tight(ds.assign(predicted_floor=ds.predicted_floor / 3))
    assert [c.passed for c in third] == [True, False]
    assert [c.passed for c in occam.judge_path(occam.SAME_NORM(ds))] == [True, False]


@pytest.mark.slow
def test_short_training_is_not_at_equilibrium():
    grid = jd.grid(occam.Pruned, steps=4, samples=2)
    ds = jd.sweep(occam.prune_trial, grid, seeds=1)
    assert ds.sizes["node"] == 24 and float(ds.energies.isel(step=0).item()) == pytest.approx(27.14, abs=0.05)
    checks = occam.judge_prune(ds)
    assert not any(c.passed for c in checks)
    done = ds.assign({f"measured_{n}": ds[f"predicted_{n}"] for n in ("nodes", "energy", "loss")})
    assert all(c.passed for c in occam.judge_prune(done))
    assert (
        not any(c.passed for c in occam.judge_prune(occam.STILL(done))[2:]) and not occam.judge_prune(occam.STILL(done))[0].passed
    )
    for name in ("nodes", "energy", "loss"):
        assert not all(c.passed for c in occam.judge_prune(done.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))


# The flow of potentials: padded rows, gradient flow of narrow networks, judges, and settings that are refused.


def test_rows_end_in_zeros():
    np.testing.assert_array_equal(padded([jnp.ones((2, 2)), jnp.full(3, 2.0)]), [[1, 1, 1, 1], [2, 2, 2, 0]])


def test_parts_are_real_and_imaginary(x64):
    np.testing.assert_array_equal(parts([jnp.array([1 + 2j]), jnp.array([3j, 4])]), [[[1, 0], [0, 4]], [[2, 0], [3, 0]]])


@pytest.mark.slow
def test_flow_of_a_narrow_network_is_not_exponential():
    ds = jd.sweep(claims.flow_trial, jd.grid(claims.Wide, width=[8.0, 16.0, 32.0], nodes=32), seeds=2)
    assert int(ds.status.max()) == 0
    assert np.allclose(claims.deviation(ds).isel(turns=0), 0, atol=1e-12)
    assert not claims.judge_relax(ds)[0].passed


@pytest.mark.parametrize("fields", [{"width": 5000.0}, {"group": "2x2"}, {"group": "x"}])
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError):
        claims.Wide(**fields)


@pytest.mark.slow
def test_relax_judges_accept_and_reject():
    ds = jd.sweep(claims.rdot_trial, jd.grid(claims.Potentials, groups=("2x2",), hidden=2), seeds=2)
    assert all(c.passed for c in claims.judge_rdot(ds))
    for name in ("spectrum", "velocity", "fall"):
        assert not all(c.passed for c in claims.judge_rdot(ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))
    wide = jd.grid(claims.Wide, width=[16.0, 64.0, 256.0], nodes=256)
    ds = jd.sweep(claims.decouple_trial, wide, seeds=1024)
    assert all(c.passed for c in claims.judge_decouple(ds)), [str(c) for c in claims.judge_decouple(ds)]
    few = claims.judge_decouple(ds.isel(seed=slice(8)))  # too few seeds decide nothing
    assert [c.passed for c in few[1:3]] == [None, None]
    for factor in (1.1, 0.9):
        assert claims.judge_decouple(ds.assign(predicted_ratio=factor * ds.predicted_ratio))[1].passed is False
    assert claims.judge_decouple(ds.assign(predicted_diagonal=1.1 * ds.predicted_diagonal))[2].passed is False
    assert [c.passed for c in claims.judge_decouple(ds.assign(measured_auto_ratio=0.9 * ds.measured_auto_ratio))] == [
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(Inconclusive):
        claims.judge_decouple(ds.isel(width=slice(2)))


def relaxing(seeds=32, n=4):
    """Made-up potentials that relax as predicted but for an error of 3% at 2048 nodes and a spread of 2% in the rate."""
    rng, turns = np.random.default_rng(0), np.linspace(0, 1.5, 5)
    widths = np.array([32.0, 128.0, 512.0, 2048.0])
    goal = np.zeros((2, n**3))
    goal[0, np.arange(n) * (n * n + n + 1)] = 1
    start = np.sqrt(widths)[:, None, None, None] * 0.1 * rng.normal(size=(4, seeds, 2, n**3))
    size = np.sqrt((np.square(start - goal)).sum(2).mean(2))
    error = np.sqrt(2048 / widths)[:, None]
    power = turns * (1 + 0.02 * error * rng.normal(size=(4, seeds)))[..., None]
    away = (start - goal)[:, :, None]
    noise = (0.015 * error * size)[..., None, None, None] * (turns / 1.5)[:, None, None] * rng.normal(size=(4, seeds, 5, 2, n**3))
    dims = ("width", "seed", "turns", "part", "potential")
    return xr.Dataset(
        {
            "predicted_r": (dims, goal + away * np.exp(-np.broadcast_to(turns, power.shape))[..., None, None]),
            "measured_r": (dims, goal + away * np.exp(-power)[..., None, None] + noise),
            "start": (("width", "seed"), size),
        },
        coords={"width": widths, "seed": np.arange(seeds), "turns": turns, "part": ["re", "im"]},
    )


def test_judge_of_relaxation_tells_half_the_goal_and_five_per_cent_of_the_rate():
    ds = relaxing()
    assert all(c.passed for c in claims.judge_relax(ds)), [str(c) for c in claims.judge_relax(ds)]
    for rival in (claims.STILL, claims.toward(0.0), claims.toward(0.5), claims.faster(1.05), claims.faster(0.95)):
        assert any(c.passed is False for c in claims.judge_relax(rival(ds)))
    names = [c.name for c in claims.judge_relax(claims.faster(0.95)(ds)) if c.passed is False]
    assert names == ["rate / lambda minus the predicted one, largest width"]


jacobian = jax.jit(theory.jacobian)
velocity = jax.jit(theory.velocity, static_argnums=1)
spectrum_velocity = jax.jit(theory.spectrum_velocity, static_argnums=1)
slope = jax.jit(theory.slope, static_argnums=1)
transform = jax.jit(semiring.transform, static_argnums=1)
gradient = jax.jit(jax.grad(model.loss), static_argnums=(1, 2))


def every(z):
    a, b, c = z
    return np.stack([np.einsum("aj,bj,cj->abc", x, y, c) for x, y in ((a, b), (a, a), (b, b))])


def case(name, seed=0, q=3):
    group = parse(name)
    w = np.random.default_rng(seed).normal(size=(3, group.order, q))
    return group, w, np.asarray(transform(w, group))


def test_jacobian_by_central_differences(x64):
    _, _, z = case("3", q=2)
    j = np.asarray(jacobian(jnp.asarray(z)))
    assert j.shape == (3, 3, 3, 3, 3, 3, 2)
    for at in np.ndindex(z.shape):
        step = np.zeros_like(z)
        step[at] = 1e-5
        slope = (every(z + step) - every(z - step)) / 2e-5  # exact up to rounding and a cubic term of 1e-10
        assert np.allclose(j[(..., *at)], slope, atol=1e-9)


@pytest.mark.parametrize("name", ["3", "2x2"])
def test_velocities_by_a_small_step_of_gradient_descent(x64, name):
    group, w, z = case(name)
    descent = -np.asarray(gradient(jnp.asarray(w), group, "paper"))
    h = 1e-5
    ahead, behind = (np.asarray(transform(w + s * h * descent, group)) for s in (1, -1))
    assert np.allclose((ahead - behind) / (2 * h), spectrum_velocity(jnp.asarray(z), group), atol=1e-9)
    assert np.allclose((every(ahead) - every(behind)) / (2 * h), velocity(jnp.asarray(z), group), atol=1e-8)


def test_slope_is_the_derivative_of_the_loss_by_potentials(x64):
    """For any complex potentials: the loss as a sum of squares, conjugate potentials taken as variables of their own."""
    group = parse("4")
    d, rng = 4, np.random.default_rng(1)
    r = rng.normal(size=(3, d, d, d, 2)) @ np.array([1, 1j])

    def loss(r):
        total = 0.0
        s = np.zeros((2, d, d), complex)
        for p, m, k, i in itertools.product(range(2), range(d), range(d), range(d)):
            s[p, m, k] += r[1 + p, i, (m - i) % d, k]
        for k in range(1, d):
            total += -2 * r[0, k, k, k].real + (abs(r[0, 1:, 1:, k]) ** 2).sum()
            total += abs(r[0, 0, 0, k] + s[:, 0, k].sum() / 2) ** 2
            total += sum(abs(r[0, m, 0, k] + s[0, m, k] / 2) ** 2 + abs(r[0, 0, m, k] + s[1, m, k] / 2) ** 2 for m in range(1, d))
        return total / d

    got = np.asarray(slope(r, group))
    h = 1e-5
    for at in np.ndindex(r.shape):
        parts = []
        for unit in (1, 1j):
            step = np.zeros_like(r)
            step[at] = h * unit
            parts.append((loss(r + step) - loss(r - step)) / (2 * h))
        assert abs(parts[0] + 1j * parts[1] - got[at]) < 1e-8


@pytest.mark.parametrize("name", ["5", "6"])
def test_metrics_are_those_of_the_jacobian(x64, name):
    group, _, z = case(name)
    j = np.asarray(jacobian(jnp.asarray(z)))
    n = group.order - 1
    cross = j[0, 1:, 1:, 1:].reshape(n**3, -1)
    assert np.allclose(jax.jit(theory.cross_gram)(z[:, 1:]), cross @ cross.conj().T, atol=1e-14)
    half, minus = group.pairs, group.negative[group.pairs]
    auto = np.stack([j[1 + p, half, minus, 1:] for p in range(2)]).reshape(2 * len(half) * n, -1)
    assert np.allclose(jax.jit(theory.auto_gram, static_argnums=1)(z, group), auto @ auto.conj().T, atol=1e-14)


def test_off_diagonal_statistics(x64):
    gram = np.array([[4.0, 1j, 0], [-1j, 1.0, 2.0], [0, 2.0, 1.0]])
    mean, rms, largest = theory.off_diagonal(jnp.asarray(gram))
    assert mean == pytest.approx(2.0) and rms == pytest.approx(np.sqrt((2 * 1 + 2 * 4) / 6)) and largest == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["3", "4"])
def test_spread_is_the_mean_square_over_draws(name):
    """Sums over nodes of independent terms: the mean square at width 4, in 20000 draws, within five standard errors."""
    group = parse(name)
    d, q, rng = group.order, 4, np.random.default_rng(0)
    ratios = []
    for _ in range(20):
        w = rng.normal(size=(1000, 3, d, q))
        z = np.fft.fft(w, axis=2)[:, :, 1:] / d
        z[:, 2] = z[:, 2].conj()
        a, b, c = z[:, 0], z[:, 1], z[:, 2]
        n = d - 1
        eye = np.eye(n)
        pairs = {}
        for key, (x, y) in {"bc": (b, c), "ac": (a, c), "ab": (a, b)}.items():
            both = (x[:, :, None] * y[:, None]).reshape(len(z), n * n, q)
            pairs[key] = (both @ both.conj().swapaxes(1, 2)).reshape(len(z), n, n, n, n)
        gram = np.einsum("ax,rbcyz->rabcxyz", eye, pairs["bc"]) + np.einsum("by,racxz->rabcxyz", eye, pairs["ac"])
        gram = (gram + np.einsum("cz,rabxy->rabcxyz", eye, pairs["ab"])).reshape(len(z), n**3, n**3)
        off = (np.abs(gram) ** 2).sum((1, 2)) - (np.abs(np.diagonal(gram, axis1=1, axis2=2)) ** 2).sum(1)
        ratios.append(off / (n**3 * (n**3 - 1)) / (q * 3 / d**2) ** 2)
    ratios = np.concatenate(ratios)
    want = theory.spread(group, q) ** 2
    assert abs(ratios.mean() - want) < 5 * ratios.std() / len(ratios) ** 0.5
    assert ratios.std() / len(ratios) ** 0.5 < 0.05 * want


def test_known_constants():
    assert theory.coupling(parse("7")) == pytest.approx(1 / (4 * 7**0.5))
    assert theory.spread(parse("5"), 4096) == pytest.approx(0.00719, rel=1e-3)
    assert theory.kappa(2.0, 5) == pytest.approx(48 / 25)
    assert theory.rate(1.0, 100.0, 5) == pytest.approx(2 * 100 * 3 / 625)


@pytest.mark.parametrize("name", ["5", "2x3"])
def test_autopotentials_stay_coupled(x64, name):
    group, q = parse(name), 4096
    w = np.random.default_rng(0).normal(size=(3, group.order, q))
    mean, rms, _ = theory.off_diagonal(theory.auto_gram(semiring.transform(jnp.asarray(w), group), group))
    assert float(rms / mean) == pytest.approx(theory.coupling(group), rel=0.05)


def test_relaxation_ends_at_the_goal(x64):
    start = jnp.ones((2, 2, 2), jnp.complex128) * (2 + 1j)
    r = theory.relaxed(start, jnp.asarray([0.0, 1.0, 50.0]))
    assert np.allclose(r[0], start) and np.allclose(r[2], theory.goal(2), atol=1e-10)
    assert np.isclose(r[1, 0, 0, 0], 1 + (1 + 1j) / np.e) and np.isclose(r[1, 0, 1, 0], (2 + 1j) / np.e)


@pytest.mark.parametrize("name", ["6"])
def test_modified_loss_is_the_cross_terms(x64, name):
    group, w, z = case(name)
    parts = jax.jit(semiring.terms, static_argnums=1)(jnp.asarray(z), group)
    got = jax.jit(theory.modified_loss, static_argnums=1)(jnp.asarray(w), group)
    assert np.isclose(got, (parts.target + parts.cross) / group.order, rtol=1e-13)


@pytest.mark.slow
def test_the_starting_rate_is_the_decoupled_one(x64):
    group, hidden = parse("7"), 4096
    z = semiring.transform(model.to_scale(model.init(jax.random.key(0), group, hidden, "float64"), group, "paper"), group)
    a, b, c = np.mean(np.abs(np.asarray(z)[:, 1:]) ** 2, (1, 2))
    assert theory.start_rate(7, hidden) == pytest.approx(2 * hidden * (b * c + a * c + a * b) / 49, rel=0.03)  # 24576 draws


FIVE = parse("5")


@functools.partial(jax.jit, static_argnums=(0, 1))
def solution(group, seed=0):
    n = solutions.sample(jax.random.key(seed), group)
    return solutions.f6(group, n.nu, n.phases)


@functools.partial(jax.jit, static_argnums=(0, 2))
def factor(group, seed=0, order=3):
    y = semiring.random(jax.random.key(seed), group, order)
    return flow.leading(flow.normalized(y), group)


path = jax.jit(flow.path)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 1000), t=st.floats(0, 3))
def test_every_point_keeps_the_potentials_and_the_real_weights(seed, t):
    with jax.enable_x64(True):
        y = factor(FIVE, seed)
        z = np.asarray(path(y, jnp.asarray(t)).z)
    r = (z[0] * z[1] * z[2]).sum(-1)
    assert np.allclose(r[1:], 1, atol=1e-9) and np.allclose(z[:, 0], 0)
    assert np.allclose(z, z[:, FIVE.negative].conj(), atol=1e-9 * np.abs(z).max())


def test_ends_of_the_legs(x64):
    y = factor(FIVE)
    z = [np.asarray(path(y, jnp.asarray(float(t))).z)[:, 1:] for t in range(4)]
    a, b, c = np.asarray(y.z)[:, 1:]
    assert np.allclose(z[0], np.stack([a, b, c]), rtol=1e-14)
    assert np.allclose(z[1][:2], np.stack([a, b])) and np.allclose(z[1][2, :, 0], 1 / (a * b)[:, 0])
    assert np.all(z[1][2, :, 1:] == 0) and np.all(z[2][:, :, 1:] == 0)
    assert np.allclose(z[3], np.asarray(flow.pseudo_identity(y).z)[:, 1:])
    half = np.asarray(path(y, jnp.asarray(2.5)).z)[0, 1:, 0]
    assert np.allclose(half**2, a[:, 0]) and np.all(half.real > 0)  # the principal root


def test_no_loss_on_the_path_even_with_a_real_character(x64):
    group = parse("6")
    x, y = solution(group), factor(group, 2, order=4)
    assert np.all(np.isfinite(y.z))
    ts = jnp.linspace(0, 3, 7)
    loss = jax.jit(jax.vmap(lambda t: model.fit(semiring.weights(semiring.multiply(flow.path(y, t), x), group), group).loss))(ts)
    assert np.max(loss) < 1e-24
    line = jax.jit(lambda t: model.fit(semiring.weights(semiring.multiply(flow.straight(y, t), x), group), group).loss)(1.5)
    assert line > 1e-3


@pytest.mark.slow
def test_a_leader_is_chosen_with_positive_entries_at_real_characters(x64):
    group = parse("2x2")
    z = jnp.ones((3, 4, 3), jnp.complex128).at[0, 1, 0].set(-1).at[:, 2, 1].set(0.1)
    y = flow.leading(semiring.element(z), group)
    assert np.allclose(y.z[..., 0], semiring.element(z).z[..., 2])
    none = flow.leading(semiring.element(z.at[0, 3].set(-1)), group)
    assert np.all(np.isnan(none.z))


@functools.partial(jax.jit, static_argnums=2)
def norms(x, key, order):
    """A random product with x: its potentials; its energy, the least of all products and that of x."""
    y = flow.normalized(semiring.random(key, FIVE, order))
    return semiring.multiply(y, x).z, flow.product_energy(y, x), flow.least_energy(x), semiring.energy(x)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 1000), order=st.sampled_from([1, 3]), tilt=st.sampled_from([1.0, 2.0]))
def test_norms_of_products(seed, order, tilt):
    with jax.enable_x64(True):
        x = solution(FIVE)
        x = x._replace(z=x.z * jnp.asarray([tilt, 1, 1 / tilt])[:, None, None])
        product, found, least, alone = (np.asarray(v) for v in norms(x, jax.random.key(seed), order))
    assert found == pytest.approx((np.abs(product) ** 2).sum(), rel=1e-12)
    assert found >= least * (1 - 1e-12)
    assert alone == pytest.approx(21.805, abs=1e-3) if tilt == 1 else alone > 1.7 * least
    assert tilt != 1 or least == pytest.approx(alone, rel=1e-12)


def test_published_counterexample(x64):
    """The norm of z' with a doubled and c halved falls when y halves a and doubles c."""
    x = solution(parse("7"))
    x = x._replace(z=x.z * jnp.asarray([2, 1, 0.5])[:, None, None])
    assert float(flow.imbalance(x)) == pytest.approx(15) and float(flow.imbalance(solution(parse("7")))) < 1e-12
    assert float(semiring.energy(x)) == pytest.approx(57.24, abs=5e-3)
    assert float(flow.least_energy(x)) == pytest.approx(32.71, abs=5e-3)


def test_equilibrium_with_weight_decay():
    """The minimum of loss plus decay over the scale of all layers, by scanning it."""
    decay, energy, d = 0.01, 21.8, 5
    s = np.linspace(0.8, 1, 200_001)
    total = (d - 1) / d * (1 - s**3) ** 2 + decay / 2 * d * energy * s**2
    with jax.enable_x64(True):
        got = float(flow.at_equilibrium(energy, jnp.asarray(decay), FIVE))
        assert float(flow.at_equilibrium(energy, jnp.asarray(0.0), FIVE)) == 1
    assert got == pytest.approx(s[np.argmin(total)], abs=2e-6)
