"""The parts of ``jaxdyn explore`` that know no page: knobs, runs, what a page is told; and the widget of a notebook."""

import dataclasses
import json
import re
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.claims.ranges import HOLDS, Range
from jaxdyn.engine.verification.result import Result
from jaxdyn.errors import UsageError
from jaxdyn.explorer import notebook, runs
from jaxdyn.explorer.knobs import knobs, stops, text_of, worlds
from jaxdyn.explorer.runs import Checked, Explorer, Live, Move, Picture, Replaced
from jaxdyn.explorer.view import Talk, introduction, message, move_of
from jaxdyn.report.drawing import INSTEAD
from tests.engine import toys

DECAY = next(claim for claim in toys.CLAIMS if claim.id == "toy.decay")


@pytest.fixture(scope="module")
def explorer():
    return Explorer(DECAY)


@pytest.fixture(scope="module")
def own(explorer):
    """What is told of the claim's own runs, and their outcome."""
    told = []
    return told, explorer.run(Move(), told.append)


# knobs


def test_every_field_has_a_knob_of_its_kind():
    by_name = {knob.name: knob for knob in knobs(DECAY)}
    assert list(by_name)[-1] == "seeds" and by_name.keys() - {"seeds"} == set(toys.Toy.hints)
    assert by_name["optimizer"].options == ("gd", "sign") and by_name["optimizer"].swept
    assert by_name["kind"].options == ("plain", "fancy") and not by_name["kind"].swept
    assert by_name["noisy"].options == ("false", "true") and by_name["weights"].own == "1:2" and by_name["depth"].own == "none"
    assert by_name["size"].stops is None and by_name["size"].group == "fixed"
    assert by_name["lr"].group == "main" and by_name["lr"].own == text_of(list(DECAY.quick.axes["lr"]))
    assert json.loads(json.dumps(by_name["lr"].to_json()))["stops"]["log"] is True


def test_a_world_is_a_control_that_is_a_setting():
    fields = {name: dict(c.breach) for name, c in DECAY.controls.items() if not callable(c.breach)}
    assert fields and {name: set(world) for name, world in worlds(DECAY).items()} == {n: set(f) for n, f in fields.items()}


@jd.setting
class Nested:
    """Values that text cannot name."""

    sizes: tuple[tuple[int, ...], ...] = ((1, 2), (3,))
    names: tuple[str, ...] = ("a", "b")
    rate: jd.Swept = 1.0


def nested(s, key):
    return jd.observables(predicted={"x": s.rate}, measured={"x": s.rate * len(s.sizes) * len(s.names) / 4})


NESTED = jd.Claim(
    id="toy.nested",
    title="A number is itself",
    statement="A number is itself.",
    source="nobody's",
    evidence="algebra",
    trial=nested,
    bounds="derived: rounding",
    quick=jd.grid(Nested),
    seeds=1,
    judge=lambda ds: [jd.at_most("error", abs(ds.measured_x - ds.predicted_x), 1e-9)],
    controls={
        "other sizes": {"sizes": ((2, 1), (3,))},
        "flat": {"sizes": ((1,), (2,), (3,))},
        "a name": {"names": ("a:b",)},
        "three": {"names": ("a", "b", "c")},
    },
)


def test_what_text_cannot_name_has_neither_a_world_nor_a_knob():
    """Texts of these values would be read as others."""
    assert worlds(NESTED) == {"flat": {"sizes": "1:2:3"}, "three": {"names": "a:b:c"}}
    assert {knob.name for knob in knobs(NESTED)} == {"names", "rate", "seeds"}
    with pytest.raises(UsageError, match="a page has a knob for values that can be typed"):
        notebook.start_of(Explorer(NESTED), None, {"names": ("a:b",)})


def test_a_map_of_the_atlas_gives_a_knob_its_range():
    mapped = stops([1.0], Range(()), (0.25, 4.0, True))
    assert mapped.values[0] == "0.25" and mapped.values[-1] == "4" and mapped.log and "1" in mapped.values


