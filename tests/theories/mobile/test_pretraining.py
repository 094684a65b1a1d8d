"""Settings of a training, sequences, and that training lowers the loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.text import language
from jaxdyn.theories.mobile.pretraining import PARTS, Training, batch, corpus, held_out, steps_of, trained

SMALL = {"batch": 2, "length": 8, "steps": 20, "records": 2, "windows": 3}


def cell(**fields):
    return jd.grid(Training, **SMALL | fields).cells()[0]


def test_sequences_are_pieces_of_their_parts():
    s, c = cell(), corpus(cell())
    held = np.asarray(held_out(c, s))
    assert held.shape == (len(PARTS), 3, 2, 9)
    np.testing.assert_array_equal(held[1, 0, 0], c.test[:9])
    np.testing.assert_array_equal(held[0, -1, -1], c.valid[-9:])
    drawn = np.asarray(batch(jnp.arange(50), s, jax.random.key(0)))
    np.testing.assert_array_equal(np.diff(drawn, axis=1), 1)


def test_training_lowers_the_loss_of_both_parts():
    s = cell(lr=2e-2)
    net = nn.decoder(nn.Decoder(vocabulary=256, width=8, layers=1, heads=1, hidden=12, tied=True, std=0.1))

    def loss(params, tokens):
        return language.loss(net, params, tokens[:, :-1], tokens[:, 1:])

    state, curve = jax.jit(lambda key: trained(s, loss, net.init(key), key))(jax.random.key(0))
    assert curve.shape == (3, 2) and int(state.step) == 20 and list(steps_of(s)) == [0, 10, 20]
    np.testing.assert_allclose(curve[0], np.log(256), atol=0.2)
    assert np.all(curve[-1] < curve[0] - 0.3)


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"steps": 5}, "steps is at least 10"), ({"records": 3}, "multiple of records"), ({"lr": 0.0}, "both are positive")]
    + [({"windows": 0}, "windows is at least 1"), ({"text": "/no/such/place"}, "/no/such/place")],
)
def test_settings_that_are_not_allowed(fields, why):
    with pytest.raises(UsageError, match=why):
        jd.grid(Training, **SMALL | fields)
