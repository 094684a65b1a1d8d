"""Luck: how often a claim comes out otherwise on seeds that nobody has used, next to the level that it states.

Each set has as many seeds as the claim and is judged in full, with controls and rivals, and with more seeds where the claim may add
some. The stated level is the probability of another verdict to which the claim's intervals commit it: one minus the level of
every check that has one, summed. A check of every run's worst value states none. A measured claim's readings agree with their
records at the level of the records.
"""

from __future__ import annotations

import math

from scipy import stats

from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable, not_asked
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.runs import FRESH, run, seconds_of, short_of
from jaxdyn.engine.judging.comparisons import LEVEL
from jaxdyn.engine.judging.estimate import spent
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.verify import make_tasks
from jaxdyn.wording import plural

__all__ = ["LUCK", "share_interval", "stated_level"]

SETS = 20
FIRST = 4  # sets whose cost tells how many more there may be
SURE = 0.95  # that the share lies above the lower end of its interval, and below the upper one


def ask(case: Case) -> Answer:
    """How many fresh sets of seeds come out otherwise."""
    claim = case.claim
    if claim.seeds == 1:
        return not_applicable("it has one seed: nothing in it is random")
    most = max(claim.seeds, claim.max_seeds or 0)
    load = case.result.task.load
    tasks = [make_tasks([claim], fresh=FRESH + k * most, load=load)[0] for k in range(SETS)]
    one, two = seconds_of(tasks[0]), seconds_of(*tasks[:2])
    each = two - one  # programs are compiled once
    first = min(FIRST, int((case.time.left - (one - each)) / max(each, 1e-9)))
    if first < 1:
        return not_asked(short_of(case, one))
    before = case.time.spent
    results = run(case, tasks[:first], one + (first - 1) * each)
    each = max(each, (case.time.spent - before) / first)
    if (more := tasks[first : first + int(case.time.left / max(each, 1e-9))]) and first == FIRST:
        results += run(case, more, len(more) * each)
    return _answer(case, results)


def _answer(case: Case, results: list[Result]) -> Answer:
    others = [r for r in results if r.verdict != case.claim.expected]
    level, (low, high) = stated_level(case), share_interval(len(others), len(results))
    detail = f"{len(others)} of {plural(len(results), 'fresh set')} of seeds come out otherwise, a share of {low:.3g} to {high:.3g}"
    detail += f"; the level that it states allows {level:.3g}"
    findings = []
    if low > level:
        why = "; ".join(dict.fromkeys(f"{r.verdict}: {_why(r)}" for r in others))
        findings = [Finding("seeds", f"{detail}. {why}")]
    facts = {"sets": len(results), "others": len(others), "interval": [low, high], "level": level}
    return answered(detail, findings, **facts, verdicts=[r.verdict for r in results])


def _why(result: Result) -> str:
    return result.message or "; ".join(str(c) for c in result.checks if c.passed is not True)


def share_interval(hits: int, sets: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share: it lies above the lower end, and below the upper one, with 95% each.

    It is exact. Wilson's would take one refusal in twenty for proof that the share is above .011, where a claim with three checks
    states .009 and has one in twenty by right in a sixth of all cases.
    """
    low = float(stats.beta.ppf(1 - SURE, hits, sets - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(SURE, hits + 1, sets - hits)) if hits < sets else 1.0
    return low, high


def stated_level(case: Case) -> float:
    """The probability of another verdict that a claim states: over all looks, all its intervals together."""
    if case.measured:
        records = [record for record in (case.claim.recorded or {}).values() if isinstance(record, tuple) and record[0] < record[2]]
        return min(1.0, len(records) * (1 - LEVEL))
    result = case.result
    share = spent(result.task.terms.look)
    levels = [c.level for c in (*result.checks, *result.counterpart_checks) if c.level is not None]
    return min(1.0, math.fsum(1 - level for level in levels) / share)


LUCK = Attack("luck", "How often does the claim come out otherwise on fresh seeds?", ask, costly=True)
