"""Scan & Snap's chapter on the gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics.gradient import ascent
from jaxdyn.theories.snap.gradient import clock, frozen_decoder, invariants, limit, original, reparam
from jaxdyn.theories.snap.gradient import original as claims
from jaxdyn.theories.snap.gradient.frozen_decoder import Frozen
from tests.theories.snap.helpers import both_ways, passes, small_case

# The original parameters against a transformer in NumPy.

M, D, K = 6, 8, 3


def case(width=D):
    rng = np.random.default_rng(0)
    used = (np.arange(D) < width).astype(float)
    u, *square = rng.normal(size=(M, D)) * used, *(rng.normal(size=(3, D, D)) * used * used[:, None])
    task = model.Task(rng.dirichlet(np.ones(M), K), np.array([0, 1, 0]), np.array([3, 4, 5]), rng.dirichlet(np.ones(K)))
    return u, square, task


@pytest.mark.parametrize("width", [8, 5])
def test_forward_is_the_transformer_of_the_paper(x64, width):
    u, (w_v, w_q, w_k), task = case(width)
    queries, weights = np.array([1, 2]), original.Weights(*(jnp.asarray(w) for w in (w_v, w_q, w_k)))
    total = 0.0
    for n in range(K):
        x_t = u[queries[task.query[n]]]
        score = np.array([x_t @ w_q @ w_k.T @ u[token] / np.sqrt(width) for token in range(M)])
        mass = task.p[n] * np.exp(score)
        mass /= mass.sum()
        inner = u.T @ (mass / np.sqrt((mass**2).sum()))
        scores = np.array([u[token] @ w_v @ inner for token in range(M)])
        total -= task.weight[n] * (scores[task.label[n]] - np.log(np.exp(scores).sum()))
    got = original.loss(weights, jnp.asarray(u), task, jnp.asarray(queries), jnp.float64(width))
    assert float(got) == pytest.approx(total, rel=1e-12)


def test_reparametrised_network_is_the_same(x64):
    u, square, task = case()
    weights, queries = original.Weights(*(jnp.asarray(w) for w in square)), jnp.asarray([1, 2])
    y, z = original.decoder(weights, jnp.asarray(u)), original.pair_logits(weights, jnp.asarray(u), queries, D)
    assert np.allclose(y, u @ square[0].T @ u.T) and np.allclose(z, (u @ square[1] @ square[2].T @ u.T / np.sqrt(D))[1:3])
    both = original.loss(weights, jnp.asarray(u), task, queries, D), model.loss(model.Params(y, z), task)
    assert float(both[0]) == pytest.approx(float(both[1]), rel=1e-13)


def test_embeddings_and_rotations(x64):
    width = 6
    frame = original.embeddings(jax.random.key(0), M, D, jnp.float64(width), True)
    assert np.allclose(frame @ frame.T, np.eye(M), atol=1e-14) and np.all(frame[:, width:] == 0)
    apart = original.embeddings(jax.random.key(0), M, D, jnp.float64(width), False)
    assert np.allclose(np.linalg.norm(apart, axis=1), 1) and np.all(apart[:, width:] == 0)
    turn = original.rotation(jax.random.key(1), D, jnp.float64(width))
    assert np.allclose(turn @ turn.T, np.diag((np.arange(D) < width).astype(float)), atol=1e-14)
    assert np.all(np.isfinite(original.embeddings(jax.random.key(0), M, D, jnp.float64(3), False)))
    with pytest.raises(jd.UsageError, match="at least as many"):
        original.embeddings(jax.random.key(0), 9, 8, 8, True)


# The judges of the original parameters on small grids.


@pytest.fixture(scope="module")
def data():
    sizes = {"tokens": 14, "classes": 3, "distinct": 2, "dim": 14, "width": 14}
    grid = jd.grid(claims.Layered, product=["single", "factored"], frame=["orthonormal", "random"], misfit=[1.0, 14**0.5], **sizes)
    return jd.sweep(claims.trial, grid, seeds=3)


@pytest.mark.slow
def test_judge_of_a_single_matrix(data):
    good = data.sel(product="single", frame="orthonormal", misfit=1.0)
    assert passes(claims.judge_single, good)
    for breach in ({"frame": "random"}, {"product": "factored"}, {"misfit": 14**0.5}):
        where = {"product": "single", "frame": "orthonormal", "misfit": 1.0, **breach}
        assert not passes(claims.judge_single, data.sel(where))
    for name in ("y", "z"):
        assert not passes(claims.judge_single, good.assign({f"predicted_{name}": 1.1 * good[f"predicted_{name}"]}))


@pytest.mark.slow
def test_judge_of_two_matrices(data):
    good = data.sel(product="factored", frame="orthonormal", misfit=1.0)
    assert passes(claims.judge_factored, good)
    assert not passes(claims.judge_factored, data.sel(product="single", frame="orthonormal", misfit=1.0))
    assert not passes(claims.judge_factored, good.assign(predicted_velocity=1.1 * good.predicted_velocity))
    reversed_order = good.assign(predicted_gain=-good.predicted_gain)
    assert not passes(claims.judge_factored, reversed_order)
    assert [c.passed for c in claims.judge_factored(claims.STILL(good))] == [False, False, True]
    assert not passes(claims.judge_single, claims.STILL(data.sel(product="single", frame="orthonormal", misfit=1.0)))


@pytest.mark.slow
def test_judge_of_few_dimensions(data):
    one = data.sel(product="single", misfit=1.0).expand_dims(width=[14.0])
    near, far = ([r.value for r in claims.judge_narrow(one.sel(frame=frame))] for frame in ("orthonormal", "random"))
    assert max(near[:-1]) < 1e-6 and near[-1] == pytest.approx(1)
    assert min(far) > 0.1
    assert [r.name for r in claims.judge_narrow(one.sel(frame="random"))] == list(claims.AS_WITHOUT_OVERLAP)
    with pytest.raises(jd.Inconclusive):
        claims.judge_narrow(one.isel(seed=[0]))


def test_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="20 orthonormal"):
        claims.Layered(width=8)
    with pytest.raises(jd.UsageError, match="whole number"):
        claims.Layered(width=30)


# The judges of the gradient, of Theorem 1's form and of the pressure.


@pytest.mark.slow
def test_judge_of_the_gradient():
    ds = jd.sweep(reparam.reparam_trial, jd.grid(reparam.Random, tokens=8, classes=2, queries=1, query_share=[0.0, 1.0]), seeds=2)
    good = ds.sel(query_share=0.0)
    assert passes(reparam.judge_reparam, good)
    assert not passes(reparam.judge_reparam, ds.sel(query_share=1.0))
    (without_projector,) = reparam.CLAIMS[0].rivals.values()
    assert not passes(reparam.judge_reparam, without_projector(good))
    for name in ("law_y", "law_z", "batch_y", "batch_z"):
        assert not passes(reparam.judge_reparam, good.assign({f"predicted_{name}": 1.1 * good[f"predicted_{name}"]}))


@pytest.mark.slow
def test_the_form_over_several_sizes_at_once():
    """Times differ with the number of tokens, and arrays are padded."""
    ds = jd.sweep(frozen_decoder.trial, jd.grid(frozen_decoder.Frozen, tokens=[24, 32], classes=2), 1)
    assert passes(reparam.judge_form, ds)
    assert not passes(reparam.judge_form, jd.scaled(predicted_rise=1.2)(ds)) and not passes(
        reparam.judge_form, reparam.UNSATURATED(ds)
    )


@pytest.mark.slow
def test_judge_of_the_form(frozen_runs):
    good = frozen_runs.sel(common=0.0)
    assert passes(reparam.judge_form, good)
    assert not passes(reparam.judge_form, frozen_runs.sel(common=0.5))
    assert not any(c.passed for c in reparam.judge_form(reparam.SILENT(good)))
    failed = [c.name for c in reparam.judge_form(reparam.UNSATURATED(good)) if not c.passed]
    assert len(failed) == 4, failed
    for variable in ("gradient", "gamma", "total", "peak", "peak_time", "rise", "fall"):
        for distorted in both_ways(good, variable):
            assert not passes(reparam.judge_form, distorted)


def pressure(on_tokens, closed):
    dims = ("seed", "time", "class", "own")
    return xr.Dataset(
        {
            "measured_xi": (dims, on_tokens),
            "predicted_xi": (dims[:3], closed),
            "gamma": (dims[:2], np.ones(closed.shape[:2])),
            "measured_mean": (dims[:1], on_tokens[:, 0].mean((1, 2))),
            "predicted_mean": (dims[:1], np.full(len(closed), 0.2)),
        }
    )


def test_judge_of_the_pressure():
    closed = np.full((2, 4, 3), 0.2)
    on_tokens = np.full((2, 4, 3, 2), 0.2)
    on_tokens[:, 1:] *= 3  # only the first time is compared
    assert passes(reparam.judge_xi, pressure(on_tokens, closed))
    assert not passes(reparam.judge_xi, pressure(on_tokens, 1.1 * closed))
    assert not passes(reparam.judge_xi, pressure(1.1 * on_tokens, 1.1 * closed))
    for value in (0.0, -1e-3):
        broken = on_tokens.copy()
        broken[0, 2, 1, 0] = value
        assert not passes(reparam.judge_xi, pressure(broken, closed))


def test_reparam_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="common times factor is a share"):
        reparam.Overlapping(common=0.5, factor=2.0)
    with pytest.raises(jd.UsageError, match="queries <= classes"):
        reparam.Random(queries=9)


# The frozen decoder: overlap breaks Theorem 1's gradient, and small vocabularies are refused.


@pytest.mark.slow
def test_strong_overlap_is_far_from_theorem_1(frozen_runs):
    broken = frozen_runs.sel(common=0.5)
    residual = jd.relative_error(broken, "gradient", "class token").max("time")
    assert float(residual.min()) > 0.1


def test_the_vocabulary_holds_all_tokens():
    with pytest.raises(jd.UsageError, match="at least 21"):
        Frozen(tokens=20)


# The judges of the decoder's clock on small grids.


@pytest.fixture(scope="module")
def one_sample():
    grid = jd.grid(clock.OneSample, eta=[2.0], skew=[0.0, 0.5], tokens=16, classes=3, distinct=2, steps=80)
    return jd.sweep(clock.one_sample_trial, grid, seeds=2048)


@pytest.mark.slow
def test_judge_of_the_frozen_network(frozen_runs):
    good = frozen_runs.sel(common=0.0)
    assert passes(clock.judge_clock, good)
    assert not passes(clock.judge_clock, frozen_runs.sel(common=0.5))
    for variable in ("rows", "hit"):
        for distorted in both_ways(good, variable):
            assert not passes(clock.judge_clock, distorted)


def test_rivals_of_the_clock(frozen_runs):
    good = frozen_runs.sel(common=0.0)
    for rival in (clock.UNTRAINED, clock.UNSATURATED):
        assert not any(c.passed for c in clock.judge_clock(rival(good)))
    off = abs(clock.UNSATURATED(good).predicted_rows / good.predicted_rows - 1).where(good.unit <= 0.012)
    assert float(off.max()) < 0.02, "at first it is the clock"


@pytest.mark.slow
def test_judge_of_single_samples(one_sample):
    good = one_sample.sel(skew=0.0)
    assert passes(clock.judge_one_sample, good)
    assert not passes(clock.judge_one_sample, one_sample.sel(skew=0.5))
    assert any(c.passed is False for c in clock.judge_one_sample(jd.swap(predicted_hit="flow_hit")(good)))
    assert not any(c.passed for c in clock.judge_one_sample(clock.CHANCE(good)))
    for variable in ("advantage", "hit"):
        assert not passes(clock.judge_one_sample, good.assign({f"predicted_{variable}": 1.1 * good[f"predicted_{variable}"]}))
    assert all(c.passed is not False for c in clock.judge_one_sample(good.isel(seed=slice(4)))), "few runs refute nothing"


def test_records_fall_on_steps():
    with pytest.raises(jd.UsageError, match="multiple of samples=8"):
        clock.OneSample(steps=30)


# What training conserves: entries without gradient, and the two kinds of attention.


def test_still_entries_are_those_without_gradient(x64):
    s = invariants.Learning()
    one = tasks.random_task(jax.random.key(0), s.tokens, s.classes, s.distinct, s.common, queries=s.queries)
    rng = np.random.default_rng(0)
    y, z = rng.normal(size=(s.tokens, s.tokens)), rng.normal(size=(s.queries + 1, s.tokens))
    push = jax.jit(ascent)(y, z, *one)[1]
    assert np.array_equal(np.asarray(push) == 0, invariants.still_entries(s))


def test_linear_attention_depends_on_shifts(x64):
    y, z, *task = (jnp.asarray(a) for a in small_case(3))
    softmax, linear = (jd.Code.of(name, ("softmax", "linear")) for name in ("softmax", "linear"))
    params, batch = invariants.model.Params(y, 0.1 * z), invariants.model.Task(*task)
    kinds = [invariants.loss(params, batch, kind, 0.0) for kind in (softmax, linear)]
    p, query, label, weight = (np.asarray(a) for a in task)
    want = 0.0
    for n in range(3):
        c = p[n] * (1 + 0.1 * np.asarray(z)[query[n]])
        logits = np.asarray(y).T @ (c / np.sqrt((c**2).sum()))
        want -= weight[n] * (logits[label[n]] - np.log(np.exp(logits).sum()))
    assert float(kinds[1]) == pytest.approx(want, rel=1e-12) and float(kinds[0]) != float(kinds[1])
    decayed = invariants.loss(params, batch, softmax, 0.5)
    assert float(decayed - kinds[0]) == pytest.approx(0.25 * float((y**2).sum() + 0.01 * (z**2).sum()), rel=1e-12)


# Sequences that remember, and the judge of long sequences.


def test_prefix_counts_remember(x64):
    p = jnp.asarray([0.2, 0.3, 0.5])
    for memory in (0.0, 0.6, 1.0):
        counts = np.asarray(limit.prefix_counts(jax.random.key(1), p, jnp.float64(memory), 4000, (1, 2, 8)))
        assert np.array_equal(counts.sum(-1), np.broadcast_to([[1], [2], [8]], (3, 4000)))
        assert np.all(np.diff(counts, axis=0) >= 0)
        assert np.allclose(counts[2].mean(0) / 8, p, atol=0.04)
        same = np.mean(counts[1].max(1) == 2)
        assert same == pytest.approx(memory + (1 - memory) * float((p**2).sum()), abs=4 * 0.5 / np.sqrt(4000))


def planted(power=-0.5, level=1.0, spread=0.0):
    """Sixteen runs whose mean square distance is a multiple of the leading order at T = 256, and falls with a power of T."""
    rng = np.random.default_rng(0)
    t = 2.0 ** np.arange(4, 13)
    measured = np.sqrt(level) / 16 * (t / 256) ** power * (1 + 0.02 * rng.normal(size=(16, 9)))
    measured *= 1 + spread * np.resize([1, -1], (16, 1))
    data = {"predicted_spread": t**-0.5 + 0 * measured, "measured_spread": measured}
    return xr.Dataset({k: (("seed", "length"), v) for k, v in data.items()}, coords={"length": t})


def test_judge_of_the_length():
    outcome = lambda ds: [c.passed for c in limit.judge(ds)]  # noqa: E731
    assert outcome(planted()) == [True] * 3
    assert outcome(planted(power=-0.6))[0] is False
    assert outcome(planted(level=1.2)) == [True, False, True]
    assert outcome(planted(spread=0.2))[2] is False
    assert outcome(limit.ONE_OVER_LENGTH(planted()))[:2] == [False, False]


def test_distance_of_sequences_is_the_predicted_one():
    grid = jd.grid(limit.Context, memory=[0.0, 0.9], logits=1.0, shortest=6, longest=8)
    ds = jd.sweep(limit.trial, grid, seeds=4)
    level = ((ds.measured_spread / ds.predicted_spread) ** 2).mean(["seed", "length"])
    assert 0.8 < float(level.sel(memory=0.0)) < 1.25
    assert 12 < float(level.sel(memory=0.9)) < 22, "(1 + memory) / (1 - memory) times the variance, but for short sequences"


def test_given_weights_are_the_law(x64):
    run = limit.trial(limit.Context(tokens=3, weights=(1.0, 1.0, 2.0), logits=0.0, longest=6), jax.random.key(0))
    level = np.sqrt((1 - 2 * 0.25**2 - 0.5**2) / 2.0 ** np.arange(4, 7))  # uniform attention: that of a multinomial
    np.testing.assert_allclose(run.predicted["spread"].value, level)


def test_limit_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="three lengths"):
        limit.Context(longest=5)
    with pytest.raises(jd.UsageError, match="8 positive numbers"):
        limit.Context(weights=(1.0,))
