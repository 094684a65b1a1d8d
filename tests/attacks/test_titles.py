"""Titles of measured claims: sentences are found, questions and noun phrases are not accused."""

import pytest

from jaxdyn.attacks.titles import asserting
from jaxdyn.engine.catalogue.registry import catalogue

SENTENCES = {
    "A network trained with codes for a random part writes codes": "writes",
    "Thought 1 leaves more nodes open than thought 2": "leaves",
    "Destroyed images take about as many steps to fit as true ones": "take",
    "With fewer dimensions than tokens, attention ends elsewhere": "ends",
    "Trained thoughts rank nodes": "rank",
    "Equal efficiencies do not say where networks forget": "do",
    "The loss is conserved": "is",
}
PHRASES = [
    "How slowly streams change",
    "From which share of pairs networks generalise",
    "What learned attention does to the gradient's rank",
    "Does training favour the true latents?",
    "At equal numbers of weights, how much do deeper decoders lose?",
    "Perplexity of a small decoder by its alternatives",
    "The share of all attention that the heaviest tokens get",
    "Gradient ranks in small decoders",
    "The cost of attention heads and the return of entropy",
    "Ratio of the ranks, which fall late, of two layers",
]


@pytest.mark.parametrize("title", SENTENCES)
def test_a_title_that_asserts(title):
    assert asserting(title) == SENTENCES[title]


@pytest.mark.parametrize("title", PHRASES)
def test_a_title_that_asks_or_names(title):
    assert asserting(title) is None


def test_questions_of_the_package_are_questions():
    asked = [entry["title"] for entry in catalogue() if entry["expected"] == "measured" and entry["title"].endswith("?")]
    assert len(asked) > 10 and not any(map(asserting, asked))
