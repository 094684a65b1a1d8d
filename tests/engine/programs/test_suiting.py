"""What suits a program, told by its jaxpr."""

import jax
import jax.numpy as jnp
import pytest

from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.direct import traced_facts
from jaxdyn.engine.programs.suiting import step_bytes
from jaxdyn.engine.programs.tracing import subjaxprs


def test_groups_are_as_large_as_what_their_largest_loop_computes_allows(toys):
    def facts(trial, cls):
        return traced_facts(Program(ref_to(trial), ref_to(cls), split(cls())[0]))

    assert facts(toys.decay, toys.Toy)["group"] == 0  # a loop of 20 steps, over in no time

    def loop(x):
        return jax.lax.fori_loop(0, 1000, lambda _, x: x + 1, x)  # 8 bytes for the counter, 800 for x

    inner = list(subjaxprs(jax.make_jaxpr(loop)(jnp.zeros(100)).jaxpr))
    assert step_bytes(inner) == pytest.approx(100 * jnp.zeros(1).dtype.itemsize, abs=16)
