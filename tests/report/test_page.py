"""The report: self-contained, escaped, complete without scripts, and alive in a browser."""

import base64
import copy
import fcntl
import itertools
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import library
from jaxdyn.report import page as report
from jaxdyn.report.claim import is_blunt
from jaxdyn.report.figures import Figures, inflate
from tests.report.handmade import DRAWING, FIGURES, check, claim, reading


@jd.setting
class Known:
    """The setting of a claim that was not run."""

    stepsize: jd.Swept = 0.1
    optimizer: str = "adam"


NASTY = "<script>alert(1)</script> & \"quoted\" 'text'"


@pytest.fixture
def payload():
    claims = [
        claim("joma.invariant"),
        claim("joma.entropy", "toothless"),
        claim("cogo.loss_as_printed", "refuted", "refuted", counterpart="derived", counterpart_checks=[check()]),
        claim("cogo.open", "measured", "measured"),
        claim("cogo.broken", "error", checks=[], controls=[], resolution={"scale": {}, "mix": {}}, message="TypeError: no"),
    ]
    return {"claims": claims, "programs": 3, "seconds": 75.2, "environment": {"python": "3.11", "cores": 2}}


def contract():
    """One claim of every kind that the contract of a verdict knows, with more than one check, control and rival."""
    order = check("order in $\\eta$", 1.02, [0.9, 1.1], worst={"kind": "b"}) | {"interval": [0.97, 1.08]}
    share = check("share of runs that generalise", 0.97, [0.95, None]) | {"interval": [0.951, 0.99]}
    astride = check("slope of the loss", 0.96, [0.95, 1.05], None) | {"interval": [0.9, 1.02], "needed": 480}
    harmless = check("norm stays finite", 3.0, [None, 1e9])
    gate = check("training accuracy", 0.998, [0.99, None], worst={"lr": 0.1, "seed": 3}) | {"gate": True}
    unmet = gate | {"value": 0.42, "passed": False}
    wrong = check(value=0.4, passed=False)
    skew = order | {"value": 1.6, "passed": False}
    adam = {"name": "Adam instead of descent", "rejected": True, "checks": [wrong, skew], "reason": None}
    still = {"name": "nothing moves", "rejected": True, "checks": [wrong, skew], "reason": None}
    uniform = {"name": "attention stays uniform: $b_l = 1/M$", "rejected": True, "checks": [wrong], "reason": None}
    same = {"name": "the first order alone", "rejected": False, "checks": [check(value=3e-9)], "reason": None}
    names = ["relative error", "order in $\\eta$", "share of runs that generalise", "norm stays finite"]
    both = [adam["name"], still["name"], uniform["name"]]
    stated = {"evidence": "network", "assumes": ["overlap < 1", "rate_ratio > 10"], "bounds": "derived", "outside": 3}
    tuned = "tuned on seeds 0:8, confirmed on seeds 4000:4010"
    three = {"controls": [adam], "rivals": [still, uniform]}
    full = {names[0]: both, names[1]: both[:2], names[2]: both[1:]}
    inconclusive = {"resolution": {"scale": {}, "mix": {}}}
    undecided = "undecided: slope of the loss: 0.96 [0.9, 1.02], bound 0.95 to 1.05; about 480 runs would decide"
    return [
        claim("joma.law", checks=[check(), order, share], gates=[gate], teeth=full, **three, **stated),
        claim(
            "joma.row",
            "toothless",
            checks=[check(), order, harmless],
            gates=[gate],
            teeth={names[0]: both, names[1]: both[:2], names[3]: []},
            message="rejects no control and no rival: norm stays finite",
            **three,
            **stated | {"evidence": "flow", "bounds": tuned},
        ),
        claim(
            "joma.column",
            "toothless",
            controls=[adam],
            rivals=[still, same],
            teeth={names[0]: both[:2]},
            message="not rejected by any check: the first order alone",
            evidence="reduced",
        ),
        claim("joma.gate", "inconclusive", gates=[unmet], controls=[], message="gate not met: training accuracy", **inconclusive)
        | stated,
        claim("joma.astride", "inconclusive", checks=[check(), astride], message=undecided, **inconclusive, **three),
        claim(
            "joma.none_inside", "inconclusive", checks=[], controls=[], message="no run lies inside the assumptions (overlap < 1)"
        )
        | {**inconclusive, "assumes": ["overlap < 1"], "outside": 64, "evidence": "flow"},
        claim(
            "joma.open",
            "measured",
            "measured",
            checks=[],
            readings=[reading("slope of the loss", 0.96, [0.9, 1.02])],
            recorded={"slope of the loss": {"value": 0.95, "interval": [0.9, 1.0]}},
            controls=[],
            rivals=[{"name": "no slope", "rejected": True, "readings": [reading("slope of the loss", 0.0, None)]}],
            evidence="numbers",
        ),
        claim("joma.law_as_printed", "refuted", "refuted", printed="eq. (7): $\\dot v = e^{v^2/3}$", controls=[], rivals=[])
        | {"counterpart": "derived", "sibling": "joma.law", "counterpart_checks": [check(), order], **stated},
        claim("joma.identity", evidence="algebra", rivals=[still], controls=[], teeth={names[0]: [still["name"]]}),
        claim("joma.silent"),
    ]


