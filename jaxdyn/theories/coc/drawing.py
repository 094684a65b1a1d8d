"""Figure of right answers along long trainings on ProsQA, as `experiments/coc_prosqa.py` records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from jaxdyn import plotting
from jaxdyn.theories.coc import model

FIRST = ("coconut", "cot", "no_cot")
COLOR = dict(zip(dict.fromkeys((*FIRST, *model.METHODS)), 2 * plotting.CYCLE, strict=False))


def along(ax: Axes, courses: Sequence[Mapping[str, Any]], rules: Mapping[str, Mapping[str, float]]) -> None:
    """Right answers in percent, one line per run: on the released file, and dotted on balanced problems.

    Args:
        ax: where.
        courses: runs with ``method``, ``steps``, ``accuracy`` and ``balanced``; one without steps has no line.
        rules: right answers on the released file (``file``) and on balanced problems (``balanced``) of rules that look for no path,
            or for short ones; the best on the file is drawn across.
    """
    seen = set()
    for one in courses:
        if not one.get("steps"):
            continue
        name, color = one["method"].replace("_", " "), COLOR[one["method"]]
        label = {"label": name} if name not in seen else {}
        ax.plot(one["steps"], one["accuracy"], color=color, **label)
        label = {"label": f"{name}, balanced problems"} if label else {}
        ax.plot(one["steps"], one["balanced"], linestyle=":", color=color, **label)
        seen.add(name)
    best = max(rules, key=lambda k: rules[k]["file"])
    ax.axhline(rules[best]["file"], linestyle="--", color="0.5", label=f"best rule, released problems ({best})")
    ax.set(xlabel="steps", ylabel="right answers (%)", ylim=(-3, 103))
