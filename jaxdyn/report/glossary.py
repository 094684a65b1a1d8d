"""The glossary of the report: what each verdict and each term means."""

from __future__ import annotations

from jaxdyn.engine.claims.contract import EVIDENCE

__all__ = ["GLOSSARY", "VERDICTS"]

VERDICTS = {  # verdict -> what it means
    "upheld": "Every check passed, every control and every rival was rejected, and the resolution is finite.",
    "refuted": "At least one check failed on valid runs.",
    "toothless": "The checks passed, but prove nothing: no check rejects some control or rival, or some check rejects none of "
    "them. Such a pass never counts as verified.",
    "inconclusive": "The runs do not allow a decision: there are too few, too many of them diverged, a gate was not met, no run "
    "lies inside the assumptions, or an interval straddles its bound.",
    "measured": "An open question: the numbers are reported next to earlier records, and no theory is judged by them.",
    "error": "The trial or the judge raised an exception; nothing was decided.",
    "not run": "Selected, but not part of this verification. What was recorded, or found by an earlier call with the same folder, "
    "is shown greyed and dated, and counts nowhere.",
    "skipped": "Not run: something that the claim needs, such as a published model's weights, is not on this machine.",
}
GLOSSARY = {
    "claim": "A statement about training dynamics that can fail: a theory's prediction, compared with many runs by a judge.",
    "evidence": f"The origin of the measured side. {'; '.join(f'{kind}: {text}' for kind, text in EVIDENCE.items())}.",
    "assumption": "A hypothesis of the theorem, as a bound on a number that every run records.",
    "outside": "Runs that do not meet the assumptions. They are stored and counted, but not judged.",
    "gate": "A condition that the runs must meet before the statement applies: trained, converged, within the regime. If a gate is "
    "not met, the claim is inconclusive, never refuted.",
    "check": "One comparison of the judge: a number and the bound that it must satisfy.",
    "undecided": "A check on a mean or a share over runs whose interval straddles its bound. It neither passes nor fails; more "
    "runs would decide.",
    "reading": "A number that a measured claim takes from its runs, with an interval and without a bound. A rerun agrees with the "
    "record if its value lies in the prediction interval that the record implies; with fewer than 4/9 of the claim's seeds it "
    "cannot agree.",
    "told apart": "A control or rival of a measured claim is told apart if one of its readings lies outside both the interval of "
    "the claim's own runs and the recorded interval.",
    "mechanism off": "The rival in which the theory's mechanism is switched off; every claim on a model, "
    "a network or a flow rejects one.",
    "look": "One judgement of a claim; while a check is undecided, the claim may be judged again with twice the seeds. The k-th "
    "look spends 2⁻ᵏ of the error probability that its intervals are allowed, so that all looks together stay within it.",
    "not current": "Of a study at paper scale: its programs, its runs or the code of its judge have changed since it was made.",
    "false by chance": "How many of the upheld claims that rest on intervals could be upheld by chance, if all were false.",
    "control": "Another world: a setting or data in which one assumption is broken on purpose. The same checks must reject it.",
    "rival": "Another theory of the same data, first of all the mechanism switched off. The same checks must reject it.",
    "teeth": "The rejections of controls and rivals by checks. Every check must reject at least one of them, and each of them must "
    "be rejected by a check.",
    "resolution": "The smallest distortion of the theory's prediction (scale), or the smallest share of a control's data mixed "
    "in (mix), that the checks would reject; none for a sign, a count or an order, which has no small distortion. A law "
    "confirmed to 0.1 % and one confirmed to 40 % are different results.",
    "blunt": "Upheld, but with no resolution below 10 %: a prediction off by a tenth would pass as well.",
    "misprint": "A formula of a paper or a talk that is refuted as printed, within its assumptions, while a corrected "
    "form is upheld.",
    "beyond print": "A refuted form that nobody printed: a naive guess, or a paper's statement used beyond its assumptions. "
    "It refutes no paper.",
    "as expected": "Formulas known to be wrong as printed are expected to be refuted, while the same checks uphold the "
    "corrected form on the same runs. Open questions are expected to be measured.",
    "diverged": "Runs that ended with a non-finite number or a failed solver. They are stored and counted, but not judged.",
    "time": "Compiling and running the programs that a claim needs; a program that several claims share counts for each of them.",
}
