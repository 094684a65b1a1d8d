"""Runs that do not end are ended with their process: the page, and every other page, goes on."""

import os
import signal
import threading
import time

import pytest

import jaxdyn as jd
from jaxdyn.explorer.processes import Recipe, Relay, Workers
from jaxdyn.explorer.runs import Explorer, Move, one_claim

CLAIMS = '''
"""Claims whose trial or judge may not end."""

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
