"""Adam's direction against optax's, its other epsilon, and its stored dtypes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.blocks import Blocks


def runs(tx, gradients):
    state, out = tx.init(gradients[0]), []
    update = jax.jit(tx.update)
    for g in gradients:
        n, state = update(g, state)
        out.append(n)
    return out, state


def gradients(dtype, shape=(4, 3), count=6):
    rng = np.random.default_rng(0)
    return [{"w": jnp.asarray(rng.normal(size=shape), dtype)} for _ in range(count)]


def test_corrected_is_optax_and_raw_is_the_formula(x64):
    given = gradients(jnp.float64)
    ours, _ = runs(adam_direction(0.8, 0.95, 1e-3, epsilon="corrected"), given)
    theirs, _ = runs(optax.scale_by_adam(0.8, 0.95, 1e-3), given)
    raw, _ = runs(adam_direction(0.8, 0.95, 1e-3), given)
    m = v = 0.0
    for k, g in enumerate(given, 1):
        np.testing.assert_allclose(ours[k - 1]["w"], theirs[k - 1]["w"], rtol=1e-12)
        g = np.asarray(g["w"])
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g**2
        expected = np.sqrt(1 - 0.95**k) / (1 - 0.8**k) * m / (np.sqrt(v) + 1e-3)
        np.testing.assert_allclose(raw[k - 1]["w"], expected, rtol=1e-12)


def test_bfloat16_moments_are_calculated_in_float32():
    given = gradients(jnp.bfloat16)
    updates, state = runs(adam_direction(), given)
    assert {x.dtype for x in jax.tree.leaves((updates, state.mu, state.nu))} == {jnp.dtype("bfloat16")}
    _, wide = runs(adam_direction(stored="float32"), given)
    assert wide.mu["w"].dtype == jnp.float32
    np.testing.assert_allclose(state.mu["w"].astype(jnp.float32), wide.mu["w"], atol=0.05)


def test_states_of_one_byte_follow_those_of_four():
    given = gradients(jnp.float32, (64, 64), 30)
    packed, state = runs(adam_direction(stored="8bit"), given)
    plain, _ = runs(adam_direction(), given)
    assert isinstance(state.mu["w"], Blocks) and state.mu["w"].signed and not state.nu["w"].signed
    error = float(jnp.linalg.norm(packed[-1]["w"] - plain[-1]["w"]) / jnp.linalg.norm(plain[-1]["w"]))
    assert error < 0.05


def test_unknown_names_are_refused():
    with pytest.raises(UsageError, match="epsilon='other'"):
        adam_direction(epsilon="other")
    with pytest.raises(UsageError, match="stored='4bit'"):
        adam_direction(stored="4bit")
