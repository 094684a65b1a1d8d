"""One claim in the report: the contents of the template ``claim.html``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from jaxdyn import plotting
from jaxdyn.attacks.recorded import factor_text, findings_of, recorded_answers
from jaxdyn.engine.claims.contract import EVIDENCE, counted_as
from jaxdyn.report import atlas, by_figure, checks, studies
from jaxdyn.report.drawing import INSTEAD
from jaxdyn.report.figures import Figures, Stored
from jaxdyn.report.formatting import breakable, count, duration, number, percent, runs_drawn, setting, settings
from jaxdyn.report.glossary import VERDICTS
from jaxdyn.report.mathml import name, typeset
from jaxdyn.report.talks.rows import titled
from jaxdyn.wording import left_out, plural

__all__ = ["differs", "finite", "is_blunt", "resolution_of", "resolution_short", "section", "captioned"]

REFUTED = {
    "misprint": "Refuted, as expected: the form does not hold as printed.",
    "beyond print": "Refuted, as expected: a form that nobody printed, or beyond the paper's assumptions. It refutes no paper.",
}
BLUNT = 0.1  # a claim that would still pass with its prediction off by this share is called blunt


def differs(claim: Mapping[str, Any]) -> bool:
    """Whether the claim was judged, with another verdict than expected; elsewhere than at its own settings none is expected."""
    return claim.get("verdict") not in (claim.get("expected"), "skipped", "not run") and not _elsewhere(claim)


def _elsewhere(claim: Mapping[str, Any]) -> bool:
    """Whether a verdict is about other settings than the claim's: each value of ``--by``, or what an explorer's knobs say."""
    return bool(claim.get("by") or claim.get("elsewhere")) and claim.get("verdict") != "error"


def finite(values: Mapping[str, Any] | None) -> dict[str, float]:
    """Those entries that are finite numbers."""
    return {k: v for k, v in (values or {}).items() if isinstance(v, int | float) and math.isfinite(v)}


def resolution_of(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    """The resolution; empty if a check fails even on the undistorted data."""
    failed = any(not c.get("passed") for c in claim.get("checks") or [])
    return {} if failed else claim.get("resolution") or {}


def is_blunt(claim: Mapping[str, Any]) -> bool:
    """Whether an upheld claim would also be upheld with its prediction or data off by a tenth."""
    resolution = resolution_of(claim)
    values = [*finite(resolution.get("scale")).values(), *finite(resolution.get("mix")).values()]
    return claim.get("verdict") == "upheld" and min(values, default=math.inf) >= BLUNT


def resolution_short(claim: Mapping[str, Any]) -> tuple[float | None, Markup]:
    """The sharpest resolution as a number to sort by, and as short text for the table."""
    resolution = resolution_of(claim)
    scale, mix = finite(resolution.get("scale")), finite(resolution.get("mix"))
    values = sorted((scale or mix).values())
    if not values:
        return None, number(None)
    low, high = percent(values[0]), percent(values[-1])
    unit = Markup("") if scale else Markup(' <span class="unit">mix</span>')
    return values[0], (low if low == high else Markup("{} … {}").format(low, high)) + unit


def section(claim: Mapping[str, Any], figures: Figures) -> dict[str, Any]:
    """Everything that the template shows about a claim."""
    claim_id = str(claim["id"])
    return {
        "id": claim_id,
        "verdict": str(claim.get("verdict")),
        "differs": differs(claim),
        "blunt": is_blunt(claim),
        "note": _note(claim),
        "past": _past(claim),
        "title": str(claim.get("title") or claim_id),
        "statement": str(claim.get("statement") or ""),
        "tested": str(claim.get("tested") or ""),
        "source": str(claim.get("source") or ""),
        "figure": _figure(claim, figures.get(claim_id)),
        "basis": _basis(claim),
        "gates": [checks.row(c, checks.GATE) for c in claim.get("gates") or []],
        "checks": [checks.row(c) for c in claim.get("checks") or []],
        "readings": [checks.reading(r, claim.get("recorded") or {}) for r in claim.get("readings") or []],
        "counterpart": _counterpart(claim),
        "fits": checks.fits(claim),
        "map": _map(claim, figures),
        "study": _study(claim, figures),
        "atlas": [stored for stored in atlas.of_claim(claim_id) if atlas.read_map(stored)],
        "resolution": _resolution(claim),
        "referee": _referee(claim),
        "execution": _execution(claim),
        "settings": claim.get("settings") or {},
        "meanings": claim.get("meanings") or {},
        "home": str(claim.get("home") or ""),
        "command": str(claim.get("command") or ""),
    }


def _figure(claim: Mapping[str, Any], stored: Stored | None) -> dict[str, Any] | None:
    """The figure with its caption; None without a figure. That of a claim that was not run is of an earlier call."""
    if stored is None:
        return None
    if (earlier := claim.get("earlier")) is None:
        return captioned(claim, stored)
    figure = captioned({**earlier, "caption": claim.get("caption")}, stored)
    drawn = f"Drawn by an earlier call with this folder, on {earlier['date']}."
    return {**figure, "past": True, "caption": f"{figure['caption']} {drawn}"}


def captioned(claim: Mapping[str, Any], stored: Stored) -> dict[str, Any]:
    """A figure with its caption: the claim's own, or else the axes in words; and the number of runs that it is of."""
    own = "" if stored.label.startswith(INSTEAD) else claim.get("caption")
    words = str(own or stored.label or "Prediction against measurement").rstrip()
    runs = f" {runs_drawn(claim['runs'], claim.get('diverged') or 0)}." if claim.get("runs") else ""
    return {"stored": stored, "past": False, "caption": (words if words[-1:] in ".?!" else words + ".") + runs}


