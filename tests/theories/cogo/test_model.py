"""CoGO's network and its losses against plain loops."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import gram, model
from tests.theories.cogo.loops import GROUPS, by_loops, weights

init = jax.jit(model.init, static_argnums=(1, 2, 3))
loss = jax.jit(model.loss, static_argnums=(1, 2, 4))
output, correct = jax.jit(model.output), jax.jit(model.correct, static_argnums=1)


@pytest.mark.thinned
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


def test_zero_weights_lose_one_less_one_over_d(x64):
    group = parse("7")
    zero = jnp.zeros((3, 7, 2))
    np.testing.assert_allclose(
        [jax.jit(lambda w, f=f: f(w, group, "paper"))(zero) for f in (model.loss, gram.loss)], 6 / 7, rtol=1e-15
    )


def test_scales_are_related_by_one_factor(x64):
    group = parse("2x4")
    w = jnp.asarray(weights(group, 3))
    code = model.to_scale(w, group, "code")
    np.testing.assert_allclose(loss(code, group, "code"), loss(w, group, "paper"), rtol=1e-13)
    np.testing.assert_allclose(model.to_scale(code, group, "paper"), w, rtol=1e-15)


def test_a_node_of_other_sign_and_other_place_changes_nothing(x64):
    """(a, b, c) -> (-a, -b, c), and any permutation of the nodes."""
    group = parse("5")
    w = weights(group, 4)
    other = w.copy()
    other[:2, :, 1] *= -1
    np.testing.assert_allclose(output(jnp.asarray(other[:, :, [2, 0, 3, 1]])), output(jnp.asarray(w)), rtol=1e-12)


def test_start_keeps_its_bounds_and_its_type():
    group = parse("23")
    w = init(jax.random.key(0), group, 512)
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
    assert bool(correct(jnp.stack([a, b, c]), group).all())
    assert not bool(correct(jnp.stack([a, b, c[jnp.array([1, 0, 2, 3])]]), group).all())


@pytest.mark.parametrize("width", [1, 6, 11])
def test_a_start_of_some_width_holds_the_network_of_that_size(x64, width):
    group, key = parse("5"), jax.random.key(3)
    wide = jax.jit(lambda q: model.init(key, group, 11, "float32", q))(jnp.asarray(float(width), jnp.float32))
    np.testing.assert_allclose(wide[..., :width], init(key, group, width), rtol=1e-6)
    assert not np.asarray(wide[..., width:]).any()


def test_the_activation_may_be_a_traced_switch(x64):
    group = parse("5")
    w = jnp.asarray(weights(group, 3))
    switched = jax.jit(lambda i: model.loss(w, group, "code", None, jd.Code(i, ("quadratic", "relu"))))
    for i, name in enumerate(("quadratic", "relu")):
        np.testing.assert_allclose(switched(i), loss(w, group, "code", None, name), rtol=1e-14)