VOID = {"meta", "br", "col", "wbr", "input", "hr", "img", "link"}


class Page(HTMLParser):
    """Collects tags, attributes and text; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        """Note the tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Note a tag that closes itself."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """Must be the innermost open tag."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep text that readers see."""
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)

    @property
    def words(self):
        """All text, blanks of every kind made single spaces."""
        return " ".join(" ".join(self.text).split())

    def all(self, tag, **attrs):
        """Attributes of the tags of this kind (``class_`` for class)."""
        return [a for t, a in self.tags if t == tag and all(a.get(k.rstrip("_")) == v for k, v in attrs.items())]


def test_page_is_well_formed_and_has_all_that_is_known_of_a_claim(payload):
    page = Page(report.page(payload, FIGURES))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert [a["id"] for a in page.all("article")] == [c["id"] for c in payload["claims"]]
    (canvas,) = page.all("div", class_="canvas")  # two claims, one drawing
    assert canvas["style"] == "aspect-ratio:4/2"
    assert inflate(canvas["data-figure"]) == re.sub(r"<defs>.*</defs>", "", DRAWING)
    assert '<path id="DejaVuSans-1" d="M0 0L1 1z"/>' in inflate(page.all("div", id="glyphs")[0]["data-glyphs"])
    assert "Figure: see joma. invariant , drawn from the same runs." in page.words
    assert "Loss against time t . 64\u00a0runs.".replace("\u00a0", " ") in page.words
    for text in (
        "1 upheld, 1 refuted as printed, 1 measured, 2 not as expected",
        "A paper, Theorem 1",
        "Expected upheld, got toothless.",
        "worst run: lr = 0.1, seed 3",
        "TypeError: no",
        "Counterpart: the derived form",
        "jaxdyn verify joma.invariant",
        "64 (8 settings × 8 seeds)",
        "1.5 s compiling, 0.2 s running",
        "1 min 15 s",
    ):
        assert text in page.words, text
    assert "Prediction off by z 0.3 % set – Data with a share of adam 12 %" in page.words
    for field in payload["claims"][0]["settings"]:
        assert field in page.words


def test_page_loads_nothing_and_forbids_it(payload):
    text = report.page(payload, FIGURES)
    page = Page(text)
    links = [(t, a["href"]) for t, a in page.tags if a.get("href", "#")[0] != "#"]
    assert links and all(
        t == "a" and re.fullmatch(r"https://arxiv.org/abs/[\d.v]+", url) for t, url in links
    )  # to follow, not to load
    rest = re.sub(r'<a href="https://arxiv.org/abs/[\d.v]+">|data-(figure|glyphs|common)="[^"]*"', "", text)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", rest)
    assert not [a for _, a in page.tags if "src" in a]
    assert "default-src 'none'" in page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]


def test_everything_that_comes_from_outside_is_escaped(payload):
    name = 'x."><b>&'
    bad = claim(name, NASTY, NASTY, statement=NASTY, source=NASTY, command=NASTY, message=NASTY, scale=NASTY, theory=NASTY)
    bad["settings"] = {NASTY: [NASTY]}
    bad["checks"] = [check(NASTY, worst={NASTY: NASTY}, passed=False)]
    bad["controls"] = [{"name": NASTY, "rejected": False, "reason": NASTY, "checks": [check(NASTY)]}]
    bad["gates"] = [check(NASTY, worst={NASTY: NASTY}) | {"interval": [NASTY, NASTY], "needed": 3}]
    bad |= {"title": NASTY, "tested": NASTY, "readings": [{"name": NASTY, "value": NASTY, "interval": [NASTY, NASTY]}]}
    bad["rivals"] = [{"name": NASTY + "!", "rejected": True, "reason": NASTY, "checks": [check(NASTY, passed=False)]}]
    bad |= {"teeth": {NASTY: [NASTY], NASTY + "?": []}, "assumes": [NASTY], "evidence": NASTY, "bounds": NASTY, "printed": NASTY}
    bad["resolution"] = {"scale": {NASTY: 0.1}, "mix": {NASTY: 0.1}}
    bad |= {"counterpart": NASTY, "counterpart_checks": [check(NASTY)]}
    bad["by"] = {"fields": [NASTY], "cells": [{"at": {NASTY: NASTY}, "verdict": NASTY, "failed": NASTY}]}
    payload["claims"].append(bad)
    payload["environment"] = {NASTY: NASTY}
    page = Page(report.page(payload, {}))
    assert len(page.all("script")) == 2  # the page's own
    assert page.all("article")[-1]["id"] == name
    assert "alert(1)" in page.words


