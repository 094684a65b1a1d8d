"""GaLore, memory of weights and optimizer states: bytes counted from the shapes of LLaMA models, next to the published "G".

Totals for 60M to 1B as in Table 2, both sides of GaLore and both counts of LoRA; 7B with states of
one byte. Nothing is allocated, so that both scales do the same. Paper: arXiv 2403.03507.
"""

import sys
from pathlib import Path

from jaxdyn import experiment
from jaxdyn.optim.memory import Bytes
from jaxdyn.theories.galore import published, table

TALKS = (
    "practical:galore-model-sizes",
    "practical:galore-7b-memory",
    "practical:galore-table-pretraining",
    "practical:galore-table-memory",
)

COUNTS = {
    "full": ("full", "full", {}),
    "GaLore, short side": ("galore", "galore", {"side": "short"}),
    "GaLore, long side": ("galore", "galore", {"side": "long"}),
    "low rank": ("low_rank", "low_rank", {}),
    "LoRA": ("lora", "lora", {}),
}


def line(model: str, name: str, found: Bytes, paper: float, split: published.Split | None) -> dict:
    """One row: ours in GB and GiB, and the published number."""
    row = {"model": model, "method": name, "GB": found.total / table.GB, "GiB": found.total / table.GIB, "paper": paper}
    row |= {"weights GB": found.weights / table.GB, "states GB": found.states / table.GB}
    place = published.MODELS.index(model) if split else 0
    return row | ({"paper weights": split.weights[place], "paper states": split.states[place]} if split else {})


def rows() -> list[dict]:
    """The table of all models."""
    lines = []
    for i, model in enumerate(published.MODELS):
        for name, (method, paper, options) in COUNTS.items():
            found = table.memory(model, method, **options)
            lines.append(line(model, name, found, published.MEMORY[paper][i], published.SPLIT[paper]))
        doubled = table.lora_as_published(model)
        lines.append(line(model, "LoRA, embeddings twice", doubled, published.MEMORY["lora"][i], published.SPLIT["lora"]))
    for method, paper in published.EIGHT_BIT_7B.items():
        lines.append(line("7B", f"8-bit {method}", table.memory("7B", method, moments=table.EIGHT_BIT), paper, None))
    return lines


def run(scale: str, out: Path) -> None:
    """Count, print and save."""
    del scale
    experiment.table(out, "table1", rows(), "Memory of weights and optimizer states, bfloat16 (7B: states of one byte)")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
