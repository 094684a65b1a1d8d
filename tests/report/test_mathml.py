"""LaTeX of the statements becomes MathML that MathML Core renders; arXiv numbers become links."""

from xml.etree import ElementTree

import pytest

from jaxdyn.report import mathml

FORMULAS = [
    r"\dot u = 2u(\lambda - u)",
    r"\mathbb{E}\|W\|_F^2 \lesssim \tfrac12\operatorname{tr}(A^\top A)",
    r"\norm{x} + \abs{y} \ge \E[z] \coloneqq \argmax_k x_k",
    r"\begin{aligned}a &= b\\ c &= d\end{aligned}",
    r"\bigl\|x\bigr\| \mathrm{rank}(W) \bmod p \pmod{q}",
    r"\mathbf w_k' \mathcal L \mathscr{L} \boldsymbol\mu \mathds{1} \mathsf{T}",
    r"a<b \text{ if } c>d \& e",
]


@pytest.mark.parametrize("latex", FORMULAS)
def test_formulas_become_well_formed_mathml(latex):
    root = ElementTree.fromstring(mathml.to_mathml(latex))
    assert root.tag == "math"
    assert {n.attrib.get("mathvariant") for n in root.iter()} <= {None, "normal"}  # all that MathML Core knows
    assert not any("\\" in (n.text or "") for n in root.iter())


def test_styled_letters_are_unicode_letters():
    text = "".join(ElementTree.fromstring(mathml.to_mathml(r"\mathbf w \boldsymbol\mu \mathbf 1 \mathbb R \mathds{1}")).itertext())
    assert text == "𝐰𝝁𝟏ℝ𝟙"


def test_bars_over_several_letters_stretch_and_primes_are_marked():
    assert ">‾</mo>" in mathml.to_mathml(r"\overline{ab}") and 'class="prime"' in mathml.to_mathml("z'_k")


def test_arxiv_numbers_are_links_outside_of_formulas():
    out = mathml.typeset("arXiv:2310.00535, Theorem 1; talks on arXiv 2305.16380")
    assert out.count("<a href=") == 2 and '<a href="https://arxiv.org/abs/2310.00535">arXiv:2310.00535</a>, Theorem' in out


@pytest.mark.parametrize(("name", "typeset"), [("p_50, cross", "p_{50}"), ("G_F", "G_{F}"), ("ratio of $r_k$", "r_k")])
def test_short_identifiers_in_names_are_mathematics(name, typeset):
    assert mathml.to_mathml(typeset) in mathml.name(name)


def test_long_identifiers_in_names_stay_words():
    assert mathml.name("train_loss of <w>") == "train_loss of &lt;w&gt;"


def test_text_around_formulas_is_escaped_and_failures_show_their_source():
    out = mathml.typeset(r"a < b, `c<d`, $x<y$, \$5, $\nosuchmacro{x}$ & $$\sum_i x_i$$")
    assert out.startswith("a &lt; b, <code>c&lt;d</code>, <math>")
    assert ", $5, " in out and '<code class="tex">\\nosuchmacro{x}</code> &amp; <math display="block">' in out
    with pytest.raises(ValueError, match="nosuchmacro"):
        mathml.to_mathml(r"\nosuchmacro{x}")
    with pytest.raises(ValueError, match="cannot typeset"):
        mathml.to_mathml(r"\left( x")


@pytest.mark.slow
def test_every_claim_of_the_suite_can_be_typeset():
    from jaxdyn.engine.catalogue.registry import catalogue as known

    for entry in known():
        for text in (entry["statement"], entry["source"], *entry["controls"]):
            assert 'class="tex"' not in mathml.typeset(text), (entry["id"], text)
