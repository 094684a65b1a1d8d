"""The page of a probe."""

import concurrent.futures as cf
import dataclasses
import re
from html import unescape
from html.parser import HTMLParser

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.errors import StoreError
from jaxdyn.report import probe as pages
from tests.instruments import plain
from tests.models.toys import only, refuses, toy

NUMBERS = np.arange(400) % 11


@pytest.fixture
def results(monkeypatch):
    only(monkeypatch, toy("first"), refuses("second"))
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
        assert reader.open == [] and "default-src &#39;none&#39;" in page and page.count("<script") == 1
        assert not re.search(r'(src|href)="(?!#|https://arxiv\.org/abs/)|\b(fetch|import|XMLHttpRequest)\(', page)


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


def text_of(html):
    """The words of a page, without figures."""
    words = re.sub(r"<(style|svg|script).*?</\1>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", words)))


def without(result, number, *places):
    """A series of which an instrument skipped some checkpoints."""
    checkpoints = list(result.checkpoints)
    for place in places:
        outcomes = list(checkpoints[place].outcomes)
        outcomes[number] = outcomes[number]._replace(data=None, skipped="There is no spectrum.")
        checkpoints[place] = dataclasses.replace(checkpoints[place], outcomes=tuple(outcomes))
    return dataclasses.replace(result, checkpoints=tuple(checkpoints))


@pytest.fixture
def four(monkeypatch):
    """A series of four checkpoints with steps."""
    only(monkeypatch, toy("first"))
    return jd.probe([plain.model() for _ in range(4)], NUMBERS, 400, steps=[100, 200, 300, 400])


def test_checkpoints_that_an_instrument_skipped_are_named_and_leave_a_gap(four):
    page = pages.page(without(four, 0, 1, 3))
    text = text_of(page)
    left_out = "step 200 (a model in memory), step 400 (a model in memory)"
    assert f"Left out here: {left_out}. There is no spectrum." in text
    assert "The last checkpoint with data: step 300 (a model in memory)" in text and page.count("<svg") == 2
    assert "Lines are broken where a checkpoint has no value." in text and "mean token, mean" not in text
    drawn = pages.traces(without(four, 0, 1, 3), 0)["mean token"]
    assert drawn.step.values.tolist() == [100, 200, 300, 400]
    assert drawn.isnull().all("piece").values.tolist() == [False, True, False, True]
    assert "broken" not in text_of(pages.page(four)) and "Left out" not in text_of(pages.page(four))


def test_one_checkpoint_with_data_is_shown_and_none_is_said(four):
    page = pages.page(without(four, 0, 1, 2, 3))
    assert page.count("<svg") == 1 and "The last checkpoint with data: step 100 (a model in memory)" in page
    page = pages.page(without(four, 0, 0, 1, 2, 3))
    assert page.count("<svg") == 0 and "step 400 (a model in memory). There is no spectrum." in text_of(page)


def drawn_along(result, number=0):
    figure = Figure()
    pages.along(pages.traces(result, number), figure)
    return figure.axes


def test_figures_along_training_do_not_join_across_a_gap(four):
    left, right = drawn_along(without(four, 0, 1, 3))
    assert np.isnan(left.lines[0].get_ydata()).tolist() == [False, True, False, True]
    assert all(line.get_marker() == "o" for line in (*left.lines, *right.lines))  # a point alone is seen
    bars = left.collections[1].get_segments()
    assert [bar[0][0] for bar in bars] == [100, 300] and all(bar[1][1] > bar[0][1] for bar in bars)
    assert left.get_xlabel() == "training step" and drawn_along(four)[0].collections[1].get_segments() == []


def test_captions_along_training_are_of_what_is_drawn(four):
    text = text_of(pages.page(four))
    assert "mean token: mean over pieces of the text, band: 95% interval over pieces." in text
    assert "first tokens: mean over pieces of the text, one line per layer." in text
    heights = xr.DataArray(np.ones((2, 2)), dims=("step", "period"), coords={"step": [1, 2], "period": [2.0, 2.5]})
    heights = heights.assign_coords(step=("step", [1, 2], {pages.AXIS: "training step"}))
    assert pages.caption_along_training({"power": heights}) == "Across: training step. power: one line per period."
    figure = Figure()
    pages.along({"power": heights}, figure)
    assert figure.axes[0].get_legend_handles_labels()[1] == ["period 2", "period 2.5"]


def test_models_without_steps_have_places(results):
    assert drawn_along(results[1])[0].get_xlabel() == "place in the list of checkpoints"
    text = text_of(pages.page(results[1]))
    assert "Steps" not in text and "2 checkpoints, up to checkpoint 2 (a model in memory)" in text


def test_sections_say_what_was_read(results, four, monkeypatch):
    assert "Read: 4 pieces of 100 tokens." in text_of(pages.page(results[0]))
    checkpoints = list(four.checkpoints)
    for place, (pieces, tokens) in enumerate([(4, 64), (3, 64), (4, 64), (4, 64)]):
        outcome = checkpoints[place].outcomes[0]
        read = outcome.data.assign_attrs(read_pieces=pieces, read_tokens=tokens)
        checkpoints[place] = dataclasses.replace(checkpoints[place], outcomes=(outcome._replace(data=read),))
    page = pages.page(dataclasses.replace(four, checkpoints=tuple(checkpoints)))
    assert "Read: 3 to 4 pieces, the first 64 tokens each." in text_of(page)
    one = [c.outcomes[0]._replace(data=c.outcomes[0].data.assign_attrs(read_pieces=1)) for c in four.checkpoints]
    single = [dataclasses.replace(c, outcomes=(o,)) for c, o in zip(four.checkpoints, one, strict=True)]
    text = text_of(pages.page(dataclasses.replace(four, checkpoints=tuple(single))))
    assert "Read: 1 piece of 100 tokens. A single piece has no interval, and no band." in text
    assert four.to_json()["checkpoints"][0]["instruments"][0]["read"] == [4, 100]


def test_a_folder_here_has_its_own_name(results, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert "Text mine" in text_of(pages.page(dataclasses.replace(results[0], text=".")))


def test_traces_along_training(results):
    drawn = pages.traces(results[1], 0)
    assert drawn["mean token"].dims == ("step", "piece") and drawn["first tokens"].sizes["layer"] == 2
    assert drawn["mean token"].step.values.tolist() == [1, 2] and pages.traces(results[1], 1) == {}


def test_numbers_and_page_of_a_folder_are_of_one_probe(monkeypatch, tmp_path):
    """The page is drawn while the folder is held; a probe that ends before its page is written leaves those of the last one."""
    only(monkeypatch, toy("first"))
    held = []

    def watched(result, draw=pages.page):
        with cf.ThreadPoolExecutor(1) as other, pytest.raises(StoreError, match="in use by process"):
            other.submit(jd.probe, plain.model(), NUMBERS, 300, out=tmp_path / "out").result()
        held.append(draw(result))
        return held[-1]

    monkeypatch.setattr(pages, "page", watched)
    jd.probe(plain.model(), NUMBERS, 400, out=tmp_path / "out")
    before = [(tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("probe.json", "index.html")]
    assert held == before[1:]

    def stopped(result):
        raise KeyboardInterrupt

    monkeypatch.setattr(pages, "page", stopped)
    with pytest.raises(KeyboardInterrupt):
        jd.probe(plain.model(), NUMBERS, 300, out=tmp_path / "out")
    assert [(tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("probe.json", "index.html")] == before
