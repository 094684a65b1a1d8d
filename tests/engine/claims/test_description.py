"""The set-up in words, with values of fields in their places."""

import pytest

import jaxdyn as jd
from jaxdyn.engine.claims.description import tested as in_words
from jaxdyn.engine.claims.description import values_text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.1], "0.1"),
        ([0.1, 1.0, 10.0], "0.1, 1 and 10"),
        ([1000, 20000], "1,000 and 20,000"),
        ([2**k for k in range(12)], "1 to 2,048 (12 values)"),
        ([3, 1, 2, 6, 5, 4], "1 to 6 (6 values)"),
        ([1, 2, 3, 4, 5], "1, 2, 3, 4 and 5"),
        (list("abcdef"), "a, b, c, d, e and f"),
        ([True], "yes"),
        ([False, True], "no and yes"),
        ([None, 3], "none and 3"),
        ([(1, 2), (3,)], "1:2 and 3"),
        ([1e-9], "1e-09"),
    ],
)
def test_values_in_words(values, words):
    assert values_text(values) == words


def test_fields_and_seeds_take_their_places(claim, toys):
    made = claim(
        tested=r"Size {size}, rates {rate}, steps $\frac{1}{20}$ of {lr}, {optimizer}, {noisy}, {weights}; {seeds} seeds, {x}."
    )
    words = r"Size 3, rates 0.5 and 1, steps $\frac{1}{20}$ of 0.01 and 0.02, gd, no, 1 and 2; 4 seeds, {x}."
    assert in_words(made, made.quick, 4) == words
    swept = made.quick.replace(rate=[0.1 * k for k in range(1, 8)], size=2048)
    assert in_words(made, swept, 4096).startswith("Size 2,048, rates 0.1 to 0.7 (7 values), steps")
    assert in_words(made, swept, 4096).endswith("; 4,096 seeds, {x}.")


def test_nothing_was_written(claim):
    made = claim()
    assert made.tested is None and in_words(made, made.quick, 4) is None


def test_a_study_says_it_for_its_claims_and_results_carry_it(toys):
    study = jd.Study(trial=toys.decay, quick=toys.GRID, source="", evidence="algebra", bounds="derived", tested="{seeds} starts.")
    parts = {"title": "A law", "statement": "", "judge": toys.close, "controls": toys.OFF, "form": "derived"}
    shared, own = study.claim(id="toy.a", **parts), study.claim(id="toy.b", tested="Descent at {lr}.", **parts)
    assert (shared.tested, own.tested) == ("{seeds} starts.", "Descent at {lr}.")
    entries = [v.to_json() for v in jd.verify_many([shared, own], seeds=2)]
    assert [e["tested"] for e in entries] == ["2 starts.", "Descent at 0.01 and 0.02."]


@pytest.mark.parametrize("wrong", [3, ["a"], b"a"])
def test_it_is_a_text(claim, wrong):
    with pytest.raises(jd.UsageError, match="tested=.* is not allowed: it is a text or None"):
        claim(tested=wrong)
