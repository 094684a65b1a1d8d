"""Studies: claims run once at their paper's scale, kept with the package and shown beside the quick run.

``jaxdyn verify 'cal.*' --scale paper --out paper`` runs them and resumes when it was interrupted; then
``python -m jaxdyn.report.studies paper`` keeps what came out: one file a claim in ``jaxdyn/studies``, with the verdict and all it
rests on, the figure, the date, the versions and the machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jaxdyn.engine.store import atomic_write
from jaxdyn.errors import UsageError

__all__ = ["FOLDER", "keep", "study"]

FOLDER = Path(__file__).parents[1] / "studies"
SHOWN = (  # what of a claim's entry can differ from that of the quick run
    "id",
    "expected",
    "verdict",
    "message",
    "scale",
    "runs",
    "diverged",
    "outside",
    "seeds",
    "seed_range",
    "settings",
    "checks",
    "gates",
    "controls",
    "rivals",
    "resolution",
    "compile_seconds",
    "run_seconds",
    "command",
)


def keep(folder: Path, target: Path = FOLDER) -> list[str]:
    """Keep the claims of a verification at paper scale; returns their ids.

    Raises:
        UsageError: the folder holds no results, or none at paper scale.
    """
    try:
        whole, figures = (json.loads((folder / name).read_text()) for name in ("result.json", "figures.json"))
        entries = [entry for entry in whole["claims"] if entry["scale"] == "paper" and entry["verdict"] != "error"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    if not entries:
        raise UsageError(f"{folder} holds no results at paper scale: verify with --scale paper")
    for entry in entries:
        shown = {name: entry[name] for name in SHOWN if name in entry}
        content = {"claim": shown, "environment": whole["environment"], "figure": figures.get(entry["id"])}
        atomic_write(target / f"{entry['id']}.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return [entry["id"] for entry in entries]


def study(claim_id: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """What is kept of a claim: ``claim`` (as in the verification's JSON), ``environment``, ``figure``; None if nothing is."""
    try:
        kept = json.loads((folder / f"{claim_id}.json").read_text())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and {"claim", "environment"} <= kept.keys() else None


if __name__ == "__main__":
    print(f"{len(keep(Path(sys.argv[1])))} claims kept in {FOLDER.name}")
