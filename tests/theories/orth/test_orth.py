"""Formulas of random directions against integrals and draws, watched vectors against NumPy, and the judges."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.theories.joma import model
from jaxdyn.theories.orth import claims, dynamics, sensitivity, training
from jaxdyn.theories.orth.training import Reading

TINY = {"width": 32, "vectors": 20, "layers": 1, "most": 60, "columns": 2, "length": 16, "steps": 2, "every": 1, "text": "markov"}


def test_mean_absolute_cosine_is_the_integral_and_has_the_published_values(x64):
    for d in (3, 17, 64):
        power = (mp.mpf(d) - 3) / 2
        mean = mp.quad(lambda c, p=power: c * (1 - c**2) ** p, [0, 1]) / mp.quad(lambda c, p=power: (1 - c**2) ** p, [0, 1])
        assert float(dynamics.mean_absolute_cosine(d)) == pytest.approx(float(mean), rel=1e-10)
    published = {512: 0.03528, 768: 0.02880, 1024: 0.02494, 2048: 0.01763, 2560: 0.01577}
    for d, value in published.items():
        assert float(dynamics.mean_absolute_cosine(float(d))) == pytest.approx(value, abs=6e-6)
        ratio = dynamics.approximate_mean(d) / float(dynamics.mean_absolute_cosine(float(d)))
        assert ratio == pytest.approx(1 - 1 / (4 * d), abs=1 / d**2)


def test_quantile_and_gram_error_are_those_of_draws():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(2000, 16))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    gram = u @ u.T
    cosines = np.abs(gram[np.triu_indices(2000, 1)])
    assert np.mean(cosines < dynamics.cosine_quantile(16, 0.99)) == pytest.approx(0.99, abs=5e-4)
    error = np.linalg.norm(gram - np.eye(2000))
    assert error == pytest.approx(dynamics.gram_error(2000, 16), rel=5e-3)
    assert error > np.sqrt(2000 * (2000 - 16) / 16)


@pytest.mark.parametrize(("d", "m"), [(8, 0.5), (64, 0.3), (512, 0.1), (2048, 0.3)])
def test_mean_cosine_at_a_common_mean_is_the_squared_mean_direction(x64, d, m):
    x = mp.mpf(d) * m**2 / 2
    length = mp.sqrt(x) * mp.gamma(mp.mpf(d + 1) / 2) / mp.gamma(mp.mpf(d) / 2 + 1) * mp.hyp1f1(0.5, mp.mpf(d) / 2 + 1, -x)
    value = float(jax.jit(dynamics.mean_cosine)(float(d), m))
    assert value == pytest.approx(float(length**2), rel=1e-9)
    drawn = m + np.random.default_rng(1).normal(size=(20_000, d if d < 100 else 64))
    if d < 100:
        direction = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).mean(0)
        assert float(direction @ direction) == pytest.approx(value, abs=5 * (d / 20_000) ** 0.5 * value**0.5)
    assert value == pytest.approx(dynamics.common_share(m), rel=3 / d + 0.01)


def test_random_trial_is_plain_numpy(x64):
    s = jd.grid(claims.Directions, dims=(8, 12), vectors=6, common=0.2).cells()[0]
    found = jax.jit(claims.random_trial)(s, jax.random.key(0))
    drawn = 0.2 + np.asarray(jax.random.normal(jax.random.key(0), (6, 12), jnp.float64))
    for i, d in enumerate((8, 12)):
        u = drawn[:, :d] / np.linalg.norm(drawn[:, :d], axis=1, keepdims=True)
        pairs = (u @ u.T)[np.triu_indices(6, 1)]
        np.testing.assert_allclose(found.measured["signed"].value[i], pairs.mean(), rtol=1e-10)
        np.testing.assert_allclose(found.measured["absolute"].value[i], np.abs(pairs).mean(), rtol=1e-10)


@pytest.mark.parametrize("n", [5, 12])
def test_spread_is_that_of_the_gram_matrix(x64, n):
    x = np.random.default_rng(n).normal(size=(n, 8))
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    gram = u @ u.T
    pairs = np.abs(gram[~np.eye(n, dtype=bool)])
    found = jax.jit(training.spread)(x)
    np.testing.assert_allclose(found.mean, pairs.mean(), rtol=1e-11)
    np.testing.assert_allclose(found.rms, np.sqrt((pairs**2).mean()), rtol=1e-11)
    np.testing.assert_allclose(found.high, np.quantile(pairs, training.LEVEL, method="nearest"), rtol=1e-11)
    np.testing.assert_allclose(found.top, np.linalg.eigvalsh(gram)[-1] / n, rtol=1e-10)
    np.testing.assert_allclose(found.gram, np.linalg.norm(gram - np.eye(n)), rtol=1e-10)


def test_probe_finds_every_word_where_it_first_stands():
    stream = np.array([4, 4, 1, 4, 0, 1, 7, 4, 2, 9], np.int32)
    found = training.probe(stream, 3, 4)
    assert found.places.tolist() == [0, 2, 4, 6] and found.words.tolist() == [4, 1, 0, 7]
    assert found.tokens.tolist() == [[4, 4, 1], [4, 0, 1], [7, 4, 2]]
    with pytest.raises(UsageError, match="has 5 different words, and vectors=6 were asked for"):
        training.probe(stream, 3, 6)


def test_groups_are_rows_of_the_weights_and_of_the_streams(x64):
    s = Reading(**TINY)
    net = nn.network(s.shape(61))
    params = jax.tree.map(lambda a: np.random.default_rng(a.size).normal(size=a.shape), jax.eval_shape(net.init, jax.random.key(0)))
    probed = training.probe(s.corpus().valid, s.length, s.vectors)
    found = np.asarray(jax.jit(lambda p: training.groups(net, p, probed))(params))
    named = dict(zip(training.names(1), found, strict=True))
    np.testing.assert_allclose(named["embedding"], params["embed"][probed.words])
    np.testing.assert_allclose(named["written 0"], params["blocks"]["outer"][0][:20])
    i = np.arange(0, 32, 2)
    place = probed.places[:, None] % s.length / 10_000 ** (i / 32)
    waves = np.stack([np.sin(place), np.cos(place)], -1).reshape(20, 32)
    np.testing.assert_allclose(named["input 0"], np.sqrt(32) * params["embed"][probed.words] + waves, rtol=1e-6, atol=1e-6)
    for layer in (0, 1):
        raw = named[f"input {layer}"]
        np.testing.assert_allclose(named[f"centred {layer}"], raw - raw.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(named["input 1"].mean(1), params["blocks"]["norm2"]["shift"][0].mean(), atol=3)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"network": "gpt"}, "network is one of encoder, rotary"),
        ({"every": 4}, "steps a positive multiple of every"),
        ({"vectors": 33}, "vectors from 2 to the width"),
        ({"width": 16}, "the width at least 32"),
    ],
)
def test_bad_readings_are_refused(bad, words):
    with pytest.raises(UsageError, match=words):
        Reading(**(TINY | bad))


def text_runs(ratio=1.2, runs=8):
    """Runs of a made-up training: embeddings of random directions at the start, ``ratio`` times that at the end."""
    rng, base, groups = np.random.default_rng(0), 0.05, training.names(1)
    start = 1 + 0.003 * rng.normal(size=(runs, 1, len(groups)))
    growth = np.array([1.0, ratio])[None, :, None]
    dims = ("seed", "step", "group")
    data = {"predicted_cosine": (dims, np.full((runs, 2, len(groups)), base)), "measured_cosine": (dims, base * start * growth)}
    data |= {"predicted_gram": (dims, np.full((runs, 2, len(groups)), 7.0)), "measured_gram": (dims, 7.0 * start * growth)}
    data["narrow"] = (("seed", "step", "share"), np.full((runs, 2, 2), base) * [4, np.sqrt(2)])
    return xr.Dataset(data, coords={"group": list(groups), "share": list(training.SHARES)})


def passed(checks):
    return all(c.passed for c in checks)


def test_judges_of_training_reject_what_is_not_random_or_leaves_it():
    good = text_runs()
    assert passed(claims.judge_weights(good)) and passed(claims.judge_start(good)) and passed(claims.judge_every(good))
    for bad in (text_runs(2.6), claims.narrowed(0)(good), good.assign(predicted_cosine=1.1 * good.predicted_cosine)):
        assert not passed(claims.judge_weights(bad))
    half = claims.narrowed(1)(good)
    assert not passed(claims.judge_start(half))
    assert not passed(claims.judge_start(good.assign(predicted_gram=1.01 * good.predicted_gram)))
    assert half.measured_cosine.dims == good.measured_cosine.dims
    np.testing.assert_array_equal(half.measured_cosine.isel(group=1), good.measured_cosine.isel(group=1))


def test_columns_go_from_the_frame_to_random_ones(x64):
    frame, random = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 5)))[0], np.random.default_rng(1).normal(size=(8, 5))
    np.testing.assert_allclose(sensitivity.mixed(frame, random, 0.0), frame, rtol=1e-14)
    np.testing.assert_allclose(sensitivity.mixed(frame, random, 1.0), random / np.linalg.norm(random, axis=0), rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(sensitivity.mixed(frame, random, 0.3), axis=0), 1, rtol=1e-14)


def test_the_law_moves_by_the_gram_matrix_minus_the_identity(x64):
    """The equation in the module's docstring, with gradients in NumPy by hand (tanh, exp attention, ratio 0.7, temperature 1)."""
    rng, ratio = np.random.default_rng(3), 0.7
    u, q, w = rng.normal(size=(7, 4)) / 2, rng.normal(size=(7, 1)) / 2, rng.normal(size=(7, 2))
    z, a = 0.3 * rng.normal(size=(1, 4)), rng.normal(size=(2, 3))
    x, y, p = rng.dirichlet(np.ones(4), 6), rng.normal(size=(6, 3)), np.full(6, 1 / 6)
    kinds = jd.Code.of("exp", model.ATTENTIONS), jd.Code.of("tanh", model.ACTIVATIONS)
    block = model.Block(jnp.asarray(u), jnp.asarray(q), *kinds)
    batch = model.Batch(jnp.asarray(x), jnp.zeros(6, jnp.int32), jnp.asarray(y), jnp.asarray(p))
    slope = jax.grad(model.squared_loss)(model.Params(jnp.asarray(w), jnp.asarray(z), jnp.asarray(a)), block, batch)
    v, v_dot = u.T @ w, -u.T @ np.asarray(slope.w)
    moved = -ratio * np.asarray(slope.z)[0] - ratio * np.sum(v * v_dot, 1)
    b = x * np.exp(z[0])
    pre = b @ v + (q.T @ w)[0]
    g = -((np.tanh(pre) @ a - y) @ a.T) * (1 - np.tanh(pre) ** 2)
    inner = b @ (u.T @ u - np.eye(4)) + (u.T @ q)[:, 0]
    expected = -ratio * np.einsum("mk,n,nk,nm->m", v, p, g, inner)
    np.testing.assert_allclose(moved, expected, rtol=1e-10)


