"""The transformer at random weights: against NumPy, and in one pass, with a cache, and by reading everything again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.sup import model

D, E, F, U, N, T = 6, 4, 3, 9, 5, 9
forward, step = jax.jit(model.forward), jax.jit(model.step)  # as one program each: by itself every operation would be compiled
read = jax.jit(lambda params, x: model.forward(params, model.inputs(params, x, jnp.arange(x.shape[1])))[0][-1])


def random_params(rotary):
    rng = np.random.default_rng(0)
    layer = lambda h, turned: model.Layer(  # noqa: E731
        *(rng.normal(size=s) for s in ((h, D, E), (h, D, E), (h, D, F), (h, F, D), (D, U), (U, D))), np.float64(0.2), turned
    )
    turned = model.Rotary(np.float64(50.0), np.float64(1.0)) if rotary else None
    return model.Params(
        rng.normal(size=(7, D)), rng.normal(size=(T, D)), (layer(3, turned), layer(1, None)), rng.normal(size=(D, 7))
    )


def plain(params, x):
    """Outputs position by position."""
    for layer in params.layers:
        h = x.copy()
        for i in range(len(x)):
            for head in range(len(layer.query)):
                scores = np.array([(x[i] @ layer.query[head]) @ (x[j] @ layer.key[head]) for j in range(i + 1)])
                b = np.exp(scores - scores.max())
                h[i] += (b / b.sum()) @ (x[: i + 1] @ layer.value[head]) @ layer.out[head]
        y = (h @ layer.inner >= layer.threshold).astype(float) @ layer.outer
        x = y / np.linalg.norm(y, axis=1, keepdims=True)
    return x


def test_against_numpy(x64):
    params = random_params(False)
    x = np.random.default_rng(1).normal(size=(N, D))
    outputs, caches, maps = forward(params, jnp.asarray(x))
    np.testing.assert_allclose(outputs[-1], plain(params, x), atol=1e-12)
    assert caches[0].key.shape == (N, 3, E) and maps[0].shape == (3, N, N) and len(outputs) == 2
    np.testing.assert_allclose(np.sum(maps[0], -1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("rotary", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_thoughts_by_cache_in_one_pass_and_by_reading_again_are_equal(rotary, x64):
    params = jax.tree.map(jnp.asarray, random_params(rotary))
    x = jnp.asarray(np.random.default_rng(2).normal(size=(2, N, D)))
    count = T - N

    @jax.jit
    def cached(x):
        past = model.forward(params, model.inputs(params, x[:, :-1], jnp.arange(N - 1)))[1]
        recent, thought, thoughts = model.empty(past, count + 1), x[:, -1:], []
        for c in range(count):
            new = model.inputs(params, thought, N - 1 + jnp.arange(c, c + 1))
            thought, recent, maps = model.step(params, past, recent, new, jnp.asarray(c))
            thoughts.append(thought)
        assert maps[0].shape == (2, 3, 1, N - 1 + count + 1)
        return jnp.concatenate(thoughts, 1)

    thoughts = cached(x)
    again = np.asarray(x)
    for _ in range(count):
        again = np.concatenate([again, np.asarray(read(params, again))[:, -1:]], 1)
    np.testing.assert_allclose(thoughts, again[:, N:], atol=1e-12)
    whole = np.concatenate([x, np.asarray(thoughts)[:, :-1]], 1)
    np.testing.assert_allclose(thoughts, np.asarray(read(params, whole))[:, N - 1 :], atol=1e-12)


def test_two_inputs_at_once_and_a_place_that_is_overwritten(x64):
    params, x = jax.tree.map(jnp.asarray, random_params(False)), np.random.default_rng(3).normal(size=(N, D))
    past = forward(params, x[:3])[1]
    both, recent, _ = step(params, past, model.empty(past, 3), x[3:], jnp.asarray(0))
    np.testing.assert_allclose(both, np.asarray(forward(params, x)[0][-1])[3:], atol=1e-12)
    other = np.concatenate([x[:4], -x[4:]])
    last, _, _ = step(params, past, recent, other[4:], jnp.asarray(1))
    np.testing.assert_allclose(last, np.asarray(forward(params, other)[0][-1])[4:], atol=1e-12)


def test_an_output_of_size_zero_stays_zero(x64):
    params = jax.tree.map(jnp.asarray, random_params(False))
    high = params._replace(layers=tuple(layer._replace(threshold=np.float64(1e9)) for layer in params.layers))
    assert not np.any(forward(high, np.ones((N, D)))[0][-1])
