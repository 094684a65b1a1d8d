"""Cosines of directions, groups of vectors and trained embeddings against NumPy; judges on made-up sets and runs."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.text import language
from jaxdyn.theories.joma import model as sensitivity_model
from jaxdyn.theories.orth import init_directions, model, sensitivity, trained
from jaxdyn.theories.orth import instrument as orthogonality
from jaxdyn.theories.orth.dynamics import directions
from jaxdyn.theories.orth.instrument import ORTHOGONALITY, measure, rows
from jaxdyn.theories.orth.trained import SHARES, Watched, trial
from tests.instruments import plain
from tests.nn.drawn import weights


def test_mean_absolute_cosine_is_the_integral_and_has_the_published_values(x64):
    for d in (3, 17, 64):
        power = (mp.mpf(d) - 3) / 2
        mean = mp.quad(lambda c, p=power: c * (1 - c**2) ** p, [0, 1]) / mp.quad(lambda c, p=power: (1 - c**2) ** p, [0, 1])
        assert float(directions.mean_absolute_cosine(d)) == pytest.approx(float(mean), rel=1e-10)
    published = {512: 0.03528, 768: 0.02880, 1024: 0.02494, 2048: 0.01763, 2560: 0.01577}
    for d, value in published.items():
        assert float(directions.mean_absolute_cosine(float(d))) == pytest.approx(value, abs=6e-6)
        ratio = directions.approximate_mean(d) / float(directions.mean_absolute_cosine(float(d)))
        assert ratio == pytest.approx(1 - 1 / (4 * d), abs=1 / d**2)


def test_quantile_and_gram_error_are_those_of_draws():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(2000, 16))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    gram = u @ u.T
    cosines = np.abs(gram[np.triu_indices(2000, 1)])
    assert np.mean(cosines < directions.cosine_quantile(16, 0.99)) == pytest.approx(0.99, abs=5e-4)
    error = np.linalg.norm(gram - np.eye(2000))
    assert error == pytest.approx(directions.gram_error(2000, 16), rel=5e-3)
    assert error > np.sqrt(2000 * (2000 - 16) / 16)


@pytest.mark.parametrize(("d", "m"), [(8, 0.5), (64, 0.3), (512, 0.1), (2048, 0.3)])
def test_mean_cosine_at_a_common_mean_is_the_squared_mean_direction(x64, d, m):
    x = mp.mpf(d) * m**2 / 2
    length = mp.sqrt(x) * mp.gamma(mp.mpf(d + 1) / 2) / mp.gamma(mp.mpf(d) / 2 + 1) * mp.hyp1f1(0.5, mp.mpf(d) / 2 + 1, -x)
    value = float(jax.jit(directions.mean_cosine)(float(d), m))
    assert value == pytest.approx(float(length**2), rel=1e-9)
    drawn = m + np.random.default_rng(1).normal(size=(20_000, d if d < 100 else 64))
    if d < 100:
        direction = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).mean(0)
        assert float(direction @ direction) == pytest.approx(value, abs=5 * (d / 20_000) ** 0.5 * value**0.5)
    assert value == pytest.approx(directions.common_share(m), rel=3 / d + 0.01)


SIZES = {"width": 32, "vectors": 20, "layers": 1, "max_words": 60}
TINY = {**SIZES, "columns": 2, "length": 16, "steps": 2, "every": 1, "text": "markov"}


@pytest.mark.parametrize("n", [5, 12])
def test_spread_is_that_of_the_gram_matrix(x64, n):
    x = np.random.default_rng(n).normal(size=(n, 8))
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    gram = u @ u.T
    pairs = np.abs(gram[~np.eye(n, dtype=bool)])
    found = jax.jit(model.spread)(x)
    np.testing.assert_allclose(found.mean, pairs.mean(), rtol=1e-11)
    np.testing.assert_allclose(found.rms, np.sqrt((pairs**2).mean()), rtol=1e-11)
    np.testing.assert_allclose(found.high, np.quantile(pairs, model.LEVEL, method="nearest"), rtol=1e-11)
    np.testing.assert_allclose(found.top, np.linalg.eigvalsh(gram)[-1] / n, rtol=1e-10)
    np.testing.assert_allclose(found.gram, np.linalg.norm(gram - np.eye(n)), rtol=1e-10)


def test_probe_finds_every_word_where_it_first_stands():
    stream = np.array([4, 4, 1, 4, 0, 1, 7, 4, 2, 9], np.int32)
    found = model.probe(stream, 3, 4)
    assert found.places.tolist() == [0, 2, 4, 6] and found.words.tolist() == [4, 1, 0, 7]
    assert found.tokens.tolist() == [[4, 4, 1], [4, 0, 1], [7, 4, 2]]
    with pytest.raises(UsageError, match="vectors=6 is not allowed: .* has 5 different words"):
        model.probe(stream, 3, 6)


@pytest.mark.slow
def test_groups_are_rows_of_the_weights_and_of_the_streams(x64):
    s = Watched(**TINY)
    net = nn.network(s.shape(61))
    params = jax.tree.map(lambda a: np.random.default_rng(a.size).normal(size=a.shape), jax.eval_shape(net.init, jax.random.key(0)))
    probed = model.probe(s.text_run().corpus().valid, s.length, s.vectors)
    found, loss = jax.tree.map(np.asarray, jax.jit(lambda p: model.groups(net, p, probed))(params))
    expected = jax.jit(lambda p: language.loss(net, p, probed.tokens[:, :-1], probed.tokens[:, 1:]))(params)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    named = dict(zip(model.names(1), found, strict=True))
    np.testing.assert_allclose(named["embedding"], params["embed"][probed.words])
    np.testing.assert_allclose(named["written 0"], params["blocks"]["down"][0][:20])
    i = np.arange(0, 32, 2)
    place = probed.places[:, None] % s.length / 10_000 ** (i / 32)
    waves = np.stack([np.sin(place), np.cos(place)], -1).reshape(20, 32)
    np.testing.assert_allclose(named["input 0"], np.sqrt(32) * params["embed"][probed.words] + waves, rtol=1e-6, atol=1e-6)
    for layer in (0, 1):
        raw = named[f"input {layer}"]
        np.testing.assert_allclose(named[f"centred {layer}"], raw - raw.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(named["input 1"].mean(1), params["blocks"]["mlp_norm_bias"][0].mean(), atol=3)


def test_random_trial_is_plain_numpy(x64):
    s = jd.grid(init_directions.Directions, dims=(8, 12), vectors=6, common=0.2).cells()[0]
    found = jax.jit(init_directions.trial)(s, jax.random.key(0))
    sample = 0.2 + np.asarray(jax.random.normal(jax.random.key(0), (6, 12), jnp.float64))
    for i, d in enumerate((8, 12)):
        u = sample[:, :d] / np.linalg.norm(sample[:, :d], axis=1, keepdims=True)
        pairs = (u @ u.T)[np.triu_indices(6, 1)]
        np.testing.assert_allclose(found.measured["signed"].value[i], pairs.mean(), rtol=1e-10)
        np.testing.assert_allclose(found.measured["absolute"].value[i], np.abs(pairs).mean(), rtol=1e-10)


@pytest.fixture
def sets():
    """Made-up means of sets of vectors, near their formulas."""
    rng, dim, axes = np.random.default_rng(0), np.array([64.0, 128.0]), ("common", "seed", "dim")
    ones = np.ones((2, 64, 2))
    common = np.array([0.1, 0.5])[:, None, None]
    noise = 1 + 0.004 * rng.normal(size=ones.shape)
    return xr.Dataset(
        {
            "predicted_absolute": (axes, ones * (2 / np.pi / dim) ** 0.5 / (1 - 1 / (4 * dim))),
            "measured_absolute": (axes, noise * (2 / np.pi / dim) ** 0.5 / (1 - 1 / (4 * dim))),
            "approximate": (axes, ones * (2 / np.pi / dim) ** 0.5),
            "predicted_gram": (axes, ones),
            "measured_gram": (axes, noise**0.5),
            "predicted_signed": (axes, ones * common**2),
            "measured_signed": (axes, noise * common**2),
            "predicted_limit": (axes[:2], (ones * common**2)[..., 0]),
            "measured_limit": (axes[:2], (noise * common**2)[..., -1]),
        },
        {"common": common.ravel(), "dim": dim},
    )


def refused(checks):
    """Which checks fail for certain."""
    return {i for i, c in enumerate(checks) if c.passed is False}


def test_judges_of_random_vectors(sets):
    for judge in (init_directions.judge_absolute, init_directions.judge_signed):
        assert all(c.passed for c in judge(sets))
    assert refused(init_directions.judge_absolute(jd.scaled(predicted_absolute=1.012)(sets))) == {0, 2}
    assert refused(init_directions.judge_absolute(jd.scaled(predicted_gram=1.012)(sets))) == {1}
    assert refused(init_directions.judge_signed(jd.scaled(predicted_signed=1.04)(sets))) == {0}
    assert refused(init_directions.judge_signed(jd.scaled(predicted_limit=1.05)(sets))) == {1}
    small = sets.assign(predicted_signed=sets.predicted_signed * xr.where(sets.common < 0.2, 1.05, 1))
    assert all(c.passed for c in init_directions.judge_signed(small)), "a small mean may be missed by more"


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
    kinds = jd.Code.of("exp", sensitivity_model.ATTENTIONS), jd.Code.of("tanh", sensitivity_model.ACTIVATIONS)
    block = sensitivity_model.Block(jnp.asarray(u), jnp.asarray(q), *kinds)
    batch = sensitivity_model.Batch(jnp.asarray(x), jnp.zeros(6, jnp.int32), jnp.asarray(y), jnp.asarray(p))
    slope = jax.jit(jax.grad(sensitivity_model.squared_loss))(
        sensitivity_model.Params(jnp.asarray(w), jnp.asarray(z), jnp.asarray(a)), block, batch
    )
    v, v_dot = u.T @ w, -u.T @ np.asarray(slope.w)
    moved = -ratio * np.asarray(slope.z)[0] - ratio * np.sum(v * v_dot, 1)
    b = x * np.exp(z[0])
    pre = b @ v + (q.T @ w)[0]
    g = -((np.tanh(pre) @ a - y) @ a.T) * (1 - np.tanh(pre) ** 2)
    inner = b @ (u.T @ u - np.eye(4)) + (u.T @ q)[:, 0]
    expected = -ratio * np.einsum("mk,n,nk,nm->m", v, p, g, inner)
    np.testing.assert_allclose(moved, expected, rtol=1e-10)


def passed(checks):
    return all(c.passed for c in checks)


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


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"network": "gpt"}, "network is one of encoder, rotary"),
        ({"every": 4}, "steps is a positive multiple of every"),
        ({"vectors": 33}, "vectors is at most the width"),
    ],
)
def test_bad_readings_are_refused(bad, words):
    with pytest.raises(jd.UsageError, match=words):
        Watched(**(TINY | bad))


@pytest.mark.slow
def test_a_training_run_starts_at_its_seed_and_learns(x64):
    s = jd.grid(Watched, **(TINY | {"steps": 20, "every": 20, "lr": 0.01})).cells()[0]
    found = jax.jit(trial)(s, jax.random.key(0))
    loss = np.asarray(found.recorded["loss"].value)
    assert loss.shape == (2,) and loss[1] < loss[0] and abs(loss[0] - np.log(61)) < 1
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(found.measured))
    weights, everything = found.predicted["cosine"].value
    random = float(directions.mean_absolute_cosine(32.0))
    np.testing.assert_allclose(everything, random, rtol=1e-5)
    np.testing.assert_allclose(weights[0], [random, 1, 1, 1, 1, random], rtol=1e-5)


def text_runs(ratio=1.2, runs=8):
    """Runs of a made-up training: embeddings of random directions at the start, ``ratio`` times that at the end."""
    rng, base, groups = np.random.default_rng(0), 0.05, model.names(1)
    start = 1 + 0.003 * rng.normal(size=(runs, 1, len(groups)))
    growth = np.array([1.0, ratio])[None, :, None]
    dims = ("seed", "step", "group")
    data = {"predicted_cosine": (dims, np.full((runs, 2, len(groups)), base)), "measured_cosine": (dims, base * start * growth)}
    data |= {"predicted_gram": (dims, np.full((runs, 2, len(groups)), 7.0)), "measured_gram": (dims, 7.0 * start * growth)}
    data["narrow"] = (("seed", "step", "share"), np.full((runs, 2, 2), base) * [4, np.sqrt(2)])
    return xr.Dataset(data, coords={"group": list(groups), "share": list(SHARES)})


def test_judges_of_training_reject_what_is_not_random_or_leaves_it():
    good = text_runs()
    assert passed(trained.judge_weights(good)) and passed(trained.judge_start(text_runs(1.1)))
    assert not passed(trained.judge_start(text_runs(1.3))) and not passed(trained.judge_start(text_runs(1.0)))
    assert all(abs(r.value - 1.2) < 0.01 for r in trained.read_every(good))
    for bad in (
        text_runs(2.6),
        trained.narrowed(0)(good),
        jd.scaled(predicted_cosine=1.2)(good),
        text_runs(1.0),
    ):
        assert not passed(trained.judge_weights(bad))
    half = trained.narrowed(1)(good)
    assert not passed(trained.judge_start(trained.narrowed(1)(text_runs(1.1))))
    assert not passed(trained.judge_start(jd.scaled(predicted_gram=1.05)(text_runs(1.1))))
    assert half.measured_cosine.dims == good.measured_cosine.dims
    np.testing.assert_array_equal(half.measured_cosine.isel(group=1), good.measured_cosine.isel(group=1))


def cosine(x):
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    c = np.abs(u @ u.T)
    return (c.sum() - np.trace(c)) / (len(x) * (len(x) - 1))


def test_cosines_are_those_of_plain_numpy():
    one = plain.model()
    ds = measure(one, plain.TOKENS, plain.nothing)
    seen, _ = plain.pieces_of(plain.SHAPE, one.params, plain.TOKENS)
    for i, piece in enumerate(plain.TOKENS):
        first = np.sort(np.unique(piece, return_index=True)[1])
        first = first[first > 0]
        assert int(ds.words[i]) == len(first)
        streams = [np.asarray(one.params["embed"])[piece], *seen["after"][i]]
        for depth, x in enumerate(streams):
            assert float(ds.raw[i, depth]) == pytest.approx(cosine(x[first]), rel=1e-4)
            assert float(ds.centred[i, depth]) == pytest.approx(cosine(x[first] - x[first].mean(0)), rel=1e-4)
    for block in range(2):
        assert float(ds.written[block]) == pytest.approx(cosine(np.asarray(one.params["blocks"]["down"][block])), rel=1e-4)


def embedded(table):
    """A network with these embeddings, whose blocks add nothing."""
    shape = plain.changed(vocabulary=len(table), width=table.shape[1], heads=2, groups=None, head_size=4)
    params = weights(shape)
    blocks = params["blocks"] | {name: 0 * params["blocks"][name] for name in ("o", "down")}
    return plain.model(shape, params | {"embed": table.astype(np.float32), "blocks": blocks})


def test_orthonormal_embeddings():
    tokens = np.random.default_rng(0).integers(0, 16, (2, 40))
    ds = measure(embedded(np.eye(16)), tokens, plain.nothing)
    np.testing.assert_allclose(ds.raw, 0, atol=1e-6)
    assert float(ds.centred.min()) > 0.03  # without their mean, no k vectors are orthogonal


@pytest.mark.slow
def test_random_embeddings_have_what_is_predicted_and_a_common_mean_hides_it():
    rng = np.random.default_rng(0)
    tokens, table = rng.integers(0, 400, (3, 300)), rng.normal(size=(400, 64))
    ds = measure(embedded(table), tokens, plain.nothing)
    law = ORTHOGONALITY.predict(ds)
    np.testing.assert_allclose(ds.raw, law.exact, rtol=0.02)
    assert float(law.printed) == pytest.approx((2 / (np.pi * 64)) ** 0.5) and float(law.printed) < float(law.exact)
    moved = measure(embedded(table + 2), tokens, plain.nothing)
    assert float(moved.raw.min()) > 0.7
    np.testing.assert_allclose(moved.centred, law.exact, rtol=0.02)


def test_units_that_write_nothing_are_left_out():
    """A pruned MLP is no more orthogonal than one that never had these units."""
    own = np.random.default_rng(0).normal(size=(2, 10, 12)).astype(np.float32)
    own[:, 3:7] = 0
    shape = plain.changed()
    params = weights(shape)
    found = rows(shape, params | {"blocks": params["blocks"] | {"down": own}})
    kept = np.delete(own, range(3, 7), 1)
    u = kept / np.linalg.norm(kept, axis=-1, keepdims=True)
    expected = (np.abs(u @ u.transpose(0, 2, 1)).sum((1, 2)) - 6) / 30
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_vectors_of_zero_length_have_no_direction(scale):
    x = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
    x[::2] = 0
    found = float(orthogonality.cosine(jnp.asarray(scale * x), jnp.ones(64, bool)))
    assert found == pytest.approx(cosine(x[1::2]), rel=1e-5)
    where = np.arange(64) < 40
    assert float(orthogonality.cosine(jnp.asarray(x), jnp.asarray(where))) == pytest.approx(cosine(x[1:40:2]), rel=1e-5)


@pytest.mark.parametrize("centred", [False, True])
def test_without_two_directions_there_is_no_cosine(centred):
    one = np.zeros((8, 5), np.float32)
    one[3] = 1
    everywhere = jnp.ones(8, bool)
    assert np.isnan(float(orthogonality.cosine(jnp.asarray(0 * one), everywhere, centred)))
    assert np.isnan(float(orthogonality.cosine(jnp.asarray(one), everywhere)))
    same = jnp.asarray(np.tile(np.float32([0.1, 0.7, 1 / 3, 5.1, 2.3]), (300, 1)))  # what is left of these is rounding
    assert np.isnan(float(orthogonality.cosine(same, jnp.ones(300, bool), True)))
    assert float(orthogonality.cosine(same, jnp.ones(300, bool))) == pytest.approx(1, rel=1e-5)


def test_not_a_number_is_not_left_out():
    x = np.ones((4, 5), np.float32)
    x[2, 1] = np.nan
    assert np.isnan(float(orthogonality.cosine(jnp.asarray(x), jnp.ones(4, bool))))


def test_embeddings_of_zero_are_shown_without_a_value():
    tokens = np.random.default_rng(0).integers(0, 16, (2, 40))
    ds = measure(embedded(np.zeros((16, 16))), tokens, plain.nothing)
    shown = ORTHOGONALITY.numbers(ds)[0]
    assert shown.name == "embeddings of different tokens, in 0 of 2 pieces" and np.isnan(shown.value)
    half = np.random.default_rng(1).normal(size=(16, 16))
    half[:8] = 0
    ds = measure(embedded(half), tokens, plain.nothing)
    first = [np.sort(np.unique(piece[1:])) for piece in tokens]  # a piece's first place is left out, its word may come again
    for i, words in enumerate(first):
        words = words[(words > 7) & (words != tokens[i][0])]
        assert float(ds.raw[i, 0]) == pytest.approx(cosine(half[words]), rel=1e-4)
