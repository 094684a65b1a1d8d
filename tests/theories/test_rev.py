"""The reversal curse: one-layer and bilinear networks against NumPy, their equations, SGD, and judges of the theorems."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
import xarray as xr
from filelock import FileLock

import jaxdyn as jd
from jaxdyn import flow, plotting
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.code_field import Code
from jaxdyn.theories.rev import bil_ratio, bounds, clock_asym, model, one_layer, query_context, thm3_thm4_cot
from jaxdyn.theories.rev import dynamics as bilinear_theory
from jaxdyn.theories.rev import dynamics as one_layer_theory
from jaxdyn.theories.rev.one_layer import EXPONENT
from jaxdyn.theories.snap import model as snap
from tests.theories.rev.helpers import SIZES, distorted, inside, numpy_losses, passed, plain, rejected, theory
from tests.theories.rev.helpers import M as ONE_LAYER_M


@pytest.fixture(scope="session")
def swept_once(own_cache):
    """A function as ``jd.sweep``: the first worker that wants the runs makes them, the others read them."""

    def sweep(name, *args):
        out = Path(os.environ["JAXDYN_CACHE"]) / "rev" / name
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out.with_suffix(".lock")):
            return jd.sweep(*args, out=out)

    return sweep


@pytest.fixture(scope="session")
def cot_runs(swept_once):
    """Chains of thought; the judges of pairs can use the same runs."""
    grid = jd.grid(one_layer.OneLayer, task="cot", context=["entity", "both"], leak=[0.0, 1.0], eta=[0.5, 0.9], **SIZES)
    return swept_once("cot", one_layer.trial, grid, 12)


@pytest.fixture(scope="session")
def flow_runs(swept_once):
    axes = {"kind": ["gaussian", "orthonormal"], "symmetric": [0.0, 1.0], "stop": [0.0, 0.1], "d": [15, 200]}
    return swept_once("flow", bil_ratio.trial, jd.grid(bil_ratio.Bilinear, sigma=0.0, **axes), 12)


M = 7


SEQUENCE = np.array([2, 5, 3], np.int32)


PRESENT = {"x1": np.array([1.0, 0.0]), "both": np.array([1.0, 1.0])}


def numpy_log_p(y, z, sequence, both, tied):
    x1, x2 = sequence[:2]
    keys = [x1, x2] if both else [x1]
    c = np.exp([z[x2, k] for k in keys])
    c /= c.sum()
    w = y + y.T if tied else y
    scores = (c / np.sqrt((c**2).sum())) @ w[keys]
    return scores - np.log(np.exp(scores).sum())


def random_params(seed=0):
    return np.random.default_rng(seed).normal(size=(2, M, M))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("keys", PRESENT)
def test_forward(x64, keys, tied):
    y, z = random_params()
    active = model.read(model.Params(jnp.asarray(y), jnp.asarray(z)), jnp.asarray(SEQUENCE), tied)
    expected = numpy_log_p(y, z, SEQUENCE, keys == "both", tied)
    np.testing.assert_allclose(model.log_probabilities(active, jnp.asarray(PRESENT[keys])), expected, rtol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("keys", PRESENT)
def test_step_is_descent_of_finite_differences(x64, keys, tied):
    y, z = random_params(1)
    params = model.Params(jnp.asarray(y), jnp.asarray(z))
    after = model.sgd_step(params, jnp.asarray(SEQUENCE), jnp.asarray(PRESENT[keys]), jnp.float64(0.5), jnp.float64(0.25), tied)

    def cost(flat):
        y, z = flat.reshape(2, M, M)
        return -numpy_log_p(y, z, SEQUENCE, keys == "both", tied)[SEQUENCE[2]]

    gradient = scipy.optimize.approx_fprime(np.stack([y, z]).ravel(), cost, 1e-7).reshape(2, M, M)
    np.testing.assert_allclose(after.y, y - 0.5 * gradient[0], atol=2e-7)
    np.testing.assert_allclose(after.z, z - 0.25 * gradient[1], atol=2e-7)


def test_step_is_that_of_the_dense_network_on_counts(x64):
    y, z = random_params(2)
    params = model.Params(jnp.asarray(y), jnp.asarray(z))
    counts = jnp.zeros((1, M)).at[0, SEQUENCE[:2]].set(1.0)
    query, label = jnp.asarray(SEQUENCE[1:2]), jnp.asarray(SEQUENCE[2:])
    dense = jax.jit(jax.grad(snap.cross_entropy))(params, counts, query, label, jnp.ones(1))
    after = model.sgd_step(params, jnp.asarray(SEQUENCE), jnp.asarray(PRESENT["both"]), jnp.float64(1.0), jnp.float64(1.0), False)
    np.testing.assert_allclose(after.y, y - dense.y, rtol=1e-12)
    np.testing.assert_allclose(after.z, z - dense.z, rtol=1e-12, atol=1e-15)


def test_attention_over_one_key_has_no_gradient(x64):
    y, z = random_params(3)
    g = jax.jit(jax.grad(model.loss))(
        model.read(model.Params(jnp.asarray(y), jnp.asarray(z)), jnp.asarray(SEQUENCE)),
        jnp.asarray(PRESENT["x1"]),
        int(SEQUENCE[2]),
    )
    assert np.all(np.asarray(g.z) == 0)
    assert np.all(np.asarray(g.rows[1]) == 0)


@pytest.mark.slow
def test_training_is_the_replayed_recursion(x64):
    """SGD replayed in NumPy on the trial's own draws of sequences."""
    s = inside(one_layer.OneLayer(**SIZES | {"steps": 500}))
    key = jax.random.key(3)
    facts = one_layer.sample(jax.random.key(4), s.task, s.vocabulary, s.train_indices, s.test_indices)
    last, visits_at = jax.jit(lambda: one_layer.train_sgd(s, key, facts, lambda run: run.visits))()
    n = len(facts.train)
    y, visits = np.zeros((ONE_LAYER_M, ONE_LAYER_M)), np.zeros(n + 3, int)
    draws = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i), (), jnp.float64))(jnp.arange(500))
    for u in np.asarray(draws):
        i = int(u * n)
        x1, _, x3 = np.asarray(facts.train[i])
        p = np.exp(y[x1]) / np.exp(y[x1]).sum()
        y[x1] += 0.5 * (np.eye(ONE_LAYER_M)[x3] - p)
        visits[i] += 1
    np.testing.assert_allclose(last.params.y, y, atol=1e-12)
    np.testing.assert_array_equal(last.visits, visits)
    np.testing.assert_array_equal(visits_at.sum(1), one_layer.record_steps(500))
    assert np.all(np.asarray(last.params.z) == 0)


