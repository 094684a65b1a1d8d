"""Words that promise much, in a title or a statement: those that somebody who doubts the claim would hold it to.

They are universal (all, any, every), exclusive (only, exactly, unique, never, always), superlative (largest, least, best, first,
final), of a majority (most runs), or of a law's form (in proportion, in the order of, as the law says). A word counts where it is
said of the result. By grammar it is left out where it is not:

- in a question, and in a condition (from if, where, when, while, let, unless, once, until to the next comma; a sentence with
  *let* as a whole, its heading, *an identity for all pairs:*, and its setting, *with noise at every step,*), since a condition
  narrows what is said; in a relative clause that begins at most three words before (networks that never generalise);
- *all* after a preposition that makes it the range of a sum or a share (of, over, among, from, to), after *not*, and in *at all*;
  *any* after a negation or *without*;
- superlatives that name a quantity or a part (the largest eigenvalue, at the smallest rate, four first tokens, first order, at
  first, at least): they promise where they are said of something (is, has, keeps, ends at the largest), where *possible* follows,
  and as adverbs (helps most when, comes first);
- *order* as a number (order 2, first order, group order), which a bound states.

*For every seed* and *in every run* stay promises: a mean over runs does not decide them. They need no entry in ``decides`` where
a check compares each run (:mod:`jaxdyn.attacks.words`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

__all__ = ["Promise", "promises", "without_math"]

Kind: TypeAlias = Literal["universal", "majority", "other"]
MATH = re.compile(r"\$[^$]*\$")
FILLER = "§"  # in place of each character of a formula


@dataclasses.dataclass(frozen=True)
class Promise:
    """One word that promises much.

    Args:
        word: the word or phrase, in small letters.
        start: where it stands in the text.
        end: where it ends.
        kind: universal, majority or other.
        of: the words that follow it, up to a preposition or a stop: of what it is said.
    """

    word: str
    start: int
    end: int
    kind: Kind
    of: tuple[str, ...] = ()

    @property
    def phrase(self) -> str:
        """The word with what it is said of: every run, all pairs."""
        if self.kind == "other":
            return self.word
        return " ".join([self.word, *self.of[: 2 if self.of and ADJECTIVE.fullmatch(self.of[0]) else 1]])


@dataclasses.dataclass(frozen=True)
class Place:
    """A word in its sentence: what stands before and after it there, in small letters, formulas as fillers."""

    word: str
    left: str
    right: str

    def after(self, pattern: str) -> bool:
        """Whether what stands before the word ends with a pattern."""
        return re.search(rf"(?:{pattern})\s*$", self.left) is not None

    def before(self, pattern: str) -> bool:
        """Whether what stands after the word begins with a pattern."""
        return re.match(rf"\s*(?:{pattern})", self.right) is not None


DETERMINERS = r"\b(?:the|an?|its|their|each|every|whose|this|that|these|those|some|no)|\w['’]s|s['’]"
NUMBERS = r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|many|more|few|fewer|which|\d+)|§"
BE = r"\b(?:is|are|be|been|being|was|were|becomes?|remains?|stays?)"
HAVE = r"\b(?:has|have|reach(?:es)?|attains?)"
TAKE = r"\b(?:keeps?|holds?|learns?|finds?|gives?|gets?|takes?|chooses?|picks?|selects?|wins?|yields?)\s+(?:the|its|their)"
END = r"\b(?:ends?|converges?|tends?|turns?|arrives?|leads?|goes|go)\s+(?:at|in|to|on|with)"
STOP = r"[.,;:?!()]|$"
PREPOSITIONS = (
    "of|in|on|at|to|by|for|with|from|over|under|before|after|between|among|than|as|and|or|but|if|when|where|while|so|that|which|per"
)
SUPERLATIVES = (
    "largest|smallest|greatest|least|best|worst|highest|lowest|earliest|latest|longest|shortest|fastest|slowest|nearest|closest|"
    "farthest|furthest|strongest|weakest|steepest|heaviest|lightest|deepest|sparsest|densest|sharpest|flattest|widest|narrowest|"
    "hardest|easiest|simplest|optimal|optimum|maximal|minimal|maximum|minimum|unique|final"
)
ART = (
    r"shortest paths?|least squares|nearest neighbou?rs?|maximum likelihood|steepest descent|best fits?"  # terms, not superlatives
)
HEADING = re.compile(r"^\W*(?:an? |as )?(?:identity|construction|bound|printed)\b[^:,.]{0,60}:")
SETTING = re.compile(r"^\W*with\b[^,:;]*,(?:\s*(?:and )?with\b[^,:;]*,)*")
ADJECTIVE = re.compile(r"[a-z]+ed|[a-z]+al|other|such|two|three|four|five|distinct|new|single")  # before the noun of a phrase
CONDITION = re.compile(
    r"\b(?:if|where|wherever|when|whenever|while|unless|whether|once|until|provided|suppose|in which|for which)\b"
)
RELATIVE = re.compile(r"(?<!so )(?<!such )\b(?:that|which|who|whose)\b(?:\s+\S+){0,2}\s*$")


def promises(text: str) -> list[Promise]:
    """The words of a text that promise much, in their order."""
    found: list[Promise] = []
    plain = without_math(text).lower()
    for start, end in _sentences(plain):
        sentence = plain[start:end]
        if sentence.rstrip(" )").endswith("?") or re.match(r"[(\s]*let\b", sentence):
            continue
        conditional = _conditions(sentence)
        for word, kind, is_promise in RULES:
            for match in word.finditer(sentence):
                place = Place(match[0], sentence[: match.start()], sentence[match.end() :])
                if any(a <= match.start() < b for a, b in conditional) or RELATIVE.search(place.left) or not is_promise(place):
                    continue
                found.append(Promise(match[0], start + match.start(), start + match.end(), kind, _of(place.right)))
    return sorted({one.start: one for one in reversed(found)}.values(), key=lambda one: one.start)


def without_math(text: str) -> str:
    """The text with fillers in place of formulas, as long as it was."""
    return MATH.sub(lambda found: FILLER * len(found[0]), text)


def _sentences(plain: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends; a period before a small letter or a digit ends none."""
    begin = 0
    for stop in re.finditer(r"[.?!]\)?(?=\s|$)", plain):
        if re.search(r"\b(?:e\.g|i\.e|cf|vs|eq|fig)\.$", plain[begin : stop.end()]):
            continue
        yield begin, stop.end()
        begin = stop.end()
    if plain[begin:].strip():
        yield begin, len(plain)


