"""Networks of our own, written in Hugging Face's layout, are read back by us and by transformers."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.nn.decoder import Decoder, apply
from jaxdyn.nn.rotary import Scaling
from tests.models.hugging import logits, needs_models, needs_torch
from tests.nn.drawn import weights

pytestmark = needs_models
PLAIN = Decoder(vocabulary=13, width=12, layers=2, heads=3, hidden=10, std=0.6)
LAYER = {"norm": "layer", "mlp": "plain", "activation": "gelu", "biases": ("q", "k", "v", "o", "up", "down"), "epsilon": 1e-5}
NETWORKS = {
    "llama": ("llama", {"groups": 1, "tied": True}),
    "llama 3": ("llama", {"scaling": Scaling(kind="llama3", factor=4.0, length=16, high=3.0), "base": 30.0, "head_size": 6}),
    "mistral": ("mistral", {"window": 3, "head_size": 8}),
    "qwen2": ("qwen2", {"biases": ("q", "k", "v"), "window": 4}),
    "gpt_neox": ("gpt_neox", LAYER | {"rotary": 2, "parallel": True}),
    "gpt_neox, serial": ("gpt_neox", LAYER | {"scaling": Scaling(kind="linear", factor=2.0), "tied": True}),
}
TOKENS = np.random.default_rng(0).integers(0, 13, (2, 9))


@pytest.mark.thinned
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_written_is_read_back(name, tmp_path):
    family, change = NETWORKS[name]
    shape = dataclasses.replace(PLAIN, **change)
    params = weights(shape)
    folder = models.save(tmp_path / "model", shape, params, family=family, context=64)
    model = models.load(folder)
    jax.tree.map(np.testing.assert_array_equal, model.params, params)
    ours = jax.jit(lambda p, s=shape: apply(s, p, TOKENS))(params)
    np.testing.assert_array_equal(jax.jit(lambda p: apply(model.shape, p, TOKENS))(model.params), ours)
    assert model.summary.context == 64 and sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors"]


@needs_torch
@pytest.mark.parametrize("name", NETWORKS)
def test_transformers_reads_it(name, tmp_path):
    family, change = NETWORKS[name]
    shape = dataclasses.replace(PLAIN, **change)
    params = weights(shape)
    folder = models.save(tmp_path / "model", shape, params, family=family)
    ours = jax.jit(lambda p: apply(shape, p, TOKENS))(params)
    np.testing.assert_allclose(ours, logits(folder, TOKENS), atol=2e-5 * np.max(np.abs(ours)))


def test_bfloat16_is_written_as_it_is(tmp_path):
    shape = dataclasses.replace(PLAIN, dtype="bfloat16")
    params = weights(shape)
    folder = models.save(tmp_path / "model", shape, params, family="llama")
    jax.tree.map(np.testing.assert_array_equal, models.load(folder, dtype="bfloat16").params, params)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["dtype"] == "bfloat16"
    assert models.describe(folder).kinds == {"BF16": 21}


WRONG = {
    "has no place for norm=layer": ("llama", {"norm": "layer"}),
    "has no place for window=3": ("llama", {"window": 3}),
    "has no place for .*sink_token=True": ("llama", {"sink_token": True}),
    "has no place for biases=\\('q',\\)": ("llama", {"biases": ("q",)}),
    "has no place for position=alibi": ("llama", {"position": "alibi"}),
    "rope_type=table is not allowed": ("llama", {"scaling": Scaling(kind="table", table=(1.0, 2.0))}),
    "has no place for norm=rms, mlp=gated": ("gpt_neox", {"biases": ("q", "k", "v", "o", "up", "down")}),
    "family=opt is not allowed: it is one of llama, mistral, qwen2, gpt_neox": ("opt", {}),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_a_layout_cannot_say_is_refused(words, tmp_path):
    family, change = WRONG[words]
    shape = dataclasses.replace(PLAIN, **change)
    with pytest.raises(UsageError, match=words):
        models.save(tmp_path / "model", shape, weights(shape), family=family)
    assert not (tmp_path / "model").exists()


def test_nothing_is_overwritten_and_other_weights_are_refused(tmp_path):
    params = weights(PLAIN)
    models.save(tmp_path / "model", PLAIN, params, family="llama")
    with pytest.raises(UsageError, match="is not empty; nothing is overwritten"):
        models.save(tmp_path / "model", PLAIN, params, family="llama")
    with pytest.raises(UsageError, match="these weights are of another network: blocks/attention_norm has the size 2x12"):
        models.save(tmp_path / "other", dataclasses.replace(PLAIN, layers=3), params, family="llama")
