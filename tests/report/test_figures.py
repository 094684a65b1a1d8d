"""Figures in a browser: what is under the pointer, and the large view, with mouse, keyboard and fingers."""

import re
import time

import numpy as np
import pytest
import xarray as xr

from jaxdyn import plotting
from jaxdyn.report import page as report
from tests.report.handmade import DRAWING, claim
from tests.report.test_page import CHROMIUM, Browser

LR, SEEDS = [0.1, 0.2, 0.4], [3, 4, 5]
MIDDLE = "(r => [(r.left + r.right) / 2, (r.top + r.bottom) / 2])(u.getBoundingClientRect())"
SYMBOLS = f"[...document.querySelectorAll('{{}} [data-series] use')].map(u => {MIDDLE})"
SAID = "[...document.querySelectorAll('.pointed p')].map(p => p.textContent)"
WORDS = f"document.querySelector('.pointed')?.hidden === false ? {SAID} : []"
OPEN = "document.querySelector('dialog.large')?.open === true"
WIDTH = "Number(document.querySelector('dialog svg').getAttribute('viewBox').split(' ')[2])"
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")
CODES = {"Escape": 27, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39}


class Hand(Browser):
    """Moves the mouse, presses keys, touches the screen."""

    def mouse(self, kind, at, **more):
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=at[0], y=at[1], **more)

    def point(self, at):
        """Move the mouse there from elsewhere, and again while nothing is said: a page under load may not be laid out yet."""
        for _ in range(100):
            self.mouse("Moved", (5, 5))
            self.mouse("Moved", at)
            if words := self.js(WORDS):
                return words
            time.sleep(0.05)
        raise AssertionError(f"nothing is said at {at}")

    def click(self, at, count=1):
        for kind in ("Pressed", "Released"):
            self.mouse(kind, at, button="left", clickCount=count)

    def key(self, name):
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            known = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=CODES.get(name, 0), **known)

    def touch(self, kind, *places):
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        self.send("Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=points)

    def until(self, expression):
        """Wait until something is true in the page."""
        again = "++n > 200 ? lost(n) : setTimeout(look, 20)"
        code = f"new Promise((done, lost) => {{ let n = 0; (function look() {{ {expression} ? done(true) : {again} }})() }})"
        assert self.js(code)


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    hand = Hand(tmp_path_factory.mktemp("profile"))
    yield hand
    hand.close()


@pytest.fixture(scope="module")
def ds():
    dims = ("lr", "seed")
    predicted = np.exp(np.random.default_rng(0).permutation(9).reshape(3, 3) / 2 + 0.123456)  # far apart on logarithmic axes
    data = {"predicted_z": (dims, predicted), "measured_z": (dims, predicted * 1.2345), "status": (dims, np.zeros((3, 3), int))}
    return xr.Dataset(data, {"lr": LR, "seed": SEEDS})


@pytest.fixture(scope="module")
def url(ds, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "index.html"
    figures = {"joma.scatter": plotting.render(None, ds), "joma.bare": DRAWING}
    report.write(file, {"claims": [claim(name) for name in figures]}, figures)
    return file.as_uri()


def visit(hand, url):
    hand.open(url)
    hand.until("document.querySelectorAll('.canvas svg').length === 2")
    hand.js("document.querySelector('.canvas').scrollIntoView({block: 'center'})")
    hand.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def check_words(words, ds):
    """The words of one point are of one run, whose values they give to a tenth: half a tenth of the drawing's units is 0.02."""
    name, run, x, y = words
    lr, seed = run.split(", ")
    one = ds.sel(lr=float(lr.removeprefix("lr = ")), seed=int(seed.removeprefix("seed ")))
    assert name == "runs" and x.startswith("predicted = ") and y.startswith("measured = ")
    assert float(x.removeprefix("predicted = ")) == pytest.approx(float(one.predicted_z), abs=0.07)
    assert float(y.removeprefix("measured = ")) == pytest.approx(float(one.measured_z), abs=0.07)
    return run


def test_the_last_digit_said_is_right_to_one(hand, tmp_path):
    """Along both kinds of axes and whatever the ends: a number that is said is at most one of its last digits away."""
    rng, at = np.random.default_rng(3), {}

    def draw(_, fig):
        for i, ax in enumerate(np.ravel(fig.subplots(2, 2))):
            x, y = np.exp(rng.normal(size=(2, 12)) * (0.05, 1, 6, 0.002)[i]) * (1e-7, 1.0, 1e3, 40.0)[i]
            ax.plot(x, y, "o", label=f"panel {i}")
            ax.set(xscale="log" if i != 1 else "linear", yscale="log" if i > 1 else "linear", xlabel="x", ylabel="y")
            at[f"panel {i}"] = x, y

    file = tmp_path / "index.html"
    report.write(
        file,
        {"claims": [claim("joma.scatter"), claim("joma.bare")]},
        {"joma.scatter": plotting.render(draw, xr.Dataset(), "t"), "joma.bare": DRAWING},
    )
    visit(hand, file.as_uri())
    count = 0
    for place in hand.js(SYMBOLS.format(".canvas")):
        name, *said = hand.point(place)
        for values, word in zip(at[name], said, strict=True):
            number, _, power = (
                re.sub("= 10(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])", "= 1×10", word).partition(" = ")[2].translate(RAISED).partition("×10")
            )
            places = -len(number.partition(".")[2]) or len(number) - len(number.rstrip("0"))
            value, unit = float(f"{number}e{power or 0}"), 10.0 ** (int(power or 0) + places)
            assert np.abs(values - value).min() <= 1.001 * unit, (name, word)
            count += 1
    assert count == 96


def test_each_point_says_its_cell_its_seed_and_its_coordinates(hand, url, ds):
    visit(hand, url)
    found = []
    for x, y in hand.js(SYMBOLS.format(".canvas")):
        found.append(check_words(hand.point((x + 2, y + 2)), ds))
    assert len({*found}) == len(found) == ds.measured_z.size
    hand.mouse("Moved", (5, 5))
    assert hand.js(WORDS) == [] and hand.js("document.querySelector('.pointed-ring')") is None
    assert hand.complaints() == []


def test_a_line_says_where_it_is_and_of_what(hand, url):
    visit(hand, url)
    line = "document.querySelector('.canvas [data-series] > path[style]')"
    place = "p.getPointAtLength(0.8 * p.getTotalLength()).matrixTransform(p.getScreenCTM())"
    at = f"(p => (q => [q.x, q.y])({place}))({line})"
    x, y = hand.js(at)
    name, x, y = hand.point((x + 1, y + 4))
    assert name == "measured = predicted" and float(x.split(" = ")[1]) == pytest.approx(float(y.split(" = ")[1]), abs=0.1)


def test_a_click_opens_a_large_view_that_zooms_moves_and_closes(hand, url, ds):
    visit(hand, url)
    hand.click(hand.js(SYMBOLS.format(".canvas"))[0])
    hand.until(OPEN)
    assert hand.js(WIDTH) == 504
    symbols = hand.js(SYMBOLS.format("dialog"))
    run = check_words(hand.point(symbols[4]), ds)
    assert "predicted = " in hand.js("document.querySelector('.readout').textContent")
    hand.mouse("Wheel", symbols[4], deltaX=0, deltaY=-700)
    hand.until(f"{WIDTH} < 200")
    assert hand.js(SYMBOLS.format("dialog"))[4] == pytest.approx(symbols[4], abs=4)  # which is a pixel's part, enlarged
    assert check_words(hand.js(WORDS), ds) == run
    before = hand.js(SYMBOLS.format("dialog"))[4]
    hand.mouse("Pressed", before, button="left", clickCount=1)
    for k in (10, 20, 30):
        hand.mouse("Moved", (before[0] + k, before[1] + k), button="left")
    hand.mouse("Released", (before[0] + 30, before[1] + 30), button="left", clickCount=1)
    assert hand.js(SYMBOLS.format("dialog"))[4] == pytest.approx([before[0] + 30, before[1] + 30], abs=2)
    for count in (1, 2):
        hand.click((500, 300), count)
    assert hand.js(WIDTH) == 504
    hand.key("Escape")
    hand.until(f"!({OPEN})")
    assert hand.js(WORDS) == [] and hand.complaints() == []


def test_keys_open_the_large_view_and_go_from_point_to_point(hand, url, ds):
    visit(hand, url)
    hand.js("document.querySelector('.enlarge').focus()")
    hand.key("Enter")
    hand.until(OPEN)
    found = []
    for _ in SEEDS:
        hand.key("ArrowRight")
        words = hand.js(WORDS)
        while words[0] != "runs":  # the diagonal comes first where it is drawn first
            hand.key("ArrowDown")
            words = hand.js(WORDS)
        assert hand.js("document.querySelector('.readout').textContent") == ", ".join(words)
        found.append(check_words(words, ds))
    assert found == [f"lr = 0.1, seed {seed}" for seed in SEEDS]
    hand.key("ArrowLeft")
    assert check_words(hand.js(WORDS), ds) == found[1]
    hand.key("+")
    assert hand.js(WIDTH) == pytest.approx(504 / 1.4)
    hand.key("0")
    assert hand.js(WIDTH) == 504
    hand.key("Escape")
    hand.until(f"!({OPEN})")
    assert hand.js("document.activeElement.className") == "enlarge" and hand.complaints() == []


def test_fingers_open_point_and_pinch(hand, url, ds):
    hand.send("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        visit(hand, url)
        hand.touch("Start", hand.js(SYMBOLS.format(".canvas"))[0])
        hand.touch("End")
        hand.until(OPEN)
        x, y = hand.js(SYMBOLS.format("dialog"))[2]
        hand.touch("Start", (x + 5, y))
        hand.touch("End")
        check_words(hand.js(WORDS), ds)
        hand.touch("Start", (300, 300))
        hand.touch("Start", (300, 300), (380, 300))
        for k in range(1, 6):
            hand.touch("Move", (300, 300), (380 + 16 * k, 300))
        hand.touch("End")
        assert hand.js(WIDTH) == pytest.approx(504 / 2, rel=0.15)
    finally:
        hand.send("Emulation.setTouchEmulationEnabled", enabled=False)
    assert hand.complaints() == []


def test_a_drawing_without_metadata_opens_too(hand, url):
    visit(hand, url)
    hand.js("document.querySelectorAll('.enlarge')[1].click()")
    hand.until(OPEN)
    hand.mouse("Moved", (500, 300))
    hand.key("ArrowRight")
    assert hand.js(WORDS) == [] and hand.js(WIDTH) == 4
    assert hand.complaints() == []
