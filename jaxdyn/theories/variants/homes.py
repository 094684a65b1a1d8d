"""Where each law is asked: the data and the training of its home, which is the same for all variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["HOMES", "RECORD", "Home"]

RECORD = Path(__file__).parent / "recorded" / "map.json"  # of experiments/variants_map.py


class Home(NamedTuple):
    """Laws that are read in the same runs, and the fields of these runs."""

    laws: tuple[str, ...]
    fields: dict[str, Any]


ONE_BATCH = {"same": True, "every": 20}
SUMS = {"data": "groups", "steps": 400, "every": 20, "batch": 256, "reading": 529}
DECAYED = {"optimizer": "adamw", "lr": 0.003, "weight_decay": 1.0}  # sums are learned in a few hundred steps
HOMES: dict[str, Home] = {
    "facts": Home(("balance", "reversal"), ONE_BATCH | {"data": "facts", "steps": 400, "lr": 0.1, "reading": 48}),
    "edge": Home(("edge",), ONE_BATCH | {"data": "markov", "steps": 600, "lr": 0.2, "reading": 16}),
    "classes": Home(("joma", "entropy", "snap", "collapse"), {"data": "classes", "steps": 400, "every": 20, "lr": 0.03}),
    "early": Home(("joma_ode",), {"data": "classes", "steps": 20, "every": 1, "lr": 0.01}),
    "copies": Home(("sink",), {"data": "copies", "steps": 400, "every": 20, "lr": 0.1, "position": "learned"}),
    "sums": Home(("fourier", "forecast"), SUMS | DECAYED),
    "decay": Home(("rank",), ONE_BATCH | {"data": "facts", "steps": 60, "every": 10, "lr": 0.05, "reading": 48}),
    "flow": Home(("deviation",), ONE_BATCH | {"data": "facts", "steps": 60, "lr": 0.01, "reading": 48}),
}
