"""The set-up in words, with values of fields in their places."""

import math
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.claims.description import digits_between, digits_of_field, field_texts, outside, span_text, texts, values_text
from jaxdyn.engine.claims.description import tested as in_words
from jaxdyn.report.plain import plain


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
        ([10005.001, 10004.999], "10005.001 and 10004.999"),
        ([(0.0099996, 0.0100004), (0.5,)], "0.0099996:0.0100004 and 0.5"),
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


@jd.setting
class Symbols:
    """Fields with the names of letters in formulas."""

    n: jd.Swept = 10.0
    d: int = 2048
    eta: jd.Swept = 1e-9
    c: jd.Swept = -5.0
    sizes: tuple[int, ...] = ()
    mode: str = "a_b"
    R: bool = True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"$\mathbb{R}^{d}$, $\frac{1}{n}$, $x_{n}$, $2^{n}$", None),
        (r"$\frac {1} {n}$, $\frac{\sqrt{2}} {n}$, $x_ {n}$, $x^ {n}$, $\sqrt {n}$, $\sqrt[3] {n}$, $\text {n}$", None),
        (r"$\hat{d}$, $\sqrt[3]{n}$, $f(x){n}$, $a{n}$, $2{n}$, $\begin{array}{c} a \end{array}$, $\binom{n} {d}$", None),
        (r"$\mathcal{O}{n}$, $x'{n}$, $\{n\}$, $\widehat {c}$, $\mathrm {d}t$, $$\sum_{n}^{d} x$$", None),
        (r"$n = {n}$, $n={n}$, $({n}, {n})$, $[{n},{n}]$, $n \le {n}$", r"$n = 10$, $n=10$, $(10, 10)$, $[10,10]$, $n \le 10$"),
        (r"${n}$, $${n}$$, $a+{n}$, $a\,{n}$, $a/{n}$, $a ≤{n}$", r"$10$, $$10$$, $a+10$, $a\,10$, $a/10$, $a ≤10$"),
        (r"$10^{{n}}$, $\frac{ {n} }{n}$, $\frac12 {n}$", r"$10^{10}$, $\frac{ 10 }{n}$, $\frac12 \cdot 10$"),
        (r"$d = {d}$ of $2 {n}$, $\frac{1}{2} {n}$, ${n} {d}$", r"$d = 2048$ of $2 \cdot 10$, $\frac{1}{2} 10$, $10 \cdot 2048$"),
        (r"${n}2$, ${n} x$, ${n}^2$", r"$10\cdot 2$, $10 x$, $10^2$"),
        (r"$\eta = {eta}$, $c = {c}$, ${c}^2$", r"$\eta = 10^{-9}$, $c = -5$, $\left(-5\right)^2$"),
        (r"$m = {mode}$, $r = {R}$, $s = {seeds}$", r"$m = \text{a\_b}$, $r = \text{yes}$, $s = 4096$"),
        (r"{d}{n}, x_{n}, \mathbb{R}, `${d}$`, \\$5{n} and {n}\\$, {sizes}", r"2,04810, x_10, \mathbb"),
    ],
)
def test_braces_in_a_formula_belong_to_latex_unless_they_stand_alone(claim, text, words):
    made = types.SimpleNamespace(tested=text)
    found = in_words(made, jd.grid(Symbols), 4096)
    assert found.startswith(words) if text.endswith("{sizes}") else found == (words or text)


def test_several_values_in_a_formula(claim):
    made = types.SimpleNamespace(tested=r"$n = {n}$ and {n}")
    assert in_words(made, jd.grid(Symbols, n=[1.0, 2500.0]), 4) == r"$n = 1\text{ and }2500$ and 1 and 2500"
    many = in_words(made, jd.grid(Symbols, n=[2.0**k for k in range(12)]), 4)
    assert many.startswith(r"$n = 1\text{ to }2048\text{ (12 values)}$")
    assert "√" not in plain(many) and plain(many).startswith("n = 1 to 2048 (12 values) and 1 to 2048")


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


# digits

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
CLOSE = st.tuples(NUMBERS.filter(lambda x: abs(x) < 1e300), st.integers(1, 12)).map(
    lambda pair: [pair[0], pair[0] * (1 + 10.0 ** -pair[1])]
)


@given(st.one_of(st.lists(NUMBERS, min_size=1), CLOSE))
def test_what_differs_looks_different(values):
    for shown in (texts(values), field_texts(values)):
        assert len(set(shown)) == len(set(values))
    fewer = digits_between(values) - 1
    assert fewer < 4 or len({f"{v + 0.0:.{fewer}g}" for v in values}) < len(set(values))


@given(st.decimals(-1000, 1000, places=6))
def test_a_number_of_few_digits_is_shown_as_written(value):
    assert float(field_texts([float(value)])[0]) == float(value)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.0099996, 0.0100004], ["0.0099996", "0.0100004"]),
        ([10005.001, 10004.999], ["10005.001", "10004.999"]),
        ([0.1, 1.0, 10.0], ["0.1", "1", "10"]),
        ([0.021544346900318832, 1e6], ["0.0215443", "1e+06"]),
        ([2**60, 2**60 + 1, "gd", None, True], [str(2**60), str(2**60 + 1), "gd", "None", "True"]),
        ([math.nan, math.inf, 0.5], ["nan", "inf", "0.5"]),
        ([], []),
    ],
)
def test_values_of_a_field(values, shown):
    assert field_texts(values) == shown


def test_values_that_are_measured_have_four_digits():
    assert texts([0.123456, 2.0]) == ["0.1235", "2"] and texts([0.12345, 0.12346]) == ["0.12345", "0.12346"]
    assert digits_of_field([0.123456789012345]) == 6


def test_a_stated_domain_of_one_value_is_an_equation():
    assert span_text("lr", 0.5, 2.0) == "lr from 0.5 to 2" and span_text("ratio", 1.0, 1.0) == "ratio = 1"


def test_values_outside_the_stated_domain_are_named():
    claim = types.SimpleNamespace(holds={"rate": (0.5, 2.0), "size": (3, 5)})
    base = types.SimpleNamespace(rate=1.0, size=3)
    where = "outside the domain for which the claim is stated"
    cases = {
        "": {},
        f"rate = 0.1 and 4 {where}": {"rate": (0.1, 0.5, 2.0, 4.0)},
        f"rate = 4; size = 1,000 {where}": {"rate": (4.0,), "size": (1000,)},
    }
    for sentence, axes in cases.items():
        assert outside(claim, types.SimpleNamespace(axes=axes, base=base)) == sentence
