"""Contextual sparsity: against NumPy, with units that are known to be silent, and with units of single words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.dejavu.instrument import IDLE, SPARSITY, carrying, measure, overlaps
from tests.instruments import plain
from tests.nn.drawn import weights

RELU = {"mlp": "plain", "activation": "relu", "biases": ("up",)}


def plain_carrying(work):
    energy = np.sort(work**2, -1)[..., ::-1]
    needed = (np.cumsum(energy, -1) < 0.95 * energy.sum(-1, keepdims=True)).sum(-1) + 1
    return np.where(energy.sum(-1) > 0, needed, np.nan) / work.shape[-1]


@pytest.mark.thinned
@pytest.mark.parametrize("fields", [{}, RELU, RELU | {"parallel": True, "norm": "layer"}], ids=["gated", "relu", "parallel"])
def test_everything_is_that_of_plain_numpy(fields):
    shape = plain.changed(**fields)
    one = plain.model(shape)
    ds = measure(one, plain.TOKENS, plain.nothing)
    seen, _ = plain.pieces_of(shape, one.params, plain.TOKENS)
    units, x, y = (seen[name][:, :, 1:] for name in ("units", "before", "after"))
    work = np.abs(units) * np.linalg.norm(np.asarray(one.params["blocks"]["down"]), axis=-1)[:, None]
    np.testing.assert_allclose(ds.carry, plain_carrying(work).mean(-1), rtol=1e-4)
    np.testing.assert_allclose(ds.silent, (units == 0).mean((2, 3)), atol=1e-6)
    norm = np.linalg.norm
    cosine = (x * y).sum(-1) / norm(x, axis=-1) / norm(y, axis=-1)
    np.testing.assert_allclose(ds.cosine, cosine.mean(-1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ds.ratio, (norm(y - x, axis=-1) / norm(x, axis=-1)).mean(-1), rtol=1e-4)
    heads = seen["heads"][:, :, 1:]
    np.testing.assert_allclose(ds["heads"], plain_carrying(heads).mean(-1), rtol=1e-4)
    np.testing.assert_allclose(ds.idle, (heads < IDLE * norm(x, axis=-1)[..., None]).mean(2), atol=1e-6)
    assert float(ds.slack.min()) > -1e-6  # the bound holds wherever the change is smaller than the stream


def test_overlaps_of_sets():
    work = jnp.asarray(np.random.default_rng(0).normal(size=(6, 20)) ** 2)
    top = [set(np.argsort(row)[-2:]) for row in np.asarray(work)]
    pairs = [len(a & b) / 2 for i, a in enumerate(top) for j, b in enumerate(top) if i != j]
    others, neighbours, union, chance, chance_union = overlaps(work)
    assert float(chance) == pytest.approx(2 / 20) and float(chance_union) == pytest.approx(1 - 0.9**6)
    assert float(others) == pytest.approx(np.mean(pairs))
    assert float(neighbours) == pytest.approx(np.mean([len(a & b) / 2 for a, b in zip(top, top[1:], strict=False)]))
    assert float(union) == pytest.approx(len(set.union(*top)) / 20)


def test_a_row_of_zeros_has_no_share():
    rows = jnp.asarray([[0.0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [1e-25, 1e-25, 0, 0]])
    np.testing.assert_allclose(carrying(rows), [np.nan, 0.25, 1, 0.5])


def silent_for(shape, params, *words):
    """The network without a bias, in which some words have no stream before the first block, and no unit works for them there."""
    return params | {"embed": params["embed"].at[np.asarray(words)].set(0)}


def test_tokens_without_a_stream_or_work_are_left_out_of_shares_of_it():
    """Whatever has no length has no share, no direction, and no unit at work: numbers are those of the other tokens."""
    shape = plain.changed(layers=1, heads=1, groups=None, head_size=12, window=1)  # each token sees itself alone
    params = silent_for(shape, weights(shape), 0, 1, 2)
    tokens = np.asarray([[3, 0, 4, 1, 5, 2, 6, 7, 0, 8]], np.int32)
    ds = measure(plain.model(shape, params), tokens, plain.nothing)
    others = measure(plain.model(shape, params), tokens[tokens > 2][None], plain.nothing)
    for name in ("carry", "heads", "cosine", "ratio", "small", "bound", "idle"):
        assert np.isfinite(ds[name]).all(), name
        np.testing.assert_allclose(ds[name], others[name], rtol=1e-5, err_msg=name)


def test_without_any_work_there_is_no_share_of_it():
    shape = plain.changed()
    params = weights(shape)
    still = params | {"blocks": params["blocks"] | {name: 0 * params["blocks"][name] for name in ("o", "down")}}
    ds = measure(plain.model(shape, still), plain.TOKENS, plain.nothing)
    for name in ("carry", "heads", "others", "neighbours", "union", "chance", "chance_union"):
        assert np.isnan(ds[name]).all(), name
    np.testing.assert_allclose(ds.cosine, 1, rtol=1e-6)
    np.testing.assert_array_equal(ds.idle, 1)
    shown = {n.name: n for n in SPARSITY.numbers(ds)}
    empty = shown["share of the units that carry 95% of a token's work, in 0 of 3 pieces"]
    assert np.isnan([empty.value, empty.low, empty.high]).all()


def test_known_silent_units():
    shape = plain.changed(**RELU)
    params = weights(shape)
    bias = jnp.where(jnp.arange(10) < 7, -100.0, 100.0) * jnp.ones((2, 1))
    ds = measure(plain.model(shape, params | {"blocks": params["blocks"] | {"up_bias": bias}}), plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.silent, 0.7, rtol=1e-6)
    shown = {n.name: n for n in SPARSITY.numbers(ds)}
    assert shown["share of silent units"].value == pytest.approx(0.7) and float(ds.others.min()) == 1  # one unit for all tokens
    assert "share of silent units" not in {n.name for n in SPARSITY.numbers(measure(plain.model(), plain.TOKENS, plain.nothing))}


def test_units_of_single_words():
    """Every word drives units of its own: the top sets of two tokens are the same for equal words, and disjoint for others."""
    shape = plain.changed(width=16, heads=2, groups=None, layers=1, hidden=40, vocabulary=8, mlp="plain", activation="relu")
    params = jax.tree.map(np.zeros_like, jax.device_get(weights(shape)))
    params["embed"][:, :8] = np.eye(8)
    for name in ("attention_norm", "mlp_norm"):
        params["blocks"][name][:] = 1
    for word in range(8):
        params["blocks"]["up"][0, word, 5 * word : 5 * word + 4] = 1  # 4 of 40 units: a tenth
    params["blocks"]["down"][:] = 0.01
    tokens = np.random.default_rng(0).integers(0, 8, (2, 50))
    ds = measure(plain.model(shape, jax.tree.map(np.float32, params)), tokens, plain.nothing)
    same = [np.mean([a == b for i, a in enumerate(t[1:]) for j, b in enumerate(t[1:]) if i != j]) for t in tokens]
    np.testing.assert_allclose(ds.others[:, 0], same, rtol=1e-5)
    np.testing.assert_allclose(ds.carry, 0.1, rtol=1e-6)
    np.testing.assert_allclose(ds.union, 0.8, rtol=1e-6)
    np.testing.assert_allclose(ds.silent, 0.9, rtol=1e-6)


@pytest.mark.parametrize("factor", [1.0, 0.02, -0.005])
def test_what_heads_write_is_what_comes_into_the_stream(factor):
    """With a factor on what is added to the stream; the first block reads the same stream, whatever the factor."""
    one = plain.model(plain.changed())
    seen, _ = plain.pieces_of(one.shape, one.params, plain.TOKENS)
    heads, x = abs(factor) * seen["heads"][:, 0, 1:], np.linalg.norm(seen["before"][:, 0, 1:], axis=-1)
    ds = measure(plain.model(plain.changed(residual=factor)), plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.idle[:, 0], (heads < IDLE * x[..., None]).mean(1), atol=1e-6)


@pytest.mark.parametrize("active", [20, 60, 150])
def test_units_that_do_not_work_are_in_no_set(active):
    """Planted independent sets: the overlap is that of chance, though fewer than a tenth of the units work."""
    rng = np.random.default_rng(0)
    work = np.zeros((60, 1000))
    for row in work:
        row[rng.choice(1000, active, replace=False)] = 1 + rng.random(active)
    found = overlaps(jnp.asarray(work, jnp.float32))
    assert float(found.chance) == pytest.approx(min(active, 100) / 1000, rel=1e-4)
    assert float(found.others) == pytest.approx(float(found.chance), rel=0.08)
    assert float(found.neighbours) == pytest.approx(float(found.chance), rel=0.25)
    assert float(found.union) == pytest.approx(float(found.chance_union), rel=0.05)


def test_sets_of_several_sizes():
    work = np.array([[3.0] + [0] * 19, [3.0, 2.0] + [0] * 18, [0.0] * 20])
    others, neighbours, union, chance, chance_union = (float(x) for x in overlaps(jnp.asarray(work, jnp.float32)))
    assert others == pytest.approx((2 * 1 / 6) / 1) and neighbours == pytest.approx((1 / 2) / 1) and union == pytest.approx(2 / 20)
    assert chance == pytest.approx((2 * 2 / 20 / 6) / 1) and chance_union == pytest.approx(1 - 0.95 * 0.9)
    assert np.isnan(float(overlaps(jnp.zeros((3, 20))).others)), "no unit works"
