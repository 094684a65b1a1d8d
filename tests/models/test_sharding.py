"""A model cut over four host devices gives the logits of one."""

import os
import subprocess
import sys

import pytest
from jax.sharding import PartitionSpec

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.models import sharding
from jaxdyn.nn.decoder import Decoder
from tests.models.hugging import needs_models
from tests.nn.drawn import weights

SCRIPT = """
import dataclasses, sys
import jax, numpy as np
from jaxdyn import models
from jaxdyn.nn.cache import Policy, decode
from jaxdyn.nn.decoder import apply
assert jax.device_count() == 4
tokens = np.random.default_rng(0).integers(0, 16, (2, 7))
one = models.load(sys.argv[1])
mesh = models.mesh()
many = models.load(sys.argv[1], mesh=mesh)
q = many.params["blocks"]["q"]
assert len(q.sharding.device_set) == 4 and q.addressable_shards[0].data.shape == (2, 16, 4), q.sharding
held = sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(many.params))
assert held < 0.3 * sum(x.nbytes for x in jax.tree.leaves(many.params)), held
run = jax.jit(lambda p: apply(one.shape, p, tokens))
np.testing.assert_allclose(run(many.params), run(one.params), rtol=0, atol=2e-5)
text = run.lower(many.params).compile().as_text()
assert "all-reduce" in text, "the devices share the work"
step = jax.jit(lambda p: decode(one.shape, p, Policy(kind="streaming", size=5, sinks=1), tokens[0])[1])
np.testing.assert_allclose(step(many.params), step(one.params), rtol=0, atol=2e-5)
print("same logits")
"""


@needs_models
@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gpt_neox"])
def test_four_devices_give_the_logits_of_one(family, tmp_path):
    layer = {"norm": "layer", "mlp": "plain", "activation": "gelu", "biases": ("q", "k", "v", "o", "up", "down"), "parallel": True}
    more = {"groups": 2} if family == "llama" else layer
    shape = Decoder(vocabulary=16, width=16, layers=2, heads=4, hidden=20, std=0.4, **more)
    folder = models.save(tmp_path / "model", shape, weights(shape), family=family)
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "same logits\n"


def test_how_parameters_are_cut():
    assert sharding.spec("blocks/q", (2, 8, 12), 4) == PartitionSpec(None, None, "model")
    assert sharding.spec("blocks/q_bias", (2, 12), 4) == PartitionSpec(None, "model")
    assert sharding.spec("blocks/down", (2, 12, 8), 4) == PartitionSpec(None, "model", None)
    assert sharding.spec("blocks/o_bias", (2, 8), 4) == PartitionSpec()
    assert sharding.spec("embed", (16, 8), 4) == PartitionSpec("model", None)
    assert sharding.spec("embed", (17, 8), 4) == PartitionSpec(), "not divisible: on all devices"
    assert sharding.spec("norm", (8,), 4) == PartitionSpec()


def test_a_mesh_without_the_axis_is_refused():
    import jax

    other = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])
    with pytest.raises(UsageError, match="mesh with the axes data is not allowed: it has an axis called model"):
        sharding.placer(other)
    assert sharding.mesh(1).axis_names == ("model",)
