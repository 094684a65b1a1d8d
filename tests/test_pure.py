"""Public functions are pure: the same with and without jit, traced once for all values, and vmap equals a loop (chex, float64)."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import parameterized

from jaxdyn import flow, linalg, metrics, nn, optim
from jaxdyn.nn import attention, transformer
from jaxdyn.optim import muon

TOKENS = jnp.array([[1, 4, 2, 0, 3, 2]])
SHAPE = nn.Transformer(vocabulary=5, length=6, width=4, layers=2, heads=2, hidden=6, dtype="float64")
SHAPES = {
    "plain": {},
    "linear": {"attention": "linear"},
    "rotary": {"position": "rotary", "norm": "rms", "mlp": "gated", "groups": 1},
    "alibi": {"position": "alibi", "norm": "layer", "norm_place": "post", "window": 3},
    "gated": {"output_gate": True, "query_key_norm": True, "tied": True, "sees_itself": False, "sink_token": False},
}


def logits(fields):
    """The logits of a variant whose read-out and embedding are given."""
    shape = dataclasses.replace(SHAPE, **fields)
    with jax.enable_x64(True):
        params = transformer.init(shape, jax.random.key(3))
    return lambda x: transformer.apply(shape, {**params, "embed": x}, TOKENS)


def updates(name):
    """What a method makes of two gradients, from its start."""

    def function(x):
        chosen = optim.method(name, 0.1, optim.Options(rank=2, every=1), key=jax.random.key(1))
        params = chosen.start({"w": x[0], "norm": x[0, 0]})
        state = chosen.tx.init(params)
        for row in (1, 2):
            gradients = jax.tree.map(lambda p, row=row: jnp.sin(p + row), params)
            out, state = chosen.tx.update(gradients, state, params)
        return out

    return function


def flowed(solver):
    """A pendulum's path."""
    ts = np.linspace(0.0, 1.0, 4)
    return lambda x: flow.solve(lambda t, y, a: jnp.array([y[1], -a * jnp.sin(y[0])]), x[:2], ts, x[2] ** 2, solver=solver).ys


def descended(x):
    """Gradient flow of a quartic."""
    return flow.gradient_flow(lambda p, a: jnp.sum((p["v"] ** 2 - a) ** 2), {"v": x[:3]}, np.linspace(0, 0.5, 3), x[3] ** 2).ys


def kernel(x):
    """An empirical kernel of a network with one hidden layer."""
    return nn.empirical_ntk(lambda p, z: jnp.tanh(z @ p["w"]) @ p["v"], {"w": x[:, :3], "v": x[0, :3]}, x[:, 3:].T)


CASES = {
    "entropy": (lambda x: metrics.entropy(jax.nn.softmax(x)), (5,)),
    "stable_rank": (metrics.stable_rank, (4, 3)),
    "normalized_correlation": (lambda x: metrics.normalized_correlation(x[0], x[1]), (2, 6)),
    "relative_norm_error": (lambda x: metrics.relative_norm_error({"a": x[0]}, {"a": x[1]}), (2, 6)),
    "eigvalsh": (lambda x: linalg.eigvalsh(x + x.T), (4, 4)),
    "singular_values": (linalg.singular_values, (4, 3)),
    "solve": (lambda x: linalg.solve(x[:, :4] + 4 * jnp.eye(4), x[:, 4:]), (4, 5)),
    "inv": (lambda x: linalg.inv(x + 4 * jnp.eye(4)), (4, 4)),
    "lstsq": (lambda x: linalg.lstsq(x[:, :3], x[:, 3:], 1e-12), (5, 4)),
    "rotate": (attention.rotate, (5, 2, 6)),
    "polar": (muon.polar, (4, 3)),
    "newton_schulz": (muon.newton_schulz, (4, 3)),
    "eigh": (lambda x: linalg.eigh(x + x.T)[0], (4, 4)),
    "qr": (linalg.qr, (4, 3)),
    "dense": (lambda x: linalg.dense(x[:2], x[2:].T), (5, 3)),
    "top_eigenvalue": (lambda x: metrics.top_eigenvalue(lambda v: (x @ x.T) @ v, jnp.ones(4), iters=20), (4, 4)),
    "attend": (lambda x: nn.attend(x[0], x[1], x[2]), (3, 5, 2, 3)),
    "empirical_ntk": (kernel, (4, 6)),
    "gradient_flow": (descended, (4,)),
    **{f"solve, {solver}": (flowed(solver), (3,)) for solver in flow.SOLVERS},
    **{f"transformer, {name}": (logits(fields), (5, 4)) for name, fields in SHAPES.items()},
}
METHODS = {f"method, {name}": (updates(name), (3, 4, 6)) for name in optim.METHODS}


def named(cases):
    """The parameters of a test for each case."""
    return parameterized.named_parameters([{"testcase_name": name, "case": case} for name, case in cases.items()])


def alike(run, case):
    """A way to run a function gives what it gives compiled, which is finite and not traced again for other values."""
    chex.clear_trace_counter()  # functions share names
    function, shape = case
    with jax.enable_x64(True):
        xs = jax.random.normal(jax.random.key(0), (2, *shape), jnp.float64)
        function, other = jax.jit(chex.assert_max_traces(n=1)(function)), run(function)
        for x in xs:
            out = other(x)
            chex.assert_tree_all_finite(out)
            chex.assert_trees_all_close(out, function(x), rtol=1e-11, atol=1e-12)


def vmapped(case):
    """A batch is a loop."""
    function, shape = case
    with jax.enable_x64(True):
        xs = jax.random.normal(jax.random.key(1), (3, *shape), jnp.float64)
        looped = jax.tree.map(lambda *each: np.stack(each), *map(jax.jit(function), xs))
        chex.assert_trees_all_close(jax.jit(jax.vmap(function))(xs), looped, rtol=1e-10, atol=1e-11)


class Variants(chex.TestCase):
    """One case for each function and each way to run it."""

    @chex.variants(with_jit=True, with_device=True, without_device=True)
    @named(CASES)
    def test_it_is_the_same_however_it_is_run(self, case):
        alike(self.variant, case)

    @named(CASES)
    def test_vmap_equals_a_loop(self, case):
        vmapped(case)


@pytest.mark.slow
class Methods(chex.TestCase):
    """The same for each method of optimization."""

    @chex.variants(with_jit=True, without_jit=True)
    @named(METHODS)
    def test_it_is_the_same_however_it_is_run(self, case):
        alike(self.variant, case)

    @named(METHODS)
    def test_vmap_equals_a_loop(self, case):
        vmapped(case)