def test_missing_values_and_odd_claims_do_not_break_the_page(payload):
    bare = {"id": "odd.bare", "expected": "upheld", "verdict": "inconclusive"}
    nulls = claim("odd.nulls", "refuted", checks=[check(value=None, bound=None, passed=False), check(bound=[None, 1.0])])
    nulls |= dict.fromkeys(("runs", "diverged", "compile_seconds", "run_seconds", "seeds", "settings", "source", "resolution"))
    page = Page(report.page({"claims": [bare, nulls]}, {}))
    assert len(page.all("article")) == 2
    assert "nan" not in page.words.lower() and "None" not in page.words
    assert "No claims" in Page(report.page({"claims": []}, {})).words


def test_a_form_beyond_print_is_counted_apart_from_misprints():
    forms = [claim(f"a.law_{end}", "refuted", "refuted", counterpart="derived") for end in ("as_printed", "naive", "beyond")]
    words = Page(report.page({"claims": forms}, {})).words
    assert "1 refuted as printed, 2 refuted beyond print" in words
    assert words.count("the form does not hold as printed") == 1 and words.count("a form that nobody printed, or beyond") == 2


def test_headline_when_all_is_as_expected(payload):
    payload["claims"] = payload["claims"][2:4]
    words = Page(report.page(payload, {})).words
    assert "1 refuted as printed, 1 measured" in words and "Every verdict is as expected ." in words
    assert "not as expected" not in words.replace("Formulas known", "")


def test_same_input_gives_the_same_bytes_and_is_left_alone(payload, tmp_path):
    before = copy.deepcopy(payload)
    for name in ("one.html", "folder/two.html"):
        report.write(tmp_path / name, payload, FIGURES)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "folder" / "two.html").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "one.html"]  # no temporary file stays
    assert payload == before


def test_filters_offer_what_is_there(payload):
    page = Page(report.page(payload, {}))
    chips = [a["data-verdict"] for a in page.all("button") if "data-verdict" in a]
    assert chips == ["upheld", "refuted", "toothless", "measured", "error", "differs"]
    assert [a["value"] for a in page.all("option")] == ["", "joma", "cogo"]
    assert "hidden" not in {k for a in page.all("tr") + page.all("article") for k in a}  # without scripts all is visible


def test_map_of_where_a_claim_holds(payload):
    outcomes = {(0.1, 0.5): None, (0.1, 2.0): None, (1.0, 0.5): None, (1.0, 2.0): "order"}
    cells = [
        {"at": {"lr": lr, "eta": eta}, "verdict": "refuted" if failed else "upheld", "failed": failed}
        for (lr, eta), failed in outcomes.items()
    ]
    payload["claims"] = [claim("joma.map", by={"fields": ["lr", "eta"], "cells": cells})]
    text = report.page(payload, {})
    table = Page(re.search(r'<table class="map">.*?</table>', text, re.S)[0])
    assert len(table.all("tr")) == 3 and table.words.count("upheld") == 3 and "order" in table.words


@pytest.mark.parametrize(
    ("scale", "mix", "verdict", "blunt"),
    [
        (0.2, 0.5, "upheld", True),
        (0.2, 0.05, "upheld", False),
        (0.05, None, "upheld", False),
        (None, None, "upheld", True),
        (0.2, 0.2, "measured", False),
    ],
)
def test_a_claim_without_a_resolution_below_ten_per_cent_is_blunt(payload, scale, mix, verdict, blunt):
    found = claim("joma.blunt", verdict, verdict, resolution={"scale": {"z": scale}, "mix": {"adam": mix}})
    assert is_blunt(found) is blunt
    page = Page(report.page({"claims": [found]}, {}))
    assert bool(page.all("abbr", class_="blunt")) is blunt
    assert bool([a for a in page.all("button") if a.get("data-verdict") == "blunt"]) is blunt


