"""Studies: claims run once at their paper's scale, stored in the theories' folders and shown next to the quick run.

``jaxdyn verify --scale paper --out paper`` runs them, and resumes after an interruption; then
``python -m jaxdyn.maintain studies paper`` stores the results: one file per claim in its theory's folder, in ``recorded/studies``,
with the verdict and its basis, what it was made from, the date, the versions and the machine, and with the figure if the paper's
grid has more settings than the quick one. The data that were judged are kept next to it where they are small
(:func:`pack`). ``python -m jaxdyn.maintain renew`` makes studies that are not current anew, and ``make docs`` renews
their table.
"""

from __future__ import annotations

import base64
import collections
import functools
import io
import itertools
import json
import shlex
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr

from jaxdyn.engine.base.parsing import parse_json, parse_seeds, parse_sets
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.description import outside
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.origin import (
    EDITED,
    RUNS,
    UNRECORDED,
    Changes,
    judge_code,
    programs_of,
    runs_of,
    what_changed,
)
from jaxdyn.engine.verification.verify import make_tasks, plan_tasks
from jaxdyn.errors import UsageError
from jaxdyn.report.formatting import between
from jaxdyn.report.results import LEFT_OUT, read_results
from jaxdyn.wording import plural

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim
    from jaxdyn.engine.verification.task import Task

__all__ = [
    "AT_PAPER_SCALE",
    "LARGEST",
    "changes",
    "differs",
    "entry_changes",
    "figure",
    "known_claim",
    "note",
    "pack",
    "provenance",
    "read_data",
    "read_study",
    "table",
    "task_of",
    "unpack",
    "where_run",
    "with_table",
    "write_studies",
    "write_study",
]

AT_PAPER_SCALE = "at paper scale"
LARGEST = 200_000  # bytes of the file with a study's data
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
    "made_from",
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
    if LEFT_OUT in whole:
        raise UsageError(f"{folder}: {whole[LEFT_OUT]}")
    files = [_file(entry["id"]) for entry in entries]
    if homeless := [entry["id"] for entry, file in zip(entries, files, strict=True) if file is None]:
        raise UsageError(f"{homeless[0]} belongs to no theory with a folder, where its study could be stored")
    # one file per claim
    claims = all_claims(theories=set(filter(library.is_shipped, (entry["id"].split(".")[0] for entry in entries))))
    stored: set[str] = set()
    for entry in entries:
        claim, svg = claims.get(entry["id"]), figures.get(entry["id"])
        data = None if claim is None else _stored_data(folder, task_of(claim, {"claim": entry}))
        shown = write_study(entry, whole["environment"], claim, None if svg in stored else svg, data)
        stored |= {shown} if shown else set()
    return [entry["id"] for entry in entries]


def write_study(
    entry: Mapping[str, Any],
    environment: Mapping[str, Any],
    claim: Claim | None,
    svg: str | None,
    data: tuple[xr.Dataset, Mapping[str, xr.Dataset]] | None,
) -> str | None:
    """Store the study of a claim that belongs to a theory with a folder; returns the figure, if it is stored.

    Args:
        entry: of the claim, in the JSON of a verification.
        environment: date, commit, versions and machine.
        claim: the claim; None if it is not known.
        svg: its figure; stored if it shows more than that of the quick run.
        data: its runs, and those of its controls, if they are at hand.
    """
    file = cast(Path, _file(entry["id"]))
    drawing = svg if svg and svg.lstrip().startswith("<svg") else None
    shown = drawing if _shows_more(entry, claim) else None
    content = {"claim": _slim(entry), "environment": environment, "figure": _packed(shown)}
    packed = None if data is None else pack(*data)
    if packed is None:
        _data_file(file).unlink(missing_ok=True)  # of an earlier study
    else:
        atomic_write(_data_file(file), packed)
    atomic_write(file, json.dumps(content, ensure_ascii=False) + "\n")
    return shown


def task_of(claim: Claim, study: Mapping[str, Any] | None = None, *, again: bool = False) -> Task:
    """The runs of a claim's study, as its command says; without a study, those of the claim at paper scale.

    Args:
        claim: the claim.
        study: its study.
        again: the runs are to be made anew: seeds may be added as long as checks are undecided, as the claim allows.

    Raises:
        UsageError: the claim has lost a field that the study's command sets.
    """
    given = _options(study["claim"]) if study else _options({})
    seeds = None if again and claim.max_seeds else parse_seeds(next(iter(given["--seeds"]), None))
    return make_tasks([claim], scale="paper", seeds=seeds, overrides=parse_sets(given["--set"]))[0]


def _options(entry: Mapping[str, Any]) -> collections.defaultdict[str, list[str]]:
    """The options of an entry's command, each with its values.

    Raises:
        UsageError: no command repeats it, so that its settings or seeds are not known.
    """
    if str(entry.get("command") or "").startswith("#"):
        raise UsageError(f"{entry['id']} was run from Python with settings or seeds that no command repeats")
    given = collections.defaultdict[str, list[str]](list)
    for option, value in itertools.pairwise(shlex.split(str(entry.get("command") or ""))):
        given[option].append(value)
    return given


