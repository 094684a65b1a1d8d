"""Folders: shards and single files hold the same model; every kind of damage ends in one sentence with the file's name."""

import json
import os

import jax
import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer
from tests.models.hugging import logits, needs_models, needs_torch
from tests.models.small import TOKENS, edited, rewritten, saved, sharded, tensors

pytestmark = needs_models
FIRST = "model-00001-of-00002.safetensors"
Q = "model.layers.1.self_attn.q_proj.weight"


def test_shards_hold_the_same_model(tmp_path):
    folder = saved(tmp_path / "model")
    one = models.load(folder)
    sharded(folder)
    many = models.load(folder)
    jax.tree.map(np.testing.assert_array_equal, many.params, one.params)
    assert many.summary.weights == one.summary.weights and many.summary.disk > 0


def test_the_single_file_comes_before_the_shards(tmp_path):
    """As transformers reads a folder that has both; the index and its shards may be older, or gone."""
    folder = saved(tmp_path / "model")
    one, data = models.load(folder), (folder / "model.safetensors").read_bytes()
    rewritten(folder, lambda t: t.update({name: 2 * x for name, x in t.items()}))
    index = sharded(folder)
    (folder / "model.safetensors").write_bytes(data)
    both = models.load(folder)
    jax.tree.map(np.testing.assert_array_equal, both.params, one.params)
    assert both.summary.disk == len(data)
    (folder / FIRST).unlink()
    index.write_text("[]", encoding="utf-8")
    assert models.load(folder).summary.weights == one.summary.weights


@needs_torch
def test_transformers_reads_the_single_file_first(tmp_path):
    folder = saved(tmp_path / "model")
    alone, data = logits(folder, TOKENS), (folder / "model.safetensors").read_bytes()
    rewritten(folder, lambda t: t.update({name: 2 * x for name, x in t.items()}))
    sharded(folder)
    (folder / "model.safetensors").write_bytes(data)
    np.testing.assert_array_equal(logits(folder, TOKENS), alone)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors", "model.safetensors.index.json", FIRST, "model.gguf"]
)
def test_a_pipe_is_no_file(name, tmp_path):
    """It is refused, not waited for."""
    folder = saved(tmp_path / "model")
    if name in ("model.safetensors.index.json", FIRST):
        sharded(folder)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(UsageError, match=f"{name} cannot be read: it is no plain file"):
        models.describe(folder / name if name.endswith(".gguf") else folder)


def truncated(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])


def truncated_shard(folder):
    sharded(folder)
    file = folder / FIRST
    file.write_bytes(file.read_bytes()[:-10])


def missing_entry(folder):
    index = sharded(folder)
    places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    del places[Q]
    edited(index, weight_map=places)


def misplaced_entry(folder):
    index = sharded(folder)
    edited(index, weight_map=json.loads(index.read_text(encoding="utf-8"))["weight_map"] | {"extra": FIRST})


def foreign_shard(folder):
    index = sharded(folder)
    edited(index, weight_map={Q: "../../secret.safetensors"})


def missing_shard(folder):
    sharded(folder)
    (folder / FIRST).unlink()


def header(folder):
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)


def change(name, value):
    """Damage by a changed tensor."""
    return lambda folder: rewritten(folder, lambda t: t.update({name: value(t[name])}))


def poisoned(x):
    x = x.copy()
    x.flat[5] = np.nan
    return x


def config(**fields):
    """Damage by another configuration."""
    return lambda folder: edited(folder / "config.json", **fields)


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


