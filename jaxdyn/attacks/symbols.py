r"""Symbols of a statement, and which of them it defines.

A symbol is a letter, Latin or Greek, whatever accent or index it has; words in upright type, operators and indices are none. It
is defined where it

- stands alone between dollars, or in a list, next to words (the rate $\eta$; matrices $A, B$), or in plain text (K nodes);
- is one side of an equation, an inequality or a membership ($u = ab$, $K \ge 16$, $x \sim N(0, 1)$), with its arguments;
- is the only unknown of a formula, which then says of the noun before it what the symbol is (the logits $1^\top z$, weights
  $1/\lambda$), or has its usual meaning and that stands in the statement in words ($\eta$ where there are steps);
- is the argument x of a function that is given by its value ($\sigma = x^2$);
- is bound by a sum, a product, an integral or an extremum;
- is the name of a field of the setting, or occurs like this in the title or in what is said of the test.

Universal ones need no definition: $e$, $\pi$, $i$, the identity $I$, $O(\cdot)$, the expectation $E[\cdot]$, the probability
$P(\cdot)$, the normal law $N(0, \cdot)$, the $d$ of a derivative, and time $t$ where something flows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["field_symbol", "undefined"]

GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho varrho sigma tau upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell"
).split()
UNICODE = dict(
    zip(
        "αβγδεζηθικλμνξπρστφχψω",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega".split(),
        strict=True,
    )
)
NAMES = {"lam": "lambda", "eps": "epsilon"}  # of fields, for letters
MATH = re.compile(r"\$([^$]*)\$")
ACCENTS = re.compile(
    r"\\(?:hat|tilde|bar|dot|ddot|overline|underline|vec|widehat|widetilde|mathbf|boldsymbol|mathcal|left|right|big|Big)\b"
)
UPRIGHT = re.compile(r"\\(?:mathrm|text|operatorname|mathbb|mathsf|textit)\s*(?:\{[^{}]*\}|.)")
BINDERS = re.compile(r"\\(?:sum|prod|int|max|min|sup|inf|lim|bigcup|bigcap|bigoplus|arg)\b")
GROUP = r"(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\\[A-Za-z]+|[^\s\\{}])"
SUBSCRIPT = re.compile(rf"_\s*({GROUP})")
MARK = re.compile(r"\^\s*(?:\\top|\\dagger|\\ast|\\star|[*+T']|\{[*+T']\}|\{\([^)]*\)\}|\{(?:-|\+)?\\top\})|'")
LETTER = re.compile(rf"\\(?:{'|'.join(GREEK)})\b|(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])|[A-Za-z]")
COMMAND = re.compile(rf"\\(?!(?:{'|'.join(GREEK)})\b)[A-Za-z]+")
RELATION = re.compile(
    r":=|[=<>]|\\(?:le|ge|leq|geq|lt|gt|ll|gg|in|sim|approx|equiv|to|rightarrow|leftarrow|propto|subset|subseteq|ne|neq|mid|perp|gtrsim|lesssim)\b"
)
FLOWS = re.compile(r"\\dot|\bflow|\btimes?\b|\bsteps?\b|\btrain|\bdescent\b|\bdynamics\b|d\s*t\b", re.I)
ELSEWHERE = re.compile(r"\b(?:letters|symbols|notation) of\b")  # with the letters of another claim
ACTIVATION = re.compile(r"\$[^$=]*=\s*x\s*(?:\^\s*\S+)?\s*\$")  # a function by its value at x
USUAL = {  # symbol -> words with which it has its usual meaning
    "W": "weight|network|layer|matri",
    "x": "input|data",
    "y": "target|label|output",
    "z": "logit",
    "L": "loss",
    "d": "dimension",
    r"\theta": "parameter|weight",
    r"\eta": "rate|step|descent",
    r"\lambda": "eigenvalue|decay|Laplacian",
    r"\mu": "mean",
    r"\sigma": "deviation|variance|activation",
    r"\tau": "temperature",
}
UNIVERSAL = {"e", "i", r"\pi", "I"}


def undefined(statement: str, *also: str, fields: Iterable[str] = ()) -> list[str]:
    """The symbols of a statement that are defined neither in it, nor in other texts, nor as fields, in their order.

    Args:
        statement: the text whose symbols are asked for.
        also: other texts, of which the definitions count.
        fields: names of fields.
    """
    if ELSEWHERE.search(statement):
        return []
    known = set(UNIVERSAL) | {symbol for text in (statement, *also) for symbol in _defined(text)}
    known |= {field_symbol(name) for name in fields}
    if ACTIVATION.search(statement):
        known.add("x")
    if FLOWS.search(statement):
        known.add("t")
    known |= {symbol for symbol, words in USUAL.items() if re.search(rf"\b(?:{words})", MATH.sub("", statement), re.I)}
    formulas = [_symbols(math) for math in MATH.findall(statement)]
    while named := {symbol for each in ({*formula} - known for formula in formulas) if len(each) == 1 for symbol in each}:
        known |= named
    return [symbol for symbol in dict.fromkeys(symbol for formula in formulas for symbol in formula) if symbol not in known]


def field_symbol(name: str) -> str:
    """The letter of a field by its name: lam is lambda, eta_y is eta."""
    base = NAMES.get(name.split("_")[0], name.split("_")[0])
    return rf"\{base}" if base in GREEK else base


def _symbols(math: str) -> list[str]:
    """The symbols in a formula, those that it binds left out."""
    bound = _bound(math)
    bare = _bare(math)
    differential = r"\int" in math or "/d" in bare or r"\frac{d" in math.replace(" ", "") or r"\partial" in math
    if differential:
        bare = re.sub(r"(?<![A-Za-z\\])d(?=\s?(?:\\[A-Za-z]|[A-Za-z]|/|\}|\^))", " ", bare)
    bare = re.sub(r"\bO(?=\s*\()|\bE(?=\s*[\[(])|\b(?:P|Pr)(?=\s*\()|\bN(?=\s*\(0)", " ", bare)
    return [symbol for symbol in LETTER.findall(COMMAND.sub(" ", bare)) if symbol not in bound]


def _bare(math: str) -> str:
    """A formula without words in upright type, accents, indices, and marks such as transposition."""
    text = ACCENTS.sub(" ", UPRIGHT.sub(" ", math))
    text = SUBSCRIPT.sub(" ", text)
    return MARK.sub(" ", text)


def _bound(math: str) -> set[str]:
    """The letters that sums, products, integrals and extrema bind."""
    found: set[str] = set()
    for binder in BINDERS.finditer(math):
        if index := re.match(SUBSCRIPT, math[binder.end() :].replace(r"\limits", "")):
            found |= {*LETTER.findall(COMMAND.sub(" ", ACCENTS.sub(" ", index[1])))}
    if r"\int" in math:
        found |= {*re.findall(rf"(?<![A-Za-z])d(\\(?:{'|'.join(GREEK)})\b|[A-Za-z])", math)}
    return found


def _defined(text: str) -> set[str]:
    """The symbols that a text defines."""
    found: set[str] = set()
    for math in MATH.findall(text):
        for part in re.split(r",|;|\\quad|\\qquad|\\text\{[^}]*\}", re.sub(r"\([^()]*\)", _protected, math)):
            for side in RELATION.split(part.replace("\0", ",")):
                found |= _alone(side)
    plain = MATH.sub(" § ", text)
    found |= {one for one in re.findall(r"(?<![\w'’.-])[B-HJ-Zb-z](?![\w'’]|\.\w)", plain)}
    found |= {"a"} if re.search(r"\ba(?:,| and) (?:b|§)\b|\b(?:in|of|§) a\b(?=[,.;)])", plain) else set()
    return found | {
        rf"\{UNICODE[one.lower()]}" if one.islower() else rf"\{UNICODE[one.lower()].capitalize()}" for one in _greek(plain)
    }


def _greek(plain: str) -> list[str]:
    return [one for one in plain if one.lower() in UNICODE and one.isalpha()]


def _protected(match: re.Match[str]) -> str:
    """Arguments, with commas that separate no formulas."""
    return match[0].replace(",", "\0")


def _alone(side: str) -> set[str]:
    """The symbols of one side of a relation, if it is a symbol, with arguments or in bars, or a list or a sum of such."""
    bare = re.sub(rf"(\\(?:{'|'.join(GREEK)})\s*)\^\s*(?:2|\{{2\}})\s*$", r"\1", _bare(side))  # the variance, a square
    bare = re.sub(r"\\(?:[,;:!| ]|dots\b|ldots\b|cdots\b|times\b|cdot\b|pm\b|mp\b|forall\b|exists\b)|\\\\|[{}|]", " ", bare).strip()
    if re.fullmatch(r"[(\[].*[)\]]", bare):
        bare = bare[1:-1]
    bare = _argument(bare)
    symbols = LETTER.findall(bare)
    shape = LETTER.sub("#", bare)  # each symbol one sign
    one = r"-?\s*#\s*(?:\([^()]*\)\s*)?"
    return {*symbols} if re.fullmatch(rf"{one}(?:[,;/+-]\s*{one})*", shape) else set()


def _argument(bare: str) -> str:
    """A formula in which the arguments of functions hold no parentheses: those of f(q(x)) are q x."""
    while (inner := re.sub(r"(\([^()]*)\(([^()]*)\)", r"\1 \2", bare)) != bare:
        bare = inner
    return bare
