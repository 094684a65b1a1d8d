"""Every family against transformers: whole sequences, and token by token through every kind of cache.

What transformers gave for the stored models (``reference/``) is compared everywhere; drawn models need it installed.
"""

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import models
from jaxdyn.nn.cache import Policy, decode, global_scores, prefill, recompute
from jaxdyn.nn.transformer import apply
from tests.models.hugging import FAMILIES, GROUPED, LLAMA3, ROTARY, TEXT, logits, needs_models, needs_torch, stored, written

pytestmark = needs_models
TOKENS = TEXT
WORST = {"float32": 1e-5, "float64": 1e-10}  # of logits of size 10: 20 and 5 million roundings of their size
apply = jax.jit(apply, static_argnums=0)
CACHES = [  # with room for the whole text, so that none of them forgets
    {"kind": "dense"},
    {"kind": "window"},
    {"kind": "streaming", "sinks": 2},
    {"kind": "h2o", "recent": 3},
    {"kind": "anti_h2o", "score": "mean"},
    {"kind": "random"},
    {"kind": "oracle_global", "positions": "absolute"},
]


def reference(name):
    """What transformers gave for a stored model."""
    return np.load(stored(name) / "logits.npy")


def close(ours, theirs, dtype):
    """Equal to rounding; returns the largest difference."""
    scale = max(1.0, float(np.max(np.abs(theirs))))
    np.testing.assert_allclose(ours, theirs, atol=WORST[dtype] * scale, rtol=0)
    assert np.std(theirs) > 0.1, "logits that differ"
    return float(np.max(np.abs(ours - theirs)))


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", WORST)
@pytest.mark.parametrize("name", FAMILIES)
def test_whole_sequences(name, dtype, record_property):
    with jax.enable_x64(dtype == "float64"):
        model = models.load(stored(name), dtype=dtype)
        ours = np.asarray(apply(model.shape, model.params, TOKENS))
    assert ours.dtype == dtype
    record_property("largest difference", close(ours, reference(name), dtype))


@needs_torch
@pytest.mark.parametrize("dtype", WORST)
@pytest.mark.parametrize("name", FAMILIES)
def test_stored_logits_are_those_of_the_installed_transformers(name, dtype):
    close(logits(stored(name), TOKENS, dtype), reference(name), dtype)


@needs_torch
@pytest.mark.parametrize("name", ["llama 3", "neox", "opt"])
def test_models_just_written(name, tmp_path, x64):
    folder = written(tmp_path / "model", *FAMILIES[name], seed=1)
    model = models.load(folder, dtype="float64")
    close(np.asarray(apply(model.shape, model.params, TOKENS)), logits(folder, TOKENS, "float64"), "float64")


def cached(model, fields, tokens):
    """Logits token by token."""
    policy = Policy(size=len(tokens), **fields)
    given_ = global_scores(model.shape, model.params, tokens) if policy.kind == "oracle_global" else None
    run = jax.jit(lambda p, t: decode(model.shape, p, policy, t, given=given_, key=jax.random.key(0))[1])
    return np.asarray(run(model.params, tokens))


NAMES = list(FAMILIES)
QUICK = [(name, CACHES[i % len(CACHES)]) for i, name in enumerate(NAMES)]
SLOW = [pytest.param(n, c, marks=pytest.mark.slow) for n in NAMES for c in CACHES if (n, c) not in QUICK]


@pytest.mark.thinned
@pytest.mark.parametrize(("name", "fields"), [*QUICK, *SLOW], ids=str)
def test_token_by_token(name, fields, x64):
    model = models.load(stored(name), dtype="float64")
    close(cached(model, fields, TOKENS[0]), reference(name)[0], "float64")


@pytest.mark.parametrize("name", ["mistral", "neox", "opt"])
def test_whole_texts_by_prefill_and_recomputation(name, x64):
    model, theirs = models.load(stored(name), dtype="float64"), reference(name)[:1]
    policy = Policy(kind="streaming", size=20, sinks=1)
    close(np.asarray(jax.jit(lambda p: prefill(model.shape, p, policy, TOKENS[:1]))(model.params)), theirs, "float64")
    again = jax.jit(lambda p: recompute(model.shape, p, 20, TOKENS[0]))(model.params)
    close(np.asarray(again), theirs[0], "float64")


def test_layers_written_out(x64):
    model = models.load(stored("neox"), dtype="float64")
    shape = dataclasses.replace(model.shape, scan=False)
    close(np.asarray(apply(shape, model.params, TOKENS)), reference("neox"), "float64")


def test_bfloat16_is_near():
    model = models.load(stored("llama"), dtype="bfloat16")
    ours, theirs = np.asarray(apply(model.shape, model.params, TOKENS), np.float32), reference("llama")
    assert {leaf.dtype.name for leaf in jax.tree.leaves(model.params)} == {"bfloat16"}
    assert np.sqrt(np.mean((ours - theirs) ** 2)) < 0.05 * np.std(theirs)


def rope(kind, factor):
    """Rotary positions of a drawn kind."""
    fields = {
        "default": {},
        "linear": {"factor": factor},
        "llama3": LLAMA3 | {"factor": factor, "original_max_position_embeddings": 16},
    }
    return {"rope_theta": 100.0, "rope_type": kind} | fields[kind]


@st.composite
def rotary_models(draw):
    """A model of the LLaMA kind, or of GPT-NeoX's."""
    ropes = st.builds(rope, st.sampled_from(["default", "linear", "llama3"]), st.floats(1.5, 8.0))
    flags, fields = st.booleans(), {"tie_word_embeddings": draw(st.booleans()), "rope_parameters": draw(ropes)}
    family = draw(st.sampled_from(["LlamaConfig", "MistralConfig", "Qwen2Config", "GPTNeoXConfig"]))
    if family == "GPTNeoXConfig":
        fields["rope_parameters"] |= {"partial_rotary_factor": draw(st.sampled_from([0.5, 1.0]))}
        more = {"use_parallel_residual": draw(flags), "attention_bias": draw(flags)}
        return family, ROTARY | fields | more | {"hidden_act": draw(st.sampled_from(["gelu", "gelu_new", "relu"]))}
    fields |= {"num_key_value_heads": draw(st.sampled_from([1, 2, 4])), "hidden_act": draw(st.sampled_from(["silu", "gelu"]))}
    if family == "LlamaConfig":
        fields |= {"attention_bias": draw(flags), "mlp_bias": draw(flags), "head_dim": draw(st.sampled_from([4, 8]))}
    if family == "MistralConfig":
        fields |= {"sliding_window": draw(st.sampled_from([None, 1, 3, 7])), "head_dim": draw(st.sampled_from([2, 6]))}
    return family, GROUPED | fields


@needs_torch
@pytest.mark.parametrize("examples", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_drawn_configurations(examples, tmp_path_factory, x64):
    @settings(deadline=None, max_examples=examples, derandomize=True)
    @given(rotary_models(), st.integers(0, 99))
    def check(drawn, seed):
        folder = written(tmp_path_factory.mktemp("drawn"), *drawn, seed=seed)
        model = models.load(folder, dtype="float64")
        close(np.asarray(apply(model.shape, model.params, TOKENS)), logits(folder, TOKENS, "float64"), "float64")

    check()