def _tasks_of(entry: Mapping[str, Any], claim: Claim) -> list[Task]:
    """The task of a claim at the scale and settings of an entry's command."""
    given = _options(entry)
    fresh = next(iter(given["--fresh"]), None)
    return make_tasks(
        [claim],
        scale=entry["scale"],
        seeds=parse_seeds(next(iter(given["--seeds"]), None)),
        fresh=None if fresh is None else int(fresh),
        overrides=parse_sets(given["--set"]),
    )


def entry_changes(entry: Mapping[str, Any], claim: Claim, *, trace: bool = True) -> Changes:
    """What has changed of a claim since an entry of any verification was stored, at the scale and settings of its command.

    Args:
        entry: of the verification's JSON.
        claim: as it is now.
        trace: as for :func:`jaxdyn.engine.verification.origin.what_changed`.

    Raises:
        UsageError: the claim has lost a field that the command sets.
    """
    (task,) = _tasks_of(entry, claim)
    basis = programs_of(task.requests), runs_of(task.requests), judge_code(claim)
    return what_changed(entry["made_from"], *basis, whole=trace, trace=trace)


def may_have_changed(entry: Mapping[str, Any], claim: Claim) -> bool:
    """Whether an entry of any verification may be of other runs, or of another judge, than those of a claim as it is now.

    Programs of the package are known by their direct keys, since there may be hundreds; those of a user's own are traced.
    """
    try:
        return bool(entry_changes(entry, claim, trace=False))
    except (UsageError, KeyError, TypeError):
        return True


def _stored_data(folder: Path, task: Task) -> tuple[xr.Dataset, dict[str, xr.Dataset]] | None:
    """The runs of a study from the shards of its verification; None where some are missing or belong to another version."""
    plan = plan_tasks([task], scale="paper", store=folder)
    if plan.done < plan.runs:
        return None
    return plan.stored.dataset(task.main), {name: plan.stored.dataset(one) for name, one in task.controls.items()}


def read_data(claim_id: str) -> tuple[xr.Dataset, dict[str, xr.Dataset]] | None:
    """The runs that a claim's study was judged on, and those of its controls; None if they are not kept."""
    file = _file(claim_id)
    try:
        return None if file is None else unpack(_data_file(file).read_bytes())
    except OSError:
        return None


def _data_file(file: Path) -> Path:
    return file.with_suffix(".npz")


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
        study = parse_json(file.read_text(encoding="utf-8")) if file is not None else None
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


def changes(study: Mapping[str, Any], claim: Claim | None, *, whole: bool = True, trace: bool = True) -> Changes:
    """What has changed since a study was made; nothing of a claim that is not known.

    Args:
        study: of the claim.
        claim: as it is now.
        whole: look for all that has changed; otherwise stop at the first, so that a program is traced only if nothing else has.
        trace: as for :func:`jaxdyn.engine.verification.origin.what_changed`.
    """
    recorded = study["claim"].get("made_from")
    if recorded is None:
        return what_changed(None, (), "", "")
    if claim is None:
        return Changes()
    try:
        task = task_of(claim, study)
    except UsageError:
        return Changes((RUNS,))
    requests = [task.main, *task.controls.values()]
    return what_changed(recorded, programs_of(requests), runs_of(requests), judge_code(claim), whole=whole, trace=trace)


def note(study: Mapping[str, Any], claim: Claim | None, *, whole: bool = False, trace: bool = True) -> str:
    """Sentences on a study outside the claim's stated domain, or not current; else empty. Arguments as for :func:`changes`."""
    found = changes(study, claim, whole=whole, trace=trace)
    word = "Perhaps not current" if found.reasons == (EDITED,) else "Not current"
    beyond = outside(claim, claim.grid("paper")) if claim else ""
    return " ".join([*([f"At {beyond}."] if beyond else []), *([f"{word}: {found}."] if found else [])])


def known_claim(claim_id: str) -> Claim | None:
    """A claim of the package; None for any other."""
    return _claims_of(claim_id.split(".")[0], *library.homes()).get(claim_id)


@functools.cache
def _claims_of(theory: str, *_: str) -> dict[str, Claim]:
    """The claims of a theory of the package, which is in one of these folders."""
    return all_claims(theories={theory}) if library.is_shipped(theory) else {}


# data that are kept: arrays with their dtypes, and an index of names, axes and attributes; what needs pickle is not kept


