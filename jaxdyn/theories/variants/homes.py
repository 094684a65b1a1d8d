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
HOMES: dict[str, Home] = {
    "facts": Home(("balance", "reversal"), ONE_BATCH | {"data": "facts", "steps": 400, "lr": 0.1, "reading": 48}),
    "edge": Home(("edge",), ONE_BATCH | {"data": "markov", "steps": 600, "lr": 0.2, "reading": 16}),
    "classes": Home(("joma", "entropy", "snap", "collapse"), {"data": "classes", "steps": 400, "every": 20, "lr": 0.03}),
    "early": Home(("joma_ode",), {"data": "classes", "steps": 20, "every": 1, "lr": 0.01}),
    "copies": Home(("sink",), {"data": "copies", "steps": 400, "every": 20, "lr": 0.1, "position": "learned"}),
    "flow": Home(("deviation",), ONE_BATCH | {"data": "facts", "steps": 60, "lr": 0.01, "reading": 48}),
}