def test_open_questions_have_readings_beside_their_record(payload):
    (text,) = re.findall(r'<article class="claim" id="joma.open".*?</article>', report.page({"claims": contract()}, {}), re.S)
    page = Page(text)
    assert "slope of the loss 0.96 0.9 … 1.02 0.95 0.9 … 1" in page.words and "Checks" not in page.words
    assert "told apart" in page.words and not page.all("td", class_="failed")


def test_what_a_verdict_rests_on():
    page = Page(report.page({"claims": contract()}, {}))
    for text in (
        "network : parameters moved by optimizer steps on the loss of a model",
        "overlap < 1, rate_ratio > 10; 3 of 64 runs outside (not judged)",
        "tuned on seeds 0:8, confirmed on seeds 4000:4010",
        "In print eq. (7): v ˙ = e v 2 / 3",
        "and for another theory of the same data (rival)",
        "at least 0.99",
        "0.97 … 1.08",
        "about 480 runs would decide",
        "rejects no control and no rival: norm stays finite",
        "Runs 640",
        "Left out, summed over claims 76 outside",
    ):
        assert text in page.words, text
    text = report.page({"claims": contract()}, {})
    rows = re.findall(r"<tr class=bare>.*?</tr>", re.search(r'id="joma.row".*?</article>', text, re.S)[0], re.S)
    assert len(rows) == 1 and "norm stays finite" in rows[0] and "●" not in rows[0]
    columns = re.findall(r'<th class="[a-z ]*bare">.*?</th>', text, re.S)
    assert len(columns) == 1 and "the first order alone" in columns[0]
    assert page.words.index("Gates") < page.words.index("Checks")


def test_outcomes_have_three_values():
    text = report.page({"claims": contract()}, {})
    assert len(re.findall(r'<td class="undecided">\? undecided', text)) == 1
    assert len(re.findall(r'<td class="undecided">✕ not met', text)) == 1, "a gate that is not met refutes nothing"


def test_one_sided_bounds_are_words():
    bounds = {"at least 0.95": [0.95, None], "at most 2": [None, 2.0], "0.9 … 1.1": [0.9, 1.1]}
    rows = [check(name, value=1.0, bound=bound) for name, bound in bounds.items()]
    page = Page(report.page({"claims": [claim("joma.bounds", checks=rows)]}, {}))
    for words in bounds:
        assert f"{words} ✓ passed 1 {words}" in page.words, words
    open_ended = check(value=1.0, bound=[0.5, None]) | {"interval": [0.75, None]}
    assert "0.75 … ∞" in Page(report.page({"claims": [claim("joma.ends", checks=[open_ended])]}, {})).words


def test_evidence_is_a_column_and_a_filter():
    page = Page(report.page({"claims": contract()}, {}))
    assert [a["data-evidence"] for a in page.all("button") if "data-evidence" in a] == [
        "network",
        "flow",
        "reduced",
        "algebra",
        "numbers",
    ]
    rows = {a["data-claim"]: a["data-evidence"] for a in page.all("tr") if "data-claim" in a}
    assert rows["joma.row"] == "flow" and rows["joma.silent"] == ""
    assert "Evidence" not in [a.get("aria-label") for a in Page(report.page({"claims": [claim("joma.a")]}, {})).all("div")]


def test_the_words_of_the_contract_are_explained(payload):
    glossary = Page(re.search(r'<details class="glossary">.*?</details>', report.page(payload, {}), re.S)[0]).words
    for word in (
        "evidence",
        "assumption",
        "rival",
        "gate",
        "teeth",
        "undecided",
        "outside",
        "reading",
        "look",
        "not current",
        "told apart",
    ):
        assert re.search(rf"(^| ){word} [A-Z]", glossary), word


def test_context_of_claims_and_theories(payload):
    payload["claims"][2] |= {
        "sibling": "cogo.loss",
        "home": "jaxdyn/theories/cogo/potentials/fourier_loss.py",
        "seed_range": "0:8",
        "caption": "Points: $x$",
    }
    payload["environment"] |= {"date": "2026-01-02", "commit": "0123456789abcdef"}
    page = Page(report.page(payload, {"cogo.loss_as_printed": DRAWING}))
    assert {"href": "#cogo.loss"} in page.all("a") and {"href": "https://arxiv.org/abs/2410.01779"} in page.all("a")
    for text in ("2026-01-02, commit 0123456789ab", "Composing global solutions", "Y. Tian", "Points: x . 64 runs.", "0:8"):
        assert text in page.words, text
    assert "jaxdyn/theories/cogo/potentials/fourier_loss.py" in page.words.replace(" ", "")
    assert page.words.index("By theory") < page.words.index("All claims")