def test_a_slider_of_counts_has_whole_stops():
    found = stops([2.0, 8.0], Range((("at_least", 1),), whole=True))
    assert (
        found.values[:5] == ("1", "2", "3", "4", "5")
        and found.values[-1] == "80"
        and all(text.isdecimal() for text in found.values)
    )


@pytest.mark.parametrize(
    ("known", "bounds", "log", "first", "last"),
    [
        ([0.1, 0.2], {"above": 0}, True, "0.01", "2"),
        ([0.5], {"at_least": 0, "at_most": 1}, False, "0", "1"),
        ([0.001], {"above": 0, "below": 1}, True, "0.0001", None),
        ([0.0, 0.1], {"at_least": 0}, True, "0", "1"),
        ([0.0, 0.1], {}, False, "0", "0.2"),
        ([-1.0, 1.0], {}, False, "-3", "3"),
        ([0.0], {}, False, "0", "1"),
        ([8.0, 64.0], {"at_least": 5}, True, "5", "640"),
    ],
)
def test_scale_and_ends_of_a_slider(known, bounds, log, first, last):
    found = stops(known, Range(tuple(bounds.items())))
    assert (found.log, found.values[0]) == (log, first)
    assert last is None or found.values[-1] == last
    if "below" in bounds:
        assert float(found.values[-1]) < bounds["below"]


@given(
    known=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5),
    low=st.sampled_from([None, "above", "at_least"]),
    signed=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_stops_increase_and_are_allowed_and_hold_what_is_known(known, low, signed):
    known = [-v for v in known] if signed and low is None else known
    bounds = Range(((low, 0.0),) if low else ())
    found = stops(known, bounds)
    numbers = [float(text) for text in found.values]
    assert all(a < b for a, b in zip(numbers, numbers[1:], strict=False)) and len(numbers) > 50
    assert all(HOLDS[word](number, bound) for number in numbers for word, bound in bounds.bounds)
    assert set(known) <= set(numbers)
    assert found.log is (not signed or low is not None)


