"""The whole model: parameters as the decoder's own, a tokenizer that is read and written, and dtypes that are refused."""

import jax
import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.nn.transformer import apply, init
from tests.models.hugging import needs_models
from tests.models.small import SHAPE, TOKENS, saved

pytestmark = needs_models


def tokenizer():
    from tokenizers import Tokenizer, models

    return Tokenizer(models.WordLevel({f"w{i}": i for i in range(13)}, "w0"))


def test_parameters_have_the_decoders_form(tmp_path):
    folder = saved(tmp_path / "model", tokenizer=models.Tokenizer(tokenizer()))
    model = models.load(folder)
    own = jax.eval_shape(lambda: init(SHAPE, jax.random.key(0)))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), model.params) == jax.tree.map(lambda x: (x.shape, x.dtype), own)
    assert apply(model.shape, model.params, TOKENS).shape == (2, 9, 13)
    np.testing.assert_array_equal(model.tokenizer.encode("w7"), [7])
    assert model.summary.tokens == 13


def test_dtypes(tmp_path):
    folder = saved(tmp_path / "model")
    with pytest.raises(UsageError, match="dtype=float64 is not allowed outside of jax.enable_x64"):
        models.load(folder, dtype="float64")
    with pytest.raises(UsageError, match="dtype=int8 is not allowed: it is one of float32, bfloat16, float64"):
        models.load(folder, dtype="int8")
    with jax.enable_x64(True):
        assert models.load(folder, dtype="float64").params["embed"].dtype == np.float64


def test_a_mesh_of_one_device(tmp_path):
    folder = saved(tmp_path / "model")
    one, other = models.load(folder), models.load(folder, mesh=models.mesh(1))
    jax.tree.map(np.testing.assert_array_equal, one.params, other.params)
