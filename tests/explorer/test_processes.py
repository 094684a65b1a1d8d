"""Runs that do not end are ended with their process: the page, and every other page, goes on."""

import os
import signal
import threading
import time

import h5py
import pytest

import jaxdyn as jd
from jaxdyn.explorer.processes import Recipe, Relay, Workers, sources
from jaxdyn.explorer.runs import Explorer, Move, one_claim

CLAIMS = '''
"""Claims whose trial or judge may not end."""

import time

import jax
import jaxdyn as jd


@jd.setting
class Walk:
    """A walk to 1 in steps of a given length."""

    step: jd.Swept = 0.5
    patience: jd.Swept = 0.0


def walk(s, key):
    place = jax.lax.while_loop(lambda x: x < 1, lambda x: x + s.step, 0.0 * s.step)
    return jd.observables(
        predicted={"end": jd.named(1.0 + 0 * place, "")}, measured={"end": place}, recorded={"patience": s.patience + 0 * place}
    )


def judge(ds):
    while float(ds.patience.max()) > 0:
        pass
    time.sleep(-float(ds.patience.max()))
    return [jd.at_most("distance from 1", jd.relative_error(ds, "end"), 1e-9)]


CLAIMS = [
    jd.Claim(
        id="walk.ends",
        title="A walk ends",
        statement="A walk in steps of 1/2 ends at 1.",
        source="a test",
        trial=walk,
        judge=judge,
        quick=jd.grid(Walk),
        controls={"other step": {"step": 0.4}},
        rivals={"nothing": jd.swap(predicted_end=0.0)},
        evidence="algebra",
        bounds="derived",
        plot=None,
    )
]
'''
BETWEEN = 60  # seconds, on a busy machine


class Page:
    """What one page was sent, and its relay."""

    def __init__(self, explorer, workers, limit=300.0):
        self.sent, self.number, self.changed = [], 0, threading.Condition()
        self.relay = Relay(explorer, self.send, Move(), workers, limit)

    def send(self, content):
        with self.changed:
            self.sent.append(content)
            self.changed.notify()

    def move(self, **values):
        self.number += 1
        self.relay.heard({"kind": "move", "number": self.number, "values": values})
        return self.number

    def wait(self, number, *kinds):
        """The first message of one of these kinds about a move."""

        def found():
            return [m for m in self.sent if m.get("number") == number and m["kind"] in kinds]

        with self.changed:
            assert self.changed.wait_for(found, BETWEEN), [(m["kind"], m.get("number"), m.get("text")) for m in self.sent]
            return found()[0]


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    file = tmp_path_factory.mktemp("explorer") / "walks.py"
    file.write_text(CLAIMS, encoding="utf-8")
    return Explorer(one_claim("walk.ends", [file]), load=[file])


@pytest.fixture(scope="module")
def workers(explorer):
    workers = Workers(Recipe.of(explorer, Move()))
    yield workers
    workers.close()


@pytest.fixture
def page(explorer, workers):
    page = Page(explorer, workers)
    yield page
    page.relay.close()


def test_runs_elsewhere_give_the_verdict_of_verify(explorer, page):
    page.relay.heard({"kind": "hello"})
    assert page.sent[0]["kind"] == "claim" and page.sent[0]["id"] == "walk.ends"
    verdict = page.wait(page.move(), "verdict", "refused")
    assert verdict["verdict"] == jd.verify(explorer.claim).verdict == "upheld"
    assert [m["kind"] for m in page.sent[1:] if m["kind"] != "progress"] == ["picture", "checks", "verdict"]
    refused = page.wait(page.move(step="x"), "verdict", "refused")
    assert "step='x' is not allowed" in refused["text"]


@pytest.mark.parametrize(
    ("endless", "before"), [({"step": "0"}, "progress"), ({"patience": "1"}, "picture")], ids=["program", "judge"]
)
def test_a_run_that_does_not_end_gives_way_to_a_newer_move(page, endless, before):
    page.wait(page.move(), "verdict")
    stuck = page.move(**endless)
    page.wait(stuck, before)
    time.sleep(3.0)  # the program is traced again, and begins
    said = page.wait(again := page.move(step="0.25"), "progress")
    assert said["text"] == "the run before did not stop and was ended"
    assert page.wait(again, "verdict", "refused")["verdict"] == "upheld"
    assert not [m for m in page.sent if m.get("number") == stuck and m["kind"] == "verdict"]


@pytest.fixture
def taken(workers, monkeypatch):
    """The processes that pages take."""
    taken = []
    monkeypatch.setattr(workers, "take", lambda take=workers.take: taken.append(take()) or taken[-1])
    return taken