def _conditions(sentence: str) -> list[tuple[int, int]]:
    """The parts of a sentence that are conditions: up to the next comma or stop."""
    found = [opening.span() for pattern in (HEADING, SETTING) if (opening := pattern.match(sentence))]
    for match in CONDITION.finditer(sentence):
        if re.match(r"\s+and only if", sentence[match.end() :]) or re.search(r"only\s*$", sentence[: match.start()]):
            continue
        stop = re.search(r"[;:)]|,(?!\s+(?:and|or)\b)|$", sentence[match.end() :])
        assert stop is not None, "the end of the sentence is a stop"
        found.append((match.start(), match.end() + stop.start()))
    return found


def _of(right: str) -> tuple[str, ...]:
    """The words that follow, up to a preposition or a stop; at most four."""
    words: list[str] = []
    for word in re.findall(rf"[a-z][a-z'’-]*|{FILLER}+|[.,;:?!()]", right.lstrip(f" {FILLER}"))[:4]:  # all $K$ classes
        if re.fullmatch(PREPOSITIONS, word) or not word[0].isalpha():
            break
        words.append(re.sub("['’]s$", "", word))
    return tuple(words)


# where a word promises


def _all(at: Place) -> bool:
    ranges = r"\b(?:of|over|among|from|on|to|by|than|between|within|through|against|but|not|nor|after|with a share of)"
    idiom = at.after(r"\b(?:at|in|after)") and at.before(rf"{STOP}|in\b|of\b|by\b")
    return not (at.after(ranges) or idiom or _negated(at))


def _any(at: Place) -> bool:
    return not (_negated(at) or at.after(r"\b(?:without|before|in)") or re.search(r"\b(?:no|without|if)\b[^,]{0,40}$", at.left))


def _negated(at: Place) -> bool:
    return re.search(r"\b(?:not|cannot|nor|neither)\b(?:\s+\S+){0,3}\s*$|\bno\b[^,;:]{0,40}$", at.left) is not None


def _every(at: Place) -> bool:
    """Whether it is said of the result, not of how something is done (encoding the window anew for every token)."""
    done = re.search(r"\b[a-z]{2,}ing\b(?:\s+[^\s,;:]+){0,4}\s+(?:for|at|after|in)\s*$", at.left)
    return not (_negated(at) or done)


