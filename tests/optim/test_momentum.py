"""Directions without Adam against optax's and numpy's: bits, signs, stored dtypes, what is not finite."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.blocks import Blocks
from jaxdyn.optim.momentum import gradient_direction, momentum_direction, sign_direction


def runs(tx, gradients):
    state, out, update = tx.init(gradients[0]), [], jax.jit(tx.update)
    for g in gradients:
        n, state = update(g, state)
        out.append(n)
    return out, state


def gradients(dtype="float32", shape=(4, 3), count=6):
    rng = np.random.default_rng(0)
    return [{"w": jnp.asarray(rng.normal(size=shape), dtype), "b": jnp.asarray(rng.normal(size=3), dtype)} for _ in range(count)]


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_optaxs_to_the_bit_and_the_formula(nesterov):
    given = gradients()
    ours, theirs = (runs(tx, given)[0] for tx in (momentum_direction(0.8, nesterov=nesterov), optax.trace(0.8, nesterov)))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    total = 0.0
    for g, n in zip(given, ours, strict=True):
        g = np.asarray(g["w"], float)
        total = 0.8 * total + g
        np.testing.assert_allclose(n["w"], g + 0.8 * total if nesterov else total, rtol=1e-5, atol=1e-6)


def test_signs_are_numpys_and_what_is_not_finite_has_none():
    g = jnp.asarray([-2.0, -0.0, 0.0, 1e-30, jnp.inf, -jnp.inf, jnp.nan])
    found, _ = sign_direction().update({"w": g}, sign_direction().init({"w": g}))
    np.testing.assert_array_equal(found["w"], [-1, 0, 0, 1, np.nan, np.nan, np.nan])
    plain, _ = gradient_direction().update({"w": g}, gradient_direction().init({"w": g}))
    np.testing.assert_array_equal(plain["w"], g)


def test_sums_of_16_bits_are_calculated_in_float32_and_stored_as_asked():
    given = gradients("float16")
    updates, state = runs(momentum_direction(), given)
    assert {x.dtype for x in jax.tree.leaves((updates, state))} == {jnp.dtype("float16")}
    _, wide = runs(momentum_direction(stored="float32"), given)
    assert wide.trace["w"].dtype == jnp.float32
    np.testing.assert_allclose(state.trace["w"], wide.trace["w"], rtol=0.01, atol=0.01)
    large = gradients(shape=(64, 80), count=10)
    (packed, state), (plain, _) = (runs(momentum_direction(stored=stored), large) for stored in ("8bit", "parameter"))
    assert isinstance(state.trace["w"], Blocks) and state.trace["b"].dtype == jnp.float32
    assert np.linalg.norm(packed[-1]["w"] - plain[-1]["w"]) < 0.02 * np.linalg.norm(plain[-1]["w"])


def test_wrong_numbers_and_trees_are_refused():
    for wrong in ({"beta": 1.0}, {"beta": -0.1}, {"beta": np.nan}, {"beta": True}, {"stored": "4bit"}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))}=.* is not allowed"):
            momentum_direction(**wrong)
    for tx in (gradient_direction(), sign_direction(), momentum_direction()):
        params = {"w": jnp.ones((2, 3))}
        with pytest.raises(UsageError, match="is of type int32, which is not allowed"):
            tx.init({"w": jnp.ones(2, jnp.int32)})
        with pytest.raises(UsageError, match="a gradient of shape"):
            tx.update({"w": jnp.ones((1, 3))}, tx.init(params), params)
        with pytest.raises(UsageError, match="a tree unlike that of the parameters"):
            tx.update(params, tx.init({"v": params["w"]}), {"v": params["w"]})
