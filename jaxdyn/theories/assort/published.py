"""The paper's numbers: accuracy and generated tokens on synthetic tasks, and accuracy by how tokens are replaced."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["REPLACED", "SYNTHETIC", "TASKS", "Row"]


class Row(NamedTuple):
    """Accuracy in percent and tokens generated."""

    accuracy: float
    tokens: float


# arXiv:2502.03275, synthetic tasks. Keys-Finding Maze: share of maps with a feasible one among ten solutions.
TASKS = ("Keys-Finding Maze", "ProntoQA", "ProsQA")
SYNTHETIC = {
    "solution": (Row(3.0, 645.0), Row(93.8, 3.0), Row(76.7, 8.2)),
    "text": (Row(43.0, 1312.0), Row(98.8, 92.5), Row(77.5, 49.4)),
    "random": (Row(62.8, 374.6), Row(100.0, 7.7), Row(96.2, 10.9)),
}

# arXiv:2502.03275, ablation of replacement: mean accuracy in percent of Llama-3.1-8B on seven sets of mathematics; "solution" and
# "text" are the rows of the main table. The table has a further row, tokens replaced at Poisson positions: 36.3.
REPLACED = {"solution": 9.6, "text": 33.4, "all": 15.0, "curriculum": 15.8, "random": 37.9}
