"""Messages to a page, as JSON: the claim with its knobs, then for every move progress, a picture and a verdict.

Checks, controls, rivals and verdicts are rendered by the report's templates, errors as in the terminal.
"""

from __future__ import annotations

import functools
import html
import re
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import escape

from jaxdyn.engine.verification.result import Result
from jaxdyn.errors import UsageError
from jaxdyn.explorer.knobs import knobs, worlds
from jaxdyn.explorer.runs import Checked, Explorer, Live, Move, Picture, Stopped
from jaxdyn.report import checks, page, terminal
from jaxdyn.report.claim import section
from jaxdyn.report.drawing import INSTEAD
from jaxdyn.report.figures import Figures
from jaxdyn.report.formatting import badge, count, duration, runs_drawn
from jaxdyn.report.mathml import typeset

__all__ = ["Talk", "introduction", "message", "move_of", "script", "style", "template"]

Send = Callable[[dict[str, Any]], None]
LONGEST = 4000  # largest number of characters in a knob's value
TEXT = "the values of knobs are text"


def introduction(explorer: Explorer, start: Move) -> dict[str, Any]:
    """The claim, its knobs, and their first positions."""
    claim = explorer.claim
    return {
        "kind": "claim",
        "id": claim.id,
        "title": claim.title,
        "statement": typeset(claim.statement),
        "expected": claim.expected,
        "knobs": [knob.to_json() for knob in knobs(claim, explorer.scale)],
        "worlds": worlds(claim),
        "two_figures": claim.plot is not None,
        "start": {"values": dict(start.values), "seeds": start.seeds, "plain": start.plain},
    }


def message(explorer: Explorer, what: Any, seconds: float) -> dict[str, Any]:
    """A result of :class:`jaxdyn.explorer.runs.Live` as JSON; ``seconds``: time since the move."""
    if isinstance(what, Picture):
        return _picture(explorer, what)
    if isinstance(what, Checked):
        return {"kind": "checks", "checks": _checks(what.cell)}
    if isinstance(what, Result):
        return _verdict(what, seconds)
    if isinstance(what, UsageError):
        return {"kind": "refused", "text": str(what)}
    if isinstance(what, Stopped):
        return {"kind": "stopped"}
    return {"kind": "progress", "text": str(what)}


def _picture(explorer: Explorer, picture: Picture) -> dict[str, Any]:
    """The figure and its caption."""
    claim, request = explorer.claim, picture.task.main
    runs = runs_drawn(len(request.grid.cells()) * len(request.seeds), picture.diverged)
    if not picture.figure.startswith("<svg"):  # why there is none
        return {"kind": "picture", "figure": f'<p class="hint">{escape(picture.figure)}</p>', "caption": ""}
    said = html.unescape(found[1]) if (found := re.search(r'aria-label="([^"]*)"', picture.figure)) else ""
    own = picture.own and not said.startswith(INSTEAD)
    words = (own and claim.caption) or said or "Prediction against measurement"
    caption = f"{typeset(_ended(words))} {runs}."
    return {"kind": "picture", "figure": picture.figure, "caption": caption}


def _checks(cell: Mapping[str, Any]) -> str:
    """Tables of the checks, while the results of controls and rivals are not known yet."""
    given = cell.get("checks", [])
    shown = {
        "gates": [checks.row(c, checks.GATE) for c in given if c.get("gate")],
        "checks": [checks.row(c) for c in given if not c.get("gate") and "bound" in c],
        "readings": [checks.reading(c, {}) for c in given if "bound" not in c],
    }
    return _rendered({**shown, **dict.fromkeys(("past", "counterpart", "fits", "referee", "study", "atlas", "map"))})


def _ended(words: str) -> str:
    words = words.rstrip()
    return words if words[-1:] in ".?!" else words + "."


