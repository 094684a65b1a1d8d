"""The report: one self-contained HTML page with a table of all claims and, for each, its evidence.

Everything is inlined (style, script, figures, mathematics as MathML); a content policy in the page forbids it to load
anything. Figures are stored deflated; the script inflates them, and adds filters, sorting, the theme switch and copying. Without
scripts the page lacks its figures, and beyond 100 claims also their checks. The same payload and figures give the same bytes.

The HTML is in ``templates``; its contents are prepared here and in ``claim.py``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from jaxdyn.engine.base.jsonable import text
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.claims.contract import EVIDENCE, counted_as
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.report import atlas, formatting, mathml, studies
from jaxdyn.report.chapters import by_chapter
from jaxdyn.report.claim import differs, is_blunt, resolution_short, section
from jaxdyn.report.figures import Figures, deflated
from jaxdyn.report.glossary import COLUMNS, FACTS, FIRST, GLOSSARY, VERDICTS
from jaxdyn.report.results import LEFT_OUT
from jaxdyn.wording import plural

__all__ = ["POLICY", "asset", "environment", "headline", "page", "write"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
HEADS = ("Claim", "Verdict", "Evidence", "Resolution", "Runs", "Time")
KINDS = (  # kinds of outcome: key, words in the headline, verdict whose colour is used
    ("upheld", "upheld", "upheld"),
    ("misprint", "refuted as printed", "refuted"),
    ("beyond print", "refuted beyond print", "refuted"),
    ("open", "measured", "measured"),
    ("skipped", "skipped", "skipped"),
    ("cells", "judged value by value", "measured"),
    ("elsewhere", "not run here", "not-run"),
    ("differs", "not as expected", "error"),
)
MANY = 100  # with more claims than this, a page stores checks and facts compressed
ALWAYS = ("upheld", "misprint", "beyond print", "open")  # kinds that are shown even if there are none


def write(path: str | Path, payload: Mapping[str, Any], figures: Mapping[str, str]) -> None:
    """Write the report as one HTML file, atomically: a reader sees the old page or the new one, never a part.

    Args:
        path: the file; its folder is created if needed.
        payload: the JSON object of a verification (`jaxdyn verify --json`), with statement, source, settings and command per claim;
            under ``history``, earlier calls from :func:`jaxdyn.report.history.earlier_calls`.
        figures: HTML from :func:`jaxdyn.plotting.render`, by claim id.
    """
    atomic_write(Path(path), page(payload, figures))


def page(payload: Mapping[str, Any], figures: Mapping[str, str]) -> str:
    """The whole report as HTML; arguments as for :func:`write`."""
    # sections by theory
    claims = [_showable(claim) for name in ("claims", "not_run") for claim in payload.get(name) or []]
    theories = list(dict.fromkeys(_theory(c) for c in claims))
    packed = len(claims) > MANY
    stored = Figures(figures, together=packed)
    sections = [_section(t, [c for c in claims if _theory(c) == t], stored) for t in theories]
    env = environment()
    if packed:
        for one in sections:
            one["packed"] = _packed(env, one["chapters"])
    # the page
    return env.get_template("page.html").render(
        policy=POLICY,
        style=Markup(asset("report.css")),
        script=Markup(asset("figures.js") + "\n" + asset("report.js")),
        headline=headline(claims),
        outcomes=_outcomes(claims),
        summary=_summary(payload, claims),
        filters=_filters(claims, theories),
        columns=HEADS,
        rows=[_row(c) for c in claims],
        theories=sections,
        maps=_maps(claims, stored),
        kinds=[kind for kind in KINDS if kind[0] in ALWAYS or _kinds(claims)[kind[0]]],
        stored=stored,
        packed=packed,
    )


def _packed(env: jinja2.Environment, chapters: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Sources, checks and facts of a theory's claims, in the order of the page, as deflated JSON."""
    parts = [env.get_template(f"claim_{name}.html") for name in ("about", "checks", "facts")]
    text = json.dumps([part.render(claim=claim) for claims in chapters.values() for claim in claims for part in parts])
    return deflated(text)


def _showable(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    """The claim's entry, or an error in one sentence if it cannot be shown: the page of the other claims must not be lost."""
    try:
        _row(claim)
        section(claim, Figures({}))
        return claim
    except Exception as error:
        kept = {name: claim.get(name) for name in ("id", "theory", "expected", "topic")}
        reason = f"its entry cannot be shown ({type(error).__name__}: {error})"
        return {**kept, "statement": text(str(claim.get("statement") or "")), "verdict": "error", "message": reason}


def _maps(claims: Sequence[Mapping[str, Any]], figures: Figures) -> list[dict[str, Any]]:
    """The maps of these claims."""
    entries = []
    for stored in (one for claim in claims for one in atlas.of_claim(str(claim.get("id")))):
        if (content := atlas.read_map(stored)) is not None:
            facts = atlas.facts(content)
            figure = figures.add(content["figure"])
            entries.append({"map": stored, "facts": facts, "figure": figure, "command": atlas.command(stored)})
    return entries


def asset(name: str) -> str:
    """The text of a file in this folder: style or script."""
    return (files("jaxdyn.report") / name).read_text(encoding="utf-8").strip()


def environment() -> jinja2.Environment:
    """The environment of the templates: escapes everything not marked as HTML, with filters for numbers and names."""
    loader = jinja2.PackageLoader("jaxdyn.report")
    env = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, auto_reload=False
    )
    env.filters |= {
        "badge": formatting.badge,
        "breakable": formatting.breakable,
        "count": formatting.count,
        "name": mathml.name,
        "placed": formatting.placed,
        "term": formatting.term,
        "number": formatting.number,
        "setting": formatting.setting,
        "typeset": mathml.typeset,
        "value": formatting.value,
    }
    env.globals |= {"verdicts": VERDICTS, "glossary": GLOSSARY, "facts": FACTS, "meanings": COLUMNS, "first": FIRST}
    return env


