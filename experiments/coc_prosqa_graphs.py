"""ProsQA's statistics: of released files, of graphs that two pseudo-codes draw, of balanced ones, and as printed.

A line for each set of graphs: number of problems, and means of nodes, edges, steps to the target and shortest paths to it, with
half of their 95% intervals. `--data FILE …` are released files, valid.json and test.json (300 and 500 problems; the file for
training, 17,886 in print, is not needed). `--scale paper` draws 3000 graphs a set instead of 300. Nothing is trained.
Paper: arXiv 2412.06769.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting
from jaxdyn.data import prosqa
from jaxdyn.stats import mean_interval
from jaxdyn.theories.coc import published

TALKS = (
    "practical:coc-datasets-prosqa",
    "practical:coc-prosqa-edges",
    "practical:coc-prosqa-length",
    "practical:coc-prosqa-paths",
)

COUNTS = {"quick": 300, "paper": 3000}
OPTIONS = {"--data": {"nargs": "+", "metavar": "FILE", "help": "released files of ProsQA"}}


def row(name: str, problems: list[prosqa.Problem]) -> dict:
    """Number of problems and means, each with half of its 95% interval."""
    numbers, line = prosqa.statistics(problems), {"graphs": name, "problems": len(problems)}
    for key in published.GRAPHS:
        mean, low, _ = (float(x) for x in mean_interval(xr.DataArray(numbers[key].astype(float), dims="problem"), "problem"))
        line |= {key: mean, f"{key} +-": mean - low}
    return line


def draw(lines: list[dict], fig: Figure) -> None:
    """Means over the printed ones, by set."""
    ax = fig.subplots()
    at = np.arange(len(published.GRAPHS))
    for shift, line in zip(np.linspace(-0.2, 0.2, len(lines)), lines, strict=True):
        values, halves = ([line[key + end] / value for key, value in published.GRAPHS.items()] for end in ("", " +-"))
        ax.errorbar(at + shift, values, halves, fmt="o", ms=4, capsize=2, label=line["graphs"])
    ax.axhline(1, linestyle="--", color=plotting.COLORS["theory"], label="printed")
    ax.set_xticks(at, list(published.GRAPHS))
    ax.set(ylabel="mean over the printed one")
    ax.legend()


def run(scale: str, out: Path, data: list[str] | None = None) -> None:
    """Draw and load, print and draw."""
    files = data or []
    apart = len({Path(file).name for file in files}) == len(files)  # two files of one name are told apart by their folders
    sets = [(Path(file).name if apart else file, prosqa.load(file)) for file in files]
    names = {"released": "corrected pseudo-code", "printed": "printed pseudo-code", "balanced": "balanced"}
    sets += [(name, prosqa.draw(0, COUNTS[scale], variant)) for variant, name in names.items()]
    lines = [row(name, problems) for name, problems in sets]
    printed = {"graphs": "printed table", "problems": sum(published.SETS["ProsQA"])}
    for key, value in published.GRAPHS.items():
        printed |= {key: value, f"{key} +-": None}
    experiment.table(out, "statistics", [*lines, printed], "ProsQA: means over problems")
    experiment.figure(out, "coc_prosqa_graphs", lambda fig: draw(lines, fig), (7, 4))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
