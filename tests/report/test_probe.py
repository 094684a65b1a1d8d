"""The page of a probe."""

import re
from html.parser import HTMLParser

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.models import probe as probing
from jaxdyn.report import probe as pages
from tests.models.instruments import plain
from tests.models.toys import refuses, toy

NUMBERS = np.arange(400) % 11


@pytest.fixture
def results(monkeypatch):
    monkeypatch.setattr(probing, "INSTRUMENTS", {"first": toy("first"), "second": refuses("second")})
    return jd.probe(plain.model(), NUMBERS, 400), jd.probe([plain.model(), plain.model()], NUMBERS, 400)


class Balance(HTMLParser):
    """Counts opening and closing tags."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "img", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_whole_and_loads_nothing(results):
    for result in results:
        page = pages.page(result)
        reader = Balance()
        reader.feed(page)
        assert reader.open == [] and "default-src &#39;none&#39;" in page and "<script" not in page
        assert not re.search(r'(src|href)="(?!#|https://arxiv\.org/abs/)', page)


def test_what_it_shows(results):
    page = pages.page(results[0])
    assert (
        page.count("<svg") == 1 and "Tokens have a mean of <math" in page and '<a href="https://arxiv.org/abs/2309.17453">' in page
    )
    assert "<td>toys</td>" in page and "this model" in page and '<p class="note">Nothing here can be measured.</p>' in page
    assert pages.page(results[1]).count("<svg") == 2


def test_the_same_probe_gives_the_same_figures(results):
    figures = [re.findall(r"<svg.*?</svg>", pages.page(results[0]), re.S) for _ in range(2)]
    assert figures[0] == figures[1]


def test_it_says_what_made_it(results, monkeypatch):
    page = pages.page(results[0])
    assert f"JAX {jax.__version__}" in page and not pages.changes(page) and pages.changes("<p>") is None
    monkeypatch.setattr(pages.origin, "modules_hash", lambda modules: "another")
    assert str(pages.changes(page)) == "the code of the instruments changed"


def test_traces_along_training(results):
    drawn = pages.traces(results[1], 0)
    assert drawn["mean token"].dims == ("step", "piece") and drawn["first tokens"].sizes["layer"] == 2
    assert drawn["mean token"].step.values.tolist() == [0, 1] and pages.traces(results[1], 1) == {}
