"""Programs that take long are named, once and again after twice the time; quick ones are not."""

import time

import jaxdyn as jd
from jaxdyn.engine.base import watch
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.base.watch import Watch
from jaxdyn.engine.runs import sweep


def said_within(seconds, least, expected=0.0, every=None):
    """What is said while something runs for so many seconds; with ``every``, one thing after another finishes."""
    said = []
    with Watch(said.append, least) as observer:
        end = time.monotonic() + seconds
        observer.on(["mine:trial", "mine:trial"], expected)
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, every or left))
            observer.on(["mine:trial"], expected)
    return said


def test_a_program_that_takes_long_is_named():
    said = said_within(1.6, 0.2)
    assert said[0].startswith("still running: mine:trial; 0 s, about 0 s expected (Ctrl-C stops)")
    assert 2 <= len(said) <= 4, "after .2, .4, .8 seconds, not at every look"


def test_what_takes_an_unknown_time_is_named_without_one():
    assert said_within(0.6, 0.2, None)[0].startswith("still running: mine:trial; 0 s (Ctrl-C stops)")


def test_what_takes_as_long_as_expected_or_goes_on_is_not_named():
    assert said_within(0.8, 0.2, expected=1.0) == []
    assert said_within(0.8, 0.4, every=0.1) == []


def test_a_sweep_says_what_it_waits_for(toys, monkeypatch):
    said, run_chunk = [], sweep.run_chunk
    monkeypatch.setattr(watch.Watch.__init__, "__defaults__", (0.2,))
    monkeypatch.setattr(Progress, "say", lambda self, text: said.append(text))
    monkeypatch.setattr(sweep, "run_chunk", lambda chunk: (time.sleep(0.9), run_chunk(chunk))[1])
    monkeypatch.setattr(sweep, "expected", lambda job: 0.01)
    with Progress("toys") as progress:
        jd.sweep(toys.decay, toys.GRID, 2, progress=progress)
    assert said and all(text.startswith("still running: toys:decay; ") for text in said)
