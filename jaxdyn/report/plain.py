r"""Text with LaTeX between dollar signs as plain Unicode for a terminal: x², xₖ, (a + b)/c, √(x), ‖W‖².

Scripts for which Unicode lacks raised or lowered characters are written ``^(…)`` and ``_(…)``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from jaxdyn.report.mathml import to_mathml
from jaxdyn.wording import FORMULAS

__all__ = ["formula", "plain"]

RAISED = dict(
    zip(
        "0123456789+−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδθφχ⊤",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᶿᵠᵡᵀ",
        strict=True,
    )
)
LOWERED = dict(zip("0123456789+−=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ", strict=True))
ACCENTS = dict(
    zip("˜~˙¨¯‾ˆ^ˇ´`˘→⃗", "\u0303\u0303\u0307\u0308\u0304\u0304\u0302\u0302\u030c\u0301\u0300\u0306\u20d7\u20d7", strict=True)
)
HALVES = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾", "1/8": "⅛"}
RELATIONS = frozenset("=≠≥≤<>→←↔↦⇝⇒⇔⟹⟺≈∈∉∝≫≪∼≃≅≍≡≳≲⊂⊆∣≔")
SIGNS = frozenset("+−±∓")  # between terms of a sum, or in front of a number
BINARY = SIGNS | frozenset("×∘∧∨∪∩⊕⊗")
LARGE = frozenset("∑∏∫∮⋃⋂⨁⨂")
FENCES = {"(": "open", "[": "open", "{": "open", "⟨": "open", "⌊": "open", "⌈": "open"}
FENCES |= {")": "close", "]": "close", "}": "close", "⟩": "close", "⌋": "close", "⌉": "close", "|": "bar", "‖": "bar", "∥": "bar"}
PREFIXED = ("open", "relation", "sign", "binary", "comma", "slash", "apply", "large")  # a sign after one of these is a prefix
APPLY = "\u2061"
ROWS = ("math", "mrow", "mstyle", "mpadded", "semantics")


class Span(NamedTuple):
    """A part of a row: its text, and how it joins its neighbours."""

    text: str
    kind: str  # atom, word, large, relation, sign, binary, slash, comma, space, apply, open, close, bar, fraction


def plain(text: str) -> str:
    """Text for a terminal; a formula that cannot be converted is shown as its source."""
    return "".join(map(_part, FORMULAS.split(str(text))))


def _part(part: str) -> str:
    if len(part) > 2 and part[0] == part[-1] == "`":
        return part[1:-1]
    if len(part) > 2 and part[0] == part[-1] == "$":
        latex = part.strip("$").strip()
        try:
            return formula(latex)
        except ValueError:
            return latex
    return part.replace(r"\$", "$")


def formula(latex: str) -> str:
    """One formula, LaTeX without its dollar signs.

    Raises:
        ValueError: the formula cannot be converted.
    """
    return _text([ElementTree.fromstring(to_mathml(latex))])


# rows: spans, and how they join


def _text(nodes: Iterable[ElementTree.Element], *, tight: bool = False) -> str:
    return _join(_spans(nodes), tight)


def _spans(nodes: Iterable[ElementTree.Element]) -> list[Span]:
    spans: list[Span] = []
    for node in nodes:
        if node.tag in ROWS:
            spans += _spans(node)
        elif node.tag != "mspace" or node.get("width"):
            spans.append(_span(node))
    return spans


def _join(spans: Sequence[Span], tight: bool = False) -> str:
    """The text of a row, with spaces around relations and after words and commas; without these spaces in scripts (``tight``)."""
    text, before = "", Span("", "open")
    for at, span in enumerate(spans):
        if span.kind == "space":
            text += "" if tight or before.kind in PREFIXED else " "
            continue
        after = _next(spans, at)
        new = span.text
        if span.kind == "fraction" and not _stands_alone(before, after):
            new = f"({new})"
        if span.kind == "apply":
            new = "" if after.kind in ("open", "fraction") else " "
        elif span.kind in ("relation", "binary") or (span.kind == "sign" and before.kind not in PREFIXED):
            new = new if tight else f" {new} "
        elif span.kind == "comma":
            new = new if tight else f"{new} "
        elif _apart(before, span):
            new = f" {new}"
        text += new
        before = span
    return re.sub(r"(?<=[(\[⟨]) +| +(?=[)\]⟩,;])", "", re.sub(" +", " ", text)).strip()


def _next(spans: Sequence[Span], at: int) -> Span:
    return next((p for p in spans[at + 1 :] if p.kind != "space"), Span("", "close"))


def _stands_alone(before: Span, after: Span) -> bool:
    """Whether a fraction needs no parentheses: no neighbour could be read as part of its numerator or denominator."""
    return before.kind in ("open", "bar", "relation", "sign", "comma", "large") and after.kind in (
        "close",
        "relation",
        "sign",
        "comma",
    )


def _apart(before: Span, span: Span) -> bool:
    """Whether a space must separate two neighbours: words, large operators, open scripts, numbers."""
    if before.kind in ("word", "large"):
        return span.kind not in ("open", "close", "slash") or before.kind == "large"
    if span.kind in ("word", "large"):
        return before.kind in ("atom", "close", "fraction")
    if span.kind in ("atom", "fraction", "open") and before.kind in ("atom", "close", "bar"):
        open_script = re.search(r"[_^]\w$", before.text) and re.match(r"[\w√(]", span.text)
        return bool(open_script) or (before.text[-1:].isdigit() and span.text[:1].isdigit())
    return False


def _level(spans: Sequence[Span]) -> int:
    """How loosely the spans are bound: 0 for a single item, 1 for a product, 2 for a sum, fraction, relation or list."""
    spans = [p for p in spans if p.kind != "space"]
    depth, bars, outermost = 0, 0, 0
    for at, span in enumerate(spans):
        depth += {"open": 1, "close": -1}.get(span.kind, 0)
        bars ^= span.kind == "bar"
        if depth == 0 and not bars:
            if span.kind in ("relation", "sign", "binary", "comma", "slash", "fraction"):
                return 2
            outermost = max(outermost, int(at < len(spans) - 1))
    return outermost


def _grouped(node: ElementTree.Element, level: int = 0) -> str:
    """The text of a part, in parentheses if it is bound more loosely than this level."""
    spans = _spans([node])
    text = _join(spans)
    return f"({text})" if _level(spans) > level else text


# single elements


def _span(node: ElementTree.Element) -> Span:
    children = list(node)
    match node.tag:
        case "mi" | "mn" | "mtext":
            text = (node.text or "").replace("\u00a0", " ")
            return Span(text, "word" if len(text) > 1 and text.isalpha() or node.tag == "mtext" else "atom")
        case "mo":
            return _operator((node.text or "").strip())
        case "mspace":
            return Span(" ", "space")
        case "mfrac":
            top, bottom = _grouped(children[0], 1), _grouped(children[1])
            if node.get("linethickness") in ("0", "0px", "0pt"):  # a binomial, no quotient
                return Span(f"{_text(children[:1])} over {_text(children[1:])}", "atom")
            short = HALVES.get(f"{top}/{bottom}")
            return Span(short, "atom") if short else Span(f"{top}/{bottom}", "fraction")
        case "msqrt":
            return Span(f"√({_text(children)})", "atom")
        case "mroot":
            return Span(f"{_script([children[1]], RAISED, '')}√({_text(children[:1])})", "atom")
        case "msub" | "munder" | "msup" | "mover" | "msubsup" | "munderover":
            return _scripted(node.tag, children, node.get("accent") == "true")
        case "mtable":
            return Span(f"[{'; '.join(', '.join(_text([cell]) for cell in row) for row in children)}]", "atom")
        case "menclose":
            raise ValueError("a stroke or a box around a formula has no plain text")
        case "mphantom":
            return Span("", "space")
    return Span(_text(children), "atom")


def _operator(sign: str) -> Span:
    if sign in ("", "\u2062", "\u2063", "\u200b"):
        return Span("", "space")
    if sign == APPLY:
        return Span("", "apply")
    kinds = (("sign", SIGNS), ("binary", BINARY), ("relation", RELATIONS), ("large", LARGE), ("slash", "/"), ("comma", ",;"))
    kind = next((kind for kind, signs in kinds if sign in signs), FENCES.get(sign, "atom"))
    return Span({"∗": "*", "⟂": "⊥", "∥": "‖"}.get(sign, sign), "word" if len(sign) > 1 and sign.isalpha() else kind)


def _scripted(tag: str, children: Sequence[ElementTree.Element], accent: bool) -> Span:
    """A base with its scripts below and above."""
    # the base, in parentheses if it is compound
    base, *scripts = children
    inner = _spans([base])
    kind = inner[0].kind if len(inner) == 1 else "atom"
    if tag == "mover" and (accent or "".join(scripts[0].itertext()) in ACCENTS):
        return Span(_accented(_text([base]), "".join(scripts[0].itertext())), "atom")
    if kind in ("fraction", "sign", "binary", "relation"):
        kind = "atom"
    text = _join(inner)
    if _level(inner) > 0 or (base.tag in ("msup", "mover") and tag in ("msup", "msubsup") and not _is_accent(base)):
        text = f"({text})"
    # the scripts
    below = [scripts[0]] if tag in ("msub", "munder", "msubsup", "munderover") else []
    above = [scripts[-1]] if tag in ("msup", "mover", "msubsup", "munderover") else []
    low, high = _script(below, LOWERED, "_"), _script(above, RAISED, "^")
    # ‖W‖²_F: a script without lowered characters comes last, so that it is not read as raised
    order = high + low if low.startswith("_") and not high.startswith("^") else low + high
    return Span(text + order, kind)


def _is_accent(node: ElementTree.Element) -> bool:
    return node.tag == "mover" and node.get("accent") == "true"


def _accented(base: str, accent: str) -> str:
    """A letter with its accent; an accent over several letters is written after them."""
    mark = ACCENTS.get(accent, accent)
    if len(base) - sum(map(bool, map(unicodedata.combining, base))) == 1 and unicodedata.combining(mark):
        return unicodedata.normalize("NFC", base + mark)
    return f"({base}){accent}"


def _script(nodes: Sequence[ElementTree.Element], signs: dict[str, str], mark: str) -> str:
    text = _text(nodes, tight=True)
    if set(text) <= {"′", "*"}:  # these characters are already raised
        return text
    if all(c in signs for c in text):
        return "".join(signs[c] for c in text)
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"