@pytest.mark.slow
def test_mean_is_the_binomial_mixture(cot_runs):
    ds, n = plain(cot_runs).isel(seed=0), 3 * 4 + 2 * 3
    u = [0.0]
    while len(u) < 800:
        u.append(u[-1] + 0.5 * ONE_LAYER_M / (ONE_LAYER_M - 1 + np.exp(u[-1])))
    p = 1 / (1 + (ONE_LAYER_M - 1) * np.exp(-np.array(u)))
    for i, t in enumerate(one_layer.record_steps(3000)):
        weight = scipy.stats.binom.pmf(np.arange(800), t, 1 / n)
        np.testing.assert_allclose(ds.predicted_mean.sel(token="target")[i], weight @ p, rtol=1e-9)


@pytest.mark.parametrize("task", ["reversal", "cot"])
def test_fewer_training_indices_are_shown(x64, task):
    s = inside(one_layer.OneLayer(**SIZES, task=task, shown=0.5))
    shown = np.asarray(one_layer.shown_mask(s))
    kinds, known = (2, 1) if task == "reversal" else (3, 2)
    np.testing.assert_array_equal(shown, [True, True, False, False] * kinds + [True] * 3 * known)
    law, n = one_layer.laws(s), shown.sum()
    np.testing.assert_allclose(law.time, ONE_LAYER_M * 0.5 * np.array(one_layer.record_steps(3000)) / n)
    assert len(law.u) > 3000 / n  # visits of a row


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"vocabulary": 20}, "vocabulary=20 is not allowed: 94 tokens are used"),
        ({"shown": 0.001}, "shown shows at least one index"),
    ],
)
def test_settings_that_do_not_fit(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        one_layer.OneLayer(**fields)


def test_test_judges(cot_runs):
    assert passed(thm3_thm4_cot.judge_test, plain(cot_runs))
    assert not passed(thm3_thm4_cot.judge_test, distorted(plain(cot_runs), "test", 1.1))
    assert not passed(thm3_thm4_cot.judge_test, thm3_thm4_cot.AS_TRAINED(plain(cot_runs)))
    assert not passed(thm3_thm4_cot.judge_test, plain(cot_runs, leak=1.0))


def test_indirect_judge(cot_runs):
    chains = plain(cot_runs)
    assert passed(thm3_thm4_cot.judge_indirect, chains)
    assert not passed(thm3_thm4_cot.judge_indirect, distorted(chains, "test", 0.9))
    assert not passed(thm3_thm4_cot.judge_indirect, chains.assign(measured_test=chains.closed))
    for rival in (thm3_thm4_cot.GUESSED, thm3_thm4_cot.ONE_STEP_ENOUGH):
        assert not passed(thm3_thm4_cot.judge_indirect, rival(chains))


def test_chain_judge(cot_runs):
    chains = plain(cot_runs, eta=[0.9]).isel(record=[2, 5, -1])  # so few tokens need long to be certain
    assert not rejected(thm3_thm4_cot.judge_chain, chains)
    assert rejected(thm3_thm4_cot.judge_chain, distorted(chains, "chain", 1.1))
    assert rejected(thm3_thm4_cot.judge_chain, chains.assign(measured_chain=chains.shuffled))
    for rival in (thm3_thm4_cot.GUESSED, thm3_thm4_cot.ONE_CLOCK):
        assert rejected(thm3_thm4_cot.judge_chain, rival(chains))
    with pytest.raises(jd.Inconclusive, match="no record is late enough"):
        thm3_thm4_cot.judge_chain(chains.isel(record=slice(2)))


BOUNDS_M = 200


@pytest.fixture
def flowing():
    """Eight runs of 300 sequences whose 1 - p scatters by 5% around gradient flow's."""
    rng, s = np.random.default_rng(0), np.geomspace(3e4, 2e5, 5)
    u = np.array([scipy.optimize.brentq(lambda u, s=s: (BOUNDS_M - 1) * u + np.exp(u) - 1 - s, 0, 20) for s in s])
    missing = (BOUNDS_M - 1) / (BOUNDS_M - 1 + np.exp(u))
    each = missing * np.exp(0.05 * rng.normal(size=(8, 300, 5)))
    run, record = ("seed", "record"), np.ones((8, 1))
    exponent = np.log((BOUNDS_M - 1) / (2 * missing)) / np.log(s)
    mean = each.mean(1)
    return xr.Dataset(
        {
            "measured_bound": (("seed", "sequence", "record"), 1 - each),
            "predicted_bound": (run, record * (1 - (BOUNDS_M - 1) / (2 * s**EXPONENT))),
            "measured_missing": (run, mean),
            "predicted_mean": (("token", *run), np.stack([record * (1 - missing), record * missing / (BOUNDS_M - 1)])),
            "measured_exponent": (run, np.log((BOUNDS_M - 1) / (2 * mean)) / np.log(s)),
            "predicted_exponent": (run, record * exponent),
            "drawn": (("seed", "sequence"), np.ones((8, 300), bool)),
            "late": ("record", np.linspace(12, 80, 5)),
            "s": (run, record * s),
            "size": ("seed", np.full(8, float(BOUNDS_M))),
        },
        {"token": ["target", "other"]},
    )


def test_sequences_of_the_flow_are_upheld(flowing):
    assert passed(bounds.judge_bound, flowing)


@pytest.mark.parametrize("name", list(bounds.RIVALS))
def test_rivals_are_rejected(flowing, name):
    with np.errstate(over="ignore"):
        rival = theory(bounds.RIVALS[name])(flowing)
    assert rejected(bounds.judge_bound, rival)


@pytest.mark.parametrize(("name", "factor"), [("exponent", 1.1), ("mean", 1.001), ("mean", 0.999), ("bound", 1.01)])
def test_distortions_are_rejected(flowing, name, factor):
    assert not passed(bounds.judge_bound, distorted(flowing, name, factor))


def test_a_few_sequences_may_break_the_bound_and_more_may_not(flowing):
    def broken(count):
        where = (flowing.sequence if "sequence" in flowing.coords else xr.DataArray(np.arange(300), dims="sequence")) < count
        return flowing.assign(measured_bound=flowing.measured_bound.where(~where, 0.0))

    assert bounds.judge_bound(broken(0))[0].value == 1.0
    assert bounds.judge_bound(broken(30))[0].passed is False


def test_the_bound_is_judged_late(flowing):
    with pytest.raises(jd.Inconclusive, match="no record is late enough"):
        bounds.judge_bound(flowing.assign(late=flowing.late / 100))


def test_context_judges(cot_runs):
    one, both = plain(cot_runs), plain(cot_runs, context="both")
    assert not rejected(query_context.judge_shares, one) and rejected(query_context.judge_shares, both)
    noise = np.random.default_rng(0).normal(size=one.measured_share.shape)
    law = (0.97 * one.predicted_share).broadcast_like(one.measured_share)
    many = one.assign(measured_share=law.transpose(*one.measured_share.dims) * (1 + 0.01 * noise))
    assert passed(query_context.judge_shares, many)
    assert rejected(query_context.judge_shares, many.assign(predicted_share=one.predicted_share + [-0.1, 0.1]))
    assert passed(query_context.judge_query, both)
    assert not passed(query_context.judge_query, one)
    bounds = {c.name: c.bound for c in query_context.judge_query(both)}
    for rival in (query_context.UNLEARNED, query_context.LEARNED_TOO):
        said = {name: value(both) if callable(value) else value for name, value in rival.items()}
        assert not any(bounds[name][0] <= value <= bounds[name][1] for name, value in said.items())


def test_asymmetry_judges(cot_runs):
    ds, leaked = plain(cot_runs), plain(cot_runs, leak=1.0)
    assert passed(clock_asym.judge_asymmetry, ds) and passed(clock_asym.judge_skip, ds)
    np.testing.assert_allclose(
        clock_asym.asymmetry(ds.predicted_entry.isel(matrix=0)), (M := ds["size"].values) / (M - 2), rtol=1e-9
    )
    assert not passed(clock_asym.judge_asymmetry, distorted(ds, "entry", 1.1))
    assert not passed(clock_asym.judge_skip, distorted(ds, "entry", 0.9))
    assert not passed(clock_asym.judge_asymmetry, leaked) and not passed(clock_asym.judge_skip, leaked)


@pytest.fixture
def runs(cot_runs):
    """Real rows; their means are made up, near the law, since so few runs would decide nothing."""
    ds = plain(cot_runs)
    law, noise = ds.predicted_mean, np.random.default_rng(0).normal(size=ds.predicted_mean.shape)
    wrong = xr.where(law.token == "target", 1 - law, law).transpose(*law.dims) * (1 + 0.002 * noise)
    near = xr.where(law.token == "target", 1 - wrong, wrong)
    return ds.assign(measured_mean=near.transpose(*law.dims))


@pytest.mark.parametrize("name, factor", [("mean", 1.1), ("mean", 0.9), ("row", 1.1), ("row", 0.9)])
def test_clock_judge(runs, name, factor):
    assert passed(clock_asym.judge_clock, runs)
    assert rejected(clock_asym.judge_clock, distorted(runs, name, factor))


def test_clock_judge_rejects_other_models_and_the_flow(runs, cot_runs):
    assert rejected(clock_asym.judge_clock, clock_asym.ROW_STILL(runs))
    assert [c.passed for c in clock_asym.judge_clock(runs.assign(predicted_mean=runs.flow_mean))][0] is False
    assert rejected(clock_asym.judge_clock, plain(cot_runs, context="both"))
    assert not rejected(clock_asym.judge_clock, plain(cot_runs)), "few runs refute nothing"


BY_ID = {
    c.id: c for c in {c.plot: c for c in all_claims(theories={"rev"}).values()}.values()
}  # a figure that two claims share is drawn once


@pytest.mark.slow
@pytest.mark.parametrize("ident", [name for name, c in sorted(BY_ID.items()) if ".mlt" not in c.trial.__module__])
def test_plots_draw(ident, cot_runs, flow_runs):
    from jaxdyn import plotting

    claim = BY_ID[ident]
    if claim.trial is bil_ratio.trial:
        ds = flow_runs.sel(kind="gaussian", symmetric=0.0, stop=[0.1] if ident == "rev.bil_lower" else 0.0)
    else:
        ds = plain(cot_runs, eta=[0.5, 0.9]) if ident == "rev.cot" else plain(cot_runs)
    assert plotting.render(claim.plot, ds).startswith("<svg")


# Closed forms of the bilinear model against SciPy.


def test_orthonormal_closed_form(x64):
    n, m = 2, 6
    t = np.array([0.0, 1.0, 10.0, 100.0])

    def rate(_, flat):
        w = flat.reshape(m, m)
        g = np.zeros((m, m))
        for i in range(n):
            g[i] = np.exp(w[i]) / np.exp(w[i]).sum() / n
            g[i, n + i] -= 1 / n
        return -g.ravel()

    path = scipy.integrate.solve_ivp(rate, (0, 100), np.zeros(m * m), t_eval=t, rtol=1e-10, atol=1e-12).y.T.reshape(-1, m, m)
    losses = [numpy_losses(w, n) for w in path]
    np.testing.assert_allclose(bilinear_theory.orthonormal_loss(t, m, n), [x for x, _ in losses], rtol=1e-7)
    np.testing.assert_allclose([x for _, x in losses], np.log(m), rtol=1e-12)


def test_orthonormal_loss_at_the_reference_point(x64):
    np.testing.assert_allclose(bilinear_theory.orthonormal_loss(1000.0, 20, 5), 0.0049303775, rtol=1e-7)
    assert bilinear_theory.half_guess(20) == pytest.approx(2.302585)
    np.testing.assert_allclose(bilinear_theory.reverse_floor(3.0, 0.01, 0.5), 0.3)


def first_exponents(n, m, d, draws):
    """Of Gaussian tokens, from the gradients of both losses at W = 0, where they are equal."""
    v = np.random.default_rng(0).normal(size=(draws, m, d)) / np.sqrt(d)
    gram, pair = v @ v.transpose(0, 2, 1), np.arange(n)
    forward, reverse = np.full((2, n, m), 1 / (m * n))
    forward[pair, n + pair] -= 1 / n
    reverse[pair, pair] -= 1 / n
    move = -(gram[:, : 2 * n, :n] @ forward @ gram)
    return np.sum(reverse * move[:, n:], (1, 2)) / np.sum(forward * move[:, :n], (1, 2))


def test_first_exponent_of_gaussian_tokens():
    m, d, draws = 20, 100, 1000
    mean, sd = bilinear_theory.first_exponent(m, d)
    for n in (3, 10):
        measured = first_exponents(n, m, d, draws)
        assert abs(measured.mean() - mean) < 0.1 * mean + 4 * sd / np.sqrt(draws)  # next order 1/m, and four standard errors
        assert abs(measured.std() / sd - 1) < 0.1 + 4 / np.sqrt(2 * draws)


def test_mean_rise_of_the_reverse_loss(x64):
    """Rows that have gained exactly what training gives them, seen through the overlaps of Gaussian tokens."""
    n, m, d, draws, final = 20, 80, 100, 200, 0.01
    a, pair = (1 - 1 / m) * np.log((m - 1) / np.expm1(final)), np.arange(n)
    v = np.random.default_rng(1).normal(size=(draws, m, d)) / np.sqrt(d)
    gained = np.full((n, m), -a / (m - 1))
    gained[pair, n + pair] = a
    loss = np.log(1 + (m - 1) * np.exp(-(a + a / (m - 1))))
    assert loss == pytest.approx(final)
    w = (v[:, n : 2 * n] @ v[:, :n].transpose(0, 2, 1)) @ gained @ (v @ v.transpose(0, 2, 1))
    rise = np.mean(np.log(np.exp(w).sum(-1)) - w[:, pair, pair], 1) - np.log(m)
    law = float(bilinear_theory.mean_rise(final, n, m, float(d)))
    assert law > 0.1 and abs(rise.mean() - law) < 0.1 * law + 4 * rise.std() / np.sqrt(draws)
    assert float(bilinear_theory.mean_rise(final, n, m, 1e9)) == pytest.approx(0, abs=1e-6)


# Bounds, exponents and entries of a row against mpmath and a replay.


def test_bound_and_exponents():
    s, size = np.array([1e3, 5e5]), 1000.0
    p = one_layer_theory.bound(s, size, 0.85)
    np.testing.assert_allclose(p, 1 - 999 / (2 * s**0.85), rtol=1e-6)
    np.testing.assert_allclose(one_layer_theory.effective_exponent(p, s, size), 0.85, rtol=1e-5)


def test_exponent_of_the_flow(x64):
    with mpmath.workdps(30):
        for s in (1e6, 1e12):
            u = mpmath.findroot(lambda u, s=s: 999 * u + mpmath.exp(u) - 1 - s, mpmath.log(s))
            p = 1 / (1 + 999 * mpmath.exp(-u))
            exact = mpmath.log(999 / (2 * (1 - p))) / mpmath.log(s)
            assert abs(float(one_layer_theory.effective_exponent(float(p), s, 1000.0)) - float(exact)) < 1e-5
            assert abs(float(one_layer_theory.flow_exponent(float(u), s, 1000.0)) - float(exact)) < 1e-12
            assert exact < 1 - mpmath.log(2) / mpmath.log(s) < exact + 0.01


def test_time():
    np.testing.assert_allclose(one_layer_theory.time(0.5, np.array([10.0, 20.0]), 200.0, 40), [25.0, 50.0])


@pytest.mark.parametrize("visits", [0, 1, 40])
def test_entries_of_a_row(x64, visits):
    y, u = np.zeros(M), 0.0
    for _ in range(visits):
        p = np.exp(y) / np.exp(y).sum()
        y += 0.5 * (np.eye(M)[3] - p)
        u += 0.5 * M / (M - 1 + np.exp(u))
    np.testing.assert_allclose(one_layer_theory.entry_target(u, M), y[3], rtol=1e-12)
    np.testing.assert_allclose(one_layer_theory.entry_other(u, M), y[0], rtol=1e-12)


# The bilinear model against NumPy, and its reduced flow against that of the dense parameters.


def test_gaussian_and_orthonormal_tokens(x64):
    sample = jax.jit(lambda kind, d: bil_ratio.sample_tokens(jax.random.key(0), kind, 30, d, 500))
    gaussian, orthonormal = (Code.of(kind, bil_ratio.KINDS) for kind in bil_ratio.KINDS)
    gauss = np.asarray(sample(gaussian, 400.0))
    assert np.all(gauss[:, 400:] == 0) and abs(np.mean(np.sum(gauss**2, 1)) - 1) < 0.06
    for d in (30.0, 64.0):
        frame = np.asarray(sample(orthonormal, d))
        np.testing.assert_allclose(frame @ frame.T, np.eye(30), atol=1e-12)
    assert np.linalg.matrix_rank(np.asarray(sample(orthonormal, 20.0))) == 20


def test_orthonormal_tokens_in_few_dimensions(x64):
    frame = np.asarray(bil_ratio.sample_tokens(jax.random.key(0), Code.of("orthonormal", bil_ratio.KINDS), 6, jnp.float64(4.0), 4))
    assert frame.shape == (6, 4) and np.all(np.linalg.norm(frame, axis=1) <= 1 + 1e-12)


def test_bilinear_losses(x64):
    w = jnp.asarray(np.random.default_rng(0).normal(size=(9, 9)))
    forward, reverse = numpy_losses(np.asarray(w), 3)
    np.testing.assert_allclose(bil_ratio.loss(w, 3), forward, rtol=1e-12)
    np.testing.assert_allclose(bil_ratio.reverse_loss(w, 3), reverse, rtol=1e-12)
    np.testing.assert_allclose(bil_ratio.objective(w, 3, 0.5), forward + 0.5 * reverse, rtol=1e-12)


@pytest.mark.slow
def test_flow_of_theta_and_of_its_effective_weights_agree(x64):
    n, m, d = 2, 6, 5
    v = bil_ratio.sample_tokens(jax.random.key(1), Code(0, bil_ratio.KINDS), m, jnp.float64(d), d)
    t = np.array([0.0, 5.0, 20.0])

    def theta_of(a, symmetric):
        return a + symmetric * (a.T - a) / 2

    def cost(a, symmetric):
        return bil_ratio.objective(bil_ratio.effective(theta_of(a, symmetric), v, n), n, 0.3)

    @jax.jit
    def both(symmetric):
        start = theta_of(0.1 * jax.random.normal(jax.random.key(2), (d, d), jnp.float64), symmetric)
        full = jax.vmap(theta_of, (0, None))(flow.gradient_flow(cost, start, t, symmetric).ys, symmetric)
        args = bil_ratio.Flow(v @ v.T, jnp.float64(0.3), symmetric)
        reduced = flow.solve(lambda t, w, a: bil_ratio.field(w, a, n), bil_ratio.effective(start, v, n), t, args)
        return reduced.ys, jax.vmap(lambda theta: bil_ratio.effective(theta, v, n))(full)

    for symmetric in (0.0, 1.0):
        np.testing.assert_allclose(*both(jnp.float64(symmetric)), atol=1e-8)


# Flows that are refused.


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"d": 400.0}, "max_d"),
        ({"d": 1.5}, "d=1.5"),
    ],
)
def test_impossible_flows(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        bil_ratio.Bilinear(**fields)


# Judges of the bilinear model.


def synthetic(exponent):
    """Losses whose reverse follows the forward one with exponents of this size, a function of d, times a normal number."""
    d, time, seed = [20.0, 50.0, 100.0, 200.0], np.arange(6), np.arange(16)
    forward = xr.DataArray(3 * np.exp(-1.3 * time), {"time": time}, "time") * xr.ones_like(
        xr.DataArray(seed, {"seed": seed}, "seed")
    )
    size = xr.DataArray([exponent(x) for x in d], {"d": d}, "d")
    random = xr.DataArray(np.random.default_rng(0).normal(size=16), {"seed": seed}, "seed")
    reverse = 3 * (forward / 3) ** (size * random)
    names = {"measured_forward": forward + 0 * size, "measured_reverse": reverse, "measured_floor": reverse}
    return xr.Dataset(names | {"predicted_floor": 3 * (forward / 3) ** bil_ratio.EXPONENT + 0 * size}).transpose(
        "d", "seed", "time"
    )


def test_trend_of_the_exponent():
    ds = synthetic(lambda d: 1.5 / d)
    assert passed(bil_ratio.judge_ratio, ds)
    np.testing.assert_allclose(bil_ratio.slope(bil_ratio.largest(ds)), -1, atol=1e-9)
    assert not passed(bil_ratio.judge_ratio, synthetic(lambda d: 0.005))
    assert not passed(bil_ratio.judge_ratio, synthetic(lambda d: 30 / d))
    for factor in (1.1, 0.9):
        assert not passed(bil_ratio.judge_ratio, distorted(ds, "floor", factor))
    for exponent in (0.0, 1.0):
        assert not passed(bil_ratio.judge_ratio, bil_ratio.floor_at(exponent)(ds))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of d"):
        bil_ratio.judge_ratio(ds.sel(d=[20, 50]))
    with pytest.raises(jd.Inconclusive, match="of 200 or more"):
        bil_ratio.judge_ratio(ds.sel(d=[20, 50, 100]))


@pytest.mark.slow
def test_event_and_closed_form_of_the_flow(flow_runs):
    ds = flow_runs.sel(kind="gaussian", symmetric=0.0, d=[200.0], stop=[0.1])
    assert bool(ds.stopped.all()) and passed(bil_ratio.judge_lower, ds)
    assert not passed(bil_ratio.judge_lower, distorted(ds, "end", 1.4))
    assert not passed(bil_ratio.judge_lower, ds.assign(measured_end=ds.measured_end + 0.5))
    assert not passed(bil_ratio.judge_lower, flow_runs.sel(kind="gaussian", symmetric=1.0, d=[200.0], stop=[0.1]))
    ortho = flow_runs.sel(kind="orthonormal", symmetric=0.0, stop=0.0)
    assert passed(bil_ratio.judge_ortho, ortho.sel(d=[200]))
    assert not passed(bil_ratio.judge_ortho, ortho.sel(d=[15]))
    assert not passed(bil_ratio.judge_ortho, bil_ratio.both_fall(ortho.sel(d=[200])))
    assert not passed(bil_ratio.judge_ortho, distorted(ortho.sel(d=[200]), "forward", 1.1))


@pytest.mark.slow
def test_figures_show_the_largest_sizes(flow_runs):
    ds = flow_runs.sel(kind="gaussian", symmetric=0.0, d=[15.0, 200.0], stop=[0.1])
    small, large = ds.assign_coords(pairs=5), (2 * ds).assign_coords(pairs=10)
    both = xr.concat([small, large], "pairs", coords="minimal", join="exact")
    xr.testing.assert_equal(bil_ratio.most_tokens(both).measured_end, large.measured_end)
    for name in ("bil_ratio", "bil_lower"):
        claim = next(c for c in bil_ratio.CLAIMS if c.id == f"rev.{name}")
        assert plotting.render(claim.plot, ds if name == "bil_lower" else ds.isel(stop=0)).startswith("<svg")
