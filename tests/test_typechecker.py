"""The hook that holds the types of all functions in the tests is on, and what it finds."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

from jaxdyn import linalg, nn
from jaxdyn.errors import UsageError
from jaxdyn.nn.norms import rms_norm
from jaxdyn.theories.galore.dynamics import ratio


@pytest.mark.parametrize("x, gain", [(jnp.ones((2, 3)), jnp.ones(1)), (jnp.ones((2, 3), int), jnp.ones(3))])
def test_a_wrong_shape_or_dtype_that_a_function_takes_in_silence_is_found(x, gain):
    with pytest.raises(TypeCheckError, match="rms_norm"):
        rms_norm(x, gain, 1e-5)


def test_what_a_function_returns_is_checked(monkeypatch):
    monkeypatch.setattr(jnp.linalg, "eigvalsh", lambda x: x)
    with pytest.raises(TypeCheckError, match=r"return(.|\n)*eigvalsh"):
        linalg.eigvalsh(jnp.eye(3))


def test_theories_are_checked():
    with pytest.raises(TypeCheckError, match="ratio"):
        ratio(*jnp.ones((3, 2)))


def test_refusals_in_words_come_first():
    with pytest.raises(UsageError, match="it is a square matrix"):
        linalg.eigh(jnp.ones((2, 3)))


def test_numbers_and_arrays_of_numpy_count_and_fields_are_checked_as_converted():
    assert rms_norm(np.ones((2, 3), np.float32), np.ones(3, np.float32), np.float32(0)).dtype == jnp.float32
    assert nn.Transformer(vocabulary=np.int64(7), width=4, heads=1, layers=1, hidden=4, biases=["q"]).biases == ("q",)