def _basis(claim: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """The basis of the verdict besides the data: evidence, assumptions, the origin of bounds, and the wording in print."""
    rows = []
    if kind := str(claim.get("evidence") or ""):
        rows.append(("Evidence", Markup("<b>{}</b>: {}").format(kind, EVIDENCE.get(kind, "an unknown kind"))))
    if assumed := [name(str(a)) for a in claim.get("assumes") or []]:
        rows.append(("Assumes", Markup(", ").join(assumed) + _outside(claim)))
    if held := claim.get("holds"):
        rows.append(
            ("Holds for", Markup(", ").join(Markup("{} {} … {}").format(n, setting(a), setting(b)) for n, (a, b) in held.items()))
        )
    if bounds := claim.get("bounds"):
        rows.append(("Bounds", name(str(bounds))))
    if looks := claim.get("looks"):
        rows.append(("Looks", escape(str(looks))))
    if printed := claim.get("printed"):
        rows.append(("In print", typeset(str(printed))))
    if slides := titled(claim.get("talks") or []):
        rows.append(("In the talks", escape("; ".join(slides))))
    return rows


def _study(quick: Mapping[str, Any], figures: Figures) -> dict[str, Any] | None:
    """The results at the paper's scale; None without a study."""
    study = studies.read_study(str(quick["id"]))
    if study is None:
        return None
    # where and when it was run, and its figure
    claim, environment = study["claim"], study["environment"]
    time = duration((claim.get("compile_seconds") or 0) + (claim.get("run_seconds") or 0))
    versions = ", ".join(f"{n} {environment[n]}" for n in ("jaxdyn", "jax", "diffrax", "numpy", "python") if environment.get(n))
    commit = str(environment.get("commit") or "")[:10]
    svg = studies.figure(study)
    packed = figures.add(svg) if svg else None
    # the contents of the template
    return {
        "verdict": str(claim.get("verdict")),
        "place": studies.where_run(str(quick["id"])),
        "note": _note(claim) if studies.differs(claim) else None,
        "gates": [checks.row(c, checks.GATE) for c in claim.get("gates") or []],
        "checks": [checks.row(c) for c in claim.get("checks") or []],
        "readings": [checks.reading(r, {}) for r in claim.get("readings") or []],
        "differs": studies.differs(claim),
        "stale": studies.note(study, studies.known_claim(str(quick["id"])), trace=False),
        "opponents": _rejections(claim),
        "runs": count(claim["runs"], "run") if isinstance(claim.get("runs"), int) else "",
        "seeds": str(claim.get("seed_range") or ""),
        "when": ", ".join(filter(None, (str(environment.get("date") or ""), f"commit {commit}" if commit else "", time))),
        "where": ", ".join(filter(None, (str(environment.get("device") or ""), versions))),
        "figure": captioned({**claim, "caption": quick.get("caption")}, packed) if packed and packed.packed else None,
        "command": str(claim.get("command") or ""),
    }


def _rejections(claim: Mapping[str, Any]) -> str:
    """One sentence: how many controls and rivals were rejected, and the names of the others."""
    opponents = [*(claim.get("controls") or []), *(claim.get("rivals") or [])]
    accepted = [str(one.get("name")) for one in opponents if not one.get("rejected")]
    if not opponents:
        return ""
    rejected = f"{len(opponents) - len(accepted)} of {len(opponents)} controls and rivals rejected"
    return rejected + (f"; not rejected: {', '.join(accepted)}." if accepted else ".")


def _outside(claim: Mapping[str, Any]) -> Markup:
    outside, runs = claim.get("outside"), claim.get("runs")
    if not outside:
        return Markup(" <small>(no run is outside)</small>") if outside == 0 else Markup("")
    of = f" of {count(runs, 'run')}" if runs else ""
    return Markup('; <span class="warn">{}{} outside</span> <small>(not judged)</small>').format(f"{outside:,}", of)


def _referee(claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the referee said last of a claim; None if he was not asked."""
    found = recorded_answers().get(str(claim["id"]))
    if found is None:
        return None
    opened = len(findings_of(found))
    return {
        "date": found["date"],
        "open": count(opened, "open finding"),
        "tone": "differs" if opened else "",
        "stale": found["digest"] != claim.get("digest"),
        "attacks": [a for a in found["attacks"] if a["outcome"] != "not applicable"],
        "factors": [f | {"text": factor_text(f)} for a in found["attacks"] for f in a.get("factors", ())],
    }


def _resolution(claim: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Two short lists: the smallest error of each prediction, and the smallest share of each control, that the checks reject."""
    resolution = resolution_of(claim)
    scale, mix = resolution.get("scale") or {}, finite(resolution.get("mix"))
    errors, seeds = finite(scale), resolution.get("seeds")
    among = f", on the first {plural(seeds, 'seed')}" if seeds else ""
    parts = [
        (
            f"Prediction off by{among}",
            [(Markup("<code>{}</code>").format(k), percent(errors[k]) if k in errors else None) for k in scale],
        ),
        (f"Data with a share of{among}", [(typeset(k), percent(share)) for k, share in mix.items()]),
    ]
    return [{"head": head, "rows": rows} for head, rows in parts if rows]


def _counterpart(claim: Mapping[str, Any]) -> dict[str, Any] | None:
    if not claim.get("counterpart"):
        return None
    rows = [checks.row(c) for c in claim.get("counterpart_checks") or []]
    return {"form": str(claim["counterpart"]), "sibling": str(claim.get("sibling") or ""), "checks": rows}


def _note(claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """A sentence or two below the title, if the verdict needs an explanation."""
    verdict, expected = str(claim.get("verdict")), str(claim.get("expected"))
    parts = []
    if differs(claim):
        parts.append(Markup("<b>Expected {}, got {}.</b>").format(expected, verdict))
    if _elsewhere(claim) and verdict != expected:
        parts.append(Markup("Here {}; at its own settings and seeds, the claim is expected to be {}.").format(verdict, expected))
    elif verdict == "refuted" and expected == "refuted":
        parts.append(Markup(REFUTED[counted_as(str(claim["id"]), expected)]))
        if form := claim.get("counterpart"):
            sibling = claim.get("sibling")
            where = Markup(' (<a href="#{}">{}</a>)').format(sibling, breakable(sibling)) if sibling else ""
            parts.append(Markup("The {} form{} is upheld by the same checks on the same runs.").format(form, where))
    elif verdict == "not run":
        parts.append(_recorded(claim))
    elif verdict != "upheld" and verdict in VERDICTS and not (verdict in ("toothless", "inconclusive") and claim.get("message")):
        parts.append(Markup(VERDICTS[verdict]))
    elif is_blunt(claim):
        parts.append(Markup("Blunt: a prediction off by 10\u202f% would pass these checks as well."))
    if claim.get("message"):
        parts.append(Markup('<span class="message">{}</span>').format(typeset(str(claim["message"]))))
    tone = "measured" if _elsewhere(claim) else verdict if verdict in VERDICTS else "unknown"
    return {"tone": tone, "text": Markup(" ").join(parts)} if parts else None


def _recorded(claim: Mapping[str, Any]) -> Markup:
    """What is known of a claim that was not run: its last recorded verdict, and that of an earlier call with the same folder."""
    here = "Not judged yet when this page was written" if claim.get("waiting") else "Not run here"
    last, earlier = claim.get("last_verdict"), claim.get("earlier")
    parts = [Markup(here + ("." if earlier else ", and never recorded."))]
    if last:
        text = Markup(f"{here}; recorded on {{}} (<b>{{}}</b>), commit {{}}, {{}}{{}}.")
        parts = [text.format(last["date"], last["verdict"], last["commit"], last["device"], _stale(last))]
    if earlier:
        text = Markup("An earlier call with this folder judged it on {} (<b>{}</b>){}{}.")
        commit = f", commit {earlier['commit']}" if earlier.get("commit") else ""
        parts.append(text.format(earlier["date"], earlier["verdict"], commit, _stale(earlier)))
    return Markup(" ").join(parts)


def _stale(past: Mapping[str, Any]) -> str:
    return "; its runs, checks, controls or rivals have changed since" if past.get("stale") else ""


def _past(claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """The checks of an earlier call with the same folder, or else the recorded numbers, of a claim that was not run."""
    last, earlier = claim.get("last_verdict"), claim.get("earlier")
    if earlier:
        own = earlier.get("command") or ""
        return {
            "head": f"Checks of an earlier call, on {earlier['date']}; not run here",
            "gates": [checks.row(c, checks.GATE) for c in earlier.get("gates") or []],
            "checks": [checks.row(c) for c in earlier.get("checks") or []],
            "readings": [checks.reading(r, {}) for r in earlier.get("readings") or []],
            "command": own if own != claim.get("command") else "",
        }
    if not last or not last.get("numbers"):
        return None
    numbers = [{"name": n, "value": value[0], "interval": value[1:] or None} for n, value in last["numbers"].items()]
    head = f"Numbers recorded on {last['date']}; not run here"
    return {"head": head, "gates": [], "checks": [], "readings": [checks.reading(one, {}) for one in numbers], "command": ""}


def _execution(claim: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Rows on the execution: runs, seeds, scale, programs, time."""
    runs, seeds = claim.get("runs"), claim.get("seeds")
    seeds = len(seeds) if isinstance(seeds, list | tuple) else seeds
    product = f"({count(runs // seeds, 'setting')} × {count(seeds, 'seed')})" if runs and seeds else ""
    costs = {"compiling": claim.get("compile_seconds"), "running": claim.get("run_seconds")}
    times = ", ".join(f"{duration(seconds)} {word}" for word, seconds in costs.items() if seconds is not None)
    rows: list[tuple[str, Any]] = [("Runs", Markup("{} <small>{}</small>").format(number(runs), product))]
    if claim.get("diverged"):
        rows.append(("Diverged", Markup('<span class="warn">{}</span>').format(number(claim["diverged"]))))
    if claim.get("outside"):
        rows.append(("Outside", Markup('<span class="warn">{}</span>').format(number(claim["outside"]))))
    if claim.get("seed_range"):
        rows.append(("Seeds", str(claim["seed_range"])))
    rows += [("Scale", str(claim.get("scale") or "–")), ("Programs", number(claim.get("programs"))), ("Time", times or "–")]
    return rows


def _map(claim: Mapping[str, Any], figures: Figures) -> dict[str, Any] | None:
    """The verdicts of ``--by`` as a table: a column for one field, a grid for two or more; None without them."""
    by = claim.get("by")
    if not by or not by.get("cells"):
        return None
    # rows and columns of the table
    fields, cells = [str(f) for f in by.get("fields", [])], by["cells"]
    rows = list(dict.fromkeys(_at(c, fields[:1]) for c in cells))
    columns = list(dict.fromkeys(_at(c, fields[1:]) for c in cells))
    lookup = {(_at(c, fields[:1]), _at(c, fields[1:])): c for c in cells}
    # the figure
    figure = None
    if by_figure.drawable(by):
        svg = plotting.render(
            lambda _, fig: by_figure.draw(by, fig),
            None,  # type: ignore[arg-type]  # this drawing reads no Dataset
            f"{claim['id']} by {', '.join(fields)}",
        )
        figure = figures.add(svg)
    return {
        "label": f"{claim['id']} by {', '.join(fields)}",
        "fields": fields,
        "columns": [Markup(" · ").join(c) or Markup("verdict") for c in _apart(columns)],
        "rows": [(words, [_cell(lookup.get((r, c))) for c in columns]) for r, (words,) in zip(rows, _apart(rows), strict=True)],
        "figure": figure,
    }


def _at(cell: Mapping[str, Any], fields: Sequence[str]) -> tuple[Any, ...]:
    return tuple((cell.get("at") or {}).get(f) for f in fields)


def _apart(places: Sequence[tuple[Any, ...]]) -> list[tuple[Markup, ...]]:
    """Places as text; each field has as many digits as tell its values apart."""
    by_field = [settings(axis) for axis in zip(*places, strict=True)]
    return list(zip(*by_field, strict=True)) if by_field else [() for _ in places]


def _cell(cell: Mapping[str, Any] | None) -> dict[str, str] | None:
    if cell is None:
        return None
    failed = cell.get("failed")
    words = ", ".join(map(str, failed)) if isinstance(failed, list | tuple) else str(failed or "")
    if not words and cell.get("unasked"):
        words = f"not asked: {', '.join(cell['unasked'])}"
    words = "; ".join(filter(None, (words, left_out(**cell["left_out"]) if cell.get("left_out") else "")))
    return {"verdict": str(cell.get("verdict")), "failed": words}
