"""Configurations of the families: what they mean, and what is refused.

Fields alone and in pairs are read as the library transformers reads them: what it made of thousands of cases is stored
(:mod:`tests.models.config_cases`).
"""

import dataclasses
import functools
import importlib
import re
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.archive import Archive, Entry
from jaxdyn.models.config import Config
from jaxdyn.models.families import FAMILIES, family_of
from jaxdyn.models.reading import parameters
from jaxdyn.nn.transformer import angles, apply
from tests.models import config_cases
from tests.models.hugging import needs_torch

DECODER = importlib.import_module("jaxdyn.nn.transformer")  # the package has a function of this name
BASE = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 20}
HEADS = {"num_key_value_heads": 4}  # without them Mistral has 8, and Qwen2 has 32
GPT2 = {"vocab_size": 32, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 9}
OPT = BASE | {"ffn_dim": 20, "max_position_embeddings": 9, "word_embed_proj_dim": 16}


def shape(model_type, base=BASE, **change):
    config = Config(Path("config.json"), base | change | {"model_type": model_type})
    return family_of(config).shape(config, "float32")


def test_llama():
    s = shape("llama", num_key_value_heads=2, rope_theta=5e5, attention_bias=True, head_dim=4)
    assert (s.groups, s.base, s.biases, s.head_size, s.rotated) == (2, 5e5, ("q", "k", "v", "o"), None, 4)
    assert (shape("llama").groups, shape("llama").tied, shape("llama").norm) == (4, False, "rms")


def test_mobilellm_shares_layers_and_embedding():
    s = shape("mobilellm", layer_sharing=True, share_embedding=True)
    assert (s.repeats, s.tied, s.depth, s.walk) == (2, True, 6, (0, 0, 1, 1, 2, 2))
    assert shape("mobilellm", tie_word_embeddings=True).repeats == 1
    assert shape("llama", layer_sharing=True, share_embedding=True) == s, "what its released training code writes"


def test_mistral_and_its_window():
    assert shape("mistral", **HEADS, sliding_window=4, head_dim=6).window == 4
    plain = shape("mistral", **HEADS, sliding_window=None)
    assert plain.window is None and shape("mistral", **HEADS, head_dim=6).weights["q"] == (16, 24)
    with pytest.raises(UsageError, match="heads=4, groups=8 are not allowed"):
        shape("mistral")


def test_a_missing_window_of_mistral_is_the_one_that_transformers_takes():
    assert (shape("mistral", **HEADS).window, shape("mistral", **HEADS, sliding_window=None).window) == (4096, None)
    assert shape("qwen2", **HEADS, use_sliding_window=True, max_window_layers=0).window == 4096


def test_qwen2_has_one_window_or_none():
    on = {"use_sliding_window": True, "sliding_window": 4}
    assert shape("qwen2", **HEADS, sliding_window=4).window is None and shape("qwen2", **HEADS).biases == ("q", "k", "v")
    assert shape("qwen2", **HEADS, max_window_layers=0, **on).window == 4
    assert shape("qwen2", **HEADS, max_window_layers=3, **on).window is None
    assert shape("qwen2", **HEADS, layer_types=["sliding_attention"] * 3, **on).window == 4
    with pytest.raises(UsageError, match="use_sliding_window=True is not allowed: all layers have the same window"):
        shape("qwen2", **HEADS, max_window_layers=1, **on)


def test_neox_of_old_and_new_versions():
    old = shape("gpt_neox", rotary_pct=0.5, rotary_emb_base=500)
    new = shape("gpt_neox", rope_parameters={"rope_theta": 500.0, "partial_rotary_factor": 0.5, "rope_type": "default"})
    assert old == new and (old.rotary, old.base, old.parallel, old.activation, old.norm) == (2, 500.0, True, "gelu", "layer")
    assert shape("gpt_neox", rotary_pct=1.0).rotary is None
    assert shape("gpt_neox", rotary_pct=0.5, attention_bias=False).biases == ("up", "down")


def test_gpt2_and_opt():
    a, b = shape("gpt2", GPT2), shape("opt", OPT)
    assert (a.hidden, a.activation, a.length, a.tied, a.mlp) == (64, "gelu_tanh", 9, True, "plain")
    assert (b.hidden, b.activation, b.length, b.tied) == (20, "relu", 9, True)
    assert FAMILIES["opt"].slices(b)["position"].size == (11, 16)


