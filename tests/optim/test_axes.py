"""Matrices of parameters: shapes, the way back, and which leaves are matrices by default."""

import functools
from typing import NamedTuple

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.axes import (
    HEADS_IN,
    HEADS_OUT,
    Matrix,
    as_matrices,
    as_parameter,
    hidden_matrices,
    matching,
    matrix_shape,
    specs,
)


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
    names = (
        "embed",
        "head",
        "blocks/norm1/gain",
        "blocks/qkv_bias",
        "position",
        "blocks/q",
        "blocks/heads_out",
        "shift",
        "blocks/sink",
    )
    params = {name: jnp.zeros((4, 3, 3)) for name in names} | {"scalar": jnp.zeros(3)}
    chosen = {name for name, spec in hidden_matrices(params).items() if spec is not None}
    assert chosen == {"blocks/q", "blocks/heads_out"}


@pytest.mark.parametrize(
    ("path", "matrix"),
    [
        ("MultiHeadDotProductAttention_0/query/kernel", True),
        ("multi_head_attention/kernel", True),
        ("heads/kernel", True),
        ("enormous", True),
        ("biased/w", True),
        ("again/w", True),
        ("composition/w", True),
        ("shifted/w", True),
        ("headline/w", True),
        ("normal_w", True),
        ("LayerNorm_0/scale", False),
        ("RMSNorm/scale", False),
        ("input_layernorm/weight", False),
        ("attn_norm", False),
        ("norm2/gain", False),
        ("lm_head/kernel", False),
        ("LMHead_0/kernel", False),
        ("head", False),
        ("Embed_0/embedding", False),
        ("embed_tokens/weight", False),
        ("position_embeddings", False),
        ("qkv_bias", False),
    ],
)
def test_names_count_by_whole_words_of_the_path(path, matrix):
    tree = functools.reduce(lambda inner, name: {name: inner}, reversed(path.split("/")), jnp.zeros((4, 4)))
    for params in (tree, {path: jnp.zeros((4, 4))}, [tree], flax.core.freeze(tree)):
        assert specs(hidden_matrices, params) == [Matrix() if matrix else None]


class Layer(NamedTuple):
    """Weights whose path has attributes."""

    normal: jax.Array
    norm: jax.Array


def test_paths_have_keys_attributes_and_places():
    layer = Layer(jnp.zeros((3, 3)), jnp.zeros((3, 3)))
    assert specs(hidden_matrices, {"blocks": [layer, (layer,)]}) == [Matrix(), None] * 2


def test_a_flax_network_has_its_kernels_but_not_its_embeddings():
    class Network(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(7, 8)(tokens)
            x = nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(x))
            return nn.Dense(7, name="head")(nn.Dense(8)(x))

    params = jax.eval_shape(Network().init, jax.random.key(0), jnp.zeros((1, 3), jnp.int32))["params"]
    named, _ = jax.tree_util.tree_flatten_with_path(hidden_matrices(params), is_leaf=lambda x: isinstance(x, Matrix))
    chosen = {jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in named}
    attention = {f"MultiHeadDotProductAttention_0/{name}/kernel" for name in ("query", "key", "value", "out")}
    assert chosen == attention | {"Dense_0/kernel"}


def test_a_leaf_without_numbers_is_no_matrix():
    params = {"a": jnp.zeros((3, 0)), "b": jnp.zeros((0, 3, 4)), "c": jnp.zeros((1, 1))}
    assert specs(hidden_matrices, params) == specs(Matrix(), params) == [None, None, Matrix()]


def test_specifications_are_checked():
    params = {"a": jnp.zeros((3, 4)), "b": jnp.zeros(3)}
    assert specs({"a": Matrix(), "b": None}, params) == [Matrix(), None]
    assert specs(lambda p: jax.tree.map(lambda x: Matrix() if x.ndim == 2 else None, p), params) == [Matrix(), None]
    for wrong in (Matrix((2,), (1,)), Matrix((0,), (0,)), Matrix((), (1,))):
        with pytest.raises(UsageError, match="is not allowed"):
            specs({"a": wrong, "b": None}, params)
    for wrong in (Matrix(0, 1), Matrix((0.0,), (1,)), Matrix((False,), (1,)), ((0,), (1,)), "rows"):
        with pytest.raises(UsageError, match="a leaf of dims is None or a Matrix"):
            specs({"a": wrong, "b": None}, params)
    with pytest.raises(UsageError, match="a tree like the parameters"):
        specs({"a": Matrix()}, params)


def test_an_explicit_choice_takes_the_first_pattern_that_fits():
    params = {
        "mlp": {"up": jnp.zeros((4, 6)), "gain": jnp.zeros(4)},
        "attn": {"q": jnp.zeros((4, 2, 3))},
        "head": jnp.zeros((4, 4)),
    }
    assert specs(matching({"mlp/*": Matrix()}), params) == [None, None, None, Matrix()]
    chosen = matching({"attn/q": HEADS_IN, "mlp/up": None}, otherwise=Matrix())
    assert specs(matching({"attn/q": HEADS_IN, "mlp/up": None}, otherwise=hidden_matrices), params) == [HEADS_IN, None, None, None]
    with pytest.raises(UsageError, match="with 1 axes"):
        specs(chosen, params)
    with pytest.raises(
        UsageError, match=r"pattern 'mlp/down' is not allowed: no leaf has such a name; names are attn/q, head, mlp"
    ):
        specs(matching({"mlp/down": Matrix()}), params)
    assert matrix_shape(HEADS_IN, (4, 2, 3)) == (4, 6) and matrix_shape(HEADS_OUT, (2, 3, 4)) == (6, 4)
