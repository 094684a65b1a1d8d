"""The referee's recorded answers on the claims of the package, which ``show``, pages and the catalogue give with each claim.

``python -m jaxdyn.maintain referee DIR`` adds the answers in the output folder of ``jaxdyn referee`` to the shipped file. Reading
that file takes no JAX, so that lists stay quick.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim

__all__ = [
    "ANSWERS",
    "RECORDED",
    "brief_of",
    "counted",
    "factor_text",
    "findings_of",
    "new_findings",
    "recorded_answers",
    "summary_of",
    "what_was_asked",
    "write_answers",
    "kept_numbers",
]

RECORDED = Path(__file__).with_name("recorded.json")
ANSWERS = "referee.json"  # in the output folder
KEPT = ("name", "outcome", "detail", "findings")  # of an attack's answer; of its facts, a few numbers


@functools.cache
def recorded_answers() -> dict[str, dict[str, Any]]:
    """``{id: {"digest", "date", "attacks"}}``; empty if the file is missing or damaged."""
    try:
        return dict(parse_json(RECORDED.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def summary_of(claim: Claim) -> dict[str, Any] | None:
    """What the referee said last of a claim; None if he was not asked.

    ``open`` counts its open findings, and ``stale`` says whether its words, judge, controls or rivals have changed since.
    """
    found = recorded_answers().get(claim.id)
    if found is None:
        return None
    rest = {name: value for name, value in found.items() if name != "digest"}
    return rest | {"stale": found["digest"] != what_was_asked(claim), "open": len(findings_of(found))}


def what_was_asked(claim: Claim) -> str:
    """Hash of what a claim says and how it is judged."""
    from jaxdyn.engine.judging.digest import digest

    words = (claim.title, claim.statement, claim.tested, claim.bounds, *map(sorted, _words_of(claim)))
    return hashlib.sha256(repr((digest(claim), words)).encode()).hexdigest()[:16]


def _words_of(claim: Claim) -> Iterable[Iterable[Any]]:
    controls = ((name, control.why, control.breaks) for name, control in claim.controls.items())
    return claim.decides.items(), claim.excused.items(), claim.holds.items(), controls


def new_findings(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Attack and text of the open findings of an entry that are not on record; a place in the sources counts without its line."""
    before = recorded_answers().get(entry["id"], {"attacks": []})
    known = {(a["name"], _place(f["subject"])) for a in before["attacks"] for f in a["findings"]}
    found = [(a["name"], f) for a in entry["attacks"] for f in a["findings"] if not f["excuse"]]
    return [(name, f["text"]) for name, f in found if (name, _place(f["subject"])) not in known]


def _place(subject: str) -> str:
    return re.sub(r"(?<=\.py):\d+", "", subject)


def findings_of(entry: Mapping[str, Any], *, excused: bool = False) -> list[tuple[str, str, str]]:
    """Attack, text and excuse of the findings of an entry: the open ones or, if asked for, the excused ones."""
    found = [(a["name"], f["text"], f["excuse"]) for a in entry["attacks"] for f in a["findings"]]
    return [one for one in found if bool(one[2]) == excused]


def counted(entries: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """For each attack the number of claims by outcome."""
    found: dict[str, collections.Counter[str]] = {}
    for attack in (attack for entry in entries for attack in entry["attacks"]):
        found.setdefault(attack["name"], collections.Counter())[attack["outcome"]] += 1
    return {name: dict(counts) for name, counts in found.items()}


def brief_of(claim_id: str) -> dict[str, Any] | None:
    """The referee's last word on a claim in brief, for lists; None if he was not asked.

    Returns:
        ``date``; ``open`` and ``excused``, numbers of findings; ``weakest``, the factor by which a number of the law may be wrong
        before a check notices, and its line (None: more than 2), or None if no number was asked.
    """
    found = recorded_answers().get(claim_id)
    if found is None:
        return None
    factors = [f for attack in found["attacks"] for f in attack.get("factors", ())]
    sizes = [(max(1 / f["low"] if f["low"] else math.inf, f["high"] or math.inf), f["where"]) for f in factors]
    weakest = max(sizes, default=None)
    return {
        "date": found["date"],
        "open": len(findings_of(found)),
        "excused": len(findings_of(found, excused=True)),
        "weakest": weakest and {"factor": weakest[0] if math.isfinite(weakest[0]) else None, "where": weakest[1]},
    }


def factor_text(factor: Mapping[str, Any]) -> str:
    """The factors at which the checks begin to notice, in words: ``0.91 to 1.1``."""
    low, high = factor["low"], factor["high"]
    return f"{f'{low:.3g}' if low else 'below 0.5'} to {f'{high:.3g}' if high is not None else 'above 2'}"


def write_answers(folder: Path, date: str, claims: Mapping[str, Claim], target: Path = RECORDED) -> int:
    """Add the answers in an output folder to the shipped file; returns their number.

    Answers on claims that say something else now, or are judged otherwise, are left out.

    Raises:
        UsageError: the folder has no answers.
    """
    from jaxdyn.engine.base.jsonable import finite
    from jaxdyn.engine.storage.store import atomic_write

    try:
        read = parse_json((folder / ANSWERS).read_text(encoding="utf-8"))["claims"]
    except (OSError, ValueError, KeyError):
        raise UsageError(f"{folder} holds no answers of `jaxdyn referee`; give the folder that was its --out") from None
    now = {}
    for entry in (entry for entry in read if entry["id"] in claims):
        if (asked := what_was_asked(claims[entry["id"]])) == entry["asked"]:
            attacks = [{name: a[name] for name in KEPT} | kept_numbers(a) for a in entry["attacks"]]
            now[entry["id"]] = {"digest": asked, "date": date, "attacks": attacks}
    whole = {name: entry for name, entry in (recorded_answers() | now).items() if name in claims}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(finite(whole[name]), sort_keys=True)}" for name in sorted(whole))
    atomic_write(target, f"{{\n{lines}\n}}\n")
    recorded_answers.cache_clear()
    return len(now)


def kept_numbers(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Of an answer's facts the factors of a law; and of luck the sets, those that came out otherwise, and what is allowed."""
    facts = answer.get("facts", {})
    if "factors" in facts:
        return {"factors": facts["factors"]}
    if "others" in facts and "sets" in facts:
        return {"luck": {"sets": facts["sets"], "others": facts["others"], "allowed": facts["sets"] * facts["level"]}}
    return {}
