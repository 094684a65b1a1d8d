"""Victims of every policy on caches written down by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.nn.cache import Policy, decode, victim
from tests.nn.cache.helpers import SMALL, params_of, text

BORN = jnp.asarray([[0, 6, 7, 3], [7, 0, 1, 6]])  # two heads; the current token is 8
SCORE = jnp.asarray([[2.0, 0.4, 0.1, 0.9], [0.3, 3.0, 0.2, 0.6]])


def places(kind, *, key=None, whole=None, **more):
    policy = Policy(kind=kind, size=4, **more)
    return np.asarray(victim(policy, BORN, SCORE, jnp.asarray(8), given=whole, key=key)).tolist()


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
    whole = jnp.asarray([[0.1, 9, 9, 9, 9, 9, 9, 9, 9], [9.0, 9, 9, 9, 9, 9, 0.2, 0.1, 9]])
    assert places("oracle_global", whole=whole) == [0, 0]
    assert places("oracle_global", whole=whole, recent=2) == [0, 3]
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


KINDS = {  # of one number
    "Python": lambda n: n,
    "NumPy's scalar": lambda n: np.float64(n) if isinstance(n, float) else np.int64(n),
    "NumPy's array": np.asarray,
    "JAX's": jnp.asarray,
}


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.sampled_from(list(KINDS)),
    st.integers(-1, 7),
    st.integers(-1, 7),
    st.integers(0, 6),
    st.sampled_from([-0.1, 0.0, 0.5, 1.0, 1.5]),
)
def test_a_number_is_checked_whichever_library_it_is_of(kind, sinks, recent, size, decay):
    make, fields = KINDS[kind], {"kind": "streaming"}
    numbers = {"sinks": sinks, "recent": recent, "size": size, "decay": decay}
    if size >= 2 and 0 <= sinks < size and 1 <= recent <= size and 0 <= decay <= 1:
        policy = Policy(**fields, **{name: make(n) for name, n in numbers.items()})
        assert all(type(getattr(policy, name)) in (int, float) for name in numbers)
        assert policy == Policy(**fields, **{name: n if name != "decay" else policy.decay for name, n in numbers.items()})
        assert policy.decay == pytest.approx(decay)
    else:
        with pytest.raises(UsageError, match="not allowed"):
            Policy(**fields, **{name: make(n) for name, n in numbers.items()})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sinks": np.int64(10)}, "sinks=10, size=4 are not allowed: sinks is at least 0 and below size"),
        ({"size": 8.0}, "size=8.0 is not allowed: size is a whole number, at least 2"),
        ({"size": True}, "size=True is not allowed: size is a whole number, at least 2"),
        ({"recent": np.int64(0)}, "recent=0 is not allowed: recent is at least 1"),
        ({"recent": np.True_}, "recent=True is not allowed: recent is a whole number, at least 1"),
        ({"sinks": 1.5}, "sinks=1.5 is not allowed: sinks is a whole number, at least 0"),
        ({"sinks": np.asarray([1, 2])}, r"sinks=int64\[2\] is not allowed: sinks is a whole number, at least 0"),
        ({"sinks": None}, "sinks=None is not allowed: sinks is a whole number, at least 0"),
        ({"decay": np.float64(2)}, "decay=2.0 is not allowed: decay is at least 0 and at most 1"),
        ({"decay": 2}, "decay=2 is not allowed: decay is at least 0 and at most 1"),
        ({"decay": np.nan}, "decay=nan is not allowed: decay is a finite number, at least 0 and at most 1"),
        ({"decay": True}, "decay=True is not allowed: decay is a finite number, at least 0 and at most 1"),
    ],
)
def test_what_is_no_number_of_its_range_is_refused_in_one_sentence(wrong, words):
    with pytest.raises(UsageError, match=f"^{words}$"):
        Policy(**({"kind": "streaming", "size": 4} | wrong))


def test_traced_numbers_are_checked_by_dtype_and_shape():
    def made(sinks, decay):
        for wrong in ({"sinks": decay}, {"decay": sinks > 0}, {"sinks": sinks[None]}, {"size": sinks}):
            with pytest.raises(UsageError, match="not allowed"):
                Policy(**({"kind": "h2o", "size": 4} | wrong))
        return Policy(kind="h2o", size=4, sinks=sinks, decay=decay)

    many = jax.jit(jax.vmap(made))(jnp.arange(3), jnp.zeros(3))  # the policy that comes out is one of three: not checked again
    assert many.sinks.tolist() == [0, 1, 2] and many.size == 4
    with pytest.raises(UsageError, match=r"sinks=int32\[3\] is not allowed: a policy has one number; jax.vmap takes many"):
        shape = dataclasses.replace(SMALL, dtype="float32")
        decode(shape, params_of(shape), many, text(3))
