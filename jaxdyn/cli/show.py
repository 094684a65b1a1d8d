"""``jaxdyn show``: one claim in the terminal, with everything that its verdict rests on, and the last verdict."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.contract import EVIDENCE, provenance
from jaxdyn.engine.claims.description import tested
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.claims.ranges import Range
from jaxdyn.engine.judging.check import bound_text
from jaxdyn.engine.judging.digest import digest
from jaxdyn.errors import UsageError
from jaxdyn.report import atlas, studies, talks
from jaxdyn.report.plain import plain
from jaxdyn.report.results import RESULT
from jaxdyn.report.words import plural

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim

__all__ = ["facts", "lines"]

SIGNS = {True: "✓", False: "✗", None: "?"}
INDENT = 15  # columns before the text that follows a label


def facts(pattern: str, load: Sequence[str], out: Path) -> dict[str, Any]:
    """Everything known about one claim without running it, and its last verdict in a folder of results.

    Args:
        pattern: the claim's id.
        load: files with a user's own claims.
        out: the ``--out`` of a verification; it need not exist.

    Raises:
        UsageError: no such claim, or more than one.
    """
    claims = registry.select([pattern], load)
    if len(claims) > 1:
        raise UsageError(f"show takes one claim; {pattern!r} matches {len(claims)} (`jaxdyn list {pattern}` shows them)")
    (claim,) = claims
    return {
        "id": claim.id,
        "theory": claim.theory,
        "counted": claim.counted,
        "expected": claim.expected,
        "title": claim.title,
        "statement": claim.statement,
        "tested": tested(claim, claim.quick, claim.seeds),
        "source": claim.source,
        "evidence": claim.evidence,
        "assumes": [str(a) for a in claim.assumes],
        "controls": list(claim.controls),
        "breaches": {n: dict(c.breach) for n, c in claim.controls.items() if isinstance(c.breach, Mapping)},
        "rivals": list(claim.rivals),
        "form": claim.form,
        "counterpart": claim.counterpart,
        "sibling": claim.sibling,
        "bounds": provenance(claim.bounds),
        "printed": claim.printed,
        "talks": list(claim.talks),
        "recorded": claim.records,
        "fields": _fields(claim),
        "runs": {scale: len(claim.grid(scale).cells()) * claim.seed_count(scale) for scale in ("quick", "paper")},
        "seeds": {scale: claim.seed_count(scale) for scale in ("quick", "paper")},
        "max_seeds": claim.max_seeds,
        "digest": digest(claim),
        "home": registry.home(claim),
        "command": " ".join(["jaxdyn verify", claim.id, *(f"--load {shlex.quote(file)}" for file in load)]),
        "last": _last(claim.id, out),
        "study": _stored_study(claim),
        "maps": [{"title": p.title, "finding": p.finding, "command": atlas.command(p)} for p in atlas.of_claim(claim.id)],
    }


def _fields(claim: Claim) -> list[dict[str, Any]]:
    """The fields that may be set, with the setting's default and the values in both grids."""
    quick, paper = (field_table(claim.grid(scale)) for scale in ("quick", "paper"))
    defaults = {row["name"]: row["value"] for row in field_table(type(claim.quick)(claim.quick.setting(), {}))}
    return [
        {
            "name": row["name"],
            "kind": row["kind"],
            "type": row["type"],
            "range": row["range"],
            "default": defaults[row["name"]],
            "quick": row["value"],
            "paper": other["value"],
        }
        for row, other in zip(quick, paper, strict=True)
    ]


def _last(claim_id: str, out: Path) -> dict[str, Any] | None:
    """The claim's entry in the last verification of a folder; None if the folder has no such entry."""
    try:
        whole = parse_json((out / RESULT).read_text(encoding="utf-8"))
        entry = next(c for c in whole["claims"] if c["id"] == claim_id)
        environment = whole.get("environment") or {}
        return {"file": str(out / RESULT), "date": environment.get("date"), "commit": environment.get("commit"), **entry}
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return None


def _stored_study(claim: Claim) -> dict[str, Any] | None:
    """The claim's study at paper scale, without its figure; ``changed`` says what is no longer as it was then."""
    study = studies.read_study(claim.id)
    if study is None:
        return None
    return {name: value for name, value in study.items() if name != "figure"} | {"changed": studies.note(study, claim, whole=True)}


# text


