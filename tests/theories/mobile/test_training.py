"""Training lowers the loss of both parts; rates chosen on the validation part, and the gate."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.text import pretraining
from jaxdyn.theories.mobile.training import Training, learned, trained, tuned
from tests.theories.mobile.helpers import runs

SMALL = {"batch": 2, "length": 8, "steps": 20, "records": 2, "windows": 3}


@pytest.mark.slow
def test_training_lowers_the_loss_of_both_parts():
    s = Training(lr=2e-2, **SMALL)
    net = nn.network(nn.Transformer(vocabulary=256, width=8, layers=1, heads=1, hidden=12, tied=True, std=0.1))

    def loss(params, tokens):
        return pretraining.loss(net, params, tokens)

    state, curve = jax.jit(lambda key: trained(s, loss, net.init(key), key))(jax.random.key(0))
    assert curve.shape == (3, 2) and int(state.step) == 20
    np.testing.assert_allclose(curve[0], np.log(256), atol=0.2)
    assert np.all(curve[-1] < curve[0] - 0.3)


def test_a_text_with_more_tokens_than_the_vocabulary_is_refused():
    with pytest.raises(UsageError, match="the text has 256 different tokens"):
        Training(vocabulary=20).corpus()


@pytest.mark.parametrize("wrong", [{"records": 3}])
def test_settings_that_are_not_allowed(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        jd.grid(Training, **SMALL | wrong)


def test_each_at_the_rate_with_the_lowest_validation_loss():
    ds = runs("variant", ["a", "b"], [2.0, 2.5])
    np.testing.assert_allclose(tuned(ds).measured_loss.mean("seed"), [2.0, 2.5])
    ds["curve"] = ds.curve.where((ds.part == "test") | (ds.step == 0) | (ds.lr != 0.1) | (ds.variant != "b"), 0.1)
    np.testing.assert_allclose(tuned(ds).measured_loss.mean("seed"), [2.0, 3.5])
    assert "lr" not in tuned(tuned(ds)).dims


def test_the_gate_asks_for_a_nat():
    assert learned(runs("variant", ["a"], [2.0])).passed
    assert not learned(runs("variant", ["a", "b"], [2.0, 4.6])).passed


def test_the_mark_of_unknown_words_is_one_of_the_vocabulary():
    corpus = Training(level="words", vocabulary=300).corpus()
    assert len(corpus.vocabulary) == 300 and corpus.vocabulary[0] == "<unk>"
