"""GGUF files against transformers, which reads them by code of its own; quantisations against the library's."""

import jax
import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.models import ggufs
from jaxdyn.nn.decoder import apply
from tests.models.ggufs import VOCABULARY, write
from tests.models.hugging import logits, needs_models, needs_torch

pytestmark = needs_models
TOKENS = np.random.default_rng(0).integers(0, VOCABULARY, (2, 11))


def ours(file, **more):
    model = models.load(file, **more)
    return model, np.asarray(jax.jit(lambda p: apply(model.shape, p, TOKENS))(model.params))


@needs_torch
@pytest.mark.parametrize(
    ("architecture", "kind", "tied"),
    [("llama", "F32", False), ("llama", "Q8_0", True), ("qwen2", "F32", True), ("llama", "Q4_1", False), ("llama", "F16", False)],
)
def test_transformers_reads_the_same_network(architecture, kind, tied, tmp_path):
    pytest.importorskip(
        "accelerate", reason="transformers reads GGUF files with the library accelerate: pip install 'jaxdyn[bench]'"
    )
    file = write(tmp_path / "model.gguf", architecture, kind, tied=tied)
    model, mine = ours(file)
    np.testing.assert_allclose(mine, logits(tmp_path, TOKENS, gguf_file=file.name), atol=1e-5 * max(1, np.max(np.abs(mine))))
    assert model.shape.tied == tied and np.std(mine) > 0.1
    assert model.summary.kinds[kind] >= 14 and model.summary.family == architecture


@pytest.mark.parametrize("kind", ["BF16", "Q4_0", "Q5_1", "Q4_K", "Q6_K"])
def test_other_quantisations_are_undone_by_the_library(kind, tmp_path):
    import gguf

    file = write(tmp_path / "model.gguf", "llama", kind, width=256 if kind.endswith("K") else 64)
    (tensor,) = (t for t in gguf.GGUFReader(file).tensors if t.name == "blk.1.ffn_up.weight")
    assert tensor.tensor_type.name == kind
    model, mine = ours(file)
    np.testing.assert_array_equal(model.params["blocks"]["up"][1].T, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    assert np.isfinite(mine).all()


def test_a_table_of_rotary_divisors_is_kept(tmp_path):
    file = write(tmp_path / "model.gguf", "llama", "F32", table=np.linspace(1, 8, 8))
    model, mine = ours(file)
    assert model.shape.scaling.kind == "table" and model.shape.scaling.table[-1] == 8
    assert np.max(np.abs(mine - ours(write(tmp_path / "other.gguf", "llama", "F32"))[1])) > 0.01


def test_bfloat16_and_float64(tmp_path, x64):
    file = write(tmp_path / "model.gguf", "llama", "Q8_0")
    low, high = ours(file, dtype="bfloat16"), ours(file, dtype="float64")
    assert low[1].dtype.name == "bfloat16" and high[1].dtype == np.float64
    assert np.sqrt(np.mean((low[1].astype(float) - high[1]) ** 2)) < 0.05 * np.std(high[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architecture": "mamba"}, "general.architecture=mamba is not allowed: it is one of llama, qwen2"),
        ({"dimension": 4}, "rope.dimension_count=4 is not allowed: a head has 16 entries"),
        ({"table": np.ones(3)}, "rope_freqs.weight: scaling=.*its table has 8 divisors"),
        ({"skip": "blk.1.ffn_norm.weight"}, "has no tensor blk.1.ffn_norm.weight"),
        ({"layers": 3}, "has no tensor blk.2"),
        ({"nan": "blk.0.attn_norm.weight"}, "tensor blk.0.attn_norm.weight has numbers that are not finite"),
    ],
)
def test_other_files_are_refused(change, words, tmp_path):
    architecture = change.pop("architecture", "llama")
    file = write(tmp_path / "model.gguf", architecture, "F32", **change)
    with pytest.raises(UsageError, match=words) as caught:
        models.load(file)
    assert str(file) in str(caught.value)


def test_damaged_files_are_refused(tmp_path):
    whole = write(tmp_path / "model.gguf", "llama", "F32").read_bytes()
    for number, damaged in enumerate((whole[: len(whole) // 2], whole[:3], b"", b"PK" + whole[2:], whole[:60])):
        file = tmp_path / f"{number}.gguf"
        file.write_bytes(damaged)
        with pytest.raises(UsageError, match=f"{number}.gguf is not a whole GGUF file"):
            ggufs.open_gguf(file)


def test_an_unknown_quantisation_is_refused(tmp_path):
    file = write(tmp_path / "model.gguf", "llama", "F32", integers="blk.0.attn_norm.weight")
    with pytest.raises(UsageError, match="tensor blk.0.attn_norm.weight is quantised as I32; supported are F32, F16, .*Q4_K"):
        models.load(file)
