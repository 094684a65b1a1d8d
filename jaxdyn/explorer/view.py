"""Messages to a page, as JSON: the claim with its knobs, then for every move progress, a picture and a verdict.

Checks, controls, rivals and verdicts are rendered by the report's templates, errors as in the terminal.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import escape

from jaxdyn.engine.verification.result import Result
from jaxdyn.errors import UsageError
from jaxdyn.explorer.knobs import knobs, worlds
from jaxdyn.explorer.runs import Checked, Explorer, Live, Move, Picture
from jaxdyn.report import checks, page, terminal
from jaxdyn.report.claim import section
from jaxdyn.report.figures import Figures
from jaxdyn.report.formatting import badge, count, duration
from jaxdyn.report.mathml import typeset

__all__ = ["Talk", "introduction", "message", "move_of", "style", "template"]

Send = Callable[[dict[str, Any]], None]
LONGEST = 4000  # largest number of characters in a knob's value


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
        "start": {**start.values, **({} if start.seeds is None else {"seeds": start.seeds})},
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
    return {"kind": "progress", "text": str(what)}


def _picture(explorer: Explorer, picture: Picture) -> dict[str, Any]:
    """The figure and its caption."""
    claim, request = explorer.claim, picture.task.main
    runs = count(len(request.grid.cells()) * len(request.seeds), "run")
    figure = picture.figure if picture.figure.startswith("<svg") else f'<p class="hint">{escape(picture.figure)}</p>'
    caption = f"{typeset(_ended(claim.caption or 'Prediction against measurement'))} {runs}."
    return {"kind": "picture", "figure": figure, "caption": caption}


def _checks(cell: Mapping[str, Any]) -> str:
    """Tables of the checks, while the results of controls and rivals are not known yet."""
    given = cell.get("checks", [])
    shown = {
        "gates": [checks.row(c, checks.GATE) for c in given if c.get("gate")],
        "checks": [checks.row(c) for c in given if not c.get("gate") and "bound" in c],
        "readings": [checks.reading(c, {}) for c in given if "bound" not in c],
    }
    return _rendered({**shown, **dict.fromkeys(("counterpart", "fits", "study", "atlas", "map"))})


def _ended(words: str) -> str:
    words = words.rstrip()
    return words if words[-1:] in ".?!" else words + "."


def _verdict(verified: Result, seconds: float) -> dict[str, Any]:
    """The verdict with its basis, its cost, and the command that repeats it."""
    entry = verified.to_json()
    shown = section(entry, Figures({})) | {"study": None, "atlas": [], "map": None}
    failed = verified.failure is not None
    compiling = f", {duration(verified.compile_seconds)} of them compiling" if verified.compile_seconds > 0.05 else ""
    return {
        "kind": "verdict",
        "verdict": verified.verdict,
        "badge": badge(verified.verdict),
        "note": "" if failed or shown["note"] is None else shown["note"]["text"],
        "terminal": "\n".join(terminal.lines(verified)) if failed else "",
        "checks": "" if failed else _rendered(shown),
        "facts": _facts(shown),
        "time": f"{duration(seconds)}{compiling}; {count(int(entry['runs']), 'run')}",
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


def move_of(values: Any) -> Move:
    """A move from a page's message: field -> text, with ``seeds`` and ``plain`` among the fields.

    Raises:
        UsageError: the message has another form.
    """
    if not isinstance(values, Mapping) or not all(isinstance(v, str) and len(v) <= LONGEST for v in values.values()):
        raise UsageError("the values of knobs are text")
    fields = {str(name): text.strip() for name, text in values.items()}
    plain, seeds = fields.pop("plain", ""), fields.pop("seeds", None)
    if empty := [name for name, text in fields.items() if not text]:
        raise UsageError(f"{empty[0]}= is not allowed: a knob needs a value")
    return Move(fields, seeds, plain == "true")


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
        """Handle ``{"kind": "hello"}`` or ``{"kind": "move", "number": 3, "values": {"lr": "0.1"}}``; ignore other messages."""
        kind = content.get("kind") if isinstance(content, Mapping) else None
        if kind == "hello":
            self._send(introduction(self._explorer, self._start))
        elif kind == "move" and isinstance(number := content.get("number"), int):
            self._began = {number: time.perf_counter()}
            try:
                self._live.move(number, move_of(content.get("values")))
            except UsageError as error:
                self._tell(number, error)

    def close(self) -> None:
        """End the exchange: the page is closed."""
        self._live.close()

    def _tell(self, number: int, what: Any) -> None:
        began = self._began.get(number)
        seconds = 0.0 if began is None else time.perf_counter() - began
        self._send({**message(self._explorer, what, seconds), "number": number})