@pytest.mark.parametrize(
    ("endless", "before"), [({"step": "0"}, "progress"), ({"patience": "1"}, "picture")], ids=["program", "judge"]
)
def test_a_run_that_does_not_end_is_stopped_with_its_process_and_the_next_one_works(page, taken, endless, before):
    page.wait(page.move(), "verdict")
    stuck = page.move(**endless)
    page.wait(stuck, before)
    time.sleep(2.0)
    began = time.monotonic()
    page.relay.heard({"kind": "stop", "number": stuck})
    assert page.wait(stuck, "stopped", "verdict") == {"kind": "stopped", "number": stuck}
    assert time.monotonic() - began < 5.0
    assert page.wait(page.move(step="0.25"), "verdict", "refused")["verdict"] == "upheld"
    assert taken[-2].process.exitcode == -9 and taken[-1].process.is_alive()
    assert not [m for m in page.sent if m.get("number") == stuck and m["kind"] in ("verdict", "refused")]


def test_a_run_that_stops_between_its_parts_keeps_its_process(explorer, workers, page, taken):
    """Its judge, which sleeps at every call, is called dozens of times."""
    page.wait(page.move(), "verdict")
    slow = page.move(patience="-0.2")
    page.wait(slow, "checks")
    page.relay.heard({"kind": "stop", "number": slow})
    assert page.wait(slow, "stopped", "verdict")["kind"] == "stopped"
    other = Page(explorer, workers)  # in the same process, and its moves have the same numbers
    numbers = [other.move() for _ in range(slow)]
    assert numbers[-1] == slow and other.wait(slow, "verdict", "stopped")["verdict"] == "upheld"
    assert len({worker.process.pid for worker in taken}) == 1
    other.relay.close()


def test_a_stop_for_another_move_ends_nothing(page):
    first = page.move()
    for number in (first - 1, first + 7, None, "1"):
        page.relay.heard({"kind": "stop", "number": number})
    assert page.wait(first, "verdict", "stopped")["kind"] == "verdict"
    page.relay.heard({"kind": "stop", "number": first})  # too late
    assert page.wait(page.move(), "verdict", "stopped")["kind"] == "verdict"


def test_other_pages_go_on_meanwhile(explorer, workers, page):
    page.wait(page.move(step="0"), "progress")
    other = Page(explorer, workers)
    assert other.wait(other.move(), "verdict")["verdict"] == "upheld"
    other.relay.close()


def test_a_run_without_a_word_is_ended_and_the_page_says_so(explorer, workers):
    page = Page(explorer, workers, limit=4.0)
    refused = page.wait(page.move(step="0"), "refused")
    assert refused["text"] == "ended after 4 s without a sign of progress; move a knob to run again"
    page.relay.close()
    after = Page(explorer, workers)
    assert after.wait(after.move(), "verdict", "refused")["kind"] == "verdict"
    after.relay.close()


@pytest.mark.slow
def test_a_process_that_dies_is_named_and_replaced(page, workers, monkeypatch):
    taken = []
    monkeypatch.setattr(workers, "take", lambda take=workers.take: taken.append(take()) or taken[-1])
    page.wait(page.move(step="0"), "progress")
    os.kill(taken[0].process.pid, signal.SIGKILL)
    refused = page.wait(1, "refused")
    assert refused["text"] == "the process of the runs has ended (exit code -9); move a knob to run again"
    assert page.wait(page.move(), "verdict", "refused")["kind"] == "verdict"


@pytest.mark.slow
def test_a_closed_page_and_a_closed_server_leave_no_process(explorer, monkeypatch):
    workers, taken = Workers(Recipe.of(explorer, Move())), []
    monkeypatch.setattr(workers, "take", lambda take=workers.take: taken.append(take()) or taken[-1])
    page = Page(explorer, workers)
    page.wait(page.move(step="0"), "progress")
    page.relay.close()
    taken[0].process.join(BETWEEN)
    assert taken[0].process.exitcode == -9
    spare = workers.take()
    assert spare is not taken[0]
    workers.close()
    spare.process.join(BETWEEN)
    assert spare.process.exitcode is not None


@pytest.mark.slow
def test_claims_that_have_become_unreadable_are_a_sentence(tmp_path):
    file = tmp_path / "gone.py"
    file.write_text(CLAIMS.replace("walk.", "gone."), encoding="utf-8")
    explorer = Explorer(one_claim("gone.ends", [file]), load=[file])
    file.write_text("1 +", encoding="utf-8")
    workers = Workers(Recipe.of(explorer, Move()))
    page = Page(explorer, workers)
    assert "gone.py" in page.wait(page.move(), "refused")["text"]
    page.relay.close()
    workers.close()


