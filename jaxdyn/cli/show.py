"""``jaxdyn show``: one claim in the terminal, with everything that its verdict rests on, and the last verdict."""

from __future__ import annotations

import itertools
import math
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdyn.attacks.recorded import factor_text, summary_of
from jaxdyn.cli import conclusions
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.base.meanings import meanings
from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.contract import EVIDENCE, provenance
from jaxdyn.engine.claims.description import field_texts, span_text, tested
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.claims.ranges import Range
from jaxdyn.engine.judging.check import VALUE_DIGITS, bound_text, digits_apart
from jaxdyn.engine.judging.digest import digest, why_unknown
from jaxdyn.engine.verification.origin import JUDGE, PROGRAM
from jaxdyn.errors import UsageError
from jaxdyn.report import atlas, studies
from jaxdyn.report.plain import plain
from jaxdyn.report.results import RESULT
from jaxdyn.report.talks.rows import titled
from jaxdyn.wording import plural

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim

__all__ = ["facts", "lines"]

SIGNS = {True: "✓", False: "✗", None: "?"}
WORDED = {"statement": "the statement", "expected": "the expected verdict"}
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
        "holds": {name: list(ends) for name, ends in claim.holds.items()},
        "controls": list(claim.controls),
        "breaches": {n: dict(c.breach) for n, c in claim.controls.items() if isinstance(c.breach, Mapping)},
        "breaks": {n: c.breaks for n, c in claim.controls.items() if c.breaks},
        "why": {n: c.why for n, c in claim.controls.items() if c.why},
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
        "digest_unknown": why_unknown(claim),
        "home": registry.home(claim),
        "command": " ".join(["jaxdyn verify", claim.id, *(f"--load {shlex.quote(file)}" for file in load)]),
        "last": _last(claim, out),
        "judged_before": conclusions.file_of(out, claim.id).is_file(),
        "study": _stored_study(claim),
        "referee": summary_of(claim),
        "maps": [{"title": p.title, "finding": p.finding, "command": atlas.command(p)} for p in atlas.of_claim(claim.id)],
    }


def _fields(claim: Claim) -> list[dict[str, Any]]:
    """The fields that may be set, with what they mean, the setting's default and the values in both grids."""
    told = meanings(claim.quick.setting)
    quick, paper = (field_table(claim.grid(scale)) for scale in ("quick", "paper"))
    defaults = {row["name"]: row["value"] for row in field_table(type(claim.quick)(claim.quick.setting(), {}))}
    return [
        {
            "name": row["name"],
            "meaning": told.get(row["name"], ""),
            "kind": row["kind"],
            "type": row["type"],
            "range": row["range"],
            "role": row["role"],
            "default": defaults[row["name"]],
            "quick": row["value"],
            "paper": other["value"],
        }
        for row, other in zip(quick, paper, strict=True)
    ]