def test_claims_of_a_theory_stand_under_their_chapters(payload, monkeypatch):
    about = jd.Theory(title="A theory", topics={"Beginning": ("early",), "End & rest": ("late",)})
    monkeypatch.setattr(library, "theory", lambda prefix: about)
    entries = [claim("joma.law") | {"topic": "late"}, claim("joma.row") | {"topic": "early"}, claim("joma.column")]
    text = report.page({**payload, "claims": entries}, {})
    order = re.findall(r'<h3 class="title">(.*?)</h3>|<article class="claim" id="(.*?)"', text)
    assert [title or name for title, name in order] == ["joma.column", "Beginning", "joma.row", "End &amp; rest", "joma.law"]


def test_a_figure_that_could_not_be_drawn_is_a_sentence(payload):
    words = Page(report.page(payload, {"joma.invariant": "<p>The figure could not be drawn: KeyError: &lt;b&gt;</p>"})).words
    assert "The figure could not be drawn: KeyError: <b>" in words


def test_many_figures_share_what_they_have_in_common():
    drawn = {f"joma.c{i}": f'<svg class="figure" viewBox="0 0 4 {i}"><path d="M{i} 1l{"1 2 " * 900}"/></svg>' for i in range(40)}
    stored = Figures(drawn)
    assert 0 < stored.skip <= 32_000
    assert all(inflate(stored[name].packed, stored.common, stored.skip) == svg for name, svg in drawn.items())
    assert max(len(s.packed) for s in stored.values()) < len(Figures({"one": drawn["joma.c7"]})["one"].packed)
    page = Page(report.page({"claims": [claim(name) for name in drawn]}, drawn))
    (glyphs,) = page.all("div", id="glyphs")
    packed = [a["data-figure"] for a in page.all("div", class_="canvas")]
    assert [inflate(p, glyphs["data-common"], int(glyphs["data-skip"])) for p in packed] == list(drawn.values())


@pytest.mark.slow
def test_a_page_of_350_claims_is_smaller_than_four_megabytes():
    import numpy as np

    draw = np.random.default_rng(0)
    figures = {}
    for i in range(350):  # lines, bands and symbols of the suite's usual size, no two alike
        lines = "".join('<path d="M1 1l' + " ".join(f"{v:.1f}" for v in draw.normal(size=200)) + '"/>' for _ in range(9))
        ticks = "".join(f'<use href="#f1a2b3c4d{k % 9}" x="{v:.1f}" y="218"/>' for k, v in enumerate(draw.uniform(0, 500, 200)))
        figures[f"joma.c{i}"] = f'<svg class="figure" viewBox="0 0 504 252">{lines}{ticks}</svg>'
    sentence = r"Along the flow $\dot{\mathbf w} = -\nabla\mathcal L$ the sum $\sum_k \|\mathbf w_k\|^2 - z$ is kept. "
    control = {"name": "adam", "rejected": True, "checks": [check(passed=False)] * 2, "reason": None}
    rivals = [control | {"name": f"the mechanism switched off, {k}"} for k in range(2)]
    marked = check(worst={"lr": 0.1, "seed": 3}) | {"interval": [0.0, 1e-10]}
    more = {"statement": 2 * sentence, "checks": [marked] * 4, "gates": [marked] * 2, "controls": [control] * 3, "rivals": rivals}
    more["teeth"] = {f"relative error, {k}": [rivals[k % 2]["name"]] for k in range(4)}
    more |= {"evidence": "network", "assumes": ["overlap < 1"], "outside": 3, "bounds": "derived"}
    some = {"gates": [], "printed": sentence}  # every other claim has gates, every other one is a printed form
    more["settings"] = {f"field_{k}": 0.1 * k for k in range(15)}
    whole = {"claims": [claim(name, **more | (some if i % 2 else {})) for i, name in enumerate(figures)], "environment": {}}
    size = len(report.page(whole, figures).encode())
    assert 2_000_000 < size < 4_000_000


# in a browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe""".split()


