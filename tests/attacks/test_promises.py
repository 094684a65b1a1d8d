"""Words that promise much, and the same words where they promise nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxdyn.attacks.promises import promises, without_math

PROMISED = {
    "All networks generalise.": ["all networks"],
    "The loss falls in every run.": ["every run"],
    "It is the same for any activation.": ["any activation"],
    "Attention ends at the largest margin": ["largest"],
    "A construction has the largest margin": ["largest"],
    "A cache holds a set of the largest possible sum.": ["largest"],
    "The gradient is largest before the end.": ["largest"],
    "Near tokens are attended to first": ["first"],
    "The rank first falls and then rises.": ["first"],
    "It never falls, and always rises.": ["never", "always"],
    "Only the order of tokens survives": ["only", "order"],
    "Attention is in the order of the frequencies $P_l$.": ["order"],
    "The bound has the right order: it falls.": ["order"],
    "Weights grow in proportion to $z$.": ["in proportion"],
    "Rates are as the law says": ["as the law says"],
    "Rates are as the Hessian of the loss at the limit says.": ["as the hessian of the loss at the limit says"],
    "It grows if and only if $a > 2$.": ["only"],
    "Zero start helps most when pairs are scarce": ["most"],
    "In most runs it rises.": ["most runs"],
    "The loss is its minimum.": ["minimum"],
    "They fit the targets exactly.": ["exactly"],
    "It keeps the best set.": ["best"],
    "For all recorded times it is so.": ["all recorded times"],
    "If it is small, every run ends well.": ["every run"],
    "With few pairs, as $a = 0.5$ is small, no run is lost. All end well.": ["all end"],
}
HARMLESS = [
    "Do all networks generalise in every run?",
    "If all keys are evicted, the output changes.",
    "Where the first layer is largest, and every unit is active, it holds.",
    "Let every token have a score, and only one be the largest.",
    "Networks that never generalise count with their epochs.",
    "The loss over all pairs falls, and that of all tokens too.",
    "Shares among all names, and from all others.",
    "It does not need all of them.",
    "There is no decay at all.",
    "It holds without any training.",
    "With decay, with noise at every step, and with both, it ends well.",
    "No search is a proof for all weights.",
    "The sharpness is the curvature along the largest eigenvector, at the smallest rate.",
    "$d$ is the largest number of edges.",
    "A cache holds the first tokens and four first ones.",
    "It converges at first order, with order 2 in the step, on a group order.",
    "At first it is above 1%.",
    "It takes at least one step and at most two.",
    "The most frequent token leads.",
    "It takes a shortest path, by least squares.",
    "An identity for all pairs: the energy is a sum.",
    "It equals encoding the window anew for every token.",
    "It is a maximum of the energy.",
]


@pytest.mark.parametrize("text", PROMISED)
def test_promises_are_found(text):
    assert [one.phrase for one in promises(text)] == PROMISED[text]


@pytest.mark.parametrize("text", HARMLESS)
def test_the_same_words_in_other_places_promise_nothing(text):
    assert [one.phrase for one in promises(text)] == []


def test_formulas_are_no_words():
    text = "The rate $\\mathrm{all\\ any}$ is $x$."
    assert promises(text) == [] and len(without_math(text)) == len(text)


@given(st.text("abc $.,;:?!()allfirstmost" + "§", max_size=60))
def test_any_text_can_be_asked(text):
    for one in promises(text):
        assert text[one.start : one.end].lower() == one.word
