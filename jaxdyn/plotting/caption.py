"""A figure in words: its axes, what its lines, bands, bars and symbols mean, read from the figure itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxdyn.plotting.finish import is_valueless
from jaxdyn.plotting.helpers import NAMED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["describe"]

ENTRIES = 8  # a longer legend is not repeated in words
MARKS = {  # the name of an artist (its gid) -> what it means
    "range": "Symbols and bars: median and range over the runs.",
    "entries": "One point for each entry of each run that has a value.",
    "positive range": "Symbols and bars: median and range over the runs, of values above zero.",
    "some entries": "Points: entries of the runs, drawn at random from all that have a value.",
    "positive entries": "One point for each entry of each run that has a value above zero.",
    "some positive entries": "Points: entries of the runs, drawn at random from all that have a value above zero.",
}
DASHES = {"--": "dashed line", ":": "dotted line", "-.": "dash-dotted line", "-": "line"}


def describe(fig: Figure) -> str:
    r"""The caption of a figure whose claim writes none; mathematics stays between dollar signs.

    >>> describe(fig)
    'Error against step size $\eta$. Drawn: network (points), slope 1 (dashed line).'
    """
    panels = [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]
    sentences = list(dict.fromkeys(filter(None, map(_axes, panels))))
    sentences += [f"Colour: {label}." for ax in fig.axes if ax not in panels and (label := ax.get_ylabel() or ax.get_xlabel())]
    names = dict.fromkeys(str(a.get_gid() or "") for ax in panels for a in (*ax.lines, *ax.collections) if not is_valueless(a))
    sentences += [text for name in names if (text := _mark(name))]
    if heading := _text(fig.get_suptitle()):
        sentences.append(f"{_capital(heading)}.")
    entries, missing = _entries(fig)
    if 0 < len(entries) <= ENTRIES:
        sentences.append(f"Drawn: {', '.join(entries)}.")
    if 0 < len(missing) <= ENTRIES:
        sentences.append(f"Without any finite value, and not drawn: {', '.join(missing)}.")
    return " ".join(sentences)


def _text(words: str) -> str:
    return " ".join(words.split())


def _capital(text: str) -> str:
    """The beginning of a sentence; a letter, or what is no word, may be the name of a variable, and keeps its case."""
    first = text.split(" ")[0]
    return text[:1].upper() + text[1:] if len(first) > 1 and first.isalpha() and first.islower() else text


def _axes(ax: Axes) -> str:
    title, x, y = map(_text, (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()))
    what = f"{y} against {x}" if x and y else y or (x if title else "")
    if title and what:
        return f"{title if ax.get_label() == NAMED else _capital(title)}: {what}."
    return f"{_capital(what or title)}." if what or title else ""


def _mark(name: str) -> str:
    if name.startswith("band "):
        return f"Lines and bands: median and central {100 * float(name.removeprefix('band ')):g} % of the runs."
    return MARKS.get(name, "")


def _entries(fig: Figure) -> tuple[list[str], list[str]]:
    """The entries of all legends, each with the kind of its symbol; and those of which nothing is drawn in any panel."""
    artists: dict[str, list[Any]] = {}
    for ax in fig.axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            artists.setdefault(text, []).append(handle)
    missing = [text for text, drawn in artists.items() if all(map(is_valueless, drawn))]
    legends: list[Any] = [ax.get_legend() for ax in fig.axes if ax.get_legend() is not None] + list(fig.legends)
    entries = {}
    for legend in legends:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            kind = _kind(handle)
            entries[text.get_text()] = f"{text.get_text()} ({kind})" if kind else text.get_text()
    return [words for text, words in entries.items() if text not in missing], [text for text in missing if text in entries]


def _kind(handle: Any) -> str:
    if hasattr(handle, "get_linestyle") and hasattr(handle, "get_marker"):
        style, marker = handle.get_linestyle(), handle.get_marker()
        line = DASHES.get(style, "")
        symbols = {"x": "crosses", "*": "stars", "s": "squares"}.get(marker, "points")
        symbols = "" if marker in ("None", "none", "", " ", None) else symbols
        return f"{symbols} and {line}" if line and symbols else line or symbols
    kinds = {"Rectangle": "bars", "LineCollection": "symbols with bars", "PathCollection": "points", "PolyCollection": "band"}
    return kinds.get(type(handle).__name__, "")
