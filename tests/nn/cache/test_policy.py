"""Victims of every policy on caches written down by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn.cache import Policy, victim

BORN = jnp.asarray([[0, 6, 7, 3], [7, 0, 1, 6]])  # two heads; the current token is 8
SCORE = jnp.asarray([[2.0, 0.4, 0.1, 0.9], [0.3, 3.0, 0.2, 0.6]])


def places(kind, *, key=None, given=None, **more):
    policy = Policy(kind=kind, size=4, **more)
    return np.asarray(victim(policy, BORN, SCORE, jnp.asarray(8), given=given, key=key)).tolist()


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("window", {}, [0, 1]),
        ("streaming", {"sinks": 0}, [0, 1]),
        ("streaming", {"sinks": 1}, [3, 2]),
        ("streaming", {"sinks": 2}, [3, 3]),
        ("h2o", {}, [2, 2]),
        ("h2o", {"recent": 2}, [1, 2]),
        ("h2o", {"recent": 3}, [3, 2]),
        ("h2o", {"recent": 4}, [3, 2]),
        ("h2o", {"score": "mean"}, [2, 2]),  # means 0.25, 0.2, 0.1, 0.18 and 0.3, 0.375, 0.029, 0.3
        ("h2o", {"score": "mean", "recent": 2}, [3, 2]),
        ("anti_h2o", {}, [0, 1]),
        ("anti_h2o", {"recent": 4}, [0, 1]),
    ],
)
def test_victims(kind, more, expected):
    assert places(kind, **more) == expected


def test_the_oracle_looks_at_given_scores_alone():
    given = jnp.asarray([[0.1, 9, 9, 9, 9, 9, 9, 9, 9], [9.0, 9, 9, 9, 9, 9, 0.2, 0.1, 9]])
    assert places("oracle_global", given=given) == [0, 0]
    assert places("oracle_global", given=given, recent=2) == [0, 3]
    with pytest.raises(UsageError, match="needs given"):
        places("oracle_global")


def test_random_victims_are_uniform_over_what_is_not_recent():
    drawn = np.stack([places("random", key=jax.random.key(i), recent=2) for i in range(300)])
    assert set(drawn[:, 0]) == {0, 1, 3} and set(drawn[:, 1]) == {1, 2, 3}
    counts = np.bincount(drawn[:, 0], minlength=4)[[0, 1, 3]]
    assert np.all(np.abs(counts - 100) < 5 * np.sqrt(300 * 2 / 9))
    assert np.mean(drawn[:, 0] == drawn[:, 1]) < 0.5  # heads draw by themselves
    with pytest.raises(UsageError, match="needs a key"):
        places("random")


def test_numbers_of_a_policy_may_be_traced():
    def chosen(sinks):
        return victim(Policy(kind="streaming", size=4, sinks=sinks), BORN, SCORE, jnp.asarray(8))

    np.testing.assert_array_equal(jax.jit(jax.vmap(chosen))(jnp.asarray([0, 1, 2])), [[0, 1], [3, 2], [3, 3]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "lru"},
        {"size": 1},
        {"sinks": 4},
        {"recent": 0},
        {"recent": 5},
        {"decay": 1.5},
        {"score": "max"},
        {"positions": "x"},
    ],
)
def test_wrong_policies_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Policy(**({"kind": "streaming", "size": 4} | wrong))
