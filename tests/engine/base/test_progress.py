"""Progress: a line a minute without a terminal, a bar only of work that lasts, and what is done meanwhile on a terminal."""

import io
import sys
import time

import pytest

from jaxdyn.engine.base import progress, streams
from jaxdyn.engine.base.progress import Delayed, Progress


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        """It is."""
        return True


@pytest.fixture
def lines(monkeypatch):
    """What is said where there is no terminal; a minute passes at every look at the clock."""
    said, now = [], [0.0]

    def later():
        now[0] += 61
        return now[0]

    monkeypatch.setattr(progress.time, "monotonic", later)
    monkeypatch.setattr(Progress, "say", lambda self, text: said.append(text))
    return said


def test_without_a_bar_a_line_a_minute_says_how_far_it_is(lines):
    with Progress("work", enabled=False) as bar:
        bar.start(4, 0)
        bar.expect(8.0)
        bar.advance(1, {"expected_seconds": 2.0, "compile_seconds": 0.0})
        bar.advance(2, {"expected_seconds": 4.0, "compile_seconds": 0.0})
        bar.advance(1, {"expected_seconds": 2.0, "compile_seconds": 0.0})
    assert [line.partition(",")[0] for line in lines] == ["25% done", "75% done", "runs done"] and lines[-1] == "runs done, judging"


def test_work_that_ends_soon_shows_no_bar(monkeypatch):
    started = []
    monkeypatch.setattr(progress, "SOON", 0.2)
    for seconds in (0.0, 0.5):
        with Delayed("work") as bar:
            monkeypatch.setattr(bar._bar, "start", lambda: started.append(True))
            bar._timer.function = bar._bar.start
            time.sleep(seconds)
        assert len(started) == (1 if seconds else 0)
    time.sleep(0.3)
    assert len(started) == 1, "no bar begins after the end"


def test_a_terminal_is_told_what_is_done_and_cleared(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(RuntimeError), streams.telling("loading JAX"):
        assert terminal.getvalue() == "loading JAX …"
        raise RuntimeError
    assert terminal.getvalue() == "loading JAX …\r\x1b[K"
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with streams.telling("loading JAX"):
        pass
    assert sys.stderr.getvalue() == ""


def test_a_bar_counts_only_what_has_parts(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with Progress("writing", enabled=True) as bar:
        shown = [column(bar._bar.tasks[0]) for column in bar._bar.columns[-2:]]
        assert [str(one) for one in shown] == ["", "0:00:00"], "no 0/? runs, and the time since it began"
        bar.start(2000, 1)
        assert str(bar._bar.columns[-2](bar._bar.tasks[0])) == "1/2,000 runs  "