def pack(data: xr.Dataset, controls: Mapping[str, xr.Dataset]) -> bytes | None:
    """A file with the data; None where it would be larger than :data:`LARGEST`, or cannot be written."""
    index, arrays = list[Any](), dict[str, Any]()
    for name, ds in ((None, data), *controls.items()):
        variables = list[Any]()
        for label, variable in ds.variables.items():
            array = f"{len(index)}.{len(variables)}"
            arrays[array] = variable.values
            variables.append([label, variable.dims, label in ds.coords, variable.attrs, array])
        index.append([name, ds.attrs, variables])
    buffer = io.BytesIO()
    try:
        if any(array.dtype.hasobject for array in arrays.values()):
            return None
        np.savez_compressed(buffer, index=np.array(json.dumps(index)), **arrays)
    except (TypeError, ValueError):  # an attribute that is no JSON
        return None
    return buffer.getvalue() if buffer.tell() <= LARGEST else None


def unpack(content: bytes) -> tuple[xr.Dataset, dict[str, xr.Dataset]] | None:
    """The data and those of the controls; None where the file is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            read = {name: _dataset(attrs, variables, file) for name, attrs, variables in json.loads(str(file["index"]))}
        return read.pop(None), read
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None


def _dataset(attrs: Any, variables: Any, file: Any) -> xr.Dataset:
    found: dict[bool, dict[str, xr.Variable]] = {True: {}, False: {}}
    for label, dims, is_coordinate, own, array in variables:
        found[is_coordinate][label] = xr.Variable(dims, file[array], own)
    return xr.Dataset(found[False], found[True], attrs)


def provenance(study: Mapping[str, Any]) -> str:
    """A study's size, date and version: ``640 runs, 2026-11-22, jaxdyn 0.1.0, commit e9773c4970``."""
    entry, environment = study["claim"], study["environment"]
    runs, date, commit = entry.get("runs"), str(environment.get("date") or "").split(" ")[0], environment.get("commit")
    parts = (plural(runs, "run") if runs else "", date, f"jaxdyn {environment.get('jaxdyn')}")
    return ", ".join(filter(None, (*parts, f"commit {str(commit)[:11]}" if commit else "")))


# the page of all studies


def table(claims: Sequence[Claim]) -> str:
    """A Markdown table of all studies, and lists of the claims without one."""
    # studies, those that differ, and what has changed since
    studies = {claim.id: one for claim in claims if (one := read_study(claim.id)) is not None}
    differing = [i for i, one in studies.items() if differs(one["claim"])]
    changed = {claim.id: changes(studies[claim.id], claim, whole=False) for claim in claims if claim.id in studies}
    without = [claim for claim in claims if claim.id not in studies]
    same, larger = [c for c in without if not _grows(c)], [c for c in without if _grows(c)]
    # sentences and table
    outcome = (
        f"{len(differing)} with another verdict than expected: {_ids(differing)}" if differing else "all verdicts are as expected"
    )
    parts = [f"Studies: {len(studies)} of {plural(len(claims), 'claim')}; {outcome}."]
    parts += _marked(changed)
    rows = ["| claim | expected | at paper scale | runs, quick | runs, paper | minutes | date | commit |"]
    rows += ["|---|---|---|--:|--:|--:|---|---|", *(_row(c, studies[c.id], changed[c.id]) for c in claims if c.id in studies)]
    parts += ["\n".join(rows)] if studies else []
    parts += [f"Both scales have the same runs ({len(same)}): {_ids(c.id for c in same)}."] if same else []
    parts += [f"Not yet run at paper scale ({len(larger)}): {_ids(c.id for c in larger)}."] if larger else []
    return "\n\n".join(parts) + "\n"


def _marked(changed: Mapping[str, Changes]) -> list[str]:
    """Sentences on the marks of studies that are not current."""
    reasons = [one.reasons for one in changed.values() if one.reasons]
    older = reasons.count((UNRECORDED,))
    parts = [f"{older:,} {UNRECORDED}, so that what has changed is not known"] if older else []
    parts += [f"{len(reasons) - older:,} whose program, settings or judge have changed"] if len(reasons) > older else []
    sentences = [f"Marked *: not current, {'; '.join(parts)}."] if reasons else []
    other = sum(bool(one.versions) for one in changed.values())
    return [*sentences, *([f"Marked †: {other:,} made with another version of JAX or Python."] if other else [])]


def _ids(ids: Iterable[str]) -> str:
    return ", ".join(f"`{i}`" for i in ids)


def where_run(claim_id: str) -> str:
    """Where a claim's study was run, in words: at paper scale, unless its runs are the same at both scales."""
    claim = known_claim(claim_id)
    return AT_PAPER_SCALE if claim is None or _grows(claim) else "in an earlier run"


def _grows(claim: Claim) -> bool:
    """Whether the claim's runs at paper scale differ from those at quick scale."""
    quick, paper = (([row["value"] for row in field_table(claim.grid(s))], claim.seed_count(s)) for s in ("quick", "paper"))
    return quick != paper


def _row(claim: Claim, study: Mapping[str, Any], changed: Changes) -> str:
    entry, environment = study["claim"], study["environment"]
    verdict = f"**{entry['verdict']}**" if differs(entry) else entry["verdict"]
    verdict += " *" if changed.reasons else " †" if changed.versions else ""
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
    return between(page, MARKS, table(claims))
