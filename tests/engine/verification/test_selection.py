"""Which claims fit: every theory first, headlines before others, shared programs paid once; against exhaustive search by hand."""

from hypothesis import given
from hypothesis import strategies as st

from jaxdyn.engine.verification.selection import Candidate, affordable


def candidate(theory, programs, headline=False):
    return Candidate(theory, frozenset(programs), headline)


def test_every_theory_comes_before_a_second_claim_of_any():
    some = [candidate("a", "p"), candidate("a", "q"), candidate("b", "r")]
    assert affordable(some, {"p": 1.0, "q": 1.0, "r": 50.0}, [0.0] * 3, 52.0) == [0, 2, 1]
    assert affordable(some, {"p": 1.0, "q": 1.0, "r": 50.0}, [0.0] * 3, 51.0) == [0, 2]


def test_a_theory_is_led_by_its_cheapest_headline_and_other_headlines_follow():
    some = [candidate("a", "p"), candidate("a", "q", True), candidate("a", "r", True), candidate("b", "s")]
    cost = {"p": 1.0, "q": 9.0, "r": 5.0, "s": 2.0}
    assert affordable(some, cost, [0.0] * 4, 100.0) == [3, 2, 1, 0]


def test_a_program_is_paid_once():
    some = [candidate("a", "p"), candidate("a", "pq"), candidate("a", "r")]
    assert affordable(some, {"p": 4.0, "q": 1.0, "r": 5.0}, [0.5] * 3, 6.0) == [0, 1]


def test_something_is_always_run():
    assert affordable([candidate("a", "p"), candidate("b", "q")], {"p": 9.0, "q": 5.0}, [0.0, 0.0], 1.0) == [1]
    assert affordable([], {}, [], 1.0) == []


@given(st.data())
def test_the_budget_is_kept_and_nothing_that_fits_is_left_out(data):
    programs = "abcdef"
    cost = {p: data.draw(st.floats(0.1, 10), label=p) for p in programs}
    some = data.draw(
        st.lists(
            st.builds(candidate, st.sampled_from("xyz"), st.sets(st.sampled_from(programs), min_size=1), st.booleans()),
            min_size=1,
            max_size=8,
        )
    )
    each = [0.25] * len(some)
    budget = data.draw(st.floats(1, 40))
    chosen = affordable(some, cost, each, budget)

    def seconds(which):
        return sum(cost[p] for p in set().union(*(some[i].programs for i in which))) + 0.25 * len(which)

    assert len(set(chosen)) == len(chosen) >= 1
    if len(chosen) > 1:
        assert seconds(chosen) <= budget + 1e-9
    assert all(seconds([*chosen, i]) > budget - 1e-9 for i in range(len(some)) if i not in chosen)
