"""CoGO's network and its loss against plain loops; the Gram form against it; the gradient against finite differences."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import gram, model

GROUPS = ("2", "5", "8", "2x3", "2x2", "3x3")


def weights(group: Abelian, q: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, group.order, q)) + 0.3  # zero modes are not zero


def by_loops(w: np.ndarray, group: Abelian, factor: float, pairs=None, activation=np.square) -> float:
    """The mean over pairs, from the definition: one pair, one class, one node at a time."""
    d, q = w.shape[1:]
    total, count = 0.0, 0
    for g1, g2 in itertools.product(range(d), repeat=2) if pairs is None else pairs:
        o = [sum(activation(w[0, g1, j] + w[1, g2, j]) * w[2, c, j] for j in range(q)) for c in range(d)]
        coordinates = tuple((a + b) % n for a, b, n in zip(group.elements[g1], group.elements[g2], group.sizes, strict=True))
        target = np.ravel_multi_index(coordinates, group.sizes)
        error = np.array([factor * x - (c == target) for c, x in enumerate(o)])
        total += np.sum((error - error.mean()) ** 2)
        count += 1
    return total / count


@pytest.mark.parametrize("name", GROUPS)
def test_loss_is_that_of_the_loops(x64, name):
    group = parse(name)
    w = weights(group, 4)
    forms = [(f, scale) for scale in ("paper", "code") for f in (model.loss, gram.loss)]
    *ours, rectified = jax.jit(
        lambda w: [*(f(w, group, scale) for f, scale in forms), model.loss(w, group, "code", activation="relu")]
    )(w)
    factors = {"paper": 1 / (2 * group.order), "code": 1.0}
    np.testing.assert_allclose(ours, [by_loops(w, group, factors[scale]) for _, scale in forms], rtol=1e-12)
    np.testing.assert_allclose(rectified, by_loops(w, group, 1.0, activation=lambda x: max(x, 0)), rtol=1e-12)


@pytest.mark.parametrize("name", GROUPS)
def test_subset_by_pairs_and_by_what_is_left_out(x64, name):
    group = parse(name)
    w = weights(group, 3)
    every = list(itertools.product(range(group.order), repeat=2))
    np.random.default_rng(1).shuffle(every)
    held, kept = every[:3], every[3:]
    pairs = np.array(held), np.array(kept)
    (full_less_held, out), at_kept = jax.jit(
        lambda w, out, kept: (gram.loss_without(w, group, "code", out), model.loss_at(w, group, "code", kept))
    )(w, *pairs)
    np.testing.assert_allclose(out, by_loops(w, group, 1.0, held), rtol=1e-12)
    np.testing.assert_allclose(full_less_held, by_loops(w, group, 1.0, kept), rtol=1e-12)
    np.testing.assert_allclose(at_kept, by_loops(w, group, 1.0, kept), rtol=1e-12)


@functools.cache
def compiled(name):
    """The losses of one group on the paper's scale and their gradients, each one program."""
    group = parse(name)
    return [jax.jit(jax.value_and_grad(lambda w, f=f: f(w, group, "paper"))) for f in (gram.loss, model.loss)]


@settings(deadline=None, max_examples=24)
@given(st.sampled_from([(name, q) for i, name in enumerate(GROUPS) for q in (1, 2 + 3 * (i % 2))]), st.integers(0, 99))
def test_gradient_of_the_gram_form(shape, seed):
    name, q = shape
    with jax.enable_x64(True):
        gram_loss, model_loss = compiled(name)
        w = weights(parse(name), q, seed)
        ours, theirs = np.asarray(gram_loss(w)[1]), np.asarray(model_loss(w)[1])
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * np.abs(theirs).max())
        step = 1e-5 * np.random.default_rng(seed).normal(size=w.shape)
        rise = (gram_loss(w + step)[0] - gram_loss(w - step)[0]) / 2
        np.testing.assert_allclose(rise, np.sum(ours * step), rtol=1e-5, atol=1e-10)


def test_zero_weights_lose_one_less_one_over_d(x64):
    group = parse("7")
    zero = jnp.zeros((3, 7, 2))
    np.testing.assert_allclose([f(zero, group, "paper") for f in (model.loss, gram.loss)], 6 / 7, rtol=1e-15)


def test_scales_are_related_by_one_factor(x64):
    group = parse("2x4")
    w = jnp.asarray(weights(group, 3))
    code = model.to_scale(w, group, "code")
    np.testing.assert_allclose(model.loss(code, group, "code"), model.loss(w, group, "paper"), rtol=1e-13)
    np.testing.assert_allclose(model.to_scale(code, group, "paper"), w, rtol=1e-15)


def test_a_node_of_other_sign_and_other_place_changes_nothing(x64):
    """(a, b, c) -> (-a, -b, c), and any permutation of the nodes."""
    group = parse("5")
    w = weights(group, 4)
    other = w.copy()
    other[:2, :, 1] *= -1
    np.testing.assert_allclose(model.output(jnp.asarray(other[:, :, [2, 0, 3, 1]])), model.output(jnp.asarray(w)), rtol=1e-12)


def test_start_keeps_its_bounds_and_its_type():
    group = parse("23")
    w = model.init(jax.random.key(0), group, 512)
    chex.assert_shape(w, (3, 23, 512))
    chex.assert_type(w, jnp.float32)
    bounds = np.array([23**-0.5, 23**-0.5, 512**-0.5])
    top = np.abs(w).max((1, 2))
    assert (top <= bounds * (1 + 1e-6)).all() and (top > 0.99 * bounds).all()


def test_correct_marks_the_pairs_whose_largest_output_is_the_sum(x64):
    """A network that stores the table: node (x, y) answers only to its own pair."""
    group = parse("2x2")
    a = jnp.repeat(jnp.eye(4), 4, 1)
    b = jnp.tile(jnp.eye(4), (1, 4))
    c = jnp.stack([jnp.eye(4)[group.add[x, y]] for x in range(4) for y in range(4)], 1)
    assert bool(model.correct(jnp.stack([a, b, c]), group).all())
    assert not bool(model.correct(jnp.stack([a, b, c[jnp.array([1, 0, 2, 3])]]), group).all())
