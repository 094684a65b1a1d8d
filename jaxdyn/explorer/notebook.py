"""``jd.explore``: a claim with knobs inside a notebook (Jupyter, VS Code, Colab, marimo), as an anywidget widget.

The widget uses the notebook's own connection, so that it works wherever the notebook does, also on a remote kernel; no port is
opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.runs.sweep import chosen_seeds
from jaxdyn.errors import UsageError, missing, one_line
from jaxdyn.explorer.knobs import read_back
from jaxdyn.explorer.runs import Explorer, Move, one_claim
from jaxdyn.explorer.view import Talk, script, style

__all__ = ["explore", "start_of"]


def explore(claim: str | Claim, *, load: Sequence[str | Path] = (), scale: str = "quick", seeds: Any = None, **fields: Any) -> Any:
    """Show a claim in a notebook, with a knob for every field of its setting.

    ``jd.explore("theory.claim")``, ``jd.explore(my_claim, lr=0.1)``

    Args:
        claim: an id, or a ``Claim`` of your own.
        load: files with your own claims.
        scale: ``quick`` or ``paper``: the grid from which the knobs start.
        seeds: number of seeds to start with, a range or list of consecutive ones, or ``"FROM:TO"``; default: the claim's own.
        fields: first values of knobs; a list sweeps the field.

    Returns:
        A widget; a notebook shows it if it is the last value of a cell.

    Raises:
        UsageError: unknown claim, field or value; or the library anywidget is missing.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise missing("jd.explore", "anywidget", "explore") from None

    explorer = Explorer(one_claim(claim, load) if isinstance(claim, str) else claim, scale, load)
    start = start_of(explorer, seeds, fields)
    explorer.task(start)  # reports a wrong field or value at once

    class Widget(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget has no types here
        """The claim's page."""

        _esm = script()
        style = traitlets.Unicode(style(":host")).tag(sync=True)

    widget = Widget()
    talk = Talk(explorer, lambda content: widget.send(content), start)
    widget.on_msg(lambda _widget, content, _buffers: talk.heard(content))
    return widget


def start_of(explorer: Explorer, seeds: Any, fields: Mapping[str, Any]) -> Move:
    """The first positions of the knobs, for the same values of fields and seeds as :func:`jaxdyn.verify` takes.

    Raises:
        UsageError: an unknown field, a value that is not allowed, or seeds with gaps, for which there is no knob.
    """
    own = explorer.claim.grid(explorer.scale)
    grid = own.replace(**fields)
    values = read_back(own, {name: list(grid.axes[name]) if name in grid.axes else getattr(grid.base, name) for name in fields})
    if values is None:
        listed = ", ".join(f"{name}={one_line(value)}" for name, value in fields.items())
        raise UsageError(f"{listed} is not allowed: a page has a knob for values that can be typed")
    if seeds is None or isinstance(seeds, str):
        return Move(values, seeds)
    chosen = chosen_seeds(seeds)
    if not isinstance(chosen, range):
        raise UsageError(f"seeds={one_line(seeds)} is not allowed: a page has a knob for a number of seeds, or a range of them")
    return Move(values, str(len(chosen)) if chosen[0] == 0 else f"{chosen[0]}:{chosen[-1] + 1}")
