"""Adam's direction against optax's, its other epsilon, and its stored dtypes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.adam import adam_direction, moments_of
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


@pytest.mark.parametrize("wide", [False, True])
def test_corrected_with_optaxs_epsilon_is_optax_to_the_bit(wide):
    with jax.enable_x64(wide):
        given = [g | {"b": 3 * g["w"][0]} for g in gradients(jnp.float32, (64, 70), 8)]
        ours, theirs = (runs(tx, given)[0] for tx in (adam_direction(eps=1e-8, epsilon="corrected"), optax.scale_by_adam()))
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)


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


@pytest.mark.parametrize("stored", ["parameter", "float32", "8bit"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_stays_as_in_optax(stored, bad):
    given = gradients(jnp.float32, (64, 80), 3)
    given[1]["w"] = given[1]["w"].at[2, 3].set(bad)
    ours, state = runs(adam_direction(epsilon="corrected", stored=stored), given)
    theirs, _ = runs(optax.scale_by_adam(eps=1e-6), given)
    assert np.isfinite(ours[0]["w"]).all()
    for mine, other in zip(ours[1:], theirs[1:], strict=True):
        nan = np.isnan(other["w"])
        assert nan.sum() == 1 and np.isnan(mine["w"])[nan].all()
    marked = np.isnan(ours[2]["w"]).ravel()
    block = np.arange(marked.size) // 256 == (2 * 80 + 3) // 256  # 8 bits: the block's numbers have lost their scale
    np.testing.assert_array_equal(marked, block if stored == "8bit" else nan.ravel())
    if stored == "8bit":
        assert np.isnan(state.mu["w"].largest).sum() == 1 == np.isnan(state.nu["w"].largest).sum()


def test_the_count_stays_at_its_last_number_as_optaxs_does():
    given = gradients(jnp.float32, count=3)
    ours, theirs = adam_direction(epsilon="corrected"), optax.scale_by_adam(eps=1e-6)
    start, last = jnp.int32(2**31 - 3), 2**31 - 1
    late = [ours.init(given[0])._replace(steps=start), theirs.init(given[0])._replace(count=start)]
    for g in given:
        (mine, late[0]), (other, late[1]) = (tx.update(g, s) for tx, s in zip((ours, theirs), late, strict=True))
        np.testing.assert_allclose(mine["w"], other["w"], rtol=1e-6)
    assert late[0].steps == late[1].count == last


@pytest.mark.parametrize(("weights", "gradient"), [("float32", "bfloat16"), ("bfloat16", "float32"), ("float16", "float32")])
def test_moments_keep_the_parameters_dtype_whatever_the_gradients(weights, gradient):
    tx = adam_direction()
    state = tx.init(gradients(weights)[0])
    updates, after = tx.update(gradients(gradient)[0], state)
    assert jax.tree.map(jnp.result_type, after) == jax.tree.map(jnp.result_type, state)
    assert updates["w"].dtype == gradient


def test_wrong_numbers_and_trees_are_refused():
    for wrong in ({"b1": 1.0}, {"b2": -0.1}, {"b1": np.nan}, {"eps": -1.0}, {"eps": True}, {"eps": jnp.float32(jnp.nan)}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            adam_direction(**wrong)
    tx = adam_direction()
    for leaf in (jnp.arange(3), jnp.ones(3, jnp.complex64), 1.0):
        with pytest.raises(UsageError, match=r"\['w'\] is of type"):
            tx.init({"w": leaf})
    state = tx.init({"w": jnp.ones(1)})
    with pytest.raises(UsageError, match="is that of a parameter of shape"):
        tx.update({"w": jnp.ones(3)}, state)  # would be broadcast
    with pytest.raises(UsageError, match="a tree unlike"):
        tx.update({"v": jnp.ones(1)}, state)
    twice = optax.chain(optax.scale_by_adam(), optax.scale_by_adam()).init({"w": jnp.ones(1)})
    with pytest.raises(UsageError, match="several moments"):
        moments_of(twice, ("mu", "nu"))


def test_unknown_names_are_refused():
    with pytest.raises(UsageError, match="epsilon='other'"):
        adam_direction(epsilon="other")
    with pytest.raises(UsageError, match="stored='4bit'"):
        adam_direction(stored="4bit")
