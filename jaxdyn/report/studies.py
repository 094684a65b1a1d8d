"""Studies: claims run once at their paper's scale, kept with the package and shown beside the quick run.

``jaxdyn verify 'cal.*' --scale paper --out paper`` runs them and resumes when it was interrupted; then
``python -m jaxdyn.maintain studies paper`` keeps what came out: one file a claim in ``jaxdyn/studies``, with the verdict and all it
rests on, the date, the versions and the machine, and the figure where the paper's grid has more settings than the quick one.
``make docs`` renews the table of them.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.registry import all_claims
from jaxdyn.engine.setting import field_table
from jaxdyn.engine.store import atomic_write
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.claim import Claim

__all__ = ["FOLDER", "differs", "figure", "keep", "made", "study", "table", "with_table"]

FOLDER = Path(__file__).parents[1] / "studies"
MARKS = ("<!-- table:", "<!-- end of table -->")
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

    A figure is kept where it shows more than the quick run's: the paper's grid has more settings (more seeds alone only narrow the
    bands), or the verdict is not the expected one. Claims that share a figure keep it once.

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
    claims = all_claims(theories={entry["id"].split(".")[0] for entry in entries})
    drawn: set[str] = set()
    for entry in entries:
        svg = figures.get(entry["id"])
        told = (
            svg
            if svg and svg.lstrip().startswith("<svg") and svg not in drawn and _shows_more(entry, claims.get(entry["id"]))
            else None
        )
        drawn |= {told} if told else set()
        content = {"claim": _slim(entry), "environment": whole["environment"], "figure": _packed(told)}
        atomic_write(target / f"{entry['id']}.json", json.dumps(content, ensure_ascii=False) + "\n")
    return [entry["id"] for entry in entries]


def _shows_more(entry: Mapping[str, Any], claim: Claim | None) -> bool:
    settings = entry.get("runs", 0) // max(entry.get("seeds") or 1, 1)
    return claim is None or settings > len(claim.quick.cells()) or differs(entry)


def _slim(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a claim's entry: of controls and rivals, whether they were rejected."""
    kept = {name: entry[name] for name in SHOWN if name in entry}
    for kind in ("controls", "rivals"):
        if kind in kept:
            kept[kind] = [{"name": one.get("name"), "rejected": one.get("rejected")} for one in kept[kind]]
    return kept


def _packed(svg: str | None) -> str | None:
    return svg and base64.b64encode(zlib.compress(svg.encode(), 9)).decode()


def study(claim_id: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """What is kept of a claim: ``claim`` (as in the verification's JSON), ``environment``, ``figure``; None if nothing is."""
    try:
        kept = json.loads((folder / f"{claim_id}.json").read_text())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and {"claim", "environment"} <= kept.keys() else None


def figure(kept: Mapping[str, Any]) -> str | None:
    """The figure of a study as HTML, if it was kept."""
    packed = kept.get("figure")
    return zlib.decompress(base64.b64decode(packed)).decode() if packed else None


def differs(entry: Mapping[str, Any]) -> bool:
    """Whether the verdict of a claim's entry is not the expected one."""
    return entry.get("verdict") != entry.get("expected")


def made(kept: Mapping[str, Any]) -> str:
    """Its size, date and version: ``640 runs, 2026-11-22, jaxdyn 0.1.0, commit e9773c4970``."""
    entry, environment = kept["claim"], kept["environment"]
    runs, date, commit = entry.get("runs"), str(environment.get("date") or "").split(" ")[0], environment.get("commit")
    parts = (f"{runs:,} run{'' if runs == 1 else 's'}" if runs else "", date, f"jaxdyn {environment.get('jaxdyn')}")
    return ", ".join(filter(None, (*parts, f"commit {str(commit)[:11]}" if commit else "")))


# the page of all studies


def table(claims: Sequence[Claim], folder: Path = FOLDER) -> str:
    """A Markdown table of the studies that are kept, and which claims have none."""
    kept = {claim.id: one for claim in claims if (one := study(claim.id, folder)) is not None}
    differing = [i for i, one in kept.items() if differs(one["claim"])]
    left = [claim for claim in claims if claim.id not in kept]
    same, larger = [c for c in left if not _grows(c)], [c for c in left if _grows(c)]
    outcome = f"{len(differing)} came out otherwise than expected: {_ids(differing)}" if differing else "all came out as expected"
    parts = [f"{len(kept)} of {len(claims)} claims have a study; {outcome}."]
    rows = ["| claim | expected | at paper scale | runs, quick | runs, paper | minutes | date | commit |"]
    rows += ["|---|---|---|--:|--:|--:|---|---|", *(_row(c, kept[c.id]) for c in claims if c.id in kept)]
    parts += ["\n".join(rows)] if kept else []
    parts += [f"Both scales have the same runs ({len(same)}): {_ids(c.id for c in same)}."] if same else []
    parts += [f"Not yet run at paper scale ({len(larger)}): {_ids(c.id for c in larger)}."] if larger else []
    return "\n\n".join(parts) + "\n"


def _ids(ids: Iterable[str]) -> str:
    return ", ".join(f"`{i}`" for i in ids)


def _grows(claim: Claim) -> bool:
    """Whether the claim has other runs at paper scale than at quick scale."""
    quick, paper = (([row["value"] for row in field_table(claim.grid(s))], claim.seed_count(s)) for s in ("quick", "paper"))
    return quick != paper


def _row(claim: Claim, kept: Mapping[str, Any]) -> str:
    entry, environment = kept["claim"], kept["environment"]
    verdict = f"**{entry['verdict']}**" if differs(entry) else entry["verdict"]
    minutes = ((entry.get("compile_seconds") or 0) + (entry.get("run_seconds") or 0)) / 60
    quick = len(claim.quick.cells()) * claim.seed_count("quick")
    date, commit = str(environment.get("date") or "").split(" ")[0], str(environment.get("commit") or "")
    cells = (
        f"`{claim.id}`",
        entry["expected"],
        verdict,
        f"{quick:,}",
        f"{entry.get('runs') or 0:,}",
        f"{minutes:.1f}" if minutes else "–",
        date,
        commit,
    )
    return f"| {' | '.join(cells)} |"


def with_table(page: str, claims: Sequence[Claim], folder: Path = FOLDER) -> str:
    """The page with today's table of studies between its two marks.

    Raises:
        UsageError: if the marks are not there.
    """
    start, end = page.find(MARKS[0]), page.find(MARKS[1])
    if not 0 <= start < end:
        raise UsageError(f"the page lacks the marks {' and '.join(MARKS)}")
    return page[: page.index("\n", start) + 1] + table(claims, folder) + page[end:]
