"""Networks of our own, written in Hugging Face's layout, are read back by us and by transformers."""

import contextlib
import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.models import writing
from jaxdyn.nn import Transformer
from jaxdyn.nn.rotary import Scaling
from jaxdyn.nn.transformer import apply
from tests.models.hugging import logits, needs_models, needs_torch, quiet
from tests.nn.drawn import weights

pytestmark = needs_models
PLAIN = Transformer(vocabulary=13, width=12, layers=2, heads=3, hidden=10, std=0.6)
LAYER = {"norm": "layer", "mlp": "plain", "activation": "gelu", "biases": ("q", "k", "v", "o", "up", "down"), "epsilon": 1e-5}
NETWORKS = {
    "llama": ("llama", {"groups": 1, "tied": True}),
    "llama 3": ("llama", {"scaling": Scaling(kind="llama3", factor=4.0, length=16, high=3.0), "base": 30.0, "head_size": 6}),
    "mistral": ("mistral", {"window": 3, "head_size": 8}),
    "qwen2": ("qwen2", {"biases": ("q", "k", "v"), "window": 4}),
    "gpt_neox": ("gpt_neox", LAYER | {"rotary": 2, "parallel": True}),
    "gpt_neox, a share that rounds down": ("gpt_neox", LAYER | {"width": 88, "heads": 2, "rotary": 30, "parallel": True}),
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
    folder = models.save(tmp_path / "model", shape, params, family=family, context=64)
    ours = jax.jit(lambda p: apply(shape, p, TOKENS))(params)
    np.testing.assert_allclose(ours, logits(folder, TOKENS), atol=2e-5 * np.max(np.abs(ours)))


def spoken(around, prefix=None):
    """A tokenizer of 13 tokens, with tokens around a text, that cuts words, or bytes with a space before them or not."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    inner = Tokenizer(models.BPE({letter: i for i, letter in enumerate("Ġabcdefghijk?")}, [], unk_token="?"))
    inner.pre_tokenizer = pre_tokenizers.Metaspace() if prefix is None else pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    inner.post_processor = processors.TemplateProcessing(single=around, special_tokens=[("b", 2), ("c", 3), ("d", 4)])
    return inner


@pytest.mark.parametrize(
    ("around", "prefix", "first", "last"),
    [("$A", None, None, None), ("b $A", False, 2, None), ("b $A c", True, 2, 3), ("b d $A d", None, None, 4)],
)
@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "gpt_neox"])
def test_nothing_is_taken_for_granted_by_those_who_read_it(family, around, prefix, first, last, tmp_path):
    """Of transformers, which would take 2 for the end, and the family's usual tokenizer for this one (Qwen2's in version 5)."""
    shape = dataclasses.replace(PLAIN, **NETWORKS[family][1])
    inner = spoken(around, prefix)
    with pytest.warns(UserWarning, match="Qwen2's own tokenizer") if family == "qwen2" else contextlib.nullcontext():
        folder = models.save(
            tmp_path / "model", shape, weights(shape), family=family, context=64, tokenizer=models.Tokenizer(inner)
        )
    fields = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (fields["bos_token_id"], fields["eos_token_id"]) == (first, last)
    said = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert said == {"tokenizer_class": "PreTrainedTokenizerFast"} | ({} if prefix is None else {"add_prefix_space": prefix})
    assert models.load(folder).tokenizer.encode("a b").tolist() == inner.encode("a b").ids


@needs_torch
@pytest.mark.parametrize("prefix", [None, False, True])
@pytest.mark.parametrize("family", ["llama", "mistral", "gpt_neox"])
def test_transformers_reads_the_tokenizer(family, prefix, tmp_path):
    shape = dataclasses.replace(PLAIN, **NETWORKS[family][1])
    inner = spoken("b $A c", prefix)
    folder = models.save(tmp_path / "model", shape, weights(shape), family=family, context=64, tokenizer=models.Tokenizer(inner))
    with quiet():
        from transformers import AutoConfig, AutoTokenizer

        theirs, config = AutoTokenizer.from_pretrained(folder), AutoConfig.from_pretrained(folder)
    assert [theirs.encode(text) for text in ("a b", " e\u0301")] == [inner.encode(text).ids for text in ("a b", " e\u0301")]
    assert (config.bos_token_id, config.eos_token_id) == (2, 3)


def test_without_a_tokenizer_no_token_ends_a_text(tmp_path):
    folder = models.save(tmp_path / "model", PLAIN, weights(PLAIN), family="llama", context=64)
    fields = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert fields["bos_token_id"] is None and fields["eos_token_id"] is None


def test_bfloat16_is_written_as_it_is(tmp_path):
    shape = dataclasses.replace(PLAIN, dtype="bfloat16")
    params = weights(shape)
    folder = models.save(tmp_path / "model", shape, params, family="llama", context=64)
    jax.tree.map(np.testing.assert_array_equal, models.load(folder, dtype="bfloat16").params, params)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["dtype"] == "bfloat16"
    assert models.describe(folder).kinds == {"BF16": 21}


@pytest.mark.parametrize("own", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_are_written_in_their_own_dtype(own, dtype, tmp_path):
    """Whatever that of the shape is; every bit comes back."""
    from safetensors.numpy import load_file

    params = jax.tree.map(lambda x: np.asarray(x, np.dtype(jax.numpy.dtype(own))) / 3, weights(PLAIN))
    folder = models.save(tmp_path / "model", dataclasses.replace(PLAIN, dtype=dtype), params, family="llama", context=64)
    tensors = load_file(folder / "model.safetensors")
    assert {x.dtype.name for x in tensors.values()} == {own}
    np.testing.assert_array_equal(tensors["model.layers.1.mlp.up_proj.weight"].T, params["blocks"]["up"][1])
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["dtype"] == own
    if own == "float32":
        jax.tree.map(np.testing.assert_array_equal, models.load(folder).params, params)


def test_each_tensor_has_its_dtype_and_a_shared_one_holds_all(tmp_path):
    """q, k and v are one tensor of a GPT-NeoX; big-endian arrays are numbers like others."""
    from safetensors.numpy import load_file

    shape = dataclasses.replace(PLAIN, **LAYER | {"parallel": True})
    params = jax.tree.map(np.asarray, weights(shape))
    params["blocks"] |= {"q": params["blocks"]["q"].astype(np.float16), "k": params["blocks"]["k"].astype(jax.numpy.bfloat16)}
    params["norm"] = params["norm"].astype(np.float16)
    params["embed"] = params["embed"].astype(">f4")
    folder = models.save(tmp_path / "model", shape, params, family="gpt_neox", context=64)
    tensors = load_file(folder / "model.safetensors")
    kinds = {name: x.dtype.name for name, x in tensors.items() if x.dtype != np.float32}
    assert kinds == {"gpt_neox.final_layer_norm.weight": "float16"}
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["dtype"] == "float32"
    jax.tree.map(np.testing.assert_array_equal, models.load(folder).params, params)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p["norm"].__setitem__(0, np.nan), "the weights norm are not allowed: they have numbers that are not finite"),
        (lambda p: p["blocks"]["q"].__setitem__((1, 2, 3), -np.inf), "the weights blocks/q are not allowed: they have numbers"),
        (
            lambda p: p.update(norm=p["norm"].astype(np.int32)),
            "weights of int32 .norm. are not allowed: they are float32",
        ),
        (lambda p: p.update(norm=p["norm"].astype("float8_e4m3fn")), "weights of float8_e4m3fn .norm. are not allowed"),
        (lambda p: p.pop("head"), "these weights are of another network: they lack head"),
        (lambda p: p["blocks"].update(q_bias=p["norm"]), "these weights are of another network: they have blocks/q_bias"),
    ],
)
def test_weights_that_cannot_be_written_are_refused(change, words, tmp_path):
    params = jax.tree.map(np.array, weights(PLAIN))
    change(params)
    with pytest.raises(UsageError, match=words):
        models.save(tmp_path / "model", PLAIN, params, family="llama", context=64)
    assert not (tmp_path / "model").exists()


def test_how_weights_were_drawn_and_dropped_is_not_part_of_a_model(tmp_path):
    shape = dataclasses.replace(PLAIN, start="gpt2", std=0.1, copies=True, dropout=0.1, drops=("mlp",), scan=False)
    folder = models.save(tmp_path / "model", shape, weights(shape), family="llama", context=64)
    again = models.load(folder)
    assert again.shape.dropout == 0 and again.shape.start == "normal"


@pytest.mark.parametrize("context", [-5, 0, "x", 2.5, None, True, 2**31])
def test_a_context_is_a_whole_number(context, tmp_path):
    with pytest.raises(UsageError, match="context=.* is not allowed: context is "):
        models.save(tmp_path / "model", PLAIN, weights(PLAIN), family="llama", context=context)
    assert not (tmp_path / "model").exists()


WRONG = {
    "has no place for norm=layer": ("llama", {"norm": "layer"}),
    "has no place for window=3": ("llama", {"window": 3}),
    "has no place for .*sink_token=True": ("llama", {"sink_token": True}),
    "has no place for biases=\\('q',\\)": ("llama", {"biases": ("q",)}),
    "has no place for position=alibi": ("llama", {"position": "alibi"}),
    "has no place for output_gate=True, query_key_norm=True": ("qwen2", {"output_gate": True, "query_key_norm": True}),
    "has no place for sees_itself=False": ("llama", {"sees_itself": False}),
    "has no place for norm_place=post": ("llama", {"norm_place": "post"}),
    "has no place for scale=2.0, skip=0.5": ("mistral", {"scale": 2.0, "skip": 0.5, "window": 3}),
    "has no place for outputs=3": ("llama", {"outputs": 3}),
    "rope_type=table is not allowed": ("llama", {"scaling": Scaling(kind="table", table=(1.0, 2.0))}),
    "has no place for norm=rms, mlp=gated": ("gpt_neox", {"biases": ("q", "k", "v", "o", "up", "down")}),
    "family=opt is not allowed: it is one of llama, mistral, qwen2, gpt_neox": ("opt", {}),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_a_layout_cannot_say_is_refused(words, tmp_path):
    family, change = WRONG[words]
    shape = dataclasses.replace(PLAIN, **change)
    with pytest.raises(UsageError, match=words):
        models.save(tmp_path / "model", shape, weights(shape), family=family, context=64)
    assert not (tmp_path / "model").exists()


def test_nothing_is_overwritten_and_other_weights_are_refused(tmp_path):
    params = weights(PLAIN)
    models.save(tmp_path / "model", PLAIN, params, family="llama", context=64)
    with pytest.raises(UsageError, match="is not empty; nothing is overwritten"):
        models.save(tmp_path / "model", PLAIN, params, family="llama", context=64)
    with pytest.raises(UsageError, match="these weights are of another network: blocks/attention_norm has the size 2x12"):
        models.save(tmp_path / "other", dataclasses.replace(PLAIN, layers=3), params, family="llama", context=64)


@pytest.mark.parametrize("there", [False, True], ids=["a new folder", "an empty folder"])
def test_an_interrupted_save_leaves_no_part_of_a_model(tmp_path, monkeypatch, there):
    params, folder = weights(PLAIN), tmp_path / "model"
    if there:
        folder.mkdir()
    write = writing.atomic_write

    def stopped(path, content):
        if path.name == "config.json":
            raise KeyboardInterrupt
        write(path, content)

    monkeypatch.setattr(writing, "atomic_write", stopped)
    with pytest.raises(KeyboardInterrupt):
        models.save(folder, PLAIN, params, family="llama", context=64)
    assert [path.name for path in tmp_path.iterdir()] == (["model"] if there else []) and not any(tmp_path.glob("model/*"))
    monkeypatch.undo()
    assert models.load(models.save(folder, PLAIN, params, family="llama", context=64)).shape.width == PLAIN.width
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
