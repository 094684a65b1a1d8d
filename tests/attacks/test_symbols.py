"""Symbols that a statement does not define, and those that it does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxdyn.attacks.symbols import undefined

DEFINED = [
    r"The rate $\eta$ multiplies the matrices $A, B$ and $C_1$.",
    r"With $K = 2q$ nodes, where $q$ is the width, $r = \sqrt{K q}$.",
    r"K of n vertices are known, so that $K/n^2$ is small.",
    r"The strength $u$ obeys $\dot u = 2u(s - u)$ with the singular value $s$.",
    r"For $x \sim N(0, I)$ and $p \ge 1$ it is $E[x^p]$.",
    r"The sum $\sum_k k^2$ is $O(n^3)$ for n terms, and $\int_0^1 \delta^2\,d\delta = 1/3$.",
    r"Under gradient flow it falls as $e^{-2\pi t}$.",
    r"It is $\lambda \|w\|^2$, $w$ being the weights and $\lambda$ the decay.",
    r"Each query's logits, $1^\top z_m$, are conserved.",
    r"A node with $\sigma = x^2$ learns.",
    r"The variance $\sigma^2$ is small: $\sigma < 1$.",
    r"The signal $\|G_F\|$ rises, and $\|G_F\|/2$ too.",
    r"The function $f(q(x))$ of the codes has the slope $f'$.",
    r"Descent on $L = \|\Sigma - W_2W_1\|^2$ with weights $W_1$, $W_2$ converges.",
    r"With the letters of another claim it is $a^b c^d$.",
    r"Operators such as $\mathrm{tr}\,A$, $\arg A$ and $\ln A$ are known, and A is a matrix.",
    "Nothing of this has a formula.",
]
UNDEFINED = {
    r"In the flow with overlap $K\|E\| < 1$ the logit rises.": ["K", "E"],
    r"A mode of strength $u = ab$ with the imbalance $c = a^2 - b^2$ grows.": ["a", "b"],
    r"The logit $B$ is $\frac1q\ln(1 + q\rho\Gamma)$.": ["q", r"\rho", r"\Gamma"],
    r"It ends at $A W f$, with the inputs $f_i$.": ["A", "W"],
}


@pytest.mark.parametrize("text", DEFINED)
def test_what_a_reader_would_accept_is_defined(text):
    assert undefined(text) == []


@pytest.mark.parametrize("text", UNDEFINED)
def test_letters_from_nowhere_are_found(text):
    assert undefined(text) == UNDEFINED[text]


def test_other_texts_and_fields_define_as_well():
    text = r"The loss falls as $\beta^{-2} p q$."
    assert undefined(text) == [r"\beta", "p", "q"]
    assert undefined(text, "Networks of p nodes", r"Tested with $\beta = 2$.") == []
    assert undefined(text, fields=("beta", "p", "q_max")) == []


@given(st.text("ab$\\{}_^()=,x2 \n", max_size=60))
def test_any_text_can_be_asked(text):
    assert isinstance(undefined(text), list)
