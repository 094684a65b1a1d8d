"""Public functions are pure: the same with and without jit, and vmap equals a loop (chex variants, float64)."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import parameterized

from jaxdyn import linalg, metrics
from jaxdyn.nn import attention
from jaxdyn.optim import muon

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
}
NAMES = [{"testcase_name": name, "name": name} for name in CASES]


class Variants(chex.TestCase):
    """One case for each function and each way to run it."""

    @chex.variants(with_jit=True, without_jit=True)
    @parameterized.named_parameters(NAMES)
    def test_jit_changes_nothing(self, name):
        function, shape = CASES[name]
        with jax.enable_x64(True):
            x = jax.random.normal(jax.random.key(0), shape, jnp.float64)
            out = self.variant(function)(x)
            chex.assert_tree_all_finite(out)
            chex.assert_trees_all_close(out, function(x), rtol=1e-12, atol=1e-13)

    @parameterized.named_parameters(NAMES)
    def test_vmap_equals_a_loop(self, name):
        function, shape = CASES[name]
        with jax.enable_x64(True):
            xs = jax.random.normal(jax.random.key(1), (3, *shape), jnp.float64)
            looped = np.stack(list(map(jax.jit(function), xs)))
            chex.assert_trees_all_close(jax.jit(jax.vmap(function))(xs), looped, rtol=1e-11, atol=1e-12)
