"""Titles of measured claims assert nothing: they are questions, or noun phrases.

A title asks if it ends with a question mark or begins with an interrogative word, perhaps after a preposition (how slowly streams
change, from which share of pairs networks generalise). Any other title has to be a noun phrase: it has no verb in the present but
those of its relative and subordinate clauses, one for each (the share of all attention that the heaviest tokens get). A word is
taken for such a verb if

- it is an auxiliary (is, are, does, has, can),
- it is a common verb in the third person that does not follow an article, a preposition, a number or a plural, and, where it may
  be a noun as well, is not followed by *of*, *in* or another preposition of noun phrases (attention ends elsewhere; not: gradient
  ranks in small decoders),
- it is a common verb in its base form, which follows a plural if it may be a noun as well (thoughts rank nodes).

So a verb that is none of the common ones is not noticed; a noun phrase is hardly ever taken for a sentence.
"""

from __future__ import annotations

import re

__all__ = ["asserting"]

ASKS = re.compile(
    r"^(?:(?:for|from|at|in|with|by|to|on|of|after|under|above|below|up to|since|until) )?"
    r"(?:how|what|which|when|where|who|whose|whether|why)\b",
    re.I,
)
CLAUSES = {
    "that",
    "which",
    "who",
    "whose",
    "where",
    "when",
    "while",
    "if",
    "before",
    "after",
    "until",
    "once",
    "what",
    "how",
    "whether",
}
AUXILIARIES = {
    "is",
    "are",
    "was",
    "were",
    "do",
    "does",
    "did",
    "has",
    "have",
    "had",
    "can",
    "cannot",
    "could",
    "will",
    "must",
    "may",
    "need",
}
VERBS = {
    *"add agree ask avoid beat become begin break bring carry choose climb come compare conserve contain converge".split(),
    *"depend describe decide determine differ disappear emerge exceed exist expand explain extend fail fill find".split(),
    *"follow forget gather generalise generalize get give go govern grow happen hasten improve keep learn leave lie".split(),
    *"lose make meet mend miss obey occur outperform predict preserve prevent produce prune put reach reduce rely".split(),
    *"remain remove repel replace require reveal rotate say see select separate serve settle sharpen shrink solve".split(),
    *"suffice survive take tell unlearn vanish vary write".split(),
}
ALSO_NOUNS = {  # verbs in their base form
    *"cause change copy cost count cover cross decay delay drive drop end equal fall fire fit force form gain help".split(),
    *"hide hold increase lack lead match matter mean measure move need open order pass pay rank read repeat rest".split(),
    *"return rise scale set share shift show slow split spread start stay stop store switch tend train transfer turn".split(),
    *"use win work".split(),
}
PHRASES = {"of", "in", "for", "by", "with", "on", "and", "or", ",", ""}  # what follows a noun rather than a verb
BEFORE_NOUNS = {
    *"a an the its their of in by for with at to on from between under over per across against and or two three four".split(),
    *"no all any each every some many few more most other another same this that these those own not as".split(),
}


def asserting(title: str) -> str | None:
    """The verb with which a title asserts something; None if it is a question or a noun phrase."""
    if title.rstrip().endswith("?") or ASKS.match(title.strip()):
        return None
    words = re.findall(r"[A-Za-z][A-Za-z’'-]*|\d+|[,;:]", title)
    clauses = 0  # that wait for their verb
    for place, word in enumerate(map(str, words)):
        before = words[place - 1].lower() if place else ","
        after = words[place + 1].lower() if place + 1 < len(words) else ""
        if word in ",;:":
            clauses = 0
        elif word.lower() in CLAUSES:
            clauses += 1
        elif place and _is_verb(word.lower(), before, after):
            if not clauses:
                return word
            clauses -= 1
    return None


def _is_verb(word: str, before: str, after: str) -> bool:
    if word in AUXILIARIES:
        return True
    if before in BEFORE_NOUNS or not before[0].isalpha() and not before.isdigit() or "'" in before:
        return False
    plural = before.endswith("s") and not before.endswith(("ss", "us", "is"))
    if word in VERBS or (word in ALSO_NOUNS and plural):
        return True
    base = _base(word)
    return base != word and not plural and (base in VERBS or (base in ALSO_NOUNS and after not in PHRASES))


def _base(word: str) -> str:
    """The base form of a verb in the third person: carries, reaches, gives."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
        return word[:-2]
    return word.removesuffix("s")
