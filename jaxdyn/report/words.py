"""The words of the report: what each verdict means, and how numbers, shares and times are written."""

from __future__ import annotations

import math
import re
from typing import Any

from markupsafe import Markup, escape

from jaxdyn.engine.contract import EVIDENCE

__all__ = ["GLOSSARY", "VERDICTS", "badge", "breakable", "count", "duration", "number", "percent", "value"]

VERDICTS = {  # verdict -> what it means
    "upheld": "Every check passed, every control and every rival was rejected, and the resolution is finite.",
    "refuted": "At least one check failed on valid runs.",
    "toothless": "The checks passed, but say nothing: a control or a rival that no check rejects, or a check that rejects none of "
    "them. Such a pass never counts as verified.",
    "inconclusive": "The runs do not allow a decision: too few, or too many of them diverged, a gate was not met, no run lies "
    "inside the assumptions, or an interval lies astride its bound.",
    "measured": "An open question: the numbers are reported, and nothing depends on them.",
    "error": "The trial or the judge raised an exception; nothing was decided.",
}
GLOSSARY = {
    "claim": "A statement about training dynamics that can fail: a theory's prediction, compared with many runs by a judge.",
    "evidence": f"What the measured side is. {'; '.join(f'{kind}: {text}' for kind, text in EVIDENCE.items())}.",
    "assumption": "A hypothesis of the theorem, as a bound on a number that every run records.",
    "outside": "Runs that do not meet the assumptions. They are kept and counted, but not judged.",
    "gate": "What must be true of the runs before the statement speaks: trained, converged, within the regime. If a gate is not "
    "met, the claim is inconclusive, never refuted.",
    "check": "One comparison of the judge: a number and the bound that it must keep.",
    "undecided": "A check on a mean or a share over runs whose interval lies astride its bound. It neither passes nor fails; more "
    "runs would decide.",
    "control": "Another world: a setting or data in which one assumption is broken on purpose. The same checks must reject it.",
    "rival": "Another theory of the same data, first of all the mechanism switched off. The same checks must reject it.",
    "teeth": "Which check rejects which control or rival. Every check needs one that it rejects, and each of them a check.",
    "resolution": "The smallest distortion of the theory's prediction (scale), or the smallest share of a control's data mixed "
    "in (mix), that the checks would reject. A law confirmed to 0.1 % and one confirmed to 40 % are different results.",
    "blunt": "Upheld, but with no resolution below 10 %: a prediction off by a tenth would pass as well.",
    "as expected": "Formulas known to be wrong as printed are expected to be refuted, while the same checks uphold the "
    "corrected form on the same runs. Open questions are expected to be measured.",
    "diverged": "Runs that ended with a non-finite number or a failed solver. They are kept and counted, but not judged.",
    "time": "Compiling and running the programs that a claim needs; a program that serves several claims counts in each of them.",
}


def badge(verdict: str) -> Markup:
    """The verdict as a coloured word; the style sheet adds its sign."""
    known = verdict if verdict in VERDICTS else "unknown"
    return Markup('<span class="badge v-{}">{}</span>').format(known, verdict)


def breakable(name: Any) -> Markup:
    """A name that may break after dots, slashes and underscores on narrow screens."""
    return Markup("<wbr>").join(re.split(r"(?<=[./_])", str(name)))


def number(value: Any) -> Markup:
    """A number for reading: four digits, powers of ten written out, a dash for what is not a finite number."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return Markup('<span class="nil" title="not a finite number">–</span>')
    if isinstance(value, bool) or not isinstance(value, int | float):
        return escape(str(value))
    if isinstance(value, int) and abs(value) < 10**7:
        return Markup(f"{value:,}".replace("-", "−"))
    if value == 0 or 1e-3 <= abs(value) < 9999.5:
        return Markup(f"{value:.4g}".replace("-", "−"))
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = "" if float(mantissa) == 1 else f"{float(mantissa):g}\u00a0×\u00a0".replace("-", "−")
    return Markup(f"{mantissa}10<sup>{int(exponent)}</sup>".replace("<sup>-", "<sup>−"))


def percent(share: Any) -> Markup:
    """A share for reading, per cent with two digits: 12 %, 0.0015 %, 3 × 10^-7 %."""
    if not isinstance(share, int | float) or not math.isfinite(share):
        return number(None)
    if 0.995 <= share < 1.005:
        return Markup("100\u202f%")
    rounded = float(f"{100 * share:.2g}")
    return (Markup(f"{rounded:.10g}") if rounded >= 1e-3 else number(rounded)) + "\u202f%"


def duration(seconds: Any) -> str:
    """Seconds for reading; empty where unknown."""
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return ""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def value(setting: Any) -> Markup:
    """The value of a setting's field, or of several."""
    if isinstance(setting, list | tuple):
        return Markup(", ").join(map(value, setting)) or Markup("–")
    return Markup("none") if setting is None else escape(str(setting).lower()) if isinstance(setting, bool) else number(setting)


def count(n: int, noun: str) -> str:
    """``3 claims``, ``1 claim``."""
    return f"{n:,}\u00a0{noun}" + ("" if n == 1 else "s")