def mixture_runs(power=1.0, floor=0.0, start=1e-12):
    """Runs whose residual is a power of the mean |cos|."""
    epsilon = np.array(sensitivity.EPSILONS)
    cosine = np.broadcast_to(0.2 * epsilon + floor, (3, 6))
    lost = np.where(epsilon > 0, (0.1 * cosine) ** power, start)[..., None, None] * np.array([0.0, 1.0])[:, None]
    measured = np.ones((3, 6, 2, 4))
    dims = ("seed", "epsilon", "time", "token")
    data = {"measured_flow": (dims, measured), "predicted_flow": (dims, measured - lost), "cosine": (("seed", "epsilon"), cosine)}
    return xr.Dataset(data, coords={"epsilon": epsilon})


def test_judge_of_the_mixture_wants_zero_at_zero_and_the_first_order():
    assert passed(sensitivity.judge(mixture_runs()))
    for bad in (mixture_runs(2.0), mixture_runs(0.5), mixture_runs(start=1e-6), mixture_runs(floor=0.1)):
        assert not passed(sensitivity.judge(bad))
    with pytest.raises(jd.Inconclusive):
        sensitivity.judge(mixture_runs().isel(epsilon=slice(0, 3)))
    with pytest.raises(UsageError, match="shares are from 0 to 1"):
        sensitivity.Mixture(epsilon=1.5)


def test_a_training_run_starts_at_its_seed_and_learns(x64):
    s = jd.grid(Reading, **(TINY | {"steps": 20, "every": 20, "lr": 0.01})).cells()[0]
    found = jax.jit(claims.text_trial)(s, jax.random.key(0))
    loss = np.asarray(found.recorded["loss"].value)
    assert loss.shape == (2,) and loss[1] < loss[0] and abs(loss[0] - np.log(61)) < 1
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(found.measured))
    np.testing.assert_allclose(found.predicted["cosine"].value, float(dynamics.mean_absolute_cosine(32.0)), rtol=1e-5)