@pytest.mark.parametrize(
    ("model_type", "base", "change", "words"),
    [
        ("opt", OPT, {"do_layer_norm_before": False}, "do_layer_norm_before=False is not allowed: only do_layer_norm_before=True"),
        ("opt", OPT, {"word_embed_proj_dim": 8}, "word_embed_proj_dim=8 is not allowed: only word_embed_proj_dim=16"),
        ("opt", OPT, {"enable_bias": False}, "enable_bias=False is not allowed"),
        ("gpt2", GPT2, {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True is not allowed"),
        ("gpt2", GPT2, {"activation_function": "mish"}, "activation_function=mish is not allowed: it is one of silu"),
        ("llama", BASE, {"hidden_act": "tanh"}, "hidden_act=tanh is not allowed"),
        ("llama", BASE, {"num_key_value_heads": 3}, "heads is a multiple of groups"),
        ("gemma", BASE, {}, "model_type=gemma is not allowed: it is one of llama, mobilellm, mistral, qwen2, gpt_neox, gpt2, opt"),
        (["llama"], BASE, {}, r"model_type=\['llama'\] is not allowed"),
        (
            "llama",
            BASE,
            {"quantization_config": "bitsandbytes"},
            r"quantization_config \(bitsandbytes\) is not allowed: use the model's",
        ),
    ],
)
def test_what_is_not_supported_is_refused(model_type, base, change, words):
    with pytest.raises(UsageError, match=words) as caught:
        shape(model_type, base, **change)
    assert str(caught.value).startswith("config.json: ")


OURS = (  # what is refused here though transformers reads it
    r"rope_type=.* is not allowed: it is one of default, linear, llama3",  # other scalings
    r"says something else|only \w+=.* is supported",  # contradictions, and parts that the decoder has not
    r"nothing reads it with rope_type=default",
    r"all layers have the same (rotary positions|window|kind of attention)",
    r"all entries of a head are turned|rotary positions need an even number of entries",
    r"(factor|rotary_pct)=.* is above 0|low is below high|partial_rotary_factor=None",
    r"(hidden_act|activation_function)=(mish|gelu_fast|quick_gelu) is not allowed",
    r"without sliding windows each is full_attention",
)


@functools.cache
def stored():
    return config_cases.stored()


def read(family, changes):
    """The decoder of a case, or the words of its refusal."""
    config = Config(Path("config.json"), config_cases.config_of(family, changes))
    try:
        return family_of(config).shape(config, "float32")
    except UsageError as error:
        return str(error)


def bare(shape):
    """The decoder with plain rotary rates."""
    return dataclasses.replace(shape, base=10_000.0, scaling=None)


@functools.cache
def program(family, shape):
    """The decoder with the stored weights as a program of its rotary angles, and whether it is compiled: one for all rates."""
    slices, layers = FAMILIES[family].slices(shape), range(shape.layers)
    names = {at.name.replace("{i}", str(i)): at.size for at in slices.values() for i in layers}
    entries = {name: Entry(Path("weights"), size, "F32") for name, size in names.items()}
    archive = Archive(Path("weights"), entries, lambda name: config_cases.weight(name, names[name]), ())
    params = parameters(shape, slices, archive, lambda path, array: array)
    usual = shape == bare(read(family, ()))

    def run(turns):
        with mock.patch.object(DECODER, "angles", lambda *_: turns):
            return apply(dataclasses.replace(shape, scan=usual), params, np.array([config_cases.TEXT]))

    return jax.jit(run) if usual else run


@functools.cache
def logits(family, shape):
    """Logits of the stored text's last token; None where the text cannot be read."""
    turns = angles(shape, np.arange(len(config_cases.TEXT)), np.float32) if shape.position == "rotary" else None
    try:
        return np.asarray(program(family, bare(shape))(turns))[0, -1, : config_cases.SHOWN]
    except UsageError:
        return None


def compared(family, everything):
    """Compare refusals of all cases, and logits of single fields that change rotary rates, or of ``everything``; counts logits."""
    count, usual = 0, bare(read(family, ()))
    for changes, number in zip(config_cases.cases(family), stored()[family]["outcomes"], strict=True):
        ours = read(family, changes)
        if isinstance(ours, str):
            both = {"rope_scaling", "rope_parameters"} <= {key for change in changes for key in change}
            assert number == config_cases.REFUSED or both or any(re.search(words, ours) for words in OURS), (changes, ours)
        elif number == config_cases.REFUSED:
            assert logits(family, ours) is None, f"transformers refuses {changes}"
        elif everything or (len(changes) < 2 and bare(ours) == usual):
            count += 1
            assert np.max(np.abs(logits(family, ours) - np.array(stored()[family]["logits"][number]))) < 1.5e-4, changes
    return count


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["quick", "all"])
@pytest.mark.parametrize("family", config_cases.BASES)
def test_fields_alone_and_in_pairs_are_read_as_transformers_reads_them(family, everything):
    """Float32 on both sides and four decimals: logits of size 4 agree to 1.5e-4."""
    least = 4 if not config_cases.PAIRED[family] else 500 if everything else 20
    assert compared(family, everything) >= least


@pytest.mark.parametrize("family", config_cases.BASES)
def test_the_stored_cases_are_those_of_the_script(family):
    own = stored()[family]
    assert own["base"] == config_cases.BASES[family] and own["changes"] == config_cases.changes_of(family)
    assert len(own["outcomes"]) == len(list(config_cases.cases(family))) > 100
    assert own["outcomes"].count(config_cases.REFUSED) > 40
    assert max(own["outcomes"]) == len(own["logits"]) - 1 and np.std(own["logits"], axis=0).min() > 0.1


@needs_torch
def test_the_stored_outcomes_are_those_of_the_installed_transformers(tmp_path):
    for family in config_cases.BASES:
        for changes, number in list(zip(config_cases.cases(family), stored()[family]["outcomes"], strict=True))[:40]:
            found = config_cases.outcome(family, changes, tmp_path)
            assert (found is None) == (number == config_cases.REFUSED), changes
            if found is not None:
                np.testing.assert_allclose(found, stored()[family]["logits"][number], atol=1.5e-4)
