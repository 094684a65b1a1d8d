r"""Text with LaTeX between dollar signs as HTML with MathML; arXiv numbers become links."""

from __future__ import annotations

import re

from markupsafe import Markup, escape
from math_core import LatexError, LatexToMathML

from jaxdyn.wording import FORMULAS

__all__ = ["name", "to_mathml", "typeset"]

MACROS = {
    "E": r"\mathbb{E}",
    "R": r"\mathbb{R}",
    "abs": r"\lvert #1\rvert",
    "diag": r"\operatorname{diag}",
    "mathds": r"\mathbb{#1}",
    "norm": r"\lVert #1\rVert",
    "sgn": r"\operatorname{sgn}",
    "softmax": r"\operatorname{softmax}",
    "tr": r"\operatorname{tr}",
}
CONVERTER = LatexToMathML(macros=MACROS, fancy_error=False, allow_unreliable_rendering=True)
# characters that also look right in fonts without a MATH table; and no entities that are unknown to XML
REPAIRS = (
    ("&ApplyFunction;", "\u2061"),
    (">\u0332</mo>", ">\u203e</mo>"),  # a bar over more than one letter
    (">\u0302</mo>", ">\u02c6</mo>"),  # a wide hat
    ("<mo>\u2032</mo>", '<mo class="prime">\u2032</mo>'),
)
ARXIV = re.compile(r"\barXiv[: ]\s?(\d{4}\.\d{4,5}(?:v\d+)?)")
SHORT = re.compile(r"(?<![\w$\\`])([A-Za-z]{1,2})_(\d+|[A-Za-z]{1,3})(?![\w`])")  # p_50, G_F, but not train_loss


def to_mathml(latex: str, display: bool = False) -> str:
    r"""One formula, LaTeX without its dollar signs, as a ``<math>`` element.

    Raises:
        ValueError: the formula cannot be converted (an unknown macro, an unmatched brace).
    """
    try:
        math = CONVERTER.convert_with_local_state(latex, displaystyle=display)
    except LatexError as error:
        raise ValueError(f"cannot typeset ${latex}$: {error}") from error
    for old, new in REPAIRS:
        math = math.replace(old, new)
    return math


def typeset(text: str) -> Markup:
    """Text with LaTeX between dollar signs (``$$`` for a displayed formula) as HTML; a formula that fails is shown as source."""
    return Markup("").join(_piece(piece) for piece in FORMULAS.split(str(text)))


def name(text: str) -> Markup:
    """The name of a check or a control as HTML: as :func:`typeset`, with short identifiers (``p_50``) as mathematics."""
    pieces = FORMULAS.split(str(text))
    pieces[::2] = [SHORT.sub(r"$\1_{\2}$", plain) for plain in pieces[::2]]
    return typeset("".join(pieces))


def _piece(piece: str) -> Markup:
    if len(piece) > 2 and piece[0] == piece[-1] == "`":
        return Markup("<code>{}</code>").format(piece[1:-1])
    if len(piece) > 2 and piece[0] == piece[-1] == "$":
        latex = piece.strip("$").strip()
        try:
            return Markup(to_mathml(latex, display=piece.startswith("$$")))
        except ValueError:
            return Markup('<code class="tex">{}</code>').format(latex)
    plain = str(escape(piece.replace(r"\$", "$")))
    return Markup(ARXIV.sub(r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', plain))
