"""A model cut over four host devices gives the logits of one; real ones lower for eight accelerators, and send no weights."""

import collections
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.instruments import registry
from jaxdyn.models import sharding
from jaxdyn.nn import Transformer, llama
from jaxdyn.nn.cache import KINDS, Policy
from jaxdyn.nn.cache.decode import step
from jaxdyn.nn.cache.state import start
from jaxdyn.nn.transformer import apply, init
from jaxdyn.theories.dejavu import instrument as sparsity
from jaxdyn.theories.galore import instrument as gradients
from jaxdyn.theories.h2o import instrument as heavy
from jaxdyn.theories.joma import instrument as entropy
from jaxdyn.theories.orth import instrument as orthogonality
from jaxdyn.theories.sink import instrument as sinks
from jaxdyn.theories.stream import instrument as streaming
from tests.models.hugging import needs_models
from tests.nn.drawn import weights
from tests.programs import faults

SCRIPT = """
import dataclasses, sys
import jax, numpy as np
from jaxdyn import models
from jaxdyn.nn.cache import Policy, decode
from jaxdyn.nn.transformer import apply
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
    shape = Transformer(vocabulary=16, width=16, layers=2, heads=4, hidden=20, std=0.4, **more)
    folder = models.save(tmp_path / "model", shape, weights(shape), family=family, context=64)
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, encoding="utf-8", env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "same logits\n"


SHAPES = {  # of published models
    "llama-7b": llama("7B", dtype="bfloat16"),
    "llama-3-8b": Transformer(vocabulary=128_256, width=4096, layers=32, heads=32, groups=8, hidden=14_336, dtype="bfloat16"),
    "pythia-1b": Transformer(
        vocabulary=50_304,
        width=2048,
        layers=16,
        heads=8,
        hidden=8192,
        rotary=64,
        norm="layer",
        mlp="plain",
        activation="gelu",
        biases=("q", "k", "v", "o", "up", "down"),
        parallel=True,
    ),
    "smollm2": Transformer(vocabulary=49_152, width=576, layers=30, heads=9, groups=3, hidden=1536, tied=True),
}
CARDS, TEXTS, TOKENS, PLACES = 8, 2, 128, 64  # devices, texts, tokens of each, places of a cache
INSIDE = {  # the programs of each instrument
    "sinks": {"observe": sinks.observe},
    "streaming": {"observe": streaming.observe},
    "heavy": {"observe": heavy.observe},
    "sparsity": {"observe": sparsity.observe},
    "entropy": {"observe": entropy.observe, "ranks": entropy.ranks},
    "orthogonality": {"observe": orthogonality.observe, "rows": orthogonality.rows},
    "gradients": {"observe": gradients.observe},
    "numbers": {},  # NumPy, on the vocabulary
}
WITHOUT_TEXT, SEVERAL = ("ranks", "rows"), ("sinks", "gradients")
BY_LAYER = ("entropy.ranks", "orthogonality.rows", "gradients.observe")  # of each layer's matrices, one after another
COLLECTIVE = re.compile(r"= (\([^=]*\)|\S+) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def cut_weights(shape):
    """The weights' shapes, cut over all devices."""
    over = sharding.mesh()

    def cut(path, like):
        name = "/".join(key.key for key in path)
        placed = NamedSharding(over, sharding.spec(name, like.shape, over.size))
        return jax.ShapeDtypeStruct(like.shape, like.dtype, sharding=placed)

    return jax.tree_util.tree_map_with_path(cut, jax.eval_shape(lambda: init(shape, jax.random.key(0))))


def programs(shape):
    """Name -> function of the weights and the shapes of its other arguments: the forward pass, decoding, and the probe."""
    token, key = jax.ShapeDtypeStruct((), jnp.int32), jax.eval_shape(lambda: jax.random.key(0))
    yield "forward", lambda w, tokens: apply(shape, w, tokens), [jax.ShapeDtypeStruct((TEXTS, TOKENS), jnp.int32)]
    for kind in KINDS:
        policy = Policy(
            kind=kind, size=PLACES, positions="absolute" if kind == "dense" else "cache", sinks=4 * (kind == "streaming")
        )
        given = jax.ShapeDtypeStruct((shape.depth, shape.key_heads, TOKENS), jnp.float32) if kind == "oracle_global" else None

        def decoded(w, state, token, key, given, policy=policy):
            return step(shape, w, policy, state, token, given=given, key=key if policy.kind == "random" else None)

        yield kind, decoded, [jax.eval_shape(lambda policy=policy: start(shape, policy)), token, key, given]
    for name, functions in INSIDE.items():
        for what, function in functions.items():
            text = jax.ShapeDtypeStruct((TEXTS, TOKENS) if name in SEVERAL else (TOKENS,), jnp.int32)
            yield f"{name}.{what}", lambda w, *more, f=function: f(shape, w, *more), [] if what in WITHOUT_TEXT else [text]


