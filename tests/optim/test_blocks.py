"""8-bit blocks: the table of codes, errors within half a cell, encoding what was decoded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.optim.blocks import BLOCK, SMALL, Blocks, codes, decode, encode

ENCODE, DECODE = jax.jit(encode, static_argnums=1), jax.jit(decode)


@pytest.mark.parametrize("signed", [True, False])
def test_codes_are_the_published_ones(signed):
    table = codes(signed)
    assert table.shape == (256,) == np.unique(table).shape
    assert table[-1] == 1 and 0 in table
    assert table[0] == (-table[-2] if signed else 0)
    finest = table[(table > 0.1) & (table < 1)]
    cells = 64 if signed else 128
    np.testing.assert_allclose(finest, 0.1 + 0.9 * (np.arange(cells) + 0.5) / cells, rtol=1e-6)
    smallest = table[table > 0].min()
    np.testing.assert_allclose(smallest, 1e-6 * (0.55 if signed else 0.325), rtol=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**16), st.sampled_from([SMALL, SMALL + 1, 5000]), st.booleans(), st.floats(-20, 20))
def test_nearest_code_of_every_block(seed, size, signed, exponent):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=size) ** 3 * np.exp(exponent)).astype(np.float32)
    x = x if signed else np.abs(x)
    packed = ENCODE(x, signed)
    assert isinstance(packed, Blocks) and packed.code.dtype == jnp.uint8 and packed.code.shape == (size,)
    assert packed.largest.shape == (-(-size // BLOCK),)
    back, table = np.asarray(DECODE(packed)), codes(signed)
    scale = np.repeat(np.asarray(packed.largest), BLOCK)[:size]
    nearest = np.min(np.abs(x[:, None] / scale[:, None] - table), 1)
    np.testing.assert_allclose(np.abs(back - x) / scale, nearest, atol=1e-6)
    # the table has no -1: a block whose largest entry is negative shrinks by 0.7% each time; all others are at rest
    rest = np.repeat([block[np.argmax(np.abs(block))] > 0 for block in np.split(x, range(BLOCK, size, BLOCK))], BLOCK)[:size]
    again = np.asarray(DECODE(ENCODE(back, signed)))
    np.testing.assert_array_equal(again[rest], back[rest])
    assert rest.all() or signed


@pytest.mark.slow
def test_relative_error_of_entries_near_the_largest_is_half_a_cell():
    x = jnp.linspace(0.1, 1, SMALL)
    assert float(jnp.max(jnp.abs(decode(encode(x)) / x - 1))) <= 0.5 * 0.9 / 64 / 0.1 + 1e-6
    assert float(jnp.max(jnp.abs(decode(encode(x, False)) / x - 1))) <= 0.5 * 0.9 / 128 / 0.1 + 1e-6


def test_small_arrays_stay_and_zeros_are_zeros():
    x = jnp.ones(SMALL - 1, jnp.bfloat16)
    assert encode(x).dtype == jnp.float32
    np.testing.assert_array_equal(decode(encode(jnp.zeros((64, 64)))), np.zeros((64, 64)))
    assert decode(x) is x


@settings(deadline=None, max_examples=20, derandomize=True)
@given(st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, SMALL + 99), st.booleans())
def test_a_number_that_is_not_finite_makes_its_block_nan_and_no_other(bad, place, signed):
    x = np.abs(np.random.default_rng(0).normal(size=SMALL + 100)).astype(np.float32)
    good = np.asarray(DECODE(ENCODE(x, signed)))
    x[place] = bad
    back = np.asarray(DECODE(ENCODE(x, signed)))
    own = np.arange(x.size) // BLOCK == place // BLOCK
    assert np.isnan(back[own]).all()
    np.testing.assert_array_equal(back[~own], good[~own])


def test_states_pass_through_transformations():
    x = jnp.ones((3, SMALL))
    packed = jax.jit(jax.vmap(encode))(x)
    np.testing.assert_array_equal(jax.vmap(decode)(packed), x)
    assert jax.eval_shape(encode, x).code.size == x.size


def test_blocks_are_stored_in_files_of_runs():
    blocks = encode(jnp.linspace(-1, 1, SMALL).reshape(64, -1))
    empty = encode(jnp.zeros((64, SMALL // 64)))
    read = serialization.from_bytes({"mu": empty}, serialization.to_bytes({"mu": blocks}))["mu"]
    assert isinstance(read, Blocks) and (read.shape, read.signed) == (blocks.shape, blocks.signed)
    np.testing.assert_array_equal(decode(read), decode(blocks))
