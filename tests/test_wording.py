"""Counts, durations and places in words."""

import pytest

from jaxdyn.wording import duration, left_out, place, plural


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "under a minute"), (150, "about 2 min"), (3600, "about 60 min"), (8000, "about 2 h")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_words_agree_in_number():
    assert [plural(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_runs_that_are_left_out_are_counted_by_reason():
    assert left_out(16, 10, 1) == "11 of 16 runs not judged: 10 diverged, 1 outside"
    assert left_out(1, 0, 1) == "1 of 1 run not judged: 1 outside" and left_out(5, 0, 0) == ""


def test_a_place_names_its_axes_but_not_those_of_words():
    at = {"seed": 3, "lr": 0.1, "quantity": "purity", "size": "8"}
    assert place(at, "{:.2f}".format) == "seed 3, lr = 0.10, “purity”, size = 8" and place({}) == ""