def test_a_wrong_value_does_not_make_a_busy_process_idle(explorer, workers, page):
    """The refusal of the second move is not the end of the first: no other page may get that process."""
    page.wait(page.move(), "verdict")
    page.wait(page.move(step="0"), "progress")
    time.sleep(1.0)
    refused = page.wait(page.move(step="1" * 5000), "refused")
    assert refused["text"] == "step= is not allowed with 5,000 characters: the values of a knob have at most 4,000"
    other = Page(explorer, workers)
    assert other.wait(other.move(), "verdict")["verdict"] == "upheld"
    other.relay.close()
    assert not [m for m in other.sent if "did not stop" in m.get("text", "")]
    assert page.wait(page.move(), "verdict", "refused")["kind"] == "verdict"


def test_a_file_that_has_changed_is_not_run(explorer, page):
    """All processes have one version of the claims: the one that the page shows."""
    page.wait(page.move(), "verdict")
    file = explorer.load[0]
    with open(file, "a", encoding="utf-8") as opened:
        opened.write("# changed\n")
    refused = page.wait(page.move(), "verdict", "refused")
    assert refused["text"].endswith("walks.py has changed since this page was started: start jaxdyn explore again")
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(CLAIMS)
    assert page.wait(page.move(), "verdict", "refused")["kind"] == "verdict"


DATA = """
import json, os
from pathlib import Path
import h5py

PLACE = Path(__file__).parent / "data"
with (h5py.File(PLACE, "r") if h5py.is_hdf5(PLACE) else open(PLACE)) as opened:
    LENGTH = float(opened["length"][()] if h5py.is_hdf5(PLACE) else opened.read())
"""
USED = {  # what of the claim rests on the data
    "the trial": CLAIMS.replace("x + s.step,", "x + s.step * LENGTH,"),
    "the judge": CLAIMS.replace('"end"), 1e-9)]', '"end"), LENGTH * 1e-9)]'),
    "the grid": CLAIMS.replace("jd.grid(Walk)", "jd.grid(Walk, step=LENGTH / 2)"),
    "an assumption": CLAIMS.replace("plot=None,", "plot=None, tested=f'in steps of {LENGTH}',"),
}


def data(folder, length, hdf5):
    if not hdf5:
        (folder / "data").write_text(str(length), encoding="utf-8")
        return
    with h5py.File(folder / "data", "w") as file:  # a library in C, of whose reading Python knows nothing
        file["length"] = length


@pytest.mark.slow
@pytest.mark.parametrize(("used", "hdf5"), [("the judge", False), *((used, True) for used in USED)])
def test_pages_do_not_mix_verdicts_on_different_data(tmp_path, used, hdf5):
    data(tmp_path, 1.0, hdf5)
    file = tmp_path / "walks_on_data.py"
    file.write_text(DATA + USED[used].replace("walk.ends", "data.ends"), encoding="utf-8")
    explorer = Explorer(one_claim("data.ends", [file]), load=[file])
    workers = Workers(Recipe.of(explorer, Move()))
    page, other = Page(explorer, workers), Page(explorer, workers)
    assert page.wait(page.move(), "verdict", "refused")["verdict"] == "upheld"
    data(tmp_path, 0.5, hdf5)
    taken = workers.take(), workers.take()  # so that the other page gets a new process
    refused = other.wait(other.move(), "verdict", "refused")
    assert refused["kind"] == "refused" and refused["text"].endswith("since this page was started: start jaxdyn explore again")
    for worker in taken:
        workers.give(worker)
    assert page.wait(page.move(), "verdict", "refused")["text"] == refused["text"]
    for one in (page, other):
        one.relay.close()
    workers.close()


def test_helpers_of_claims_are_among_their_sources(tmp_path):
    (tmp_path / "walks.py").write_text("import walks_helper\n" + CLAIMS, encoding="utf-8")
    (tmp_path / "walks_helper.py").write_text("STEP = 1\n", encoding="utf-8")
    (tmp_path / "other.py").write_text("", encoding="utf-8")
    one_claim("walk.ends", [tmp_path / "walks.py"])
    recipe = Recipe("walk.ends", "quick", (), Move(), sources([str(tmp_path / "walks.py")]))
    assert [os.path.basename(file) for file, _ in recipe.sources] == ["walks.py", "walks_helper.py"] and recipe.changed() is None
    (tmp_path / "walks_helper.py").write_text("STEP = 2\n", encoding="utf-8")
    assert "walks_helper.py has changed" in recipe.changed()
