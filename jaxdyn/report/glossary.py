"""The glossary: what each verdict, each term, and each fact and column of the report means.

The first screens (of the README, the report and the terminal) get by with the :data:`FIRST` words; any other word of the glossary
has its sentence there on hover. ``docs/concepts.md`` has a table of all words.
"""

from __future__ import annotations

from jaxdyn.engine.claims.contract import EVIDENCE

__all__ = ["COLUMNS", "FACTS", "FIRST", "GLOSSARY", "PARTS", "PLAIN", "VERDICTS", "sentence"]

FIRST = ("claim", "upheld", "refuted", "measured", "control", "rival")  # a first verdict takes these words, and no others
PLAIN = (  # words that mean here what they mean elsewhere in the field
    *("assumption", "bounds", "diverged", "error", "form", "grid", "look", "not run", "program", "setting", "skipped", "theory"),
)
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
    "bounds": "Of checks: the paper's own, derived, or tuned on some seeds and confirmed on others.",
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
}
PARTS = {  # what a claim is made of: words of its author, which no verdict needs
    "theory": "One line of work, a folder under `jaxdyn/theories`; its name is the first part of its claims' ids.",
    "setting": "A complete description of one run. *Swept* fields are traced numbers, of which one program serves all values; "
    "*static* fields (shapes, names) choose the program.",
    "program": "JAX code that is compiled once, for all runs that differ in swept fields and seeds alone.",
    "trial": "A pure function `(setting, key) -> observables` of one run: no files, no randomness but the key's.",
    "observables": "Arrays with named axes: `predicted` and `measured` under the same names, `recorded` for everything else, "
    "`assumed` for what the theorem presupposes.",
    "form": "A version of a prediction, such as *printed* and *derived*: claims on different forms are decided on the same runs.",
    "grid": "The settings of a claim at one scale.",
    "scale": "*Quick*: seconds to minutes on two cores. *Paper*: the publication's sizes, or larger ones than quick; some "
    "claims have the same runs at both.",
    "judge": "A function of the Dataset of all runs that returns checks, or readings where nothing is predicted.",
    "study": "A trial with its grids and seeds, and the claims that these runs decide (`jd.Study`); what it found for a claim at "
    "the paper's scale is stored with the package as the claim's study.",
}
FACTS = {  # facts that pages give of what they show, and headings of such facts -> what they say
    "Claims": GLOSSARY["claim"],
    "Scale": "Quick: seconds to minutes on two cores. Paper: the publication's sizes, or larger ones than quick.",
    "Seeds": "The numbers from which runs take their randomness, from the first up to the last, which is not among them.",
    "Runs": "Networks trained, flows integrated and formulas evaluated, each at one setting and one seed; those of controls, too.",
    "Runs ok": "Runs that ended with finite numbers. The others are in no median.",
    "Diverged": GLOSSARY["diverged"],
    "Outside": GLOSSARY["outside"],
    "Left out, summed over claims": f"Not judged. Diverged: {GLOSSARY['diverged']} Outside: {GLOSSARY['outside']}",
    "At paper scale": "Claims that were run once at the sizes of their publication; the outcomes are stored with the package.",
    "False by chance": GLOSSARY["false by chance"],
    "Programs": PARTS["program"],
    "Programs compiled": PARTS["program"],
    "Time": "Compiling and running the programs; a program that several claims share counts for each of them.",
    "Wall time": "From the start of the command to its end.",
    "Evidence": GLOSSARY["evidence"],
    "Assumes": GLOSSARY["assumption"],
    "Holds for": "The ranges of fields over which the statement is made; runs beyond them are another statement's.",
    "Bounds": GLOSSARY["bounds"],
    "Looks": "How often bounds or design were changed on this machine after runs of the claim had been seen.",
    "In print": "The words or the formula of the paper or talk.",
    "In the talks": "The slides that state it.",
    "Execution": "How many runs the verdict rests on, and what they cost.",
    "Settings": "The fields of one run, with their values in the claim's grid; those of controls differ as their names say.",
    "Home": "The file that holds the claim and its judge.",
    "Grid": "The fields that vary, with their values: every combination, or the points that were listed or drawn.",
    "Fixed": "Fields that have the same value in every run.",
    "Made with": "The versions that made the page.",
    "Note": "What the reader would otherwise take for a result.",
    "Text": "What the model read.",
    "Tokens": "How much of the text was read; each piece is read by itself.",
    "Steps": "The first and the last checkpoint of the series.",
}
COLUMNS = {  # columns of the report's tables -> what they say
    "Claim": GLOSSARY["claim"],
    "Verdict": "What the judge found, and below it, where there is one, the verdict at the paper's scale.",
    "Evidence": GLOSSARY["evidence"],
    "Resolution": GLOSSARY["resolution"],
    "Runs": "Trained networks, integrated flows or evaluated formulas of the claim itself, without those of its controls.",
    "Time": "Compiling and running the programs that a claim needs; a program that several claims share counts for each of them.",
    "Check": GLOSSARY["check"],
    "Gate": GLOSSARY["gate"],
    "Reading": GLOSSARY["reading"],
    "Outcome": "Passed, failed, or undecided: the interval of the value straddles the bound.",
    "Value": "The number that is compared, the worst of several; below it, if it is estimated over runs, its interval.",
    "Bound": "What the value must satisfy.",
    "Margin": "How far the value is from its bound: the factor between them, or its place between two bounds.",
    "Recorded": "The value of an earlier verification, with its interval.",
}
KINDS = {"refuted as printed": "misprint", "refuted beyond print": "beyond print", "not as expected": "as expected"}


def sentence(word: str) -> str:
    """What a word means, in a sentence or two without markup; empty if it is none of the glossary's.

    A kind of outcome (``refuted as printed``) has the sentence of its word, a plural that of its singular.
    """
    known = {**GLOSSARY, **VERDICTS}
    return known.get(KINDS.get(word, word)) or known.get(word.removesuffix("s"), "")
