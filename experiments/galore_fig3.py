"""GaLore, Figures 1 and 3: memory of weights, gradients and optimizer states by method, for LLaMA models of 60M to 7B weights.

Bytes counted from shapes, bfloat16 numbers; nothing is allocated, so that both scales do the same. Activations are left out. With
an update after each layer's gradient, only the largest gradient is held. Paper: arXiv 2403.03507.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting
from jaxdyn.theories.galore import table

TALKS = ("practical:galore-figure-memory", "practical:galore-7b-memory")

MODELS = ("60M", "130M", "350M", "1B", "7B")
METHODS = {
    "Adam": ("full", None, False),
    "8-bit Adam": ("full", table.EIGHT_BIT, False),
    "8-bit GaLore": ("galore", table.EIGHT_BIT, False),
    "8-bit GaLore, layer by layer": ("galore", table.EIGHT_BIT, True),
}
PARTS = {"weights": "theory", "gradients": "third", "moments": "measured", "bases": "fourth"}
CARD = 24.0  # GiB of a consumer's card


def gradients(model: str, layerwise: bool) -> int:
    """Bytes of the gradients that are held at once: of all weights, or of the largest array of a layer or outside of them."""
    tree = table.shapes(model)
    sizes = [x.size // (x.shape[0] if path[0].key == "blocks" else 1) for path, x in jax.tree_util.tree_leaves_with_path(tree)]
    return 2 * (max(sizes) if layerwise else sum(x.size for x in jax.tree.leaves(tree)))


def rows() -> list[dict]:
    """GiB of each part, by model and method."""
    lines = []
    for model in MODELS:
        for name, (method, moments, layerwise) in METHODS.items():
            found = table.memory(model, method, side="short", moments=moments)
            parts = {
                "weights": found.weights,
                "gradients": gradients(model, layerwise),
                "moments": found.moments,
                "bases": found.bases,
            }
            gib = {part: size / table.GIB for part, size in parts.items()}
            lines.append({"model": model, "method": name} | gib | {"total GiB": sum(gib.values())})
    return lines


def draw(lines: list[dict], fig: Figure) -> None:
    """Stacked bars of GiB: every model over that of Adam on the left, 7B in GiB on the right."""
    left, right = fig.subplots(1, 2, width_ratios=(2, 1))
    for i, name in enumerate(METHODS):
        for j, model in enumerate(MODELS):
            line = next(r for r in lines if (r["model"], r["method"]) == (model, name))
            whole = next(r["total GiB"] for r in lines if (r["model"], r["method"]) == (model, "Adam"))
            places = [(left, j + 0.2 * (i - 1.5), 0.18, 1 / whole)] + ([(right, i, 0.7, 1.0)] if model == "7B" else [])
            for ax, x, width, unit in places:
                below = 0.0
                for part, color in PARTS.items():
                    first = part if ax is right and i == 0 else None
                    ax.bar(x, line[part] * unit, width, bottom=below, color=plotting.COLORS[color], label=first)
                    below += line[part] * unit
                if ax is right:
                    ax.text(x, below + 0.8, f"{below:.1f}", ha="center")
    left.set_xticks(np.arange(len(MODELS)), MODELS)
    left.set(ylabel="memory / that of Adam", title="bars: " + ", ".join(METHODS))
    left.title.set_fontsize(8)
    right.axhline(CARD, linestyle=":", color=plotting.COLORS["control"], label="24 GiB")
    right.set_xticks(range(len(METHODS)), [name.replace(", ", ",\n").replace("8-bit ", "8-bit\n") for name in METHODS], fontsize=7)
    right.set(ylabel="GiB", title="7B", ylim=(0, 56))
    for ax in (left, right):
        ax.set_axisbelow(True)
        ax.grid(visible=False, axis="x")


def run(scale: str, out: Path) -> None:
    """Count, print, draw and save."""
    del scale
    lines = rows()
    experiment.table(out, "memory", lines, "GiB of weights, gradients and optimizer states, bfloat16")
    experiment.figure(out, "galore_fig3", lambda fig: draw(lines, fig), (10, 4))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
