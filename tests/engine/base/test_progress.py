"""Progress of long work: shown on a terminal, silent elsewhere."""

import contextlib
import io

import pytest

from jaxdyn.engine.base import progress as module
from jaxdyn.engine.base.progress import Progress

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


def test_no_line_where_nothing_is_expected(capsys, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.0)
    with Progress("a sweep") as progress:
        count(progress)
    assert capsys.readouterr() == ("", "")


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
