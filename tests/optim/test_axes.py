"""Matrices of parameters: shapes, the way back, and which leaves are matrices by default."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.axes import Matrix, as_matrices, as_parameter, hidden_matrices, matrix_shape, specs


@pytest.mark.parametrize(
    ("spec", "shape", "matrices"),
    [
        (Matrix(), (3, 4), (3, 4)),
        (Matrix(), (2, 3, 4), (2, 3, 4)),
        (Matrix((0,), (1, 2)), (5, 2, 3), (5, 6)),
        (Matrix((0, 1), (2,)), (2, 3, 5), (6, 5)),
        (Matrix((1,), (2, 3)), (7, 5, 2, 3), (7, 5, 6)),
        (Matrix((-1,), (0,)), (3, 4), (4, 3)),
    ],
)
def test_there_and_back(spec, shape, matrices):
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    there = as_matrices(spec, x)
    assert there.shape == matrix_shape(spec, shape) == matrices
    np.testing.assert_array_equal(as_parameter(spec, there, shape), x)


def test_rows_and_columns_are_the_named_axes():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2, 3)), jnp.float32)
    np.testing.assert_array_equal(as_matrices(Matrix((0,), (2, 1)), x), x.transpose(0, 2, 1).reshape(5, 6))


def test_only_hidden_matrices_by_default():
    names = ("embed", "head", "blocks/norm1/gain", "blocks/qkv_bias", "position", "blocks/q", "blocks/heads_out", "shift")
    params = {name: jnp.zeros((4, 3, 3)) for name in names} | {"scalar": jnp.zeros(3)}
    chosen = {name for name, spec in hidden_matrices(params).items() if spec is not None}
    assert chosen == {"blocks/q", "blocks/heads_out"}


def test_specifications_are_checked():
    params = {"a": jnp.zeros((3, 4)), "b": jnp.zeros(3)}
    assert specs({"a": Matrix(), "b": None}, params) == [Matrix(), None]
    assert specs(lambda p: jax.tree.map(lambda x: Matrix() if x.ndim == 2 else None, p), params) == [Matrix(), None]
    for wrong in (Matrix((2,), (1,)), Matrix((0,), (0,)), Matrix((), (1,))):
        with pytest.raises(UsageError, match="is not allowed"):
            specs({"a": wrong, "b": None}, params)
