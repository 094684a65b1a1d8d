"""What the rest of the engine is built on: JSON, processes, progress, and watching files."""

import contextlib
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import jaxdyn as jd
from jaxdyn.engine.base import progress as module
from jaxdyn.engine.base import streams, watch
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.base.watch import Watch
from jaxdyn.engine.runs import sweep

# JSON has no infinity and no NaN.


def test_numbers_that_are_not_finite_become_null():
    found = finite({"a": [1.0, math.nan, (math.inf, 2)], 3: {"b": -math.inf}, "c": "text", "d": None})
    assert found == {"a": [1.0, None, [None, 2]], "3": {"b": None}, "c": "text", "d": None}
    json.dumps(found, allow_nan=False)


# Processes that are started leave Ctrl-C to their parent, and end with it.

PARENT = """
import multiprocessing, sys, time
from jaxdyn.engine.base.processes import depend_on_parent, without_interrupts

def wait(ready):
    depend_on_parent()
    ready.set()
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    with without_interrupts():
        child = context.Process(target=wait, args=(ready,))
        child.start()
    ready.wait()
    print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def family(tmp_path):
    """A process and the id of one that it has started."""
    (tmp_path / "parent.py").write_text(PARENT, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    yield parent, child
    parent.kill()
    parent.wait()
    parent.stdout.close()


def runs(process):
    """Whether a process is there, and more than the entry that its parent has not read."""
    try:
        os.kill(process, 0)
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system does not list processes in /proc")
def test_an_interrupt_leaves_a_started_process_and_the_end_of_its_parent_ends_it(family):
    parent, child = family
    os.kill(child, signal.SIGINT)
    time.sleep(0.3)
    assert runs(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 30
    while runs(child):
        assert time.monotonic() < end
        time.sleep(0.02)


# Progress of long work: shown on a terminal, silent elsewhere.

FACTS = {"compile_seconds": 2.0, "run_seconds": 0.5}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


@pytest.fixture
def terminal(monkeypatch):
    for name, value in {"TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    return Terminal()


def count(progress):
    """16 of 64 runs were stored; three chunks of 16 follow."""
    progress.start(total=64, done=16)
    for _ in range(3):
        progress.advance(16, FACTS)


def test_runs_are_counted_on_a_terminal(terminal, capsys):
    with contextlib.redirect_stderr(terminal), Progress("a sweep") as progress:
        count(progress)
    text = terminal.getvalue()
    assert "a sweep" in text and "64/64" in text and "compiling 6 s" in text
    assert capsys.readouterr().out == ""


def test_silent_where_there_is_no_terminal(capsys):
    with Progress("a sweep") as progress:
        count(progress)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("first", "said"), [(0.05, ["a sweep: 3 of 8 runs, 0 s so far"]), (60.0, [])])
def test_the_first_line_comes_soon_where_there_is_no_terminal(capsys, monkeypatch, first, said):
    monkeypatch.setattr(module, "FIRST", first)
    with Progress("a sweep") as progress:
        progress.part("a sweep", "runs", 3, 8)
        time.sleep(1.3)
    assert [re.sub(r"\d s so", "0 s so", line) for line in capsys.readouterr().err.splitlines()] == said


def test_what_takes_long_counts_its_seconds_on_a_terminal_and_is_said_once_elsewhere(capsys, monkeypatch):
    monkeypatch.setattr(streams, "SILENT", 0.05)
    terminal = Terminal()
    with contextlib.redirect_stderr(terminal), streams.telling("loading"):
        time.sleep(1.3)
    assert terminal.getvalue().startswith("loading …\rloading … 1 s") and terminal.getvalue().endswith("\r\x1b[K")
    with streams.telling("loading"):
        time.sleep(0.3)
    assert capsys.readouterr() == ("", "loading …\n")
    monkeypatch.setattr(streams, "SILENT", 5.0)
    with streams.telling("loading"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_line_a_minute_where_there_is_no_terminal(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with Progress("a sweep") as progress:
        progress.start(total=8, done=0)
        progress.expect(400.0)
        for seconds in (30, 45, 10, 65):
            now[0] += seconds
            progress.advance(1, FACTS | {"expected_seconds": 50.0})
    assert capsys.readouterr().err.splitlines() == ["25% done, about 4 min left", "50% done, about 2 min left"]


def test_no_share_is_told_where_nothing_is_expected(capsys, monkeypatch):
    now = iter(range(0, 100_000, 100))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    with Progress("a sweep") as progress:
        count(progress)
    assert capsys.readouterr() == ("", "")


def test_a_silent_minute_is_broken_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.2)
    with Progress("refereeing") as progress:
        time.sleep(0.3)
        progress.part("refereeing", "claims", 0, 3)
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "refereeing: 0 s so far" and 2 <= len(lines) <= 4
    assert lines[-1] in ("refereeing: 0 of 3 claims, 1 s so far", "refereeing: 0 of 3 claims, 0 s so far")


def test_lines_are_printed_above_the_bar_and_without_one(terminal, capsys):
    with contextlib.redirect_stderr(terminal), Progress("a sweep") as progress:
        progress.start(total=2, done=0)
        progress.say(" ✓ toy.decay [bold] upheld")
    assert "✓ toy.decay [bold] upheld\n" in terminal.getvalue().replace("\r", "")
    with Progress("a sweep") as progress:
        progress.say(" ✓ toy.decay [bold] upheld")
    assert capsys.readouterr().err == " ✓ toy.decay [bold] upheld\n"


def test_an_interrupt_puts_the_cursor_back(terminal):
    with contextlib.redirect_stderr(terminal), pytest.raises(KeyboardInterrupt), Progress("a sweep") as progress:
        progress.start(total=2, done=0)
        raise KeyboardInterrupt
    text = terminal.getvalue()
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0


# Programs that take long are named, once and again after twice the time; quick ones are not.


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