class Browser:
    """Headless Chromium over its debugging pipe: NUL-separated JSON on file descriptors 3 and 4."""

    def __init__(self, profile):
        theirs_in, self.out = os.pipe()
        self.inn, theirs_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        script = "import os, sys; [os.dup2(int(a), b) for a, b in zip(sys.argv[1:3], (3, 4))]; os.execv(sys.argv[3], sys.argv[3:])"
        start = [sys.executable, "-ISc", script, *map(str, high)]
        command = [*start, CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, pass_fds=high, **quiet)
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.numbers, self.buffer, self.session, self.events = itertools.count(1), b"", {}, []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **params):
        """Call a method of the protocol; events that come meanwhile are kept."""
        message = {"id": next(self.numbers), "method": method, "params": params, **self.session}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != message["id"]:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def receive(self):
        """The next message."""
        while b"\0" not in self.buffer:
            assert select.select([self.inn], [], [], 30)[0], "the browser does not answer"
            assert (data := os.read(self.inn, 1 << 20)), "the browser has ended"
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def js(self, expression):
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, url):
        """Load a page and forget earlier events."""
        self.send("Page.navigate", url="about:blank")
        self.events.clear()
        self.send("Page.navigate", url=url)
        until = time.monotonic() + 30
        while self.js("location.protocol + document.readyState") != "file:complete":
            assert time.monotonic() < until, "the page does not load"
            time.sleep(0.02)

    def complaints(self):
        """Exceptions, console messages and refused loads since the page was opened."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [e for e in self.events if e.get("method") in kinds]

    def close(self):
        """End the browser."""
        self.process.terminate()
        self.process.wait(10)
        os.close(self.inn)
        os.close(self.out)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def url(payload, tmp_path):
    report.write(tmp_path / "index.html", payload, FIGURES)
    return (tmp_path / "index.html").as_uri()


SHOWN = "[...document.querySelectorAll('{}')].filter(e => e.offsetParent !== null).map(e => e.dataset.claim || e.id).join(' ')"
ROWS, CLAIMS = SHOWN.format("tr[data-claim]"), SHOWN.format("article")


def test_browser_shows_what_the_address_says_back_and_forward(browser, url):
    later = "new Promise(done => setTimeout(done, 200))"
    browser.open(url)
    everything = browser.js(ROWS)
    browser.js(f"location.hash = '#q=entropy'; {later}")
    assert browser.js(ROWS) == "joma.entropy"
    browser.js(f"history.back(); {later}")
    assert browser.js(ROWS) == everything and browser.js("location.hash") == ""
    browser.js(f"history.forward(); {later}")
    assert browser.js(ROWS) == "joma.entropy"


def test_browser_filters_by_verdict_theory_and_text(browser, url):
    browser.open(url)
    everything = "joma.invariant joma.entropy cogo.loss_as_printed cogo.open cogo.broken"
    assert browser.js(ROWS) == browser.js(CLAIMS) == everything
    browser.js("document.querySelector('.chip[data-verdict=refuted]').click()")
    assert browser.js(ROWS) == browser.js(CLAIMS) == "cogo.loss_as_printed"
    assert browser.js("location.hash") == "#verdict=refuted"
    assert browser.js("document.querySelector('.shown').textContent") == "1 of 5 claims shown"
    browser.js("document.querySelector('.chip[data-verdict=error]').click()")
    assert browser.js(ROWS) == "cogo.loss_as_printed cogo.broken"
    browser.js("document.querySelector('.filters [type=reset]').click()")
    assert browser.js(ROWS) == everything and browser.js("location.hash") == ""
    typed = "(f => { f.value = 'INVARIANT paper cogo'; f.dispatchEvent(new Event('input', {bubbles: true})) })"
    browser.js(f"{typed}(document.querySelector('input[name=q]'))")
    assert browser.js(ROWS) == "cogo.loss_as_printed cogo.open cogo.broken"
    for text, found in (
        ("ALONG the", everything),
        ('"ALONG  the flow"', everything),
        ('"the along"', ""),
        ('"paper, theorem', everything),
    ):
        browser.js(f"{typed}(document.querySelector('input[name=q]'))".replace("INVARIANT paper cogo", text))
        assert browser.js(ROWS) == found, text
    assert browser.complaints() == []


def test_browser_finds_words_of_settings_opponents_chapters_and_theories(browser, tmp_path, monkeypatch):
    """All words, wherever each of them is; of a claim that was not run, too, whose section shows no settings."""
    about = jd.Theory(title="How grokking begins", topics={"Late features": ("late",)})
    monkeypatch.setattr(library, "theory", lambda name: about)
    settings, rival = {"optimizer": "adam", "lr": [0.1]}, {"name": "momentum alone", "rejected": True, "checks": [], "reason": None}
    claims = [
        claim("toy.one", settings=settings, topic="late", controls=[]),
        claim("toy.two", settings=settings, rivals=[rival], controls=[]),
        claim("toy.three", settings={"optimizer": "gd"}, controls=[], resolution={}),
    ]
    known = jd.Study(trial=lambda s, key: {}, quick=jd.grid(Known), seeds=1, source="a book", evidence="flow", bounds="derived")
    away = known.claim(
        id="toy.away",
        title="Away",
        statement="It is.",
        judge=lambda ds: [],
        controls={"sgd": {"optimizer": "sgd"}},
        rivals={"chance": jd.off({"x": 0.0})},
    )
    monkeypatch.setattr(report.studies, "known_claim", lambda name: away if name == "toy.away" else None)
    others = [{**claims[2], "id": "toy.away", "verdict": "not run", "settings": {}}]
    report.write(tmp_path / "index.html", {"claims": claims, "not_run": others, "environment": {}}, {})
    for sought, ids in (
        ("grokking adam", "toy.one toy.two toy.away"),
        ("late features", "toy.one"),
        ("optimizer momentum", "toy.two"),
        ("chance stepsize", "toy.away"),
        ("grokking sgd", "toy.away"),
        ("grokking muon", ""),
    ):
        browser.open((tmp_path / "index.html").as_uri() + "#q=" + sought.replace(" ", "+"))
        assert browser.js(ROWS) == ids, sought
    assert browser.complaints() == []


def test_browser_honours_links_to_filters_and_to_claims(browser, url):
    browser.open(f"{url}#verdict=differs&theory=joma")
    assert browser.js(ROWS) == browser.js(CLAIMS) == "joma.entropy"
    browser.js("location.hash = '#cogo.open'; new Promise(done => setTimeout(done, 100))")
    assert "cogo.open" in browser.js(CLAIMS).split()  # a link to a hidden claim clears the filters
    for lacking in ("evidence=spells", "theory=none", "verdict=lucky"):  # a link from a page of other claims
        browser.open(f"{url}#{lacking}")
        assert browser.js(ROWS) == "" and browser.js("document.querySelector('.nothing').offsetParent !== null"), lacking
        browser.js("document.querySelector('.chip[data-verdict=refuted]').click()")
        assert browser.js("location.hash") == "#verdict=refuted" and browser.js(ROWS)
    browser.open(f"{url}#q=nothing-like-it")
    assert browser.js(ROWS) == "" and browser.js("document.querySelector('.nothing').offsetParent !== null")
    assert browser.complaints() == []


def test_browser_filters_by_evidence(browser, tmp_path):
    report.write(tmp_path / "index.html", {"claims": contract()}, {})
    browser.open((tmp_path / "index.html").as_uri())
    browser.js("document.querySelector('.chip[data-evidence=flow]').click()")
    assert browser.js(ROWS) == browser.js(CLAIMS) == "joma.row joma.none_inside" and browser.js("location.hash") == "#evidence=flow"
    browser.js("document.querySelector('.chip[data-evidence=reduced]').click()")
    browser.js("document.querySelector('.chip[data-verdict=toothless]').click()")
    assert browser.js(ROWS) == "joma.row joma.column", "within a group any, between groups all"
    assert browser.js("location.hash") == "#verdict=toothless&evidence=flow,reduced"
    browser.open((tmp_path / "index.html").as_uri() + "#verdict=inconclusive&evidence=network")
    assert browser.js(ROWS) == "joma.gate"
    assert browser.complaints() == []


def test_browser_inflates_figures_that_share_their_start(browser, tmp_path):
    drawn = {f"joma.c{i}": f'<svg class="figure" viewBox="0 0 4 2"><title>α {i}</title><path d="M{i} 1"/></svg>' for i in range(20)}
    report.write(tmp_path / "index.html", {"claims": [claim(name) for name in drawn]}, drawn)
    browser.open((tmp_path / "index.html").as_uri())
    browser.js("new Promise(done => setTimeout(done, 1500))")
    titles = "[...document.querySelectorAll('.canvas title')].map(t => t.textContent).join()"
    assert browser.js(titles) == ",".join(f"α {i}" for i in range(20))
    assert browser.js("document.querySelector('.scroll:has(.checks)').ariaLabel") == "The claim joma.c0: Check"
    assert browser.complaints() == []


def test_browser_sorts_and_switches_the_theme(browser, url):
    browser.open(url)
    browser.js("document.querySelector('.claims thead button').click()")
    assert browser.js(ROWS).split() == sorted(browser.js(ROWS).split())
    assert browser.js("document.querySelector('.claims th').ariaSort") == "ascending"
    paper = "getComputedStyle(document.body).backgroundColor"
    browser.js("document.querySelector('#theme').click()")
    light = browser.js(paper)
    browser.js("document.querySelector('#theme').click()")
    assert browser.js("document.documentElement.dataset.theme") == "dark" and browser.js(paper) != light
    browser.js("document.querySelector('#theme').click()")
    assert browser.js("document.querySelector('#theme').textContent") == "Theme: auto"
    assert browser.complaints() == []


def test_browser_at_phone_width_scrolls_tables_not_the_page(browser, url):
    browser.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    browser.open(url)
    assert browser.js("document.documentElement.scrollWidth") == 390
    assert browser.js("(t => t.scrollWidth > t.clientWidth)(document.querySelector('.claims').parentElement)")
    browser.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.slow
def test_browser_typesets_mathematics_and_prints(browser, url):
    browser.open(url)
    assert browser.js("document.querySelector('.statement math').getBoundingClientRect().height") > 8
    font = "getComputedStyle(document.querySelector('.statement math mi')).display"
    assert "math" in browser.js(font) or browser.js(font) == "inline"
    pdf = base64.b64decode(browser.send("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") >= 3
    browser.js("new Promise(done => setTimeout(done, 1000))")
    assert browser.js("document.querySelectorAll('[data-figure]').length") == 0  # all are inflated, without scrolling
    assert browser.complaints() == []


LONG = {"claims": [claim(f"joma.c{i}") for i in range(report.MANY + 1)]}
DRAWN = {c["id"]: f'<svg class="figure" viewBox="0 0 4 2"><title>α {c["id"]}</title><path d="M1 1"/></svg>' for c in LONG["claims"]}


@pytest.mark.slow
def test_a_long_page_stores_checks_and_figures_compressed():
    short = {"claims": LONG["claims"][: report.MANY]}
    long, plain = report.page(LONG, DRAWN), report.page(short, DRAWN)
    assert 'class="checks"' in plain and 'class="checks"' not in long
    page = Page(long)
    (section,) = [a for a in page.all("section") if "data-parts" in a]
    parts = json.loads(inflate(section["data-parts"]))
    assert len(parts) == 3 * len(LONG["claims"]) == len(re.findall(r"data-part[ >]", long))
    assert 'class="checks"' in parts[1] and ">Execution<" in parts[2]
    drawings = json.loads(inflate(page.all("div", id="glyphs")[0]["data-figures"]))
    assert sorted(drawings) == sorted(DRAWN.values())
    assert [drawings[int(a["data-figure"][1:])] for a in page.all("div", class_="canvas")] == list(DRAWN.values())
    assert len(long) < len(plain)


@pytest.mark.slow
def test_browser_unpacks_a_long_page(browser, tmp_path):
    report.write(tmp_path / "index.html", LONG, DRAWN)
    browser.open((tmp_path / "index.html").as_uri())
    browser.js("new Promise(done => setTimeout(done, 2500))")
    assert browser.js("document.querySelectorAll('article .checks').length") >= len(LONG["claims"])
    assert browser.js("document.querySelectorAll('[data-part], [data-parts]').length") == 0
    assert browser.js("document.querySelector('.canvas title').textContent") == "α joma.c0"
    assert browser.js("document.querySelector('.scroll:has(.checks)').tabIndex") == 0
    browser.js(
        "(q => { q.value = 'joma.c7'; q.dispatchEvent(new Event('input', {bubbles: true})); })(document.querySelector('[name=q]'))"
    )
    assert browser.complaints() == []


def test_a_long_page_that_is_opened_with_a_search_finds_words_of_sources(browser, tmp_path):
    """Sources are among the parts that are inserted after the page has loaded."""
    claims = [claim(f"toy.c{i}", source="arXiv:0000.00000, the zebra's section" if i % 3 else "elsewhere") for i in range(120)]
    (tmp_path / "long.html").write_text(report.page({"claims": claims, "environment": {}}, {}), encoding="utf-8")
    browser.open((tmp_path / "long.html").as_uri() + "#q=zebra")
    until = time.monotonic() + 10
    while len(browser.js(ROWS).split()) != 80 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(browser.js(ROWS).split()) == 80 and "80 of 120 claims shown" in browser.js(
        "document.querySelector('.shown').textContent"
    )


def test_what_is_judged_value_by_value_has_no_expected_verdict():
    cells = [
        {"at": {"lr": lr}, "verdict": verdict, "failed": ""}
        for lr, verdict in ((0.1, "upheld"), (0.2, "refuted"), (0.3, "refuted"))
    ]
    html = report.page({"claims": [claim("toy.law", "refuted", by={"fields": ["lr"], "cells": cells})], "environment": {}}, {})
    assert ">1 judged value by value" in html and "3 cells: 1 upheld, 2 refuted." in html
    assert "Here refuted; at its own settings and seeds, the claim is expected to be upheld." in html
    assert "ot as expected" not in html.split("<script")[0] and "beyond print</abbr>" not in html
    failed = report.page({"claims": [claim("toy.law", "error", by={"fields": ["lr"], "cells": []})], "environment": {}}, {})
    assert "1 not" in failed and "Expected upheld, got error." in failed