def _theory(claim: Mapping[str, Any]) -> str:
    return str(claim.get("theory") or str(claim.get("id", "")).split(".")[0])


def _anchor(theory: str) -> str:
    return "theory-" + "".join(c if c.isalnum() else "-" for c in theory)


def _kind(claim: Mapping[str, Any]) -> str:
    """The kind of outcome (a key of :data:`KINDS`), by the verdict and whether it was expected."""
    kinds = {"upheld": "upheld", "measured": "open", "skipped": "skipped", "not run": "elsewhere"}
    kinds["refuted"] = counted_as(str(claim.get("id")), str(claim.get("expected")))
    if claim.get("by") and claim.get("verdict") != "error":
        return "cells"
    return "differs" if differs(claim) else kinds.get(str(claim.get("verdict")), "differs")


def _kinds(claims: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts = Counter(map(_kind, claims))
    return {key: counts[key] for key, *_ in KINDS}


def headline(claims: Sequence[Mapping[str, Any]]) -> str:
    """The outcomes on one line: ``178 upheld, 31 refuted as printed, 12 refuted beyond print, 8 measured``."""
    return ", ".join(f"{n} {text}" for n, text in _outcomes(claims)) or "No claims"


def _outcomes(claims: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """The number of claims of each kind of outcome, and its words."""
    counts = _kinds(claims)
    return [(counts[key], text) for key, text, _ in KINDS if counts[key]]


def _summary(payload: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts, costs, date and machine, for the top of the page."""
    environment = {str(k): str(v) for k, v in (payload.get("environment") or {}).items() if v is not None}
    date, commit = environment.get("date", ""), environment.get("commit", "")
    own, diverged, outside = (sum(c.get(k) or 0 for c in claims) for k in ("runs", "diverged", "outside"))
    done = [c for c in claims if c.get("verdict") != "not run"]
    left_out = ((diverged, "diverged"), (outside, "outside"))
    excluded = Markup(", ").join(Markup("{:,} {}").format(n, formatting.term(word)) for n, word in left_out if n)
    runs = payload.get("runs") or own  # the payload counts every distinct run once, including those of controls
    scales, ranges = (", ".join(dict.fromkeys(str(c[k]) for c in claims if c.get(k))) for k in ("scale", "seed_range"))
    # the facts, in the order of the page
    facts = [
        ("Claims", f"{len(done):,}" + (f" of {len(claims):,}" if len(done) < len(claims) else "")),
        ("Scale", scales),
        ("Seeds", str(payload.get("seed_range") or (ranges if len(ranges) <= 40 else ""))),
        ("Runs", f"{runs:,}"),
        ("Left out, summed over claims", excluded),  # runs that claims share count once for each
        ("At paper scale", _studied(claims) if len(claims) > 1 else ""),
        ("False by chance", _by_chance(payload)),
        ("Programs compiled", f"{payload['programs']:,}" if payload.get("programs") is not None else ""),
        ("Wall time", formatting.duration(payload.get("seconds"))),
    ]
    # with the verdicts
    counts = Counter(str(c.get("verdict")) for c in claims)
    return {
        "unfinished": payload.get("unfinished") or "",
        "ran": len(done),
        "cells": _cells(claims),
        "left_out": payload.get(LEFT_OUT) or "",
        "kicker": ", ".join(filter(None, (date, f"commit {commit[:12]}" if commit else ""))),
        "differing": [str(c["id"]) for c in claims if differs(c)],
        "counts": [(v.replace(" ", "-"), counts[v]) for v in VERDICTS if counts[v]],
        "facts": [(k, v) for k, v in facts if v],
        "environment": environment,
        "history": [_call(one) for one in payload.get("history") or ()],
    }


def _cells(claims: Sequence[Mapping[str, Any]]) -> str:
    """The verdicts of ``--by``, which has no expected ones: ``6 cells: 4 upheld, 2 refuted``."""
    counts = Counter(str(cell["verdict"]) for claim in claims for cell in (claim.get("by") or {}).get("cells") or [])
    return f"{plural(counts.total(), 'cell')}: {', '.join(f'{n:,} {v}' for v, n in counts.items())}" if counts else ""


def _call(one: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the table of earlier calls, as :mod:`jaxdyn.report.history` keeps them."""
    outcome = f"{one['as_expected']:,} of {formatting.count(one['claims'], 'claim')}"
    ended = f", unfinished: {one['unfinished']}" if one["unfinished"] else ""
    return one["date"], (one["commit"] or "–")[:12], one["command"], outcome + ended, formatting.duration(one["seconds"])


def _studied(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many claims have a study at paper scale, and in how many of these the verdict is not the expected one."""
    found = [study for c in claims if (study := studies.read_study(str(c["id"])))]
    entries = [one["claim"] for one in found if _study(one)["where"] == studies.AT_PAPER_SCALE]
    differing = sum(map(studies.differs, entries))
    return (formatting.count(len(entries), "claim") + (f", {differing} not as expected" if differing else "")) if entries else ""


def _by_chance(payload: Mapping[str, Any]) -> str:
    """How many upheld claims rest on intervals, and how many of them may be expected to be false, at most."""
    chance = payload.get("by_chance") or {}
    if not chance.get("claims"):
        return ""
    if chance["claims"] == 1:
        return f"with a probability of at most {chance['expected']:.2g}"
    return f"at most {chance['expected']:.2g} of {chance['claims']} upheld with intervals"


def _filters(claims: Sequence[Mapping[str, Any]], theories: Sequence[str]) -> dict[str, Any]:
    """The choices of the filters: verdicts, blunt and unexpected claims, kinds of evidence, and theories."""
    counts = Counter(str(c.get("verdict")) for c in claims)
    chips = [(v, v, counts[v], VERDICTS[v]) for v in VERDICTS if counts[v]]
    blunt, differing = sum(map(is_blunt, claims)), sum(differs(c) for c in claims)
    chips += [("blunt", "blunt", blunt, GLOSSARY["blunt"])] if blunt else []
    chips += [("differs", "not as expected", differing, GLOSSARY["as expected"])] if differing else []
    kinds = Counter(str(c["evidence"]) for c in claims if c.get("evidence"))
    known = [k for k in EVIDENCE if kinds[k]] + sorted(kinds.keys() - EVIDENCE.keys())
    evidence = [(k, EVIDENCE.get(k, ""), kinds[k]) for k in known]
    return {"chips": chips, "evidence": evidence, "theories": theories}


def _row(claim: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table of all claims."""
    verdict = str(claim.get("verdict"))
    sharpest, resolution = resolution_short(claim)
    seconds = (claim.get("compile_seconds") or 0) + (claim.get("run_seconds") or 0)
    study = studies.read_study(str(claim["id"]))
    return {
        "id": str(claim["id"]),
        "study": study and _study(study),
        "also": _searched(claim) if verdict == "not run" else "",
        "theory": _theory(claim),
        "verdict": verdict,
        "rank": list(VERDICTS).index(verdict) if verdict in VERDICTS else len(VERDICTS),
        "expected": str(claim.get("expected")),
        "differs": differs(claim),
        "counted": counted_as(str(claim["id"]), "refuted") if verdict == claim.get("expected") == "refuted" else "",
        "past": _past(claim),
        "blunt": is_blunt(claim),
        "evidence": str(claim.get("evidence") or ""),
        "title": str(claim.get("title") or claim["id"]),
        "sharpest": 9 if sharpest is None else sharpest,
        "resolution": resolution,
        "runs": claim.get("runs"),
        "diverged": claim.get("diverged"),
        "outside": claim.get("outside"),
        "seconds": seconds,
        "time": formatting.duration(seconds) if "runs" in claim else "",
    }


def _past(claim: Mapping[str, Any]) -> str:
    """The verdict, in an earlier call with the folder or as recorded, of a claim that was not run."""
    words = {"earlier": "earlier", "last_verdict": "recorded"}
    return next((f"{word}: {claim[name]['verdict']}" for name, word in words.items() if claim.get(name)), "")


def _searched(claim: Mapping[str, Any]) -> str:
    """Words by which a claim that was not run is found, too: its controls, rivals, fields, and what these are set to."""
    known = studies.known_claim(str(claim["id"]))
    if known is None:
        return ""
    rows = field_table(known.quick)
    values = (v for row in rows for v in (row["value"] if isinstance(row["value"], list) else [row["value"]]))
    return " ".join([*known.controls, *known.rivals, *(row["name"] for row in rows), *(v for v in values if isinstance(v, str))])


def _study(study: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict of a claim's study, and where it was run."""
    entry = study["claim"]
    where = studies.where_run(str(entry.get("id")))
    return {"verdict": str(entry.get("verdict")), "differs": studies.differs(entry), "where": where}


def _section(theory: str, claims: Sequence[Mapping[str, Any]], figures: Figures) -> dict[str, Any]:
    """A theory's section: its papers, a paragraph, its counts, and its claims by chapter."""
    about = library.theory(theory)
    return {
        "prefix": theory,
        "packed": "",
        "anchor": _anchor(theory),
        "about": about,
        "papers": library.papers(theory),
        "kinds": _kinds(claims),
        "headline": headline(claims),
        "claims": len(claims),
        "blunt": sum(map(is_blunt, claims)),
        "chapters": by_chapter(about, ((c.get("topic"), section(c, figures)) for c in claims)),
    }
