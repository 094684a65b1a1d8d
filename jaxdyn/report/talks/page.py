"""``docs/talks.md``: all rows with their fates, and how many have which, in the README."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxdyn.engine.claims.claim import Claim
from jaxdyn.errors import UsageError
from jaxdyn.report.catalogue import link
from jaxdyn.report.talks.fates import OUTCOMES, SCALES, Decision, Fate, Value, fates, source, summary
from jaxdyn.report.talks.rows import Home, Row, cell, homes, master, talks

__all__ = ["page", "with_counts", "since_when", "limits_of"]

MARKS = ("<!-- talks -->", "<!-- end of talks -->")
INTRO = """# The talks, slide by slide

Five talks by Y. Tian. Each theorem, figure, table and number has a row, in the order of the slides: what it says, how it
fared (*outcome*) and at what size (*scale*), the check of a claim that is its sentence, what is printed, and ours. A row that
repeats another points to it. *Only* tells what a claim assumes and the ranges of its fields, *not* at which settings it is
not so: its checks must fail there, and do. `jaxdyn verify CLAIM` repeats a claim's verdict, `python experiments/NAME.py` an
experiment. The date is that of the runs that decided it; *earlier* marks runs from before the checks were last changed. This
page is written by `make docs`.
"""
FILTER = '<div id="talks-filter"></div>'
HEAD = "| slide | what it says | outcome | scale | decided by | theirs | ours |\n|---|---|---|---|---|---|---|"


def page(claims: Sequence[Claim], root: Path) -> str:
    """The text of ``docs/talks.md``."""
    by_row, found = homes(claims, root), fates(claims, root)
    counted = summary(found)
    outcomes = {name: sum(n for (outcome, _), n in counted.items() if outcome == name) for name in OUTCOMES}
    parts = [
        INTRO,
        "\n".join(
            f"- **{outcomes[name]} {words}**{_by_scale(counted, name)}: {meaning}." for name, (words, meaning) in OUTCOMES.items()
        ),
        "Scale: " + "; ".join(f"*{name}*: {meaning}" for name, meaning in SCALES.items()) + ".",
        FILTER,
    ]
    for talk in talks().values():
        raw = "" if talk.clean else " (its text is raw character recognition: formulas are taken from the others)"
        lines = (_line(row, found.get(row.name), by_row.get(row.name, ())) for row in talk.rows)
        parts += [f"## {talk.title}{raw}", "\n".join([HEAD, *lines])]
    return "\n\n".join(parts) + "\n"


def _by_scale(counted: Mapping[tuple[str, str], int], outcome: str) -> str:
    each = [f"{counted[outcome, scale]} {scale}" for scale in SCALES if counted.get((outcome, scale))]
    return f" ({', '.join(each)})" if each else ""


def with_counts(readme: str, claims: Sequence[Claim], root: Path) -> str:
    """The README with today's counts between their two marks: reproduced is what is so at full scale.

    Raises:
        UsageError: the README lacks the marks.
    """
    start, end = readme.find(MARKS[0]), readme.find(MARKS[1])
    if not 0 <= start < end:
        raise UsageError(f"the README lacks the marks {' and '.join(MARKS)}")
    counted = summary(fates(claims, root))
    scaled = {scale: counted["reproduced", scale] for scale in SCALES}
    more = f"{scaled['smaller']} more at a smaller scale and {scaled['reduced']} in the theory's reduced equations"
    others = [(words, sum(n for (one, _), n in counted.items() if one == name)) for name, (words, _) in OUTCOMES.items()]
    rest = ", ".join(f"{n} {words}" for words, n in others[1:] if n)
    sentence = (
        f"Of {counted.total()} statements, figures and numbers of [five talks](docs/talks.md): {scaled['full']} reproduced at full "
        f"scale, {more}; {rest}."
    )
    return readme[: start + len(MARKS[0])] + sentence + readme[end:]


def _line(row: Row, found: Fate | None, its_homes: Sequence[Home]) -> str:
    """A row of the page."""
    anchor, slide = f'<a id="{row.talk}-{row.id}"></a>', cell(row.slide)
    if row.same:
        note = f" {cell(row.note)}" if row.note else ""
        first = master(row)
        return f"| {anchor}{slide} | [as in “{cell(first.slide)}”](#{first.talk}-{first.id}){note} | | | | | |"
    assert found is not None, f"{row.name} has no fate"
    says = " ".join(filter(None, (f"*{row.kind}.*", row.says, row.fails, row.misprint, row.order, row.note)))
    scale = f"{found.scale} ({found.share:.2g})" if found.share is not None else found.scale
    decided = "<br>".join(_decided(row, found, its_homes)) or f"*reference only:* {cell(row.reference)}"
    ours = "<br>".join(map(_ours, found.values))
    return f"| {anchor}{slide} | {cell(says)} | {found.outcome} | {scale} | {decided} | {cell(row.theirs)} | {ours} |"


def _decided(row: Row, fate: Fate, its_homes: Sequence[Home]) -> list[str]:
    """Claims with their checks, evidence, date and limits; then those that are about the row, too, and experiments."""
    lines = []
    for one in fate.decisions:
        checks = "; ".join(f"“{cell(check)}”{since_when(one, check)}" for name, check in row.by if name == one.claim.id)
        lines.append(f"{_claim(one.claim)}: {checks}{_when(one)}{limits_of(one.claim)}")
    named = {one.claim.id for one in fate.decisions}
    lines += [f"*see* {_claim(home)}" for home in its_homes if isinstance(home, Claim) and home.id not in named]
    return lines + [f"`experiments/{home.name}`" for home in its_homes if isinstance(home, Path)]


def since_when(of: Decision, check: str) -> str:
    """The date of a check that is not among what decided its claim last."""
    seen = source(of, check)
    return f" (of {seen.date[:10]}, earlier{_at(seen.others)})" if seen is not None and seen.date not in ("", of.date) else ""


def _at(others: Sequence[str]) -> str:
    """That runs were made at other settings, in words."""
    return f", with other values of {', '.join(others)}" if others else ""


def limits_of(claim: Claim) -> str:
    """What a claim assumes, where it holds, and at which settings its checks must fail."""
    ranges = (f"{field} {low:g}" + (f" to {high:g}" if low < high else "") for field, (low, high) in claim.holds.items())
    only = [*map(str, claim.assumes), *ranges]
    without = [
        name + (f" (breaks “{control.breaks}”)" if control.breaks else "")
        for name, control in claim.controls.items()
        if isinstance(control.breach, Mapping)
    ]
    parts = (f"; *{word}:* {cell(', '.join(names))}" for word, names in (("only", only), ("not", without)) if names)
    return "".join(parts)


def _claim(claim: Claim) -> str:
    """A claim's title, linked to its file, with its evidence."""
    return f"{link(claim, '../', cell(claim.title))} (`{claim.id}`, {claim.evidence})"


def _when(one: Decision) -> str:
    """The verdict if it is not the expected one, and the date."""
    if one.verdict is None:
        return ", not recorded"
    verdict = f", {one.verdict}" if one.verdict != one.claim.expected else ""
    return f"{verdict}, {one.date[:10]}{'' if one.current else ', earlier'}"


def _ours(one: Value) -> str:
    """A number of ours with its name, and the factor to the printed one where they differ."""
    interval = f" [{one.interval[0]:.3g}, {one.interval[1]:.3g}]" if one.interval else ""
    factor = f", {one.factor:.2g} times the printed one" if one.agree is False and one.factor is not None else ""
    earlier = (f", of {one.date[:10]}, earlier{_at(one.others)}" if one.date else ", earlier") if one.earlier else ""
    return f"{one.value:.4g}{interval} ({cell(one.number.name)}, `{one.number.claim}`{factor}{earlier})"
