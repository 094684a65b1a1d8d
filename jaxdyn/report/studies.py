"""Studies: claims run once at their paper's scale, stored in the theories' folders and shown next to the quick run.

``jaxdyn verify --scale paper --out paper`` runs them, and resumes after an interruption; then
``python -m jaxdyn.maintain studies paper`` stores the results: one file per claim in its theory's folder, in ``recorded/studies``,
with the verdict and its basis, the date, the versions and the machine, and with the figure if the paper's grid has more
settings than the quick one. ``make docs`` renews the table of studies.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.judging.digest import digest
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError
from jaxdyn.report.results import read_results

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim

__all__ = ["STALE", "differs", "figure", "is_stale", "provenance", "read_study", "table", "with_table", "write_studies"]

STALE = "Its judge, controls or rivals have changed since."
MARKS = ("<!-- table:", "<!-- end of table -->")
STORED = (  # entries of a claim that may differ from those of the quick run
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
    "readings",
    "gates",
    "controls",
    "rivals",
    "resolution",
    "compile_seconds",
    "run_seconds",
    "command",
    "digest",
)


def write_studies(folder: Path) -> list[str]:
    """Store the claims of a verification at paper scale in their theories' folders; returns their ids.

    A figure is stored if it shows more than the quick run's: the paper's grid has more settings (more seeds alone only narrow
    the bands), or the verdict is not the expected one. A figure that claims share is stored once.

    Raises:
        UsageError: the folder holds no results, or none at paper scale, or a claim belongs to no theory with a folder.
    """
    # results at paper scale, and where each is stored
    try:
        whole, figures = read_results(folder)
        entries = [entry for entry in whole["claims"] if entry["scale"] == "paper" and entry["verdict"] != "error"]
    except (KeyError, TypeError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    if not entries:
        raise UsageError(f"{folder} holds no results at paper scale: verify with --scale paper")
    files = [_file(entry["id"]) for entry in entries]
    if homeless := [entry["id"] for entry, file in zip(entries, files, strict=True) if file is None]:
        raise UsageError(f"{homeless[0]} belongs to no theory with a folder, where its study could be stored")
    # one file per claim
    claims = all_claims(theories=set(filter(library.is_shipped, (entry["id"].split(".")[0] for entry in entries))))
    stored: set[str] = set()
    for entry, file in zip(entries, files, strict=True):
        svg = figures.get(entry["id"])
        new = svg if svg and svg.lstrip().startswith("<svg") and svg not in stored else None
        shown = new if _shows_more(entry, claims.get(entry["id"])) else None
        stored |= {shown} if shown else set()
        content = {"claim": _slim(entry), "environment": whole["environment"], "figure": _packed(shown)}
        atomic_write(cast(Path, file), json.dumps(content, ensure_ascii=False) + "\n")
    return [entry["id"] for entry in entries]


def _file(claim_id: str) -> Path | None:
    """The file of a claim's study; None if the claim belongs to no theory with a folder."""
    folder = library.recorded_folder(claim_id.split(".")[0], "studies")
    return None if folder is None else folder / f"{claim_id}.json"


def _shows_more(entry: Mapping[str, Any], claim: Claim | None) -> bool:
    settings = entry.get("runs", 0) // max(entry.get("seeds") or 1, 1)
    return claim is None or settings > len(claim.quick.cells()) or differs(entry)


