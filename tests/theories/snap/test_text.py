"""Figure 7's numbers against plain loops, and its settings."""

import numpy as np
import pytest

from jaxdyn.text.training_run import TrainingRun
from jaxdyn.theories.snap import text as fig7


def maps(seed, n=9, count=3):
    a = np.tril(np.random.default_rng(seed).uniform(0.01, 1, (count, n, n)))
    return (a / a.sum(-1, keepdims=True)).astype(np.float32)


def test_entropy_share_and_top_three_are_loops():
    a = maps(0)
    for one, share, top in zip(a, fig7.entropy_share(a), fig7.top_three(a), strict=True):
        each = [-sum(p * np.log(p) for p in one[i] if p > 0) / np.log(i + 1) for i in range(1, 9)]
        assert float(share) == pytest.approx(np.mean(each), rel=1e-5)
        assert float(top) == pytest.approx(np.mean([sum(sorted(one[i])[-3:]) for i in range(3, 9)]), rel=1e-5)


def test_blind_attention_has_share_one_and_sharp_attention_zero():
    blind = np.tri(35, dtype=np.float32) / np.arange(1, 36, dtype=np.float32)[:, None]
    assert float(fig7.entropy_share(blind)) == pytest.approx(1, abs=1e-6)
    assert float(fig7.entropy_share(np.eye(35, dtype=np.float32))) == 0
    assert float(fig7.top_three(np.eye(35, dtype=np.float32))) == 1


def test_movement_is_a_mean_over_queries_and_at_most_two():
    a, b = maps(0), maps(1)
    np.testing.assert_allclose(fig7.movement(a, b), [np.abs(y - x).sum() / 9 for x, y in zip(a, b, strict=True)], rtol=1e-5)
    np.testing.assert_array_equal(fig7.movement(a, a), 0)
    assert float(fig7.movement(np.eye(4), np.roll(np.eye(4), 1, 1))) == 2


def test_settings_are_the_published_ones():
    one, three = (fig7.setting(TrainingRun(), layers) for layers in (1, 3))
    for s in (one, three):
        assert (s.optimizer, s.lr, s.lr * s.lowest_mlp, s.clip, s.restart) == ("sgd", 5.0, 10.0, 0.5, False)
        assert (s.columns, s.length, s.steps) == (20, 35, 1500)
    assert (one.dropout, three.dropout) == (0.3, 0.2)
    assert fig7.setting(TrainingRun(), 1, query_key=0.0).query_key == 0.0
