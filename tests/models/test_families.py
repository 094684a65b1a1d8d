"""Configurations of the families: what they mean, and what is refused."""

from pathlib import Path

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.config import Config
from jaxdyn.models.families import FAMILIES, family_of

BASE = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 20}
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
    assert shape("mistral", sliding_window=4, head_dim=6).window == 4
    assert shape("mistral", sliding_window=None).window is None and shape("mistral", head_dim=6).weights["q"] == (16, 24)


def test_qwen2_has_one_window_or_none():
    on = {"use_sliding_window": True, "sliding_window": 4}
    assert shape("qwen2", sliding_window=4).window is None and shape("qwen2").biases == ("q", "k", "v")
    assert shape("qwen2", max_window_layers=0, **on).window == 4
    assert shape("qwen2", max_window_layers=3, **on).window is None
    assert shape("qwen2", layer_types=["sliding_attention"] * 3, **on).window == 4
    with pytest.raises(UsageError, match="use_sliding_window=True is not allowed: all layers have the same window"):
        shape("qwen2", max_window_layers=1, **on)


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