def _only(at: Place) -> bool:
    return not (at.after(r"\b(?:not|in which)") or at.after(r"\bthe"))


def _always(at: Place) -> bool:
    return not at.after(r"\bnot")


def _anywhere(at: Place) -> bool:
    return True


def _superlative(at: Place) -> bool:
    """Whether it is said of something, is the most that is possible, or is an adverb."""
    defined = at.after(rf"(?:{FILLER}|\breadings?)\s+(?:is|being|are)\s+the")
    if defined or (at.word == "least" and at.after(r"\bat")) or re.match(ART, at.word + at.right):
        return False
    article = r"(?:\s+(?:not|the|an?|its|their|one of the))*"
    extreme = at.word in ("minimum", "maximum", "optimum")
    said = (
        at.after(r"\s(?:its|the)") and at.after(rf"(?:{BE}|{HAVE}){article}")
        if extreme
        else (at.after(rf"(?:{BE}|{HAVE}|{END}){article}|{TAKE}"))
    )
    possible = at.before(r"(?:\S+\s+){0,2}(?:possible|attainable|it can|they can|that can)\b")
    return said or possible or _adverb(at)


def _adverb(at: Place) -> bool:
    if at.word not in ("best", "most", "least", "fastest", "slowest", "earliest", "latest", "highest", "lowest"):
        return False
    noun = at.after(DETERMINERS) or at.after(NUMBERS) or at.after(rf"\b(?:{PREPOSITIONS})") or not at.left.strip(" (")
    return not noun and at.before(rf"{STOP}|(?:when|where|on|in|at|before|after|if|for|with|among|over)\b")


def _most(at: Place) -> bool:
    """*Most* as a superlative: the most frequent, helps most when."""
    return not at.after(r"\bat") and _superlative(at)


def _majority(at: Place) -> bool:
    """*Most* as more than half: in most runs, most of them."""
    if at.after(DETERMINERS) or at.after(r"\b(?:at|with|by|than|or|and)") or at.after(HAVE) or at.after(NUMBERS):
        return False
    return at.before(r"of (?:the|them|these|those)\b|[a-z]+s\b(?!['’])") and not at.before(r"(?:[a-z]*less|[a-z]*ous)\b")


def _first(at: Place) -> bool:
    """*First* as an adverb, which says that something comes before all else."""
    if at.before(r"order\b|power\b") or at.after(r"\b(?:at|stands?)"):
        return False
    if at.before(rf"{STOP}"):
        return not at.after(rf"{DETERMINERS}|\bits")
    noun = at.after(DETERMINERS) or at.after(NUMBERS) or at.after(rf"\b(?:{PREPOSITIONS})(?<!and)(?<!or)(?<!that)")
    return at.after(r"\bthe") and at.before(r"to (?!the\b|an?\b)[a-z]") if noun else True


def _order(at: Place) -> bool:
    if at.after(r"\b(?:up to the|of the|random|reverse|group|leading|any|cyclic)"):
        return False
    return at.after(r"\b(?:in the|the right|right|the same|same|their|its|only the)") and not at.before(r"(?:\d|one\b|two\b)")


RULES: tuple[tuple[re.Pattern[str], Kind, Callable[[Place], bool]], ...] = (
    (re.compile(r"\ball\b"), "universal", _all),
    (re.compile(r"\bevery\b"), "universal", _every),
    (re.compile(r"\bany\b"), "universal", _any),
    (re.compile(r"\b(?:always|never)\b"), "other", _always),
    (re.compile(r"\bonly\b"), "other", _only),
    (re.compile(r"\b(?:exactly|precisely|uniquely|finally)\b"), "other", _anywhere),
    (re.compile(rf"\b(?:{SUPERLATIVES})\b"), "other", _superlative),
    (re.compile(r"\bmost\b"), "other", _most),
    (re.compile(r"\bmost\b"), "majority", _majority),
    (re.compile(r"\bfirst\b"), "other", _first),
    (re.compile(r"\border\b(?!-)"), "other", _order),
    (re.compile(r"\b(?:in proportion|proportional|proportionally)\b"), "other", _anywhere),
    (re.compile(r"\bas (?:the |a |an )?[^,;:.()]{1,40}?\bsays?\b"), "other", _anywhere),
)
