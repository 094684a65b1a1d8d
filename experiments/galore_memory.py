"""GaLore, memory of LLaMA 7B: bytes of weights, gradients and states counted from shapes, next to measured ones in print.

The published cells are whole processes on a GPU, of which lengths and batches are not given: activations and work space, which are
the same in all of them, are left out here. Differences between cells are to be compared. Paper: arXiv 2403.03507; the table of six
cells is a third party's, shown in the talks.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting
from jaxdyn.nn import llama
from jaxdyn.optim.footprint import footprint
from jaxdyn.optim.methods import Options
from jaxdyn.theories.galore.published import EIGHT_BIT_7B, THIRD_PARTY

TALKS = ("practical:galore-table-llamafactory", "practical:galore-7b-memory", "practical:galore-figure-memory")
GB = 1e9


def counted(bits: int, rank: int | None, held: bool) -> float:
    """GB of weights, gradients and states in bfloat16; gradients of one layer alone where they are not held."""
    options = Options(rank=rank or 1, stored="8bit" if bits == 8 else "parameter")
    one = footprint(llama("7B", dtype="bfloat16"), "adam" if rank is None else "galore", options, batch=1, length=64)
    return (one.weights + (one.gradients if held else one.layerwise) + one.states) / GB


def rows() -> list[dict]:
    """A line for each published cell: its GB, ours, and both minus the first cell's."""
    first = next(iter(THIRD_PARTY))
    lines = []
    for cell, theirs in THIRD_PARTY.items():
        bits, rank, held = cell
        ours = counted(*cell)
        lines.append(
            {
                "method": "AdamW" if rank is None else "GaLore",
                "bits": bits,
                "rank": rank,
                "gradients held": held,
                "published GB": theirs,
                "counted GB": ours,
                "published minus first": theirs - THIRD_PARTY[first],
                "counted minus first": ours - counted(*first),
            }
        )
    return lines


def paper_rows() -> list[dict]:
    """The paper's own two numbers at 7B, 8-bit states, one layer's gradient at a time."""
    ours = {"galore": counted(8, 1024, False), "full": counted(8, None, False)}
    return [{"method": name, "published GB": theirs, "counted GB": ours[name]} for name, theirs in EIGHT_BIT_7B.items()]


def draw(lines: list[dict], fig: Figure) -> None:
    """Published and counted GB by cell."""
    ax, place = fig.subplots(), np.arange(len(lines))
    ax.bar(place - 0.2, [row["counted GB"] for row in lines], 0.4, color=plotting.COLORS["theory"], label="counted, no activations")
    ax.bar(place + 0.2, [row["published GB"] for row in lines], 0.4, color=plotting.COLORS["measured"], label="published")
    names = [f"{r['bits']}-bit {r['method']}" + ("" if r["rank"] is None else f" {r['rank']}") for r in lines]
    ax.set_xticks(place, [n + ("" if r["gradients held"] else ", layerwise") for n, r in zip(names, lines, strict=True)])
    ax.set_ylabel("GB")
    ax.legend()


def run(scale: str, out: Path) -> None:
    del scale  # nothing is trained
    lines = rows()
    experiment.table(out, "third_party", lines, "LLaMA 7B: six published cells next to bytes counted from shapes")
    experiment.table(out, "paper", paper_rows(), "LLaMA 7B: the paper's two numbers next to bytes counted from shapes")
    experiment.figure(out, "memory", lambda fig: draw(lines, fig), (8.0, 3.6))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
