"""Traced trials as flat lists of equations, which evaluate to the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.attacks.equations import Known, behind, evaluate, flatten, is_loop, slots, values_of
from jaxdyn.engine.programs.tracing import run_one, swept_arrays, trace
from jaxdyn.engine.runs.blocks import Request
from tests.attacks import toys


@jax.custom_jvp
def cubed(x):
    return x**3


cubed.defjvps(lambda dx, out, x: 3 * x**2 * dx)


@jax.jit
def inner(x):
    return jax.checkpoint(lambda y: jnp.sin(cubed(y)) + jax.nn.silu(y))(x)


def nested(s, key):
    """Calls within calls, keys, branches and loops."""
    x = inner(s.lr * jax.random.normal(jax.random.fold_in(key, 1), (3,), jnp.float64))
    y = jax.lax.cond(s.lr > 0.005, lambda v: v * 2, lambda v: v, x)
    z, _ = jax.lax.scan(lambda c, _: (c * 0.5 + y.sum(), None), jnp.float64(1), None, 4)
    return jd.observables(
        predicted={"x": jd.named(inner(x), "i")},
        measured={"x": jd.named(x, "i"), "z": z, "y": jd.named(jnp.linalg.norm(y)[None], "j")},
    )


def parts():
    request = Request(nested, jd.grid(toys.Decay, lr=[0.01]), range(3))
    (program, cell), *_ = request.cells
    return program, cell, flatten(trace(program))


def test_the_flat_list_evaluates_to_the_trial():
    program, cell, flat = parts()
    swept = {name: values[0] for name, values in swept_arrays(program, [cell]).items()}
    with jax.enable_x64(True):
        env = dict(enumerate(jax.tree.leaves((swept, np.uint32(7), ()))))
        evaluate(flat, range(len(flat.equations)), env, {})
        direct = run_one(program)(swept, np.uint32(7), ())
    for group in ("predicted", "measured"):
        for name, item in getattr(direct, group).items():
            out = flat.outs[getattr(flat.results, group)[name].value]
            found = out.value if isinstance(out, Known) else env[out]
            np.testing.assert_allclose(found, item.value, rtol=1e-12)


def test_calls_are_inlined_and_loops_are_not():
    _, _, flat = parts()
    names = [equation.primitive for equation in flat.equations]
    assert not {"jit", "pjit", "checkpoint", "custom_jvp_call"} & set(names)
    assert {"scan", "cond"} <= set(names)
    assert [e.primitive for e in flat.equations if is_loop(e) and e.primitive in ("scan", "cond")] == ["scan"]


def test_slots_have_the_line_that_made_them():
    _, _, flat = parts()
    theory = behind(flat, values_of(flat, flat.results.predicted))
    found = slots(flat, theory)
    assert all("test_equations.py" in slot.place for slot in found)
    assert {slot.primitive for slot in found} >= {"sin", "mul"}
    assert len(set(map(str, found))) == len(found)


def test_a_gain_multiplies_one_number():
    program, cell, flat = parts()
    theory = sorted(behind(flat, values_of(flat, flat.results.predicted)))
    last = [slot for slot in slots(flat, theory).values()][-1]
    swept = {name: values[0] for name, values in swept_arrays(program, [cell]).items()}
    ends = []
    with jax.enable_x64(True):
        for gain in (1.0, 3.0):
            env = dict(enumerate(jax.tree.leaves((swept, np.uint32(7), ()))))
            evaluate(flat, theory, env, {last: gain})
            ends.append(np.asarray(env[flat.outs[flat.results.predicted["x"].value]]))
    np.testing.assert_allclose(ends[1], 3 * ends[0], rtol=1e-12)
