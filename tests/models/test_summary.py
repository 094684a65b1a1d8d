"""What is said of a model before it is read: its numbers are those of what is then read."""

import dataclasses
from pathlib import Path

import jax
import pytest

from jaxdyn import models
from jaxdyn.nn.rotary import Scaling
from tests.models.hugging import needs_models
from tests.models.small import SHAPE, saved

pytestmark = needs_models


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_numbers_are_those_of_the_model(dtype, tmp_path):
    folder = saved(tmp_path / "model")
    summary, model = models.describe(folder, dtype=dtype), models.load(folder, dtype=dtype)
    leaves = jax.tree.leaves(model.params)
    assert summary == model.summary
    assert summary.weights == sum(x.size for x in leaves) and summary.memory == sum(x.nbytes for x in leaves)
    assert summary.peak == summary.memory + max(x.nbytes for x in leaves)
    assert summary.disk == (folder / "model.safetensors").stat().st_size and summary.kinds == {"F32": 21}


def test_lines_say_what_the_network_is(tmp_path):
    layer = {"norm": "layer", "mlp": "plain", "activation": "gelu", "biases": ("q", "k", "v", "o", "up", "down"), "parallel": True}
    neox = dataclasses.replace(SHAPE, scaling=Scaling(kind="linear", factor=2.0), rotary=2, **layer)
    lines = models.describe(saved(tmp_path / "model", neox, "gpt_neox")).lines()
    text = "\n".join(lines)
    for words in (
        "family     gpt_neox",
        "2 layers, width 12, 3 heads of 4 (3 of keys), 10 units, 13 tokens",
        "LayerNorm, plain MLP with gelu, rotary positions in 2 of 4 entries, base 10000, rates rescaled (linear)",
        "biases of q k v o up down, parallel blocks",
        "tokenizer  none: it has no tokenizer.json",
        "in memory",
        "texts of up to 2,048 tokens",
    ):
        assert words in text, text


def test_the_window_is_named(tmp_path):
    lines = models.describe(saved(tmp_path / "model", dataclasses.replace(SHAPE, window=5, tied=True), "mistral")).lines()
    assert any("window of 5, read-out tied to the embedding" in line for line in lines)


def test_weights_are_those_of_the_tensors():
    """OPT's table of positions has two rows that no text reads."""
    from safetensors.numpy import load_file

    for name in ("opt", "gpt2", "neox", "qwen2"):
        folder = Path(__file__).parent / "reference" / name
        summary, model = models.describe(folder), models.load(folder)
        tensors = load_file(folder / "model.safetensors")
        heads = ("lm_head.weight",) if model.shape.tied else ()
        assert summary.weights == sum(x.size for key, x in tensors.items() if key not in heads)
        extra = 2 * model.shape.width if name == "opt" else 0
        assert summary.weights - extra == sum(x.size for x in jax.tree.leaves(model.params)) == summary.memory // 4


def test_one_layer_is_one(tmp_path):
    small = dataclasses.replace(SHAPE, layers=1)
    assert "network    1 layer, width 12," in "\n".join(models.describe(saved(tmp_path / "model", small)).lines())
