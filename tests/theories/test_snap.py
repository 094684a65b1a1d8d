"""Scan and Snap: laws of the reduced dynamics, tasks, and texts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.text.training_run import TrainingRun
from jaxdyn.theories.snap import random_laws, tasks
from jaxdyn.theories.snap import text as fig7
from jaxdyn.theories.snap.gradient.original import Layered

# Laws of the reduced dynamics: given weights, and wrong ones that are refused.


def test_given_weights_replace_the_random_laws(x64):
    given = random_laws.Laws(distinct=3, weights=(1.0, 2.0, 5.0), common=2.0)
    p, start = jax.jit(lambda key: random_laws.sample_laws(given, key))(jax.random.key(0))
    np.testing.assert_allclose(p[1, random_laws.places(random_laws.Laws(distinct=3))[1]], np.array([1, 2, 5]) / 8 / 3)
    np.testing.assert_allclose(p[:, 0], 2 / 3)
    assert not np.any(start)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weights": (1.0, 2.0)}, "4 positive numbers"),
        ({"weights": (4.0, 3.0, 2.0, 1.0)}, "they rise"),
    ],
)
def test_wrong_laws_are_refused(fields, message):
    with pytest.raises(UsageError, match=message):
        random_laws.Laws(**fields)


# The classes have the tokens, laws, queries and frequencies that they should have.


def test_random_classes(x64):
    one = tasks.random_task(jax.random.key(0), 20, 3, 2, 0.25, 1.0, queries=2)
    p = np.asarray(one.p)
    assert p.shape == (3, 20) and np.allclose(p.sum(1), 1) and np.allclose(p[:, 0], 0.25)
    assert [list(np.nonzero(row)[0]) for row in p] == [[0, 1, 2], [0, 3, 4], [0, 5, 6]]
    assert list(one.query) == [0, 1, 0] and list(one.label) == [9, 10, 11]
    assert np.allclose(one.weight, np.array([1, 2, 3]) / 6)


def test_weighted_classes(x64):
    task = tasks.weighted_task(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0]))
    p = np.asarray(task.p)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(4 * p[0, :5], [1, 1, 2, 0, 0])
    np.testing.assert_allclose(8 * p[1, :5], [1, 0, 0, 3, 4])
    assert p.shape == (2, 9) and (p[:, 5:] == 0).all()
    np.testing.assert_array_equal(task.label, [7, 8])
    np.testing.assert_array_equal(task.query, [0, 1])


def test_given_weights_replace_those_of_the_random_task(x64):
    one = tasks.random_task(jax.random.key(0), 20, 3, 2, 0.4, weights=(1.0, 3.0))
    p = np.asarray(one.p)
    np.testing.assert_allclose(p[:, 0], 0.4)
    for n in range(3):
        np.testing.assert_allclose(p[n, 1 + 2 * n : 3 + 2 * n], [0.15, 0.45])


@pytest.mark.parametrize("weights", [(1.0, 2.0), (1.0, 2.0, -1.0)])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(jd.UsageError, match="weights is none or 3 positive numbers"):
        Layered(weights=weights)


# Figure 7's numbers against plain loops, and its settings.


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
