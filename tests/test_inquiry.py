"""What judges are asked under: looks and what they spend, and that a question ends where its block ends."""

import threading

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn import stats
from jaxdyn.engine.verdict import decide
from jaxdyn.inquiry import Inquiry, asking, current, look, spent
from tests.engine.handmade import data


@pytest.mark.parametrize(
    ("seeds", "first", "number"),
    [(8, 8, 1), (4, 8, 1), (1, 8, 1), (9, 8, 2), (16, 8, 2), (17, 8, 3), (64, 8, 4), (50, 8, 4), (3, 1, 3)],
)
def test_looks_are_doublings(seeds, first, number):
    assert look(seeds, first) == number


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 100), st.integers(0, 12))
def test_every_doubling_is_one_look_more(first, doublings):
    assert look(first * 2**doublings, first) == 1 + doublings
    assert look(first * 2**doublings + 1, first) == 2 + doublings


def test_all_looks_together_spend_no_more_than_the_whole():
    shares = [spent(k) for k in range(1, 50)]
    assert shares[:3] == [0.5, 0.25, 0.125] and sum(shares) <= 1.0


def test_nothing_is_asked_outside_of_a_verification():
    assert current() == Inquiry(share=1.0, opponent=False, cells=frozenset())
    assert stats.at_look(0.997) == pytest.approx(0.997, abs=1e-15)


def test_questions_nest_and_end_with_their_block():
    with asking(share=0.5):
        with asking(opponent=True, cells=frozenset({"lr"})):
            assert current() == Inquiry(0.5, True, frozenset({"lr"}))
            with asking(share=0.25):
                assert current() == Inquiry(0.25, True, frozenset({"lr"}))
            assert current().share == 0.5
        assert current() == Inquiry(0.5)
        assert stats.at_look(0.99) == pytest.approx(0.995)
    assert current() == Inquiry()


def test_a_question_ends_with_an_exception_as_well():
    for error in (ValueError("no"), KeyboardInterrupt(), jd.Inconclusive("no")):
        with pytest.raises(type(error)), asking(share=0.5), asking(opponent=True):
            raise error
        assert current() == Inquiry()


def test_what_cannot_be_asked_changes_nothing():
    with pytest.raises(TypeError), asking(shares=0.5):
        raise AssertionError("not reached")
    assert current() == Inquiry()


def test_a_judge_that_raises_leaves_no_question_behind(claim_of):
    def raising(ds):
        assert current().share == 0.5 and not current().opponent and current().cells == {"lr"}
        raise RuntimeError("no")

    assert decide(claim_of(raising), data(), {}).message.startswith("RuntimeError: no")
    assert current() == Inquiry()


def test_a_judge_is_told_whose_data_these_are(claim_of):
    asked = []

    def judge(ds):
        asked.append((float(ds.predicted_z.max()), current().opponent, current().share))
        return [jd.at_most("error", jd.relative_error(ds, "z", "entry"), 0.01)]

    decision = decide(claim_of(judge), data(), {})
    assert decision.verdict == "upheld" and asked[0] == (2.0, False, 0.5)
    assert (4.0, True, 0.5) in asked, "the control"
    assert not any(opponent for value, opponent, _ in asked if value not in (2.0, 4.0)), "distorted data are nobody's"


@pytest.fixture
def claim_of():
    """A claim on runs made by hand, of its judge."""

    @jd.setting
    class Nothing:
        """No field is needed."""

        lr: jd.Swept = 0.1

    def make(judge):
        doubled = {"doubled": lambda ds: ds.assign(predicted_z=2 * ds.predicted_z)}
        parts = {"trial": print, "quick": jd.grid(Nothing), "evidence": "algebra", "bounds": "derived", "controls": doubled}
        return jd.Claim(id="toy.made", title="Made by hand", statement="", source="", judge=judge, **parts)

    return make


def test_threads_ask_questions_of_their_own():
    """Two threads in turn: neither sees what the other asks, and a new thread is asked nothing."""
    barrier, seen = threading.Barrier(2, timeout=10), {}

    def run(name, share):
        before = current()
        with asking(share=share):
            barrier.wait()
            inside = current().share, stats.bonferroni_z(1, 0.99)
            barrier.wait()
        barrier.wait()
        seen[name] = before, inside, current()

    with asking(share=0.75):
        threads = [threading.Thread(target=run, args=(name, share)) for name, share in (("a", 0.5), ("b", 0.25))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert current().share == 0.75
    assert seen["a"] == (Inquiry(), (0.5, pytest.approx(2.80703, abs=1e-5)), Inquiry())  # normal quantiles of 1 - 0.01 share / 2
    assert seen["b"] == (Inquiry(), (0.25, pytest.approx(3.02334, abs=1e-5)), Inquiry())


@pytest.mark.parametrize("helper", [stats.bonferroni_z, lambda n, level: stats.bonferroni_t(n, 8, level)])
def test_quantiles_spend_what_a_look_has(helper):
    """A look that has a share of the error asks as if the level were so much closer to 1."""
    for number in (1, 2, 5):
        with asking(share=spent(number)):
            inside = helper(3, 0.997)
        assert inside == pytest.approx(helper(3, 1 - 0.003 * spent(number)), rel=1e-12)


def test_intervals_are_wider_at_later_looks():
    values = xr.DataArray(np.random.default_rng(0).normal(size=16), dims="seed")
    flags, widths = values > 0, {"mean": [], "share": [], "bootstrap": [], "t": []}
    for number in (1, 2, 3):
        with asking(share=spent(number)):
            found = {
                "mean": jd.mean_reading("m", values, over="seed").ends,
                "share": jd.share_reading("s", flags, over="seed").ends,
            }
            found |= {"bootstrap": stats.bootstrap_interval(values.values), "t": stats.mean_interval(values, "seed")[1:]}
            for name, (low, high) in found.items():
                widths[name].append(float(high - low))
    for name, wide in widths.items():
        assert wide[0] < wide[1] < wide[2], name
