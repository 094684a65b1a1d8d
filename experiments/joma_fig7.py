"""JoMA, Figure 7: the stable rank of each MLP's lower matrix while a language model learns real text.

The same runs, options and files as joma_fig6.py: with its `--out` nothing is trained again. The paper shows public Pythia and OPT
checkpoints, without numbers; here it is the encoder of Figure 6.
"""

import sys
from pathlib import Path

import joma_fig6
import numpy as np

from jaxdyn import experiment
from jaxdyn.text import longrun

TALKS = ("short:joma-stable-rank",)


def rows(runs: dict[tuple[int, float], list[longrun.Run]]) -> list[dict]:
    """Stable rank of each layer at the start, at its lowest and at the end, means over seeds, and what comes back."""
    found = []
    for (layers, lr), group in runs.items():
        for layer in range(layers):
            each = [joma_fig6.dip(r.steps, r.records["stable_rank"][:, layer]) for r in group]
            back = [e["end"] - e["min"] for e in each]
            mean = {k: float(np.mean([e[k] for e in each])) for k in each[0]}
            found.append({"layers": layers, "lr": lr, "layer": layer, "seeds": len(group), **mean, "return": float(np.mean(back))})
    return found


def run(scale: str, out: Path, **chosen: object) -> None:
    """Train what is not there, and write the table and the figure."""
    runs = joma_fig6.study(scale, out, **chosen)
    experiment.table(out, "stable_rank", rows(runs), "stable rank of the lower matrix of each MLP over training")
    size = (3.2 * len(runs) + 1, 3.5)
    experiment.figure(out, "stable_rank", lambda fig: joma_fig6.draw(runs, "stable_rank", "stable rank of W1", fig), size)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=joma_fig6.OPTIONS))
