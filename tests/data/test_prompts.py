"""Moments of the prompts' inputs, tasks and labels, and the noise on examples alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import prompts
from jaxdyn.errors import UsageError
from tests.data.limits import within

draw = jax.jit(prompts.draw, static_argnums=(1, 2))  # as one program: by itself every operation would be compiled


def test_moments(x64):
    root, task = np.asarray([[1.0, 0.5], [0.0, 2.0]]), np.asarray([[2.0, 0.0], [1.0, 1.0]])
    p = jax.device_get(draw(jax.random.key(0), 40_000, 5, root, task=task))
    x = np.asarray(p.tokens[..., :2]).reshape(-1, 2)
    np.testing.assert_allclose(x.T @ x / len(x), root @ root.T, atol=0.06)
    np.testing.assert_allclose(np.cov(p.query.T), root @ root.T, atol=0.1)
    w = np.linalg.solve(np.asarray(p.tokens[:, :2, :2]), np.asarray(p.tokens[:, :2, 2:]))[..., 0]  # labels without noise
    np.testing.assert_allclose(np.sum(w * np.asarray(p.query), -1), p.target, rtol=1e-5)
    np.testing.assert_allclose(np.cov(w.T), task @ task.T, rtol=0.05)


def test_noise_and_tails(x64):
    root = np.eye(2)
    plain, noisy, heavy = (
        jax.device_get(draw(jax.random.key(1), 20_000, 3, root, **more)) for more in ({}, {"noise": 0.5}, {"tails": 1.0})
    )
    np.testing.assert_array_equal(plain.target, noisy.target)
    np.testing.assert_allclose(np.std(noisy.tokens[..., 2] - plain.tokens[..., 2]), 0.5, rtol=0.02)
    fourth = [np.mean(p.tokens[..., 0] ** 4) for p in (plain, heavy)]
    np.testing.assert_allclose(fourth, (3.0, 6.0), rtol=0.06)
    np.testing.assert_allclose(np.mean(heavy.tokens[..., 0] ** 2), 1.0, rtol=0.03)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[(name, wrong) for name in ("count", "length") for wrong in (0, -1, True, 2.0, "2", float("nan"))],
        *[("noise", wrong) for wrong in (-1, True, float("nan"), "1")],
        *[("tails", wrong) for wrong in (-0.1, 2.0, True, float("nan"))],
    ],
)
def test_what_is_no_number_of_the_range_is_refused(name, wrong):
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        prompts.draw(jax.random.key(0), root=jnp.eye(2), **({"count": 2, "length": 3} | {name: wrong}))


def test_roots_that_do_not_fit_are_refused():
    for root, task in ((jnp.ones((2, 3)), None), (jnp.ones(2), None), (jnp.eye(2), jnp.eye(3))):
        with pytest.raises(UsageError, match="they are square, and of one size"):
            prompts.draw(jax.random.key(0), 2, 3, root, task=task)


@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(
    count=st.sampled_from([1, 4]),
    length=st.sampled_from([1, 5]),
    d=st.sampled_from([1, 3]),
    noise=st.floats(0, 10),
    tails=st.floats(0, 1),
)
def test_draws_over_the_whole_range(count, length, d, noise, tails):
    with within(60):
        p = draw(jax.random.key(0), count, length, jnp.eye(d), noise=noise, tails=tails)
    assert p.tokens.shape == (count, length, d + 1) and np.all(np.isfinite(p.tokens))