def _last(claim: Claim, out: Path) -> dict[str, Any] | None:
    """The claim's entry in the last verification of a folder; None if the folder has no such entry.

    ``changed`` names what is no longer as it was then (claim, settings, judge), and ``other`` the settings that were not the
    claim's own.
    """
    try:
        whole = parse_json((out / RESULT).read_text(encoding="utf-8"))
        entry = next(c for c in whole["claims"] if c["id"] == claim.id)
        environment = whole.get("environment") or {}
        origin = {"file": str(out / RESULT), "date": environment.get("date"), "commit": environment.get("commit")}
        return {**origin, **entry, "changed": _changed(claim, entry), "other": _other_settings(entry)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None


def _other_settings(entry: Mapping[str, Any]) -> list[str]:
    """The fields that the command of a stored entry sets, and those that it judges by, as typed."""
    command = str(entry.get("command") or "")
    if command.startswith("#"):
        return [command.removeprefix("# ")]
    words = shlex.split(command)
    return [f"{option} {value}" for option, value in itertools.pairwise(words) if option in ("--set", "--by")]


def _changed(claim: Claim, entry: Mapping[str, Any]) -> list[str]:
    """What of a claim is no longer as it was when an entry was stored; of what an entry does not tell, nothing is named."""
    changed = [word for name, word in WORDED.items() if name in entry and entry[name] != getattr(claim, name)]
    now = digest(claim)
    judge = [JUDGE] if now is not None and entry.get("digest") not in (None, now) else []
    if not isinstance(entry.get("made_from"), dict):
        return changed + judge
    try:
        found = studies.entry_changes(entry, claim)
    except UsageError:  # a field that the claim has lost, or no command that repeats it
        return [*changed, *judge]
    except Exception as error:  # of the user's own trial, say, which no longer runs
        let_through(error)
        return [*changed, *judge, PROGRAM]
    return [*changed, *(found.reasons or judge)]


def _stored_study(claim: Claim) -> dict[str, Any] | None:
    """The claim's study at paper scale, without its figure; ``changed`` says what is no longer as it was then."""
    study = studies.read_study(claim.id)
    if study is None:
        return None
    kept = {name: value for name, value in study.items() if name != "figure"}
    return kept | {"changed": studies.note(study, claim, whole=True), "where": studies.where_run(claim.id)}


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
    if claim["referee"]:
        yield from _referee(claim["referee"], width)
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
    if claim["holds"]:
        yield "holds for", ", ".join(span_text(name, *ends) for name, ends in claim["holds"].items())
    if claim["counterpart"]:
        sibling = f" ({claim['sibling']})" if claim["sibling"] else ""
        yield "counterpart", f"the {claim['counterpart']} form{sibling}, which the same checks uphold on the same runs"
    if claim["printed"]:
        yield "in print", plain(claim["printed"])
    if claim["talks"]:
        yield "in the talks", "; ".join(titled(claim["talks"]))
    # opponents, bounds and records
    if claim["controls"]:
        yield "controls", "; ".join(_control(claim, name) for name in claim["controls"])
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


def _control(claim: Mapping[str, Any], name: str) -> str:
    """A control with the fields that it sets, the words that it breaks and why it is as it is."""
    fields = ", ".join(f"{k} = {_value(v)}" for k, v in claim["breaches"].get(name, {}).items())
    breaks = f"breaks “{claim['breaks'][name]}”" if name in claim["breaks"] else ""
    more = "; ".join(part for part in (fields, breaks, claim["why"].get(name, "").rstrip(".")) if part)
    return plain(name) + (f" ({plain(more)})" if more else "")


def _runs(claim: Mapping[str, Any], scale: str) -> str:
    runs, seeds = claim["runs"][scale], claim["seeds"][scale]
    return f"{plural(runs, 'run')} ({plural(runs // seeds, 'setting')} × {plural(seeds, 'seed')})"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        known = field_texts(value)
        parts = [text if isinstance(v, float) else _value(v) for v, text in zip(value, known, strict=True)]
        return (", " if isinstance(value, list) else ":").join(parts)
    if isinstance(value, bool | None):
        return "none" if value is None else str(value).lower()
    return field_texts([value])[0]


def _wrapped(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=first if rest is None else rest) or [first]


def _labelled(label: str, text: str, width: int) -> list[str]:
    return _wrapped(text, width, f"  {label:<{INDENT - 2}}", " " * INDENT)


def _table(fields: Sequence[Mapping[str, Any]], paper: bool, width: int) -> Iterator[str]:
    """Fields with role, default, quick and, if they differ, paper values, each over what it means; text is wrapped."""
    paper = paper or any(f["quick"] != f["paper"] for f in fields)
    names = ["field", "takes", "role", "default", "quick", *(["paper"] if paper else [])]
    rows = [
        [f["name"], _takes(f), f["role"] or "", *(_value(f[key]) for key in ("default", "quick", "paper")[: len(names) - 3])]
        for f in fields
    ]
    needed = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
    widths = _shared(needed, width - 2 * len(names))
    for row, meaning in zip([names, *rows], ["", *(f["meaning"] for f in fields)], strict=True):
        cells = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
        for i in range(max(map(len, cells))):
            parts = (f"{cell[i] if i < len(cell) else '':<{w}}" for cell, w in zip(cells, widths, strict=True))
            yield ("  " + "  ".join(parts)).rstrip()
        if meaning:
            yield from _wrapped(plain(meaning), width, "      ")


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
        earlier = f"The last call into {out} was of other claims; the command above judges the stored runs of this one again."
        words = earlier if claim["judged_before"] else f"No verdict in {out}; the command above makes one."
        yield from _wrapped(words, width, "")
        return
    seeds = f"seeds {last['seed_range']}" if last.get("seed_range") else None
    origin = ", ".join(str(v) for v in (last["file"], last["date"], last.get("scale"), *last["other"], seeds) if v)
    yield from _wrapped(f"last verdict: {last['verdict']} ({origin})", width, "")
    if last["other"]:
        yield from _wrapped(f"It is the verdict of other settings than the claim's own: {' '.join(last['other'])}.", width, "  ")
    if changed := last["changed"]:
        words = " and ".join(filter(None, (", ".join(changed[:-1]), changed[-1])))
        yield from _wrapped(f"It is of an older version of the claim: {words} changed since.", width, "  ")
    if why := claim["digest_unknown"]:
        words = f"Whether the judge, a control or a rival has changed since is not known: it uses {why}, which cannot be hashed."
        yield from _wrapped(words, width, "  ")
    yield from _outcome(last, width)


def _study(study: Mapping[str, Any], width: int) -> Iterator[str]:
    """The result at paper scale, from the study that ships with the package."""
    entry = study["claim"]
    verdict = f"{entry['verdict']}, expected {entry['expected']}" if studies.differs(entry) else entry["verdict"]
    yield ""
    yield from _wrapped(f"{study['where']}: {verdict} ({studies.provenance(study)}, seeds {entry.get('seed_range')})", width, "")
    if study["changed"]:
        yield from _wrapped(study["changed"], width, "  ")
    yield from _outcome(entry, width)


def _referee(said: Mapping[str, Any], width: int) -> Iterator[str]:
    """What the referee said last, attack by attack, and the factors of the law at which the checks begin to notice."""
    yield ""
    changed = "; the judge, controls or rivals changed since" if said["stale"] else ""
    yield f"the referee ({said['date']}): {plural(said['open'], 'open finding')}{changed}"
    for attack in said["attacks"]:
        yield from _wrapped(f"{attack['name']}: {attack['outcome']}. {plain(attack['detail'])}", width, "  ", "    ")
        for finding in attack["findings"]:
            excuse = f" (excused: {plain(finding['excuse'])})" if finding["excuse"] else ""
            yield from _wrapped(f"- {plain(finding['text'])}{excuse}", width, "    ", "      ")
        for factor in attack.get("factors", ()):
            yield from _wrapped(f"{factor_text(factor)}: {factor['code']}", width, "    ", "      ")


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
    bound = check.get("bound")
    seen = (check.get("value"), *(check.get("interval") or ()))
    digits = digits_apart(seen, (bound[0], bound[1])) if isinstance(bound, list) else VALUE_DIGITS
    text = reading_text(check, digits)
    if isinstance(bound, list):
        text += f", bound {bound_text((bound[0], bound[1]), digits)}"
    elif bound is not None:  # in studies stored when bounds were single numbers
        text += f", bound {_number(bound)}"
    needed = check.get("needed") if check.get("passed") is None else None
    return text + (f"; about {plural(needed, 'run')} would decide" if needed else "")


def reading_text(reading: Mapping[str, Any], digits: int = VALUE_DIGITS) -> str:
    """A value with its interval, on one line."""
    text = f"{plain(reading.get('name', ''))}: {_number(reading.get('value'), digits=digits)}"
    if interval := reading.get("interval"):
        text += f" [{_number(interval[0], '-inf', digits)}, {_number(interval[1], 'inf', digits)}]"
    return text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _number(value: Any, otherwise: str = "no number", digits: int = VALUE_DIGITS) -> str:
    return f"{value:.{digits}g}" if _is_number(value) else otherwise


def _resolution(resolution: Mapping[str, Any]) -> str:
    """The resolution in words: ``z 0.3 % (scale); Adam 12 % (mix)``."""
    parts = [(plain(k), v, word) for word in ("scale", "mix") for k, v in (resolution.get(word) or {}).items() if _is_number(v)]
    return "; ".join(f"{name} {100 * v:.2g} % ({word})" for name, v, word in parts)
