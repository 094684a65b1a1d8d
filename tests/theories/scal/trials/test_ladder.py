"""A rung of the ladder: counts of steps, schedules, and short training."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.theories.scal.trials import ladder
from jaxdyn.theories.scal.trials.ladder import Rung

TINY = {"width": 4, "vocabulary": 32, "least": 6.7, "budgets": 3, "windows": 2, "length": 16}


def test_counts_follow_the_compute_rule():
    s = Rung(**TINY)
    params = nn.decoder(s.shape).init(jax.random.key(0))
    size = ladder.weights(s.shape)
    assert size == sum(x.size for x in jax.tree.leaves(params)) == 32 * 4 + 4 * 16 + 3 * 4 * 11 + 3 * 4
    for (stem, branch), budget in zip(ladder.counts(s), s.operations, strict=True):
        assert 6 * size * (stem + branch) * s.batch * s.length == pytest.approx(budget, rel=0.05)
        assert branch == round(0.3 * (stem + branch))
    steps, kinds = ladder.phases(s)
    assert kinds.tolist() == [0, *3 * [0, 1, 2]]
    stems = [stem for stem, _ in ladder.counts(s)]
    assert steps[0] == 0 and np.cumsum(steps[1::3])[-1] + steps[3::3][:-1].sum() == stems[-1]


def test_rare_bytes_share_the_last_number():
    s = Rung(**TINY)
    tokens, data = ladder.tokens_of(s, "train"), ladder.corpus(s).train
    assert tokens.min() == 0 and tokens.max() == 31 and (tokens[data == np.bincount(data).argmax()] == 0).all()
    assert np.unique(data[tokens == 31]).size > 1 and np.unique(data[tokens == 30]).size == 1


@pytest.mark.slow
def test_losses_fall_with_the_budget():
    ds = jd.sweep(ladder.trial, jd.grid(Rung, factor=[0.5, 1.0], **TINY), 2)
    assert (ds.status == 0).all()
    loss = ds.measured_loss.sel(part="valid").mean("seed")
    assert (loss.isel(budget=-1) < loss.isel(budget=0)).all() and (ds.start > ds.measured_loss.isel(budget=0)).all()
    assert abs(ds.start - np.log(32)).max() < 0.5
    np.testing.assert_allclose(ds.rate.mean("seed"), (0.01, 0.02))
    np.testing.assert_allclose(6 * ds.weights * ds.tokens / ds.budget, 1, atol=0.05)


@pytest.mark.parametrize("wrong", [{"width": 5}, {"factor": 0.0}, {"budgets": 0}, {"text": "markov"}, {"least": 4.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Rung(**wrong)
