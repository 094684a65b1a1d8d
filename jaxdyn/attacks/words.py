"""Words: what a title and a statement promise is decided by a check, and violated by an opponent that this check rejects.

- Each word that promises much (:mod:`jaxdyn.attacks.promises`) stands in ``decides``, by itself or in a phrase of the text:
  ``decides={"largest": ("check", "opponent")}``. The check and the opponent exist, and the check rejects the opponent. An entry
  whose word does not stand in the text is idle.
- *All*, *any* and *every* need no entry where a check compares each of what they are said of: its worst entry has such a
  coordinate (a seed for runs, networks and starts, which a mean over runs has not), or its name has the same words; and it
  rejects an opponent. *Most runs* needs none where such a check has a share of at least a half as its bound.
- The title of a measured claim asserts nothing (:mod:`jaxdyn.attacks.titles`).
- Each symbol of the statement is defined (:mod:`jaxdyn.attacks.symbols`).
- Bounds that are derived say from what: ``bounds="derived: from …"``.
- A misprint does not come true in a limit (:mod:`jaxdyn.attacks.misprints`).

A refuted form promises what is false; its words are not asked, and its bounds are its counterpart's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jaxdyn.attacks import misprints
from jaxdyn.attacks.answer import Answer, Finding, answered
from jaxdyn.attacks.attainable import answers
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.promises import Promise, promises
from jaxdyn.attacks.symbols import undefined
from jaxdyn.attacks.titles import asserting
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.contract import REFUTED
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Outcome

__all__ = ["WORDS", "decided"]

SAME = {  # axis -> other words for what lies along it
    "seed": "run start draw network student problem graph sample set piece text",
    "record": "time step epoch",
    "step": "time record epoch",
    "save": "time record step epoch",
    "time": "record step epoch",
    "layer": "block",
    "lr": "rate size",
    "entry": "element coordinate",
}
VERBS = ("are", "is", "have", "has", "do", "does", "of")  # what follows all, as a pronoun: all have, all of them


def ask(case: Case) -> Answer:
    """What the words of a claim promise that no check decides, and what else is wrong with its words."""
    claim = case.claim
    findings = [*_idle(case)] if claim.decides else []
    said: dict[str, Any] = {}
    if claim.expected != "refuted":
        said = {phrase: decided(case, phrase, promise) for phrase, promise in _promised(claim).items()}
        findings += [_open(phrase) for phrase, decision in said.items() if decision is None]
        if claim.bounds == "derived":
            findings.append(Finding("derived", 'the bounds are derived, and it is not said from what: bounds="derived: from …"'))
    if claim.expected == "measured" and (verb := asserting(claim.title)) is not None:
        findings.append(Finding("title", f"the title of a measured claim asserts something ({verb}): {claim.title}"))
    unknown = undefined(claim.statement, claim.title, claim.tested or "", fields=claim.quick.setting.hints)
    findings += [Finding(f"${one}$", f"the statement does not define ${one}$") for one in unknown]
    facts: dict[str, Any] = {"promises": {phrase: decision for phrase, decision in said.items() if decision is not None}}
    if claim.id.endswith(REFUTED[0]):
        found, facts["misprint"] = misprints.ask(case)
        findings += found
    decisions = f"words that promise much and are decided: {len(facts['promises'])} of {len(said)}"
    detail = decisions if said else "no word promises much"
    return answered(detail, findings, **facts)


def _open(phrase: str) -> Finding:
    return Finding(
        phrase, f"{phrase!r} promises much, and nothing says which check decides it and which opponent violates it (decides)"
    )


def _promised(claim: Claim) -> dict[str, Promise]:
    """The words of title and statement that promise much, once each, by word or phrase.

    A measured claim asks: all, any, every and most say of what it asks.
    """
    found: dict[str, Promise] = {}
    for text in (claim.title, claim.statement):
        keys = [span for key in claim.decides for span in _places(key, text)]
        for one in promises(text):
            if claim.expected == "measured" and one.kind != "other":
                continue
            key = next((text[a:b].lower() for a, b in keys if a < one.end and one.start < b), one.phrase)
            found.setdefault(key, one)
    return found


def _places(phrase: str, text: str) -> list[tuple[int, int]]:
    """Where a word or phrase stands in a text, small letters or capitals."""
    return [found.span() for found in re.finditer(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.I)]


# what decides a word


def decided(case: Case, phrase: str, promise: Promise) -> dict[str, str] | None:
    """The check that decides a phrase and an opponent that violates it and is rejected by this check; None if there is none."""
    entries: Mapping[str, tuple[str, str]] = {key.lower(): entry for key, entry in case.claim.decides.items()}
    if phrase in entries:
        return dict(zip(("check", "opponent"), entries[phrase], strict=True))  # _idle asks whether it does
    if promise.kind == "other":
        return None
    fits = _compares_each if promise.kind == "universal" else _compares_half
    for check in case.result.checks:
        if fits(check, promise) and (rejected := _rejected(case, check.name)):
            return {"check": check.name, "opponent": rejected[0]}
    return None


def _compares_each(check: Check, promise: Promise) -> bool:
    """Whether a check compares each of what all, any or every is said of."""
    nouns = {_singular(word) for word in promise.of}
    pronoun = not promise.of or promise.of[0] in VERBS
    for axis in check.worst:
        words = {*axis.lower().split("_"), *SAME.get(axis, "").split()}
        if nouns & words or (pronoun and axis != "seed"):
            return True
    named = re.finditer(r"\b(?:all|any|every|each)((?: [a-z-]+){1,3})", check.name.lower())
    return any(nouns & {_singular(word) for word in found[1].split()} for found in named)


def _compares_half(check: Check, promise: Promise) -> bool:
    """Whether a check compares a share of them with a half or more (or, of those of which it is not so, with a half or less)."""
    nouns = {_singular(word) for word in promise.of}
    if nouns and not nouns & {*SAME["seed"].split(), *map(_singular, check.name.lower().split())}:
        return False
    is_share = re.search(r"\b(?:share|fraction|most)\b", check.name, re.I) is not None
    return is_share and (check.bound[0] >= 0.5 or check.bound[1] <= 0.5)


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word in ("vertices", "indices", "matrices"):
        return {"vertices": "vertex", "indices": "index", "matrices": "matrix"}[word]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _outcomes(case: Case) -> list[Outcome]:
    return [*case.result.controls, *case.result.rivals]


def _rejected(case: Case, name: str) -> list[str]:
    """The opponents that a check rejects, or from which a reading is told apart."""
    return [o.name for o in _outcomes(case) if name in o.apart or any(c.name == name and c.passed is False for c in o.checks)]


def _idle(case: Case) -> Iterator[Finding]:
    """Entries of ``decides`` whose word does not stand in the text, or whose check or opponent is missing or does not decide."""
    claim = case.claim
    names = {one.name for one in answers(case.result)}
    opponents = {*claim.controls, *claim.rivals}
    for word, (check, opponent) in claim.decides.items():
        entry = f"decides={{{word!r}: …}}"
        if not any(_places(word, text) for text in (claim.title, claim.statement)):
            yield Finding(word, f"{entry} names a word that stands neither in the title nor in the statement")
        elif check not in names:
            yield Finding(word, f"{entry} names a check that there is not: {check!r}")
        elif opponent not in opponents:
            yield Finding(word, f"{entry} names neither a control nor a rival: {opponent!r}")
        elif opponent not in _rejected(case, check):
            yield Finding(word, f"{entry}: {check!r} does not reject {opponent!r}")


WORDS = Attack("words", "Is what the words promise decided by a check, and is everything defined that they speak of?", ask)