DAMAGED = {  # damage -> the file that is named, what is said
    "a truncated file": (truncated, "model.safetensors", "is not a whole safetensors file"),
    "a truncated shard": (truncated_shard, FIRST, "is not a whole safetensors file"),
    "no header": (header, "model.safetensors", "is not a whole safetensors file"),
    "a missing index entry": (missing_entry, "model.safetensors.index.json", f"has no entry for the tensor {Q}"),
    "an entry without a tensor": (misplaced_entry, FIRST, "has no tensor extra, which the index places there"),
    "a shard outside": (foreign_shard, "model.safetensors.index.json", "a shard is a file of the same folder"),
    "a missing shard": (missing_shard, "model.safetensors.index.json", f"names the shard {FIRST}, which is not there"),
    "an index that is none": (
        lambda f: sharded(f).write_text("[]", encoding="utf-8"),
        "model.safetensors.index.json",
        "it holds no JSON object",
    ),
    "a wrong shape": (change(Q, lambda x: x[:-1]), "model.safetensors", f"tensor {Q} has the size 11x12, .* says 12x12"),
    "a NaN": (change(Q, poisoned), "model.safetensors", f"tensor {Q} has numbers that are not finite"),
    "an infinity": (change(Q, lambda x: x / 0), "model.safetensors", "not finite"),
    "whole numbers": (
        change(Q, lambda x: x.astype(np.int8)),
        "model.safetensors",
        f"tensor {Q} is of I8, only F64, F32, F16, BF16",
    ),
    "a missing tensor": (lambda f: rewritten(f, lambda t: t.pop(Q)), "model.safetensors", f"has no tensor {Q}"),
    "another tensor": (
        lambda f: rewritten(f, lambda t: t.update(extra=t[Q])),
        "model.safetensors",
        "configuration has no place for the tensor extra",
    ),
    "too many layers": (config(num_hidden_layers=3), "model.safetensors", "has no tensor model.layers.2"),
    "too few layers": (
        config(num_hidden_layers=1),
        "model.safetensors",
        "has no place for the tensor model.layers.1.*and 8 others",
    ),
    "another width": (config(hidden_size=24), "model.safetensors", "has the size 13x12, the model's configuration says 13x24"),
    "a tie that is none": (config(tie_word_embeddings=True), "model.safetensors", "lm_head.weight differs from the embedding"),
    "a quantised model": (
        config(quantization_config={"quant_method": "gptq"}),
        "config.json",
        r"quantization_config \(gptq\) is not",
    ),
    "another family": (config(model_type="mamba"), "config.json", "model_type=mamba is not allowed: it is one of llama, mobilellm"),
    "no family": (config(model_type=None), "config.json", "has no field model_type"),
    "no size": (config(hidden_size=None), "config.json", "has no field hidden_size"),
    "a size that is none": (config(hidden_size="twelve"), "config.json", "hidden_size=twelve is not allowed"),
    "sizes that do not fit": (config(num_attention_heads=5, head_dim=None), "config.json", "width is a multiple of heads"),
    "a scaling": (
        config(rope_parameters={"rope_type": "yarn", "factor": 2.0}),
        "config.json",
        "rope_type=yarn is not allowed: it is one of default, linear, llama3",
    ),
    "no configuration": (lambda f: (f / "config.json").unlink(), "", "holds no model: it has no config.json"),
    "a configuration that is none": (
        lambda f: (f / "config.json").write_text("{", encoding="utf-8"),
        "config.json",
        "it is not JSON",
    ),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "", "holds no weights: it has neither model.safetensors nor"),
    "pickled weights": (
        pickled,
        "pytorch_model.bin",
        "reading pickled weights may run code; save the model again with save_pretrained",
    ),
    "a tokenizer that is none": (
        lambda f: (f / "tokenizer.json").write_text("{}", encoding="utf-8"),
        "tokenizer.json",
        "is not a tokenizer",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damage_is_named(damage, tmp_path):
    act, file, words = DAMAGED[damage]
    folder = saved(tmp_path / "model")
    with np.errstate(all="ignore"):
        act(folder)
    with pytest.raises(UsageError, match=words) as caught:
        models.load(folder)
    message = str(caught.value)
    assert message.startswith(str(folder / file)) and "\n" not in message


def test_files_of_the_bare_trunk_lack_the_prefix(tmp_path):
    folder = saved(tmp_path / "model")
    model = models.load(folder)
    rewritten(folder, lambda t: [t.update({name.removeprefix("model."): t.pop(name)}) for name in list(t)])
    jax.tree.map(np.testing.assert_array_equal, models.load(folder).params, model.params)


def test_buffers_and_copies_of_a_tied_embedding_are_left_out(tmp_path):
    import dataclasses

    from tests.models.small import SHAPE

    folder = saved(tmp_path / "model", dataclasses.replace(SHAPE, tied=True))
    extra = {"lm_head.weight": tensors(folder)["model.embed_tokens.weight"], "model.rotary_emb.inv_freq": np.ones(2, np.float32)}
    rewritten(folder, lambda t: t.update(extra))
    assert set(models.load(folder).params) == {"embed", "blocks", "norm"}


@pytest.mark.parametrize("bare", [False, True])
def test_a_tied_embedding_may_stand_under_the_name_of_the_read_out_alone(bare, tmp_path):
    """A program that writes equal tensors once may keep either name."""
    import dataclasses

    from tests.models.small import SHAPE

    folder = saved(tmp_path / "model", dataclasses.replace(SHAPE, tied=True))
    model = models.load(folder)
    rewritten(folder, lambda t: t.update({"lm_head.weight": t.pop("model.embed_tokens.weight")}))
    if bare:
        rewritten(folder, lambda t: [t.update({name.removeprefix("model."): t.pop(name)}) for name in list(t)])
    jax.tree.map(np.testing.assert_array_equal, models.load(folder).params, model.params)


@pytest.mark.parametrize("tied", [False, True])
def test_the_read_out_of_neox_has_two_names(tied, tmp_path):
    shape = Transformer(
        vocabulary=13, width=12, layers=2, heads=3, hidden=10, norm="layer", mlp="plain", activation="gelu", tied=tied,
        biases=("q", "k", "v", "o", "up", "down"), epsilon=1e-5,
    )  # fmt: skip
    folder = saved(tmp_path / "model", shape, family="gpt_neox")
    model = models.load(folder)
    old = "gpt_neox.embed_in.weight" if tied else "embed_out.weight"
    rewritten(folder, lambda t: t.update({"lm_head.weight": t.pop(old)}))
    jax.tree.map(np.testing.assert_array_equal, models.load(folder).params, model.params)
    rewritten(folder, lambda t: t.update({"embed_out.weight": t["lm_head.weight"] + 1}))
    with pytest.raises(UsageError, match="differs from the embedding" if tied else "no place for the tensor lm_head.weight"):
        models.load(folder)


def test_a_read_out_under_the_name_of_another_family_is_refused(tmp_path):
    folder = saved(tmp_path / "model")
    rewritten(folder, lambda t: t.update({"embed_out.weight": t.pop("lm_head.weight")}))
    with pytest.raises(UsageError, match=r"has no tensor lm_head\.weight"):
        models.load(folder)


def test_nothing_of_a_folder_is_executed(tmp_path):
    folder = saved(tmp_path / "model")
    edited(folder / "config.json", auto_map={"AutoModelForCausalLM": "modeling.Model"})
    (folder / "modeling.py").write_text("raise SystemExit('executed')", encoding="utf-8")
    assert models.load(folder).shape.layers == 2


def test_the_weights_that_the_config_names_are_read(tmp_path):
    """As transformers does with its field transformers_weights: a file of tensors, or the index of shards."""
    folder = saved(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "ema.safetensors")
    edited(folder / "config.json", transformers_weights="ema.safetensors")
    named = models.load(folder)
    (folder / "ema.safetensors").rename(folder / "model.safetensors")
    edited(folder / "config.json", transformers_weights=None)
    jax.tree.map(np.testing.assert_array_equal, named.params, models.load(folder).params)
    sharded(folder).rename(folder / "ema.safetensors.index.json")
    edited(folder / "config.json", transformers_weights="ema.safetensors.index.json")
    jax.tree.map(np.testing.assert_array_equal, named.params, models.load(folder).params)


@pytest.mark.parametrize("name", ["gone.safetensors", "../model.safetensors", "model.bin", "", 3, ["model.safetensors"]])
def test_weights_that_the_config_names_and_that_cannot_be_read_are_refused(name, tmp_path):
    folder = saved(tmp_path / "model")
    edited(folder / "config.json", transformers_weights=name)
    told = (
        "names the weights gone.safetensors, which are not there" if name == "gone.safetensors" else "is not allowed: it is a file"
    )
    with pytest.raises(UsageError, match=told):
        models.load(folder)


def test_an_adapter_next_to_the_weights_is_refused(tmp_path):
    """Which transformers with peft would add to them."""
    folder = saved(tmp_path / "model")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2}), encoding="utf-8")
    with pytest.raises(UsageError, match="has an adapter .*merge it into the weights"):
        models.load(folder)
