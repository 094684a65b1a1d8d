"""Rare work runs as often as it is due, whatever is vmapped and scanned around it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.optim.periodic import following, period, when


class Counted:
    """Doubles a number, and counts how often it is called when the program runs."""

    def __init__(self):
        self.calls = 0

    def tick(self, _):
        self.calls += 1

    def __call__(self, x):
        jax.debug.callback(self.tick, jnp.zeros(()))
        return 2 * x


def train(work, steps, every):
    def run(x, count):
        def step(carry, _):
            x, old, count = carry
            old = when(count % every == 0, work, old, x)
            return (x + 1, old, count + 1), old

        return jax.lax.scan(step, (x, jnp.zeros_like(x), count), None, length=steps)[1]

    return run


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("own_clock", [False, True])
def test_work_is_done_once_a_period_however_deep_the_vmap(depth, own_clock):
    work = Counted()
    run, x, count = train(work, 12, 4), jnp.float32(3), jnp.int32(0)
    for _ in range(depth):
        run = jax.vmap(run, in_axes=(0, 0 if own_clock else None))
        x = jnp.stack([x, x + 10])
        count = jnp.stack([count, count]) if own_clock else count
    values = jax.jit(run)(x, count)
    jax.effects_barrier()
    assert work.calls in (3, 3 * 2**depth)  # a callback may be called for each element; never 12 times
    each = np.reshape(values, (-1, 12))
    for row, start in zip(each, np.ravel(x), strict=True):
        np.testing.assert_array_equal(row, np.repeat(2 * (start + np.array([0, 4, 8])), 4))


def test_elements_with_clocks_apart_keep_their_own():
    counts = jnp.array([0, 1, 2])
    values = jax.vmap(train(lambda x: 2 * x, 6, 3))(jnp.zeros(3), counts)
    expected = []
    for c in counts:
        old, row = 0.0, []
        for i in range(6):
            old = 2.0 * i if (c + i) % 3 == 0 else old
            row.append(old)
        expected.append(row)
    np.testing.assert_array_equal(values, expected)


def test_trees_and_batched_arguments_only():
    old, x = {"a": jnp.zeros(2)}, jnp.arange(3.0)
    out = jax.vmap(lambda x: when(jnp.array(True), lambda x: {"a": jnp.full(2, x)}, old, x))(x)
    np.testing.assert_array_equal(out["a"], np.repeat(np.arange(3.0)[:, None], 2, 1))
    out = jax.vmap(lambda x: when(jnp.array(False), lambda x: {"a": jnp.full(2, x)}, old, x))(x)
    np.testing.assert_array_equal(out["a"], np.zeros((3, 2)))


LAST = 2**31 - 1
FOLLOWING = jax.jit(following)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.one_of(st.integers(1, 12), st.integers(1, 2**30)), st.integers(0, 6))
def test_what_is_periodic_stays_so_after_the_last_number(every, before):
    count = jnp.int32(LAST - before)
    for step in range(LAST - before, LAST + 8):
        assert int(count) % every == step % every and count > 0
        count = FOLLOWING(count, every)
    assert count >= 2**30


def test_counts_without_a_period_stay_at_the_last_number():
    assert [int(following(jnp.int32(c), None)) for c in (0, LAST - 1, LAST)] == [1, LAST, LAST]
    assert int(following(jnp.int32(LAST), 0)) > 0  # a period of 0: never


def test_periods_are_whole_numbers_from_1():
    assert [period(x) for x in (3, np.int64(3), jnp.int32(3))] == [3, 3, 3] and period(None, none=True) is None
    np.testing.assert_array_equal(jax.jit(jax.vmap(period))(jnp.array([-1, 0, 1, 7])), [1, 1, 1, 7])
    for wrong in (0, -1, 1.0, True, None, np.int64(0)):
        with pytest.raises(UsageError, match="every="):
            period(wrong)
    with pytest.raises(UsageError, match="every=float32.. is not allowed"):
        jax.jit(period)(3.0)
