"""Bytes of training: states against the closed form, activations against a network written out, checkpoints against JAX's own."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply
from jaxdyn.optim.footprint import activations, footprint, footprints, shapes
from jaxdyn.optim.memory import MemoryLayout, estimate, nbytes
from jaxdyn.optim.methods import METHODS, Options

SHAPE = Transformer(vocabulary=40, width=16, layers=3, heads=2, hidden=24)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_states_are_those_of_the_closed_form(dtype):
    shape = dataclasses.replace(SHAPE, dtype=dtype)
    for name, layout in {"adam": "full", "galore": "galore"}.items():
        found, counted = (
            footprint(shape, name, Options(rank=4), length=8),
            estimate(shapes(shape), MemoryLayout(method=layout, rank=4)),
        )
        assert (found.weights, found.states) == (counted.weights, counted.states + counted.counters)
        assert found.gradients == found.weights == nbytes(shapes(shape))
    lora, counted = (
        footprint(shape, "lora", Options(rank=4), length=8),
        estimate(shapes(shape), MemoryLayout(method="lora", rank=4)),
    )
    assert lora.weights + lora.states == counted.total


def test_every_method_has_a_row_and_less_than_full_adam():
    rows = footprints(SHAPE, Options(rank=2), length=8)
    assert set(rows) == set(METHODS) and len({row.activations for row in rows.values()}) == 1
    adam = rows["adam"].states
    same = {name for name in METHODS if rows[name].states == adam}  # no parameter is large enough for blocks of 8 bits
    assert same == {"adam", "adamw", "adam_8bit"} and all(rows[name].states < adam for name in METHODS if name not in same)
    assert rows["sgd"].states == rows["sign"].states == 0 and 2 * rows["momentum"].states == adam - 4  # the count
    assert all(row.least < row.total for row in rows.values())
    assert rows["galore"].layerwise == max(4 * 40 * 16, 4 * (4 * 16 * 16 + 3 * 16 * 24 + 2 * 16))


@pytest.mark.slow
def test_activations_are_affine_in_layers_and_linear_in_sequences():
    """By counting all layers at once, without the difference of two depths."""
    plain, saved = activations(SHAPE, 2, 8)
    deeper, deeper_saved = activations(dataclasses.replace(SHAPE, layers=4), 2, 8)
    assert deeper - plain == plain - activations(dataclasses.replace(SHAPE, layers=2), 2, 8)[0] > 0
    assert deeper_saved - saved == 2 * 8 * 16 * 4  # one more input

    def kept(params, tokens):
        def loss(p):
            logits = apply(SHAPE, p, tokens)[:, :-1].astype(jnp.float32)
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))

        mine = {id(x) for x in jax.tree.leaves(params)}
        return [x for x in jax.tree.leaves(jax.vjp(loss, params)[1]) if id(x) not in mine]

    assert nbytes(jax.eval_shape(kept, shapes(SHAPE), jax.ShapeDtypeStruct((2, 8), jnp.int32))) == plain


def test_what_is_not_allowed():
    for wrong in ({"batch": 0}, {"length": 1}):
        with pytest.raises(UsageError, match="is not allowed"):
            footprint(SHAPE, "galore", Options(), **wrong)
    with pytest.raises(UsageError, match="method=full is not allowed"):
        footprint(SHAPE, "full", Options(), length=8)


def test_traced_numbers_and_dropout():
    found = jax.jit(lambda r: jnp.asarray(footprint(dataclasses.replace(SHAPE, residual=r), "adam", Options(), length=8).total))(
        0.5
    )
    assert int(found) == footprint(SHAPE, "adam", Options(), length=8).total
    dropped = dataclasses.replace(SHAPE, dropout=0.1)
    assert activations(dropped, 2, 8)[0] > activations(SHAPE, 2, 8)[0], "what is dropped is kept for the backward pass"
