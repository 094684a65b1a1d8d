"""Random combinations of the transformer's fields: all of them are networks that obey the same laws, or a sentence."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxdyn import Code
from jaxdyn.errors import UsageError
from jaxdyn.nn import ACTIVATIONS, KINDS, Transformer, cache, count, network, thoughts
from jaxdyn.nn.config import BIASES, CHOICES, DROPS
from tests.nn.drawn import weights
from tests.nn.plain_transformer import forward
from tests.programs import faults

V, N = 7, 5
FIELDS = {
    "width": st.sampled_from([4, 6, 8]),
    "layers": st.sampled_from([1, 2]),
    "heads": st.sampled_from([1, 2]),
    "hidden": st.sampled_from([None, 3, 5]),
    "outputs": st.sampled_from([None, 3]),
    "attention": st.sampled_from(KINDS),
    "causal": st.sampled_from([True, True, True, False]),
    "sees_itself": st.sampled_from([True, True, False]),
    "window": st.sampled_from([None, None, 1, 3]),
    "groups": st.sampled_from([None, 1, 2]),
    "head_size": st.sampled_from([None, None, 6]),
    "output_gate": st.booleans(),
    "project": st.sampled_from([True, True, False]),
    "query_key_norm": st.booleans(),
    "position": st.sampled_from(CHOICES["position"]),
    "length": st.just(N + 1),
    "rotary": st.sampled_from([None, None, 2]),
    "norm": st.sampled_from(CHOICES["norm"]),
    "norm_place": st.sampled_from(CHOICES["norm_place"]),
    "mlp": st.sampled_from(CHOICES["mlp"]),
    "activation": st.sampled_from(tuple(ACTIVATIONS)),
    "biases": st.sets(st.sampled_from(BIASES)).map(lambda names: tuple(sorted(names))),
    "parallel": st.sampled_from([False, False, True]),
    "scale": st.sampled_from([1.0, 0.7]),
    "skip": st.sampled_from([1.0, 0.8]),
    "residual": st.sampled_from([1.0, 0.5]),
    "tied": st.sampled_from([False, False, True]),
    "sink_token": st.sampled_from([False, False, True]),
    "repeats": st.sampled_from([1, 1, 2]),
    "order": st.sampled_from(CHOICES["order"]),
    "dropout": st.sampled_from([0.0, 0.3]),
    "drops": st.sets(st.sampled_from(DROPS)).map(tuple),
    "scan": st.booleans(),
    "start": st.sampled_from(CHOICES["start"]),
    "copies": st.booleans(),
}
TEXT = np.random.default_rng(1).integers(0, V, (2, N)).astype(np.int32)
CHANGED = 3  # the token that is another one


@st.composite
def fields(draw):
    """Fields that mostly fit one another: of those that cannot stand together, one gives way nearly always."""
    f = {name: draw(each) for name, each in FIELDS.items()}
    if draw(st.integers(0, 7)):
        f["mlp"] = "none" if f["hidden"] is None else f["mlp"] if f["mlp"] != "none" else "plain"
        there = {"o": f["project"], "gate": f["mlp"] == "gated", "up": f["mlp"] != "none", "down": f["mlp"] != "none"}
        f["biases"] = tuple(name for name in f["biases"] if there.get(name, True))
        f["head_size"] = f["head_size"] if f["project"] else None
        f["rotary"] = f["rotary"] if f["position"] == "rotary" else None
        f["window"] = f["window"] if f["causal"] else None
        f["parallel"] = f["parallel"] and f["norm_place"] == "pre" and f["mlp"] != "none"
        f["tied"] = f["tied"] and f["outputs"] is None
        f["groups"] = f["groups"] if f["heads"] % (f["groups"] or 1) == 0 else None
        if f["position"] == "rotary" and (f["head_size"] or f["width"] // f["heads"]) % 2:
            f["position"], f["rotary"] = "none", None
    return f


def judged(shape, params):
    """Everything in one program: logits, those of a changed text, those of a cache, a gradient, and the same with dropout."""
    net, other = network(shape), TEXT.copy()
    other[:, CHANGED] = (other[:, CHANGED] + 1) % V
    out = {"logits": net.apply(params, TEXT), "changed": net.apply(params, other)}
    out["gradient"] = jax.grad(lambda p: jnp.sum(jnp.sin(net.apply(p, TEXT, key=jax.random.key(0)))))(params)
    if shape.causal:
        policy = cache.Policy(kind="dense", size=N + shape.sink_token)
        out["cached"] = cache.decode(shape, params, policy, TEXT[0])[1]
        out["thought"] = thoughts.think(shape, params, TEXT, 0)[0]
        out["stream"] = net.trunk(params, TEXT)[:, -1]
    return out


@pytest.fixture(scope="module")
def verdicts():
    """How many combinations were networks, and how many sentences."""
    found = {"network": 0, "sentence": 0}
    yield found
    assert found["network"] >= 40 and found["sentence"] >= 2, found


@settings(max_examples=66, deadline=None, derandomize=True)
@example({name: getattr(Transformer(vocabulary=V, width=8, hidden=3), name) for name in FIELDS})
@given(fields())
def test_any_combination_is_a_network_or_a_sentence(verdicts, f):
    try:
        shape = Transformer(vocabulary=V, std=0.3, dtype="float64", **f)
    except UsageError as error:
        assert "\n" not in str(error) and "allowed" in str(error)
        verdicts["sentence"] += 1
        return
    verdicts["network"] += 1
    with jax.enable_x64(True):
        params = weights(shape)
        drawn = jax.eval_shape(network(shape).init, jax.random.key(0))
        assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(jnp.shape, params) and count(params) > 0
        out = jax.jit(lambda p: judged(shape, p))(params)
        plain = jax.tree.map(np.asarray, params)
        expected = np.stack([forward(shape, plain, row)[0] for row in TEXT])
    assert out["logits"].shape == (2, N, shape.logits)
    close = {"rtol": 1e-8, "atol": 1e-8 * max(1, np.abs(expected).max())}
    np.testing.assert_allclose(out["logits"], expected, **close)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(out["gradient"]))
    if shape.causal:
        np.testing.assert_allclose(out["changed"][:, :CHANGED], out["logits"][:, :CHANGED], **close)
        np.testing.assert_allclose(out["cached"], out["logits"][0], **close)
        np.testing.assert_allclose(out["thought"], out["stream"], **close)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", KINDS)
def test_without_jit_it_is_the_same_network(x64, kind):
    shape = Transformer(vocabulary=V, width=4, heads=2, hidden=3, attention=kind, std=0.4, dtype="float64", scan=False)
    params = weights(shape)
    net = network(shape)
    np.testing.assert_allclose(net.apply(params, TEXT), jax.jit(net.apply)(params, TEXT), rtol=1e-10, atol=1e-12)


VARIANTS = {
    "defaults": {},
    "every field": {
        **{"attention": "sink_bias", "output_gate": True, "query_key_norm": True, "groups": 1, "window": 3, "sink_token": True},
        **{"norm": "layer", "norm_place": "post", "mlp": "plain", "activation": "quadratic", "biases": ("q", "up", "head")},
        **{"position": "sinusoidal", "repeats": 2, "dropout": 0.1, "skip": 0.9, "residual": 0.5, "dtype": "bfloat16"},
    },
    "a switch": {"attention": Code(0, KINDS), "activation": Code(1, tuple(ACTIVATIONS)), "position": "alibi", "parallel": True},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_training_step_lowers_for_accelerators(name):
    def step(key, index):
        change = {n: Code(index % len(v.names), v.names) if isinstance(v, Code) else v for n, v in VARIANTS[name].items()}
        shape = Transformer(**{"vocabulary": V, "width": 8, "heads": 2, "hidden": 3, "layers": 2} | change)
        net = network(shape)
        return jax.grad(lambda p: jnp.sum(net.apply(p, TEXT, key=key) ** 2))(net.init(key))

    assert faults(jax.jit(step), jax.eval_shape(lambda: jax.random.key(0)), jax.ShapeDtypeStruct((), jnp.int32)) == []


def test_networks_that_see_the_future_are_not_decoded_token_by_token(x64):
    shape = Transformer(vocabulary=V, width=4, hidden=3, causal=False, dtype="float64")
    params = weights(shape)
    for call in (
        lambda: cache.decode(shape, params, cache.Policy(kind="dense", size=N), TEXT[0]),
        lambda: cache.prefill(shape, params, cache.Policy(kind="dense", size=N), TEXT[0]),
        lambda: thoughts.think(shape, params, TEXT, 1),
    ):
        with pytest.raises(UsageError, match="causal=False is not allowed: token by token only causal networks can be read"):
            call()
    narrow = dataclasses.replace(shape, causal=True, sees_itself=False)
    text = TEXT[0]
    np.testing.assert_allclose(
        cache.prefill(narrow, params, cache.Policy(kind="dense", size=N), text), network(narrow).apply(params, text[None])[0]
    )
