"""The documents' page of the transformer: a table of its fields, from their docstrings, and a picture of a block."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdyn import nn, plotting
from jaxdyn.nn import choices
from jaxdyn.nn.config import CHOICES, NUMBERS
from jaxdyn.report.formatting import between
from jaxdyn.wording import plural

__all__ = ["FIGURE", "draw", "fields", "figure", "table", "with_table"]

FIGURE = "transformer.svg"
MARKS = ("<!-- fields:", "<!-- end of fields -->")
KINDS = {"attention": nn.KINDS, "activation": tuple(nn.ACTIVATIONS)} | CHOICES
BOTTOM = 0.7  # height at which the first branch leaves the stream
BOX = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": "gray"}
SHAPE = nn.Transformer(vocabulary=100, width=64, heads=4, groups=2, hidden=128)


def fields() -> dict[str, str]:
    """What the docstring of the transformer says of every field."""
    text = inspect.cleandoc(nn.Transformer.__doc__ or "").partition("Args:\n")[2]
    lines = re.sub(r"\n {5,}", " ", text).splitlines()
    return dict(line.strip().split(": ", 1) for line in lines if line.strip())


def table() -> str:
    """All fields: their kinds, defaults, meanings and sources, in Markdown."""
    rows = ["| field | values | default | what it is |", "|---|---|---|---|"]
    for field in dataclasses.fields(nn.Transformer):
        default = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`".replace("'", "")
        said = re.sub(r":\w+:`~?(?:jaxdyn\.)?([^`]*)`", r"`\1`", fields()[field.name]).replace("``", "`")
        rows.append(f"| `{field.name}` | {_values(field.name)} | {default} | {said} |")
    return "\n".join(rows) + "\n"


def _values(name: str) -> str:
    """What a field may be, in a few words."""
    if name in KINDS:
        own = ", a switch, `module:function`" if name in ("attention", "activation") else ""
        return ", ".join(KINDS[name]) + own
    if name in NUMBERS or name == "window":
        return "a number, traced or not"
    return {"bool": "yes or no", "int": "a whole number", "int | None": "a whole number"}.get(str(_type(name)), "")


def _type(name: str) -> str:
    return next(str(field.type) for field in dataclasses.fields(nn.Transformer) if field.name == name)


def with_table(page: str) -> str:
    """The page with today's table between its two marks.

    Raises:
        UsageError: the page lacks the marks.
    """
    return between(page, MARKS, table(), "the page on the transformer")


def figure() -> str:
    """The picture of the block with the defaults, as one SVG element."""
    import xarray as xr

    return plotting.render(lambda _, fig: draw(SHAPE, fig), xr.Dataset(), "A block of the transformer")


def draw(shape: nn.Transformer, fig: Figure) -> None:
    """One block of a transformer, from the stream below to the stream above, with the parts that its fields give it."""
    ax = fig.subplots()
    ax.axis("off")
    stops = _branch(ax, shape, BOTTOM, _attention(shape), "attention_norm" in shape.norms)
    if shape.mlp != "none":
        low, side = (BOTTOM, -1) if shape.parallel else (stops[-1][1] + 0.1, 1)
        stops += _branch(ax, shape, low, _mlp(shape), "mlp_norm" in shape.norms, side)
    top, y = max(end for _, end in stops) + 0.8, 0.1
    for start, end in sorted(stops):
        ax.plot([0, 0], [y, start], color="black", lw=1.4)
        y = end
    ax.annotate("", (0, top), (0, y), arrowprops={"arrowstyle": "->", "lw": 1.4})
    ax.text(-0.2, 0.15, "stream $x$,\n[n, width]", va="bottom", ha="right")
    left = -5.2 if shape.parallel else -2.0
    fig.set_size_inches((5.2 - left) * 0.68, top * 0.5)
    ax.set(xlim=(left, 5.2), ylim=(0, top))


def _attention(shape: nn.Transformer) -> list[str]:
    """The parts of the attention's branch, from below."""
    turned = shape.position in ("rotary", "alibi")
    marks = [part for part, there in (("norm", shape.query_key_norm), (shape.position, turned)) if there]
    sees = "itself and all before" if shape.window is None else f"the last {shape.window}"
    heads = plural(shape.heads, "head")
    heads += f", {shape.key_heads} of keys" * (shape.key_heads < shape.heads)
    parts = [f"q, k, v: {heads}" + (f"; {', '.join(marks)}" if marks else "")]
    parts.append(f"{', '.join(choices.names(shape.attention))} attention to {sees if shape.causal else 'all'}")
    return parts + ["gate"] * shape.output_gate + ["output matrix"] * shape.project


def _mlp(shape: nn.Transformer) -> list[str]:
    """The parts of the MLP's branch, from below."""
    act = ", ".join(choices.names(shape.activation))
    up = f"{act}(gate) times up" if shape.mlp == "gated" else f"up, {act}"
    return [f"{up}, {plural(shape.hidden or 0, 'unit')}", "down"]


def _branch(
    ax: Axes, shape: nn.Transformer, low: float, parts: Sequence[str], norm: bool, side: int = 1
) -> list[tuple[float, float]]:
    """Draw what leaves the stream and comes back to it; returns what it covers of the stream."""
    before = [f"{shape.norm} norm"] * (norm and shape.norm_place == "pre")
    x, y = 2.7 * side, low + 0.3
    ax.plot([0, x, x], [y, y, y + 0.3], color="black", lw=0.9)
    for name in [*before, *parts]:
        ax.text(x, y + 0.6, name, ha="center", va="center", bbox=BOX)
        ax.plot([x, x], [y + 0.9, y + 1.15], color="black", lw=0.9)
        y += 0.85
    y += 0.3
    arrow = {"arrowstyle": "->", "connectionstyle": "angle,angleA=90,angleB=0", "lw": 0.9}
    ax.annotate("", (0.25 * side, y), (x, y - 0.05), arrowprops=arrow)
    ax.text(0, y, "+", ha="center", va="center", bbox=BOX | {"boxstyle": "circle,pad=0.25"})
    if (shape.skip, shape.residual) != (1.0, 1.0):
        ax.text(-0.35 * side, y, f"{shape.skip:g} x + {shape.residual:g} …", ha="right" if side > 0 else "left", va="center")
    covered = [(y - 0.25, y + 0.25)]
    if norm and shape.norm_place == "post":
        ax.text(0, y + 0.85, f"{shape.norm} norm", ha="center", va="center", bbox=BOX)
        covered.append((y + 0.57, y + 1.13))
    return covered