def _slim(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a claim's entry that is stored; for controls and rivals only whether they were rejected."""
    slim = {name: entry[name] for name in STORED if name in entry}
    for kind in ("controls", "rivals"):
        if kind in slim:
            slim[kind] = [{"name": one.get("name"), "rejected": one.get("rejected")} for one in slim[kind]]
    return slim


def _packed(svg: str | None) -> str | None:
    return svg and base64.b64encode(zlib.compress(svg.encode(), 9)).decode()


def read_study(claim_id: str) -> dict[str, Any] | None:
    """A claim's study, with ``claim`` (as in the verification's JSON), ``environment`` and ``figure``; None if there is none."""
    file = _file(claim_id)
    try:
        study = json.loads(file.read_text()) if file is not None else None
    except (OSError, ValueError):
        return None
    whole = isinstance(study, dict) and all(isinstance(study.get(part), dict) for part in ("claim", "environment"))
    return study if whole else None


def figure(study: Mapping[str, Any]) -> str | None:
    """The figure of a study as HTML, if it has one."""
    packed = study.get("figure")
    return zlib.decompress(base64.b64decode(packed)).decode() if packed else None


def differs(entry: Mapping[str, Any]) -> bool:
    """Whether the verdict of a claim's entry is not the expected one."""
    return entry.get("verdict") != entry.get("expected")


def is_stale(study: Mapping[str, Any], today: str | None) -> bool:
    """Whether a study was judged by other checks, controls or rivals than today's, which have the digest ``today``.

    Studies stored without a digest count as stale.
    """
    return bool(study["claim"].get("digest") != today)


def provenance(study: Mapping[str, Any]) -> str:
    """A study's size, date and version: ``640 runs, 2026-11-22, jaxdyn 0.1.0, commit e9773c4970``."""
    entry, environment = study["claim"], study["environment"]
    runs, date, commit = entry.get("runs"), str(environment.get("date") or "").split(" ")[0], environment.get("commit")
    parts = (f"{runs:,} run{'' if runs == 1 else 's'}" if runs else "", date, f"jaxdyn {environment.get('jaxdyn')}")
    return ", ".join(filter(None, (*parts, f"commit {str(commit)[:11]}" if commit else "")))


# the page of all studies


def table(claims: Sequence[Claim]) -> str:
    """A Markdown table of all studies, and lists of the claims without one."""
    # studies, and those that differ, are stale or missing
    studies = {claim.id: one for claim in claims if (one := read_study(claim.id)) is not None}
    differing = [i for i, one in studies.items() if differs(one["claim"])]
    stale = [claim.id for claim in claims if claim.id in studies and is_stale(studies[claim.id], digest(claim))]
    without = [claim for claim in claims if claim.id not in studies]
    same, larger = [c for c in without if not _grows(c)], [c for c in without if _grows(c)]
    # sentences and table
    outcome = (
        f"{len(differing)} with another verdict than expected: {_ids(differing)}" if differing else "all verdicts are as expected"
    )
    parts = [f"{len(studies)} of {len(claims)} claims have a study; {outcome}."]
    if stale:
        what = "1 study that is stale" if len(stale) == 1 else f"{len(stale)} studies that are stale"
        parts.append(f"Marked *: {what}, since the judge, controls or rivals have changed.")
    rows = ["| claim | expected | at paper scale | runs, quick | runs, paper | minutes | date | commit |"]
    rows += ["|---|---|---|--:|--:|--:|---|---|", *(_row(c, studies[c.id]) for c in claims if c.id in studies)]
    parts += ["\n".join(rows)] if studies else []
    parts += [f"Both scales have the same runs ({len(same)}): {_ids(c.id for c in same)}."] if same else []
    parts += [f"Not yet run at paper scale ({len(larger)}): {_ids(c.id for c in larger)}."] if larger else []
    return "\n\n".join(parts) + "\n"


def _ids(ids: Iterable[str]) -> str:
    return ", ".join(f"`{i}`" for i in ids)


def _grows(claim: Claim) -> bool:
    """Whether the claim's runs at paper scale differ from those at quick scale."""
    quick, paper = (([row["value"] for row in field_table(claim.grid(s))], claim.seed_count(s)) for s in ("quick", "paper"))
    return quick != paper


def _row(claim: Claim, study: Mapping[str, Any]) -> str:
    entry, environment = study["claim"], study["environment"]
    verdict = f"**{entry['verdict']}**" if differs(entry) else entry["verdict"]
    verdict += " *" if is_stale(study, digest(claim)) else ""
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


def with_table(page: str, claims: Sequence[Claim]) -> str:
    """The page with today's table of studies between its two marks.

    Raises:
        UsageError: the page lacks the marks.
    """
    start, end = page.find(MARKS[0]), page.find(MARKS[1])
    if not 0 <= start < end:
        raise UsageError(f"the page lacks the marks {' and '.join(MARKS)}")
    return page[: page.index("\n", start) + 1] + table(claims) + page[end:]
