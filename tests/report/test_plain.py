"""Formulas as text for a terminal: readable, and saying the same."""

import re
import unicodedata

import pytest

from jaxdyn.report.plain import formula, plain


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        ("x^2", "x²"),
        ("x_k", "xₖ"),
        (r"x_n=x_0(1-\eta a)^n", "xₙ = x₀(1 − ηa)ⁿ"),
        (r"\frac{a+b}{c}", "(a + b)/c"),
        (r"\frac{a}{b+c}", "a/(b + c)"),
        (r"\frac{a}{bc}", "a/(bc)"),
        (r"\frac1q\ln(1+q)", "(1/q) ln(1 + q)"),
        (r"\ln\frac ab", "ln(a/b)"),
        (r"-\frac ab+1", "−a/b + 1"),
        (r"x/\frac ab", "x/(a/b)"),
        (r"\frac{\frac ab}{c}", "(a/b)/c"),
        (r"\left(\frac{a}{b}\right)^2", "(a/b)²"),
        (r"\tfrac12H\nabla L", "½H∇L"),
        (r"\sqrt{x}", "√(x)"),
        (r"\sqrt[3]{x+1}", "³√(x + 1)"),
        (r"\|W\|^2", "‖W‖²"),
        (r"\|W\|_F^2", "‖W‖²_F"),
        (r"\eta_Z\Gamma", "η_Z Γ"),
        (r"e^{-at}", "e⁻ᵃᵗ"),
        (r"e^{a/b}", "e^(a/b)"),
        (r"x_{p,-k}", "x_(p,−k)"),
        (r"{x^2}^3", "(x²)³"),
        (r"{a+b}^2", "(a + b)²"),
        (r"\sum_{k\ne0}\frac{a_k}2", "∑_(k≠0) aₖ/2"),
        (r"\tilde Y_k", "Ỹₖ"),
        (r"\dot v = -v", "v̇ = −v"),
        (r"\overline{ab}", "(ab)‾"),
        (r"W^\top W^* z'_k", "WᵀW*zₖ′"),
        (r"10^{-3}2", "10⁻³ 2"),
        (r"a \bmod p, \sin^2x", "a mod p, sin² x"),
        (r"x_{\text{if }a}", "x_(if a)"),
        (r"\binom{n}{k}p^k", "(n over k)pᵏ"),
        (r"{n+1 \choose k}", "(n + 1 over k)"),
    ],
)
def test_formulas(latex, text):
    assert formula(latex) == unicodedata.normalize("NFC", text)


def test_text_around_formulas_is_kept_and_failures_show_their_source():
    assert plain(r"From `x_0` for \$5: $x^2$, $$y_1$$.") == "From x_0 for $5: x², y₁."
    assert plain(r"Odd: $\nosuchmacro{x}$") == r"Odd: \nosuchmacro{x}"
    assert plain(r"No $\cancel{x}$") == r"No \cancel{x}", "not x, which would be the opposite"


@pytest.mark.slow
def test_every_text_of_the_suite_can_be_read_in_a_terminal():
    from jaxdyn.engine.catalogue.registry import catalogue

    for entry in catalogue():
        for text in (entry["statement"], entry["source"], *entry["controls"], *entry["rivals"]):
            shown = plain(text)
            assert not re.search(r"[\\$]|</?m[a-z]+\b", shown), (entry["id"], shown)
            if text.count("(") == text.count(")"):
                assert shown.count("(") == shown.count(")"), (entry["id"], shown)
            assert not re.search(r"(^|[\s(])[\u0300-\u036f\u20d7]", shown), (entry["id"], "an accent without its letter")
            assert len(re.findall(r"[˜˙ˆ¯]", shown)) == 0, (entry["id"], shown)


def test_fractions_of_the_suite_keep_their_grouping():
    """A fraction that stands beside a factor, above a power or under a function is in parentheses, as is a sum in it."""
    assert plain(r"$\frac{r}{2\tau}\sum_k v_k^2$") == "(r/(2τ)) ∑ₖ vₖ²"
    assert plain(r"$\frac{a+b}{c+d}e^x$") == "((a + b)/(c + d))eˣ"
    assert plain(r"$\int\frac{a}{b}\,dx$") == "∫ (a/b) dx"
