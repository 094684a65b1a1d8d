"""Programs over pieces, what they cost, and uniform attention for every kind of mask."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.instruments import registry
from jaxdyn.instruments.instrument import NotApplicable
from jaxdyn.instruments.pieces import each_piece, finite_pieces, first, forward, pieces_read, size, uniform_weights
from jaxdyn.nn.transformer import apply, attended
from jaxdyn.theories.sink import instrument as sinks
from tests.instruments import plain

INSTRUMENTS = registry.instruments()
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


def test_pieces_are_read_until_enough_are_finite():
    one = plain.model()
    tokens = np.random.default_rng(0).integers(0, 10, (9, 20))
    tokens[[0, 3], [19, 5]] = 10
    bad = plain.model(params=one.params | {"embed": one.params["embed"].at[10].set(jnp.nan)})
    for most, (places, read) in {2: ([1, 2], 3), 3: ([1, 2, 4], 5), 20: ([1, 2, 4, 5, 6, 7, 8], 9)}.items():
        kept, seen = finite_pieces(bad, tokens, most)
        assert kept.tolist() == places and seen == read
    assert finite_pieces(one, tokens, 20)[0].tolist() == list(range(9))


def masks(causal, window, sees_itself, sink_token):
    """A network whose queries see other keys than all before them."""
    return plain.changed(causal=causal, window=window if causal else None, sees_itself=sees_itself, sink_token=sink_token)


MASKS = st.tuples(st.booleans(), st.none() | st.integers(1, 24), st.booleans(), st.booleans())  # arguments of masks()


@settings(deadline=None, max_examples=60, derandomize=True)
@given(MASKS, st.sampled_from([1, 2, 9, 20]))
def test_uniform_weights_are_those_of_counting(mask, length):
    shape = masks(*mask)
    for i, row in enumerate(uniform_weights(shape, length)):
        near = [j for j in range(length) if (j <= i or not shape.causal) and (shape.sees_itself or j != i)]
        seen = [j for j in near if shape.window is None or i - j < shape.window]
        np.testing.assert_allclose(row, [(j in seen) / max(1, len(seen)) for j in range(length)])


def test_uniform_weights_are_those_of_queries_that_ask_for_nothing():
    """As the network itself has them; also in a trial, where all arrays are traced."""
    shape, length = masks(True, 4, True, False), 9
    k = jax.random.normal(jax.random.key(0), (1, length, shape.key_heads, shape.entries))
    b = attended(shape, jnp.zeros((1, length, shape.heads, shape.entries)), k, k, None)[1]
    np.testing.assert_allclose(np.broadcast_to(uniform_weights(shape, length), b[0].shape), b[0], rtol=1e-6)
    inside = jax.jit(lambda: jnp.asarray(uniform_weights(shape, length), jnp.float32))()
    np.testing.assert_array_equal(inside, uniform_weights(shape, length).astype(np.float32))


@pytest.mark.slow
@settings(deadline=None, max_examples=8, derandomize=True)
@given(MASKS)
def test_queries_that_ask_for_nothing_meet_every_expectation_of_uniform_attention(mask):
    shape, met = masks(*mask), 0
    for name in ("entropy", "sinks", "heavy"):
        try:
            ds = INSTRUMENTS[name].measure(plain.uniform(shape), plain.TOKENS, plain.nothing)
        except NotApplicable:
            continue
        for number in INSTRUMENTS[name].numbers(ds):
            if number.says == "uniform attention":
                assert number.value == pytest.approx(number.expected, rel=1e-4, abs=1e-6), (name, number)
                met += 1
    assert met >= 4


def test_what_was_read_is_known_from_the_results():
    tokens = np.random.default_rng(0).integers(0, 11, (5, 300)).astype(np.int32)
    ds = sinks.measure(plain.model(), tokens, plain.nothing)
    assert pieces_read(ds) == (4, 256) == (ds.sizes["piece"], ds.attrs["tokens"])
    assert pieces_read(xr.Dataset()) is None
