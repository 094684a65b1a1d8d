"""Small problems against a queue: which candidate is reached, levels, tokens, and edits that turn the answer."""

import collections

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import digraphs, reachability
from jaxdyn.data.reachability import Sizes
from jaxdyn.errors import UsageError
from tests.data.limits import within

SIZES = Sizes(3, 2)
draw = jax.jit(reachability.draw, static_argnums=1)  # as one program: by itself every operation would be compiled


def problems(count=40, sizes=SIZES):
    return [jax.device_get(draw(jax.random.key(i), sizes)) for i in range(count)]


@pytest.mark.parametrize("edit", [None, reachability.redirected, reachability.exchanged])
def test_a_queue_reaches_the_target_alone(edit):
    edited = edit and jax.jit(edit)
    for before in problems():
        p = before if edit is None else edited(before)
        away = digraphs.distances(p.edges, int(p.roots[0]))
        target, negative = (int(v) for v in p.candidates)
        assert away[target] == SIZES.hops and negative not in away
        if edit is not None:
            assert target == int(before.candidates[1])
            changed = int(np.sum(np.any(np.asarray(p.edges) != before.edges, 1)))
            assert changed == (1 if edit is reachability.redirected else 2)


def test_both_candidates_look_alike():
    for p in problems():
        away = digraphs.distances(p.edges, int(p.roots[1]))
        assert away[int(p.candidates[1])] == SIZES.hops and int(p.candidates[0]) not in away
        parents = collections.Counter(p.edges[:, 1].tolist())
        assert set(parents.values()) == {1} and len(parents) == SIZES.nodes - 2
        assert sorted({*parents, *p.roots.tolist()}) == list(range(SIZES.nodes))


def test_path_and_levels():
    levels = jax.jit(reachability.levels, static_argnums=1)
    for p in problems():
        edges = {tuple(e) for e in p.edges.tolist()}
        assert p.path[0] == p.roots[0] and p.path[-1] == p.candidates[0]
        assert all(pair in edges for pair in zip(p.path[:-1].tolist(), p.path[1:].tolist(), strict=True))
        away = digraphs.distances(p.edges, int(p.roots[0]))
        expected = [away.get(v, SIZES.hops + 1) for v in range(SIZES.nodes)]
        assert levels(p, SIZES).tolist() == expected


def test_tokens():
    sizes = Sizes(1, 1)  # two edges, four names
    p = draw(jax.random.key(3), sizes)
    (a, b), (c, d) = p.edges.tolist()
    x, y = p.candidates.tolist() if bool(p.straight) else p.candidates.tolist()[::-1]
    tokens = jax.jit(reachability.render, static_argnums=1)(p, sizes).tolist()
    assert tokens == [4, a, b, 5, c, d, 6, x, y, 7, int(p.roots[0])] and len(tokens) == sizes.prompt
    assert reachability.token(4, "[A]") == 8 and sizes.vocabulary == 10


@pytest.mark.slow
def test_shown_order_and_place_of_the_answer_say_nothing():
    some = problems(200)
    assert 70 < sum(bool(p.straight) for p in some) < 130
    larger = sum(int(p.candidates[0]) > int(p.candidates[1]) for p in some)
    assert 70 < larger < 130


def test_wrong_sizes_are_refused():
    with pytest.raises(UsageError, match="hops is at least 1"):
        Sizes(0, 2)


@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(hops=st.integers(1, 6), breadth=st.integers(1, 5), seed=st.integers(0, 2**31 - 1))
def test_draws_over_the_whole_range(hops, breadth, seed):
    sizes = Sizes(hops, breadth)
    with within(60):
        p = draw(jax.random.key(seed), sizes)
    away = digraphs.distances(p.edges, int(p.roots[0]))
    assert away[int(p.candidates[0])] == hops and int(p.candidates[1]) not in away
    assert len(p.edges) == sizes.edges and set(np.asarray(p.edges).ravel().tolist()) <= set(range(sizes.nodes))


def test_the_ends_of_the_range():
    with within(60):
        p = draw(jax.random.key(0), Sizes(np.int64(1), (reachability.MOST - 2) // 2))
    assert len(p.edges) == reachability.MOST - 2
    with pytest.raises(UsageError, match=f"there are at most {reachability.MOST} nodes"):
        Sizes(2, reachability.MOST)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, 2.5, "2", None, float("nan")])
def test_sizes_that_are_no_counts_are_refused(wrong):
    for name in ("hops", "breadth"):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
            Sizes(**{name: wrong})
    with pytest.raises(UsageError, match="special=.* is not allowed: it is one of <eos>"):
        reachability.token(5, "<bos>")