def test_the_texts_of_knobs_are_what_set_takes():
    for knob in knobs(DECAY):
        if knob.name != "seeds":
            values = knob.own.split(",")
            grid = DECAY.quick.replace(**{knob.name: values if len(values) > 1 else values[0]})
            assert grid == DECAY.quick
        for text in knob.stops.values[:: max(1, len(knob.stops.values) // 3)] if knob.stops else ():
            if knob.name != "rate" or float(text) > 0:
                DECAY.quick.replace(**{knob.name: text})


# runs


def test_the_verdict_is_that_of_verify(explorer, own):
    told, found = own
    truth = jd.verify(DECAY)
    assert found.verdict == truth.verdict == "upheld" and found.task.command == "jaxdyn verify toy.decay"
    assert [dataclasses.astuple(c) for c in found.checks] == [dataclasses.astuple(c) for c in truth.checks]
    (picture,) = [one for one in told if isinstance(one, Picture)]
    assert told[0] == "compiling 1 program; under a minute expected"
    (cell,) = [one.cell for one in told if isinstance(one, Checked)]
    assert picture.figure.startswith("<svg") and cell["verdict"] == "upheld"


def test_moving_a_swept_knob_compiles_nothing(explorer, own):
    count, figures = len(toys.TRACES), []
    for lr in ("0.02", "0.03", "0.011,0.013"):
        told = []
        found = explorer.run(Move({"lr": lr}), told.append)
        figures += [one.figure for one in told if isinstance(one, Picture)]
        assert not any("compiling" in one for one in told if isinstance(one, str))
        assert found.task.command == f"jaxdyn verify toy.decay --set lr={lr}"
        assert set(found.data.lr.values.tolist()) == set(map(float, lr.split(",")))
        assert found.compile_seconds < 0.05 and found.verdict != "error"
    assert len(toys.TRACES) == count + 3 and len(set(figures)) == 3, "each move sees whether the program is the same"


def test_a_wrong_value_is_a_sentence(explorer):
    for move, sentence in (
        (Move({"lr": "x"}), "lr='x' is not allowed: lr is a finite number"),
        (Move({"rate": "-1"}), "rate=-1.0 is not allowed: rate is positive"),
        (Move(seeds="0"), "--seeds 0 is not allowed"),
        (Move({"nothing": "1"}), "Toy has no field 'nothing'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            explorer.run(move, print)


def test_what_is_replaced_ends_before_the_verdict(explorer, own):
    def watch():
        if any(isinstance(one, Picture) for one in told):
            raise Replaced

    told = []
    with pytest.raises(Replaced):
        explorer.run(Move({"lr": "0.02"}), told.append, watch)
    assert isinstance(told[-1], Picture)


def test_the_last_of_many_moves_is_run_and_most_others_are_not(explorer, own):
    ended, outcomes = threading.Event(), {}

    def tell(number, what):
        if isinstance(what, Result | UsageError):
            outcomes[number] = what
            if number == 29:
                ended.set()

    live = Live(explorer, tell)
    for number in range(30):
        live.move(number, Move({"lr": f"{0.01 + number / 1000:.3f}"}))
    assert ended.wait(60)
    live.close()
    assert float(outcomes[29].data.lr[0]) == 0.039 and len(outcomes) < 15


# what a page is told


def test_a_page_is_told_of_picture_and_verdict_in_the_words_of_the_report(explorer, own):
    told, found = own
    words = [message(explorer, one, 0.5) for one in (*told, found)]
    json.dumps(words)
    picture, checks, verdict = (next(m for m in words if m["kind"] == kind) for kind in ("picture", "checks", "verdict"))
    assert "16\u00a0runs" in picture["caption"] and '<table class="checks">' in checks["checks"]
    badge = r'<span class="badge v-upheld" title="[^"]+\.">upheld</span>'
    assert re.fullmatch(badge, verdict["badge"]) and re.fullmatch(
        r"(, 0\.\d+ s of them compiling)?; \d+\u00a0runs", verdict["work"]
    )
    assert all(name in verdict["checks"] for name in (*DECAY.controls, "Controls"))
    hello = introduction(explorer, Move({"lr": "0.1"}, seeds="3"))
    assert hello["start"] == {"values": {"lr": "0.1"}, "seeds": "3", "plain": False} and hello["knobs"][-1]["name"] == "seeds"
    json.dumps(hello)


def test_an_error_of_a_trial_is_shown_as_in_the_terminal():
    broken = dataclasses.replace(DECAY, id="toy.broken", trial=toys.broken)
    explorer = Explorer(broken)
    found = message(explorer, explorer.run(Move(), lambda _: None), 0.1)
    assert found["verdict"] == "error" and found["terminal"].splitlines()[0].split()[:3] == ["✗", broken.id, "error"]
    assert "repeat: jaxdyn verify" in found["terminal"] and found["checks"] == ""


def test_a_page_cannot_say_nonsense():
    assert move_of({"values": {"lr": " 0.1 "}, "seeds": " 3 ", "plain": True}) == Move({"lr": "0.1"}, "3", plain=True)
    assert move_of({"values": {}, "seeds": None}) == Move()
    for odd in (None, [], {"lr": 1}, {"lr": "1" * 5000}, {"lr": " "}):
        with pytest.raises(UsageError):
            move_of({"values": odd})
    for odd in ({"seeds": 3}, {"seeds": "3" * 5000}, {"plain": "true"}, {"plain": None}):
        with pytest.raises(UsageError):
            move_of({"values": {}, **odd})


NAMES = st.sampled_from(["plain", "number", "kind", "values", "start", "lr"])


@given(st.dictionaries(NAMES, st.sampled_from(["0.5", "true"])), st.none() | st.just("3"), st.booleans())
def test_fields_of_any_name_are_apart_from_the_pages_own_options(fields, seeds, plain):
    content = {"kind": "move", "number": 1, "values": fields, "seeds": seeds, "plain": plain}
    assert move_of(content) == Move(fields, seeds, plain)


@jd.setting
class Bent:
    """A field has the name of an option of the page."""

    a: jd.Swept = 1.0
    plain: jd.Swept = 0.0


def bent(s, key):
    x = s.a + 0 * jax.random.uniform(key, dtype=jnp.float64)
    return jd.observables(predicted={"x": x}, measured={"x": x * (1 + s.plain)})


BENT = jd.Claim(
    id="toy.bent",
    title="t",
    statement="s",
    source="x",
    evidence="algebra",
    bounds="derived",
    trial=bent,
    judge=lambda ds: [jd.at_most("error", jd.relative_error(ds, "x"), 0.01)],
    seeds=1,
    quick=jd.grid(Bent, a=[1.0, 2.0]),
    controls={"bent": {"plain": 0.5}},
    rivals={"half": jd.off(predicted_x=0.5)},
)


def test_a_field_that_is_called_as_an_option_is_run():
    said, ended = [], threading.Event()

    def send(content):
        said.append(content)
        if content["kind"] in ("verdict", "refused"):
            ended.set()

    talk = Talk(Explorer(BENT), send, Move())
    talk.heard({"kind": "move", "number": 1, "values": {"plain": "0.5"}})
    assert ended.wait(60) and said[-1]["verdict"] == "refuted"
    talk.close()


# in a notebook


def test_a_notebook_shows_the_same_front_end(own):
    pytest.importorskip("anywidget")
    widget, sent, ended = jd.explore(DECAY, lr=[0.01, 0.02], seeds=2), [], threading.Event()

    def send(content, buffers=None):
        sent.append(content)
        if content["kind"] == "verdict":
            ended.set()

    widget.send = send
    assert "export default" in widget._esm and ":host" in widget.style and ":root" not in widget.style
    widget._handle_custom_msg({"kind": "hello"}, [])
    assert sent[0]["start"] == {"values": {"lr": "0.01,0.02"}, "seeds": "2", "plain": False}
    widget._handle_custom_msg({"kind": "move", "number": 1, **sent[0]["start"]}, [])
    assert ended.wait(60) and [m["number"] for m in sent if m["kind"] == "picture"] == [1]
    with pytest.raises(UsageError, match="lr='x' is not allowed"):
        jd.explore(DECAY, lr="x")


def test_without_its_library_a_notebook_is_told_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(UsageError, match=r"jd.explore needs the library anywidget: pip install 'jaxdyn\[explore\]'"):
        jd.explore(DECAY)


def test_texts_of_values():
    assert [text_of(v) for v in (10.0, 1e-10, [0.1, 2.0], (1, 2), True, None, "gd")] == [
        "10", "1e-10", "0.1,2", "1:2", "true", "none", "gd",
    ]  # fmt: skip
    assert float(text_of(1 / 3)) == 1 / 3


def test_a_widget_says_that_another_one_runs():
    """The lock is one for all widgets of a session; a later move replaces the one that waits."""
    told, ended = [], threading.Event()

    class Quick:
        def run(self, move, tell, watch):
            return move

    def tell(number, what):
        told.append((number, what))
        if not isinstance(what, str):
            ended.set()

    live = runs.Live(Quick(), tell)
    with runs.RUNNING:
        live.move(1, "first")
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
        live.move(2, runs.Move({"a": "2"}))
        time.sleep(2 * runs.EVERY)
    assert ended.wait(10)
    live.close()
    assert told[0] == (1, "another widget of this session is running; this one waits until it ends")
    assert told[-1] == (2, runs.Move({"a": "2"})) and runs.RUNNING.acquire(timeout=1)
    runs.RUNNING.release()


def test_a_widget_that_runs_or_waits_can_be_stopped():
    told, begun, outcome = [], threading.Event(), threading.Event()

    class Parts:
        def run(self, move, tell, watch):
            begun.set()
            while True:
                watch()
                time.sleep(0.01)

    def tell(number, what):
        told.append((number, what))
        if not isinstance(what, str):
            outcome.set()

    live = runs.Live(Parts(), tell)
    live.move(1, runs.Move())
    assert begun.wait(10)
    live.stop(0)  # an earlier move
    assert not outcome.wait(0.2)
    live.stop(1)
    assert outcome.wait(10) and told[-1][0] == 1 and isinstance(told[-1][1], runs.Stopped)
    outcome.clear()
    with runs.RUNNING:  # another widget's
        live.move(2, runs.Move())
        live.stop(2)
        assert outcome.wait(10) and told[-1][0] == 2 and isinstance(told[-1][1], runs.Stopped)
    live.close()
    assert runs.RUNNING.acquire(timeout=1)
    runs.RUNNING.release()


@pytest.mark.parametrize(
    ("given_", "values", "seeds"),
    [
        ({"rate": np.float64(0.5), "seeds": range(4, 8)}, {"rate": "0.5"}, "4:8"),
        ({"rate": np.float32(0.1), "seeds": np.arange(3)}, {"rate": "0.10000000149011612"}, "3"),
        ({"rate": np.linspace(0.5, 1, 3), "seeds": 5}, {"rate": "0.5,0.75,1"}, "5"),
        ({"noisy": np.bool_(True), "seeds": "4:8"}, {"noisy": "true"}, "4:8"),
        ({"size": range(1, 3), "weights": (3, 4), "seeds": [1, 2, 3]}, {"size": "1,2", "weights": "3:4"}, "1:4"),
    ],
)
def test_a_widget_takes_what_verify_takes(explorer, given_, values, seeds):
    fields = dict(given_)
    start = notebook.start_of(explorer, fields.pop("seeds"), fields)
    assert (start.values, start.seeds) == (values, seeds)
    assert explorer.task(start).main.grid.cells() == DECAY.grid("quick").replace(**fields).cells()
    with pytest.raises(UsageError, match=r"seeds=\[3, 1, 2\] is not allowed: a page has a knob"):
        notebook.start_of(explorer, [3, 1, 2], {})


def test_a_picture_has_the_caption_of_what_it_shows(explorer, own):
    told, _ = own
    (picture,) = [one for one in told if isinstance(one, Picture)]
    captioned = dataclasses.replace(explorer.claim, caption="A histogram.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer, "claim", captioned)
        assert message(explorer, picture, 0.5)["caption"].startswith("A histogram.")
        failed = message(explorer, dataclasses.replace(picture, figure="The figure could not be drawn: <x>"), 0.5)
        assert failed["caption"] == "" and "&lt;x&gt;" in failed["figure"], "there is nothing to caption"
        lost = dataclasses.replace(picture, diverged=5)
        assert message(explorer, lost, 0.5)["caption"] == "A histogram. 11 of 16\u00a0runs; 5 diverged."
        plain = message(explorer, dataclasses.replace(picture, own=False), 0.5)["caption"]
        assert "histogram" not in plain
        instead = picture.figure.replace('aria-label="', f'aria-label="{INSTEAD}', 1)
        assert "figure shows values" in message(explorer, dataclasses.replace(picture, figure=instead), 0.5)["caption"]


def test_a_picture_counts_the_runs_that_have_values(explorer):
    told = []
    explorer.run(Move({"lr": "1e30"}), told.append)
    (picture,) = [one for one in told if isinstance(one, Picture)]
    caption = message(explorer, picture, 0.5)["caption"]
    assert picture.diverged == 8 and caption.endswith("0 of 8\u00a0runs; 8 diverged.") and "Drawn:" not in caption