def _verdict(verified: Result, seconds: float) -> dict[str, Any]:
    """The verdict with its basis, its work, and the command that repeats it. The page itself says how long the move took."""
    entry = {**verified.to_json(), "elsewhere": bool(verified.task.overrides)}
    shown = section(entry, Figures({})) | {"referee": None, "study": None, "atlas": [], "map": None}
    failed = verified.failure is not None
    compiled = min(verified.compile_seconds, seconds)  # of programs that are compiled at once, the sum may be longer
    compiling = f", {duration(compiled)} of them compiling" if compiled > 0.05 else ""
    return {
        "kind": "verdict",
        "verdict": verified.verdict,
        "badge": badge(verified.verdict),
        "note": "" if failed or shown["note"] is None else shown["note"]["text"],
        "terminal": "\n".join(terminal.lines(verified)) if failed else "",
        "checks": "" if failed else _rendered(shown),
        "facts": _facts(shown),
        "work": f"{compiling}; {count(int(entry['runs']), 'run')}",
        "command": verified.task.command,
    }


def _rendered(claim: Mapping[str, Any]) -> str:
    return template("claim_checks.html").render(claim=claim)


def _facts(claim: Mapping[str, Any]) -> str:
    return template("claim_facts.html").render(claim=claim)


@functools.cache
def template(name: str) -> jinja2.Template:
    """A template of the report, loaded once."""
    return page.environment().get_template(name)


@functools.cache
def style(root: str = ":root") -> str:
    """The styles of the report and the explorer; ``root``: selector of the element that defines the colours."""
    own = (files("jaxdyn.explorer") / "explore.css").read_text(encoding="utf-8")
    return (page.asset("report.css") + "\n" + own).replace(":root", root)


def script() -> str:
    """The module of the front end, with the script of figures that it uses."""
    return (files("jaxdyn.explorer") / "explore.js").read_text(encoding="utf-8") + page.asset("figures.js") + "\n"


def move_of(content: Mapping[str, Any]) -> Move:
    """A move from a page's message: ``values`` of fields as text, apart from the page's own ``seeds`` and ``plain``.

    Raises:
        UsageError: the message has another form.
    """
    values, seeds, plain = content.get("values"), content.get("seeds"), content.get("plain", False)
    if not isinstance(values, Mapping) or not isinstance(plain, bool):
        raise UsageError(TEXT)
    fields = {str(name): _text(str(name), text) for name, text in values.items()}
    if empty := [name for name, text in fields.items() if not text]:
        raise UsageError(f"{empty[0]}= is not allowed: a knob needs a value")
    return Move(fields, None if seeds is None else _text("seeds", seeds), plain)


def _text(name: str, text: Any) -> str:
    """The text of a knob."""
    if not isinstance(text, str):
        raise UsageError(TEXT)
    if len(text) > LONGEST:
        raise UsageError(f"{name}= is not allowed with {len(text):,} characters: the values of a knob have at most {LONGEST:,}")
    return text.strip()


class Talk:
    """The exchange of messages with one page, over any connection: :meth:`heard` takes messages, ``send`` sends answers.

    Args:
        explorer: the claim's explorer.
        send: takes a message in JSON types; also called from the explorer's thread.
        start: the knobs' first positions.
    """

    def __init__(self, explorer: Explorer, send: Send, start: Move) -> None:
        self._explorer, self._send, self._start = explorer, send, start
        self._began: dict[int, float] = {}
        self._live = Live(explorer, self._tell)

    def heard(self, content: Any) -> None:
        """Handle ``{"kind": "hello"}`` or ``{"kind": "move", "number": 3, "values": {"lr": "0.1"}}``; ignore other messages.

        ``{"kind": "stop", "number": 3}`` ends the run of that move.
        A move may have ``seeds``, a text, and ``plain``, a truth value, of which :class:`jaxdyn.explorer.runs.Move` speaks.
        """
        kind = content.get("kind") if isinstance(content, Mapping) else None
        if kind == "hello":
            self._send(introduction(self._explorer, self._start))
        elif kind == "move" and isinstance(number := content.get("number"), int):
            self._began = {number: time.perf_counter()}
            try:
                self._live.move(number, move_of(content))
            except UsageError as error:
                self._tell(number, error)
        elif kind == "stop" and isinstance(number := content.get("number"), int):
            self._live.stop(number)

    def close(self) -> None:
        """End the exchange: the page is closed."""
        self._live.close()

    def _tell(self, number: int, what: Any) -> None:
        began = self._began.get(number)
        seconds = 0.0 if began is None else time.perf_counter() - began
        self._send({**message(self._explorer, what, seconds), "number": number})
