"""Training on tiny sizes; settings that are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.rev.mlt import sentences, trial
from jaxdyn.theories.rev.mlt.trial import Deep


def test_groups_follow_the_direction_that_was_learned():
    z = jnp.arange(2 * 2 * 5.0).reshape(2, 2, 5)
    means = trial.grouped(z, jnp.array([True, False]))
    np.testing.assert_allclose(means[0], [1.0, 6.0, (3 + 9) / 2, (8 + 4) / 2])


@pytest.mark.slow
def test_training_lowers_the_loss_of_what_is_shown_and_of_nothing_else(trained):
    s, _, run = trained
    n = trial.sizes(s).train
    start, end = run.nll[0], run.nll[-1]
    assert float(end[:n].mean()) < 0.75 * float(start[:n].mean())
    assert float(end[n:].mean()) > float(end[:n].mean()) + 0.5
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(run))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"vocabulary": 8}, "vocabulary"),
        ({"word": 4}, "word"),
        ({"task": "relevant", "word": 2}, "word"),
        ({"vocabulary": 2000, "word": 3}, "fewer than"),
        ({"width": 10, "heads": 4}, "heads"),
        ({"width": 20, "heads": 4, "position": "rotary"}, "rotary"),
        ({"epochs": 25, "every": 10}, "epochs"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(fields, message):
    with pytest.raises(UsageError, match=message) as caught:
        Deep(**fields)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="task='other'"):
        sentences.sizes("other", 80)
