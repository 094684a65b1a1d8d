"""Programs over pieces, and what they cost."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.models.instruments import INSTRUMENTS
from jaxdyn.models.instruments.pieces import each_piece, first, forward, size
from jaxdyn.nn.decoder import apply
from tests.models.instruments import plain

TRACED = []


def total(shape, params, piece, factor):
    TRACED.append(shape)
    return {"sum": jnp.sum(piece) * factor, "narrow": jnp.mean(params["embed"]).astype(jnp.bfloat16)}


def test_one_program_serves_all_pieces_and_models_of_a_shape():
    done = []
    for seed in (0, 1):
        one = plain.model(params=jax.tree.map(lambda x, s=seed: x + s, plain.model().params))
        found = each_piece(one, total, plain.TOKENS, done.append, 2)
        np.testing.assert_array_equal(found["sum"], 2 * plain.TOKENS.sum(1))
        assert found["narrow"].dtype == np.float32 and found["narrow"][0] == pytest.approx(
            float(np.mean(one.params["embed"])), rel=0.01
        )
    assert len(TRACED) == 1 and sum(done) == pytest.approx(2)


def test_the_first_tokens_of_the_first_pieces():
    assert first(plain.TOKENS, 2, 7).shape == (2, 7) and first(plain.TOKENS, 9, 99).shape == plain.TOKENS.shape


@pytest.mark.parametrize("fields", [{}, {"repeats": 3}, {"mlp": "plain"}], ids=str)
def test_operations_are_those_that_the_compiler_counts(fields):
    shape = plain.changed(width=48, hidden=64, vocabulary=200, **fields)
    tokens = jnp.zeros((1, 64), jnp.int32)
    params = plain.model(shape).params
    unrolled = plain.changed(width=48, hidden=64, vocabulary=200, scan=False, **fields)
    analysis = jax.jit(lambda p: apply(unrolled, p, tokens)).lower(params).compile().cost_analysis()
    counted = (analysis[0] if isinstance(analysis, list) else analysis)["flops"]
    assert 64 * forward(shape, 64) == pytest.approx(counted, rel=0.25)  # without norms, softmax and activations
    assert size(shape) == shape.depth * sum(int(np.prod(s)) for s in shape.weights.values()) + 200 * 48


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_costs_grow_with_the_text(name):
    small, large = (INSTRUMENTS[name].cost(plain.SHAPE, np.zeros((4, n), np.int32)) for n in (64, 128))
    assert 0 < small.flops <= large.flops and 0 < small.bytes <= large.bytes
    if name != "numbers":
        assert small.flops < large.flops
