"""Heavy hitters: shares against NumPy, losses against caches token by token, uniform attention as null."""

import jax
import numpy as np
import pytest

from jaxdyn.instruments.instrument import NotApplicable
from jaxdyn.nn.cache import Policy, losses
from jaxdyn.theories.h2o.instrument import BUDGETS, HEAVY, measure, uniform
from tests.instruments import plain

KINDS = {"H2O": "h2o", "recent": "window", "H2O's opposite": "anti_h2o"}


@pytest.fixture(scope="module")
def random():
    return measure(plain.model(), plain.TOKENS, plain.nothing)


@pytest.mark.slow
def test_shares_are_those_of_plain_attention(random):
    seen, nats = plain.pieces_of(plain.SHAPE, plain.model().params, plain.TOKENS[:, :-1])
    gets = np.sort(seen["attention"].sum(-2), -1)[..., ::-1]
    np.testing.assert_allclose(random.share, gets[..., :4].sum(-1) / gets.sum(-1), rtol=1e-4)
    rest = np.sort(seen["attention"].sum(-2)[..., 1:], -1)[..., ::-1]
    np.testing.assert_allclose(random.rest, rest[..., :4].sum(-1) / rest.sum(-1), rtol=1e-4)
    _, nats = plain.pieces_of(plain.SHAPE, plain.model().params, plain.TOKENS)
    np.testing.assert_allclose(random.full, nats[:, 9:].mean(-1), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_losses_are_those_of_caches_token_by_token(random, name):
    params = plain.model().params
    for budget in BUDGETS:
        size = max(2, round(budget * 19))
        policy = Policy(kind=KINDS[name], size=size, recent=max(1, size // 2), positions="absolute")
        expected = jax.vmap(lambda t, p=policy: losses(plain.SHAPE, params, p, t)[1])(plain.TOKENS)
        np.testing.assert_allclose(random.nats.sel(policy=name, budget=budget), expected[:, 9:].mean(-1), rtol=1e-3)


@pytest.mark.parametrize("fields", [{}, {"window": 4}], ids=str)
def test_uniform_attention_has_the_share_that_is_predicted(fields):
    ds = measure(plain.uniform(plain.changed(**fields)), plain.TOKENS, plain.nothing)
    law = HEAVY.predict(ds)
    np.testing.assert_allclose(ds.share, law.share, rtol=1e-5)
    np.testing.assert_allclose(ds.rest, law.rest, rtol=1e-5)
    assert uniform(plain.SHAPE, 1000) == pytest.approx(0.2 * (1 - np.log(0.2)), rel=0.01)  # the integral of -ln x


@pytest.mark.slow
def test_a_planted_sink_takes_all_of_one_head():
    ds = measure(plain.planted(), plain.circles(length=40), plain.nothing)
    one = ds.share.isel(head=0, layer=0)
    assert float(one.min()) > 0.99
    cost = ds.nats.sel(budget=0.2).mean("piece") - ds.full.mean("piece")
    assert float(cost.sel(policy="recent")) > 0.3 and float(cost.sel(policy="H2O")) < 0.05  # H2O keeps the first token
    assert float(cost.sel(policy="H2O's opposite")) > 0.3


def test_other_attention_is_refused_in_a_sentence():
    with pytest.raises(NotApplicable, match="softmax attention"):
        measure(plain.model(plain.changed(attention="sigmoid")), plain.TOKENS, plain.nothing)