def moved(compiled):
    """Collective -> numbers that each of its results has."""
    found = collections.defaultdict(list)
    for results, name in COLLECTIVE.findall(compiled.as_text()):
        found[name] += [math.prod(map(int, filter(None, size.split(",")))) for size in re.findall(r"\w+\[([\d,]*)\]", results)]
    return dict(found)


def main(name):
    """Print, for each program of a network, what its devices send one another, and what accelerators would not do of it."""
    w, found = cut_weights(SHAPES[name]), {}
    for what, function, others in programs(SHAPES[name]):
        jitted = jax.jit(function)
        found[what] = moved(jitted.lower(w, *others).compile()), faults(jitted, w, *others)
    print(json.dumps(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_real_models_lower_for_eight_accelerators(name):
    """Devices sum each block's attention and MLP and the embedding, and send a layer's weights where its spectrum is computed."""
    s = SHAPES[name]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={CARDS}"
    command = [sys.executable, "-c", f"from tests.models.test_sharding import main; main({name!r})"]
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=env, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert {what: faults for what, (_, faults) in found.items() if faults} == {}
    sent = {what: collections.defaultdict(list, one) for what, (one, _) in found.items()}

    divides = s.key_heads % CARDS == 0
    heads = 0 if divides else (s.heads + 2 * s.key_heads) * s.entries  # queries, keys and values, where heads are cut through
    assert sum(sent["forward"].pop("all-reduce")) == 3 * TEXTS * TOKENS * s.width
    assert sum(sent["forward"].pop("all-gather", [])) == TEXTS * TOKENS * heads
    assert not sent["forward"]
    for kind in KINDS:
        sums = sent[kind].pop("all-reduce")
        assert set(sums) == {s.width} and 3 <= len(sums) <= 5  # products in two parts (jaxdyn.linalg) are summed twice
        books = 0 if kind in ("dense", "window", "streaming") or not divides else 2 * s.key_heads * (s.entries + 2)
        assert sum(sent[kind].pop("all-gather", [])) == heads + books
        assert not sent[kind]
    for what, one in sent.items():
        largest = max((size for sizes in one.values() for size in sizes), default=0)
        if what in BY_LAYER:
            assert 0 < largest <= (TEXTS + 1) * s.width * s.hidden, what  # one layer's, of each text and of their mean
        elif divides and what not in KINDS:
            assert largest <= (len(heavy.BUDGETS) if what == "heavy.observe" else TEXTS) * TOKENS * max(s.width, s.hidden), what


def test_every_instrument_is_lowered():
    assert INSIDE.keys() == registry.instruments().keys()


def test_how_parameters_are_cut():
    assert sharding.spec("blocks/q", (2, 8, 12), 4) == PartitionSpec(None, None, "model")
    assert sharding.spec("blocks/q_bias", (2, 12), 4) == PartitionSpec(None, "model")
    assert sharding.spec("blocks/down", (2, 12, 8), 4) == PartitionSpec(None, "model", None)
    assert sharding.spec("blocks/o_bias", (2, 8), 4) == PartitionSpec()
    assert sharding.spec("embed", (16, 8), 4) == PartitionSpec("model", None)
    assert sharding.spec("embed", (17, 8), 4) == PartitionSpec(), "not divisible: on all devices"
    assert sharding.spec("norm", (8,), 4) == PartitionSpec()


def test_a_mesh_without_the_axis_is_refused():
    other = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])
    with pytest.raises(UsageError, match="mesh with the axes data is not allowed: it has an axis called model"):
        sharding.placer(other)
    assert sharding.mesh(1).axis_names == ("model",)
