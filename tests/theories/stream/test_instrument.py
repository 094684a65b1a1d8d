"""Streaming: against the caches token by token, a planted sink whose loss costs, and a network without attention."""

import jax
import numpy as np
import pytest

from jaxdyn.nn.cache import Policy, losses
from jaxdyn.theories.stream.instrument import SINKS, STREAMING, measure
from tests.instruments import plain

SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def planted():
    return measure(plain.planted(), plain.circles(), plain.nothing)


@SLOW
def test_nats_are_those_of_caches_token_by_token():
    one = plain.model()
    ds = measure(one, plain.TOKENS, plain.nothing)
    _, nats = plain.pieces_of(plain.SHAPE, one.params, plain.TOKENS)
    np.testing.assert_allclose(ds.nats.sel(policy="dense"), nats, rtol=1e-3, atol=1e-4)
    for name, sinks in SINKS.items():
        policy = Policy(kind="streaming", size=ds.attrs["size"], sinks=sinks)
        expected = jax.vmap(lambda t, p=policy: losses(plain.SHAPE, one.params, p, t)[1])(plain.TOKENS)
        np.testing.assert_allclose(ds.nats.sel(policy=name), expected, rtol=1e-3, atol=1e-4)


@SLOW
def test_recomputation_reads_the_last_tokens_alone():
    one = plain.model()
    ds = measure(one, plain.TOKENS, plain.nothing)
    size = ds.attrs["size"]
    for piece in range(3):
        for place, found in zip(ds.spot.values, ds.recomputed.values[piece], strict=True):
            window = plain.TOKENS[piece, place - size : place + 1]
            assert found == pytest.approx(plain.inside(plain.SHAPE, one.params, window)[1][-1], rel=1e-3, abs=1e-4)


def test_a_window_breaks_once_the_sink_is_gone(planted):
    late = planted.nats.sel(token=slice(planted.attrs["size"] + 1, None)).mean(["piece", "token"])
    assert float(late.sel(policy="window") - late.sel(policy="dense")) > 0.5
    np.testing.assert_allclose(late.sel(policy=["1 sink", "4 sinks", "8 sinks"]), late.sel(policy="dense"), atol=0.05)
    early = planted.nats.sel(token=slice(None, planted.attrs["size"])).mean(["piece", "token"])
    np.testing.assert_allclose(early, early[0], rtol=1e-5)
    again = float(planted.recomputed.mean() - late.sel(policy="dense"))
    assert again < 0.3  # the first of the last tokens is at the first place, so that it is a sink


def test_the_table_begins_with_the_model(planted):
    table = STREAMING.table(planted)
    assert table.rows[0][0] == "this model, L = 20" and len(table.rows[0][1]) == len(table.columns) == 7
    for name, cell in zip((*SINKS, "dense"), table.rows[0][1], strict=False):
        nats = planted.nats.sel(policy=name, token=slice(21, None)).mean()
        assert float(cell.split("\n")[0]) == pytest.approx(np.exp(float(nats)), rel=1e-3), name
    rows = dict(table.rows)
    assert rows["Llama-2-7B, PG19"][:5] == ("3359.95", "11.88", "10.51", "9.59", "9.54")
    ratio = {n.name: n for n in STREAMING.numbers(planted)}["perplexity over 4 sinks, 0+20"]
    assert ratio.value > 1.5 and ratio.low <= ratio.value <= ratio.high and ratio.expected == pytest.approx(3359.95 / 9.59)


def test_without_attention_no_policy_matters():
    one = plain.model()
    blocks = one.params["blocks"]
    still = one._replace(params=one.params | {"blocks": blocks | {"o": 0 * blocks["o"]}})
    ds = measure(still, plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.nats - ds.nats.sel(policy="dense"), 0, atol=1e-5)
    row = STREAMING.table(ds).rows[0][1]
    assert len(set(row)) == 1, "recomputation is read at few tokens, and compared with four sinks at these"