def lines(claim: Mapping[str, Any], width: int, out: Path) -> Iterator[str]:
    """The claim as lines for a terminal of this width."""
    counted = f", {claim['counted']}" if claim["expected"] == "refuted" else ""
    yield f"{claim['id']}  (expected: {claim['expected']}{counted})"
    yield from _wrapped(claim["title"], width, "  ")
    yield ""
    yield from _wrapped(plain(claim["statement"]), width, "  ")
    yield ""
    for label, text in _rests_on(claim):
        yield from _labelled(label, text, width)
    yield ""
    yield from _table(claim["fields"], claim["runs"]["paper"] != claim["runs"]["quick"], width)
    yield ""
    yield from _verdict(claim, width, out)
    if claim["study"]:
        yield from _study(claim["study"], width)
    for one in claim["maps"]:
        yield ""
        yield from _wrapped(f"in the atlas: {one['title']} ({one['command']})", width, "")
        yield from _wrapped(plain(one["finding"]), width, "  ")


def _rests_on(claim: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The basis of the verdict, as pairs of a label and a text."""
    # set-up and origin
    if claim["tested"]:
        yield "tested", plain(claim["tested"])
    yield "source", plain(claim["source"])
    evidence = claim["evidence"]
    yield "evidence", f"{evidence}: {EVIDENCE[evidence]}"
    if claim["assumes"]:
        yield "assumes", ", ".join(claim["assumes"])
    if claim["counterpart"]:
        sibling = f" ({claim['sibling']})" if claim["sibling"] else ""
        yield "counterpart", f"the {claim['counterpart']} form{sibling}, which the same checks uphold on the same runs"
    if claim["printed"]:
        yield "in print", plain(claim["printed"])
    if claim["talks"]:
        yield "in the talks", "; ".join(talks.titled(claim["talks"]))
    # opponents, bounds and records
    if claim["controls"]:
        yield "controls", "; ".join(_control(name, claim["breaches"].get(name)) for name in claim["controls"])
    if claim["rivals"]:
        yield "rivals", "; ".join(map(plain, claim["rivals"]))
    if claim["bounds"]:
        yield "bounds", plain(claim["bounds"])
    for name, record in (claim["recorded"] or {}).items():
        yield "recorded", reading_text({"name": name, **record})
    # runs, and how to repeat them
    more = f"; seeds are added, up to {claim['max_seeds']}, while a check is undecided" if claim["max_seeds"] else ""
    yield "runs", ", ".join(f"{_runs(claim, scale)} at {scale} scale" for scale in ("quick", "paper")) + more
    yield "home", str(claim["home"])
    yield "command", claim["command"]


def _control(name: str, fields: Mapping[str, Any] | None) -> str:
    return plain(name) + (f" ({', '.join(f'{k} = {_value(v)}' for k, v in fields.items())})" if fields else "")


def _runs(claim: Mapping[str, Any], scale: str) -> str:
    runs, seeds = claim["runs"][scale], claim["seeds"][scale]
    return f"{plural(runs, 'run')} ({plural(runs // seeds, 'setting')} × {plural(seeds, 'seed')})"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    if isinstance(value, tuple):
        return ":".join(map(_value, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def _wrapped(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=first if rest is None else rest) or [first]


def _labelled(label: str, text: str, width: int) -> list[str]:
    return _wrapped(text, width, f"  {label:<{INDENT - 2}}", " " * INDENT)


def _table(fields: Sequence[Mapping[str, Any]], paper: bool, width: int) -> Iterator[str]:
    """A table of the fields with default, quick and, if they differ, paper values; text too long for its column is wrapped."""
    paper = paper or any(f["quick"] != f["paper"] for f in fields)
    names = ["field", "takes", "default", "quick", *(["paper"] if paper else [])]
    rows = [[f["name"], _takes(f), *(_value(f[key]) for key in ("default", "quick", "paper")[: len(names) - 2])] for f in fields]
    needed = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
    widths = _shared(needed, width - 2 * len(names))
    for row in [names, *rows]:
        cells = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
        for i in range(max(map(len, cells))):
            parts = (f"{cell[i] if i < len(cell) else '':<{w}}" for cell, w in zip(cells, widths, strict=True))
            yield ("  " + "  ".join(parts)).rstrip()


def _takes(field: Mapping[str, Any]) -> str:
    """The allowed values of a field in words: ``a number above 0``."""
    if not field["range"]:
        return str(field["type"])
    between = " " if field["type"].startswith("a ") else ", "
    return f"{field['type']}{between}{Range(tuple(field['range'].items()))}"


def _shared(needed: Sequence[int], room: int) -> list[int]:
    """Widths of columns that fit into the room: narrow columns get what they need, wide ones share the rest equally."""
    widths, left = [0] * len(needed), max(room, 10 * len(needed))
    for rank, i in enumerate(sorted(range(len(needed)), key=needed.__getitem__)):
        widths[i] = min(needed[i], left // (len(needed) - rank))
        left -= widths[i]
    return widths


def _verdict(claim: Mapping[str, Any], width: int, out: Path) -> Iterator[str]:
    """The last verdict, with its gates, checks, controls and rivals."""
    last = claim["last"]
    if last is None:
        yield from _wrapped(f"No verdict in {out}; the command above makes one.", width, "")
        return
    seeds = f"seeds {last['seed_range']}" if last.get("seed_range") else None
    origin = ", ".join(str(v) for v in (last["file"], last["date"], last.get("scale"), seeds) if v)
    yield from _wrapped(f"last verdict: {last['verdict']} ({origin})", width, "")
    yield from _outcome(last, width)


def _study(study: Mapping[str, Any], width: int) -> Iterator[str]:
    """The result at paper scale, from the study that ships with the package."""
    entry = study["claim"]
    verdict = f"{entry['verdict']}, expected {entry['expected']}" if studies.differs(entry) else entry["verdict"]
    yield ""
    yield from _wrapped(f"at paper scale: {verdict} ({studies.provenance(study)}, seeds {entry.get('seed_range')})", width, "")
    if study["changed"]:
        yield from _wrapped(study["changed"], width, "  ")
    yield from _outcome(entry, width)


def _outcome(last: Mapping[str, Any], width: int) -> Iterator[str]:
    """Message, gates, checks, controls and rivals of a verdict."""
    if last.get("message"):
        yield from _wrapped(plain(last["message"]), width, "  ")
    for kind in ("gates", "checks"):
        for check in last.get(kind) or []:
            text = f"{SIGNS[check.get('passed')]} {'gate: ' if kind == 'gates' else ''}{check_text(check)}"
            yield from _wrapped(text, width, "  ", "    ")
    yield from (line for r in last.get("readings") or [] for line in _wrapped(f"· {reading_text(r)}", width, "  ", "    "))
    for kind in ("controls", "rivals"):
        for one in last.get(kind) or []:
            text = f"{SIGNS[bool(one.get('rejected'))]} {kind[:-1]} {plain(one.get('name', ''))}: "
            text += "rejected" if one.get("rejected") else "not rejected" + (f" ({one['reason']})" if one.get("reason") else "")
            yield from _wrapped(text, width, "  ", "    ")
    if last.get("outside"):
        yield f"  {plural(last['outside'], 'run')} outside the assumptions, not judged"
    if text := _resolution(last.get("resolution") or {}):
        yield from _wrapped(f"resolution: {text}", width, "  ", "    ")


def check_text(check: Mapping[str, Any]) -> str:
    """A check, given as in JSON, on one line."""
    text = reading_text(check)
    bound = check.get("bound")
    if isinstance(bound, list):
        text += f", bound {bound_text((bound[0], bound[1]))}"
    elif bound is not None:  # in studies stored when bounds were single numbers
        text += f", bound {_number(bound)}"
    needed = check.get("needed") if check.get("passed") is None else None
    return text + (f"; about {needed} runs would decide" if needed else "")


def reading_text(reading: Mapping[str, Any]) -> str:
    """A value with its interval, on one line."""
    text = f"{plain(reading.get('name', ''))}: {_number(reading.get('value'))}"
    if interval := reading.get("interval"):
        text += f" [{_number(interval[0], '-inf')}, {_number(interval[1], 'inf')}]"
    return text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _number(value: Any, otherwise: str = "no number") -> str:
    return f"{value:.4g}" if _is_number(value) else otherwise


def _resolution(resolution: Mapping[str, Any]) -> str:
    """The resolution in words: ``z 0.3 % (scale); Adam 12 % (mix)``."""
    parts = [(plain(k), v, word) for word in ("scale", "mix") for k, v in (resolution.get(word) or {}).items() if _is_number(v)]
    return "; ".join(f"{name} {100 * v:.2g} % ({word})" for name, v, word in parts)
