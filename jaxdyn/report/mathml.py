r"""LaTeX in claims' statements, as MathML that browsers' MathML Core renders.

The conversion is latex2mathml's; around it stand the macros it lacks (``\norm``, ``\diag``, ``\E``, ``aligned``, …) and repairs
of what MathML Core leaves out: letters' styles become Unicode letters, function names get the space of functions.
"""

from __future__ import annotations

import contextlib
import html
import re
import unicodedata
from xml.etree import ElementTree

from latex2mathml.converter import convert

__all__ = ["to_mathml", "typeset"]

NAMES = "diag sgn sign tr Tr rank erf softmax relu ReLU argmin var Var Cov Cor span poly polylog arg Pr KL id".split()
MACROS = [
    (r"\\big+[lrm]?\s*\\\|", r"\\Vert "),
    (r"\\(?:norm)\s*\{([^{}]*)\}", r"\\lVert \1\\rVert "),
    (r"\\(?:abs)\s*\{([^{}]*)\}", r"\\lvert \1\\rvert "),
    (r"\\(?:E|EE)(?![A-Za-z])", r"\\mathbb{E}"),
    (r"\\(?:R|RR)(?![A-Za-z])", r"\\mathbb{R}"),
    (r"\\arg\s*\\(max|min)(?![A-Za-z])", r"\\operatorname{arg\1}"),
    (r"\\argmax(?![A-Za-z])", r"\\operatorname{argmax}"),
    (rf"\\({'|'.join(NAMES)})(?![A-Za-z])", r"\\operatorname{\1}"),
    (r"\\operatorname\*", r"\\operatorname"),
    (r"\\(?:mathrm|rm|mathsf)\s*\{([A-Za-z][A-Za-z -]+)\}", r"\\text{\1}"),
    (r"\\bmod(?![A-Za-z])", r"\\;\\operatorname{mod}\\;"),
    (r"\\pmod\s*\{([^{}]*)\}", r"\\;(\\operatorname{mod}\\;\1)"),
    (r"\\not\s*=", r"\\neq "),
    (r"\\(?:mathds|mathbbm)\s*", r"\\mathbb"),
    (r"\\begin\{(?:aligned|align\*?|split)\}", r"\\begin{array}{rl}"),
    (r"\\end\{(?:aligned|align\*?|split)\}", r"\\end{array}"),
]
# mathvariant -> how Unicode names the letters; MathML Core knows no mathvariant but "normal"
STYLES = {
    "bold": "BOLD",
    "bold-italic": "BOLD ITALIC",
    "script": "SCRIPT",
    "sans-serif": "SANS-SERIF",
    "double-struck": "DOUBLE-STRUCK",
    "fraktur": "FRAKTUR",
    "monospace": "MONOSPACE",
}
# glyphs that sit well with and without a mathematical font: hat, tilde, bar, dot, two dots, arrow
ACCENTS = {
    "^": "\u02c6",
    "~": "\u02dc",
    "\u2015": "\u203e",
    "\u00af": "\u00af",
    "\u02d9": "\u02d9",
    "\u00a8": "\u00a8",
    "\u2192": "\u2192",
}
THIN = "0.167em"


def _styled(character: str, style: str) -> str:
    """The mathematical letter or digit of this style, or the character itself where Unicode has none."""
    name = re.sub("LATIN |GREEK |LETTER ", "", unicodedata.name(character, ""))
    for words in (f"MATHEMATICAL {style} {name}", f"MATHEMATICAL {style.split()[0]} {name}", f"{style} {name}"):
        with contextlib.suppress(KeyError):
            return unicodedata.lookup(words)
    return character


def _repair_leaf(node: ElementTree.Element) -> None:
    """Letters' styles as Unicode letters; operators that the converter writes in ASCII."""
    style = node.attrib.get("mathvariant")
    if style in STYLES:
        del node.attrib["mathvariant"]
        if node.tag != "mtext":
            node.text = "".join(_styled(c, STYLES[style]) for c in node.text or "")
    if node.tag == "mi" and re.fullmatch("[\u0391-\u03a9]", node.text or ""):
        node.set("mathvariant", "normal")  # capital Greek is upright in LaTeX
    if node.tag == "mo" and node.text == "~":
        node.text = "\u223c"
    if node.attrib.get("width") == "negativethinmathspace":
        node.set("width", "-" + THIN)


def _repair_children(node: ElementTree.Element) -> None:
    """Accents, primes, the space around functions' names, signs that follow a relation."""
    if node.tag == "mover" and node[1].tag == "mo" and node[1].text in ACCENTS and node[0].tag != "mo":
        node.set("accent", "true")
        node[1].text = ACCENTS[node[1].text]
        node[1].attrib = {"stretchy": "true" if node[0].tag == "mrow" and len(node[0]) > 1 else "false"}
    if node.tag in ("msup", "msubsup") and re.fullmatch("[\u2032-\u2034]+", node[-1].text or ""):
        prime = ElementTree.Element("mo", lspace="0", rspace="0")  # text fonts have it raised already
        prime.text = node[-1].text
        base = ElementTree.Element("mrow")
        base.extend([node[0], prime])
        node.tag = "msub" if node.tag == "msubsup" else "mrow"
        node[:] = [base, *node[1:-1]]
    before = None
    for i, child in enumerate(node):
        after = node[i + 1].text if i + 1 < len(node) else None
        if child.tag in ("mi", "mo") and re.fullmatch("[A-Za-z][A-Za-z\u2009]+", child.text or ""):
            child.tag = "mo"
            opens = before is None or before.text in ("(", "[")
            child.attrib |= {"lspace": "0" if opens else THIN, "rspace": "0" if after in ("(", "[") else THIN}
        if child.tag == "mo" and child.text in ("\u2212", "+", "\u00b1") and before is not None and before.tag == "mo":
            if (before.text or "")[-1:] not in (")", "]", "}", "|", "\u2016", "\u2032", "\u27e9", "!"):
                child.set("form", "prefix")
        before = child


def to_mathml(latex: str, display: bool = False) -> str:
    r"""One formula, LaTeX without its dollar signs, as a ``<math>`` element.

    Raises:
        ValueError: for what cannot be converted (an unknown macro, an unmatched brace).
    """
    source = latex
    for pattern, replacement in MACROS:
        source = re.sub(pattern, replacement, source)
    try:
        out = convert(source).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
        root = ElementTree.fromstring(re.sub(r"&(?!#\w+;)", "&amp;", out))
    except Exception as error:  # the converter has a dozen exception types without a common one
        raise ValueError(f"cannot typeset ${latex}$: {error or type(error).__name__}") from error
    for node in list(root.iter()):
        if "\\" in (node.text or ""):
            raise ValueError(f"cannot typeset ${latex}$: unknown macro {node.text}")
        _repair_leaf(node)
        _repair_children(node)
    root.attrib = {"display": "block"} if display else {}
    return ElementTree.tostring(root, encoding="unicode")


def typeset(text: str) -> str:
    """Text with LaTeX between dollar signs (``$$`` for a line of its own) as HTML; a formula that fails is shown as source."""
    parts = re.split(r"(\$\$.+?\$\$|(?<!\\)\$.+?(?<!\\)\$|`[^`]+`)", text, flags=re.S)
    return "".join(_part(part) for part in parts)


def _part(part: str) -> str:
    if len(part) > 2 and part[0] == part[-1] == "`":
        return f"<code>{html.escape(part[1:-1])}</code>"
    if len(part) > 2 and part[0] == part[-1] == "$":
        latex = part.strip("$").strip()
        try:
            return to_mathml(latex, display=part.startswith("$$"))
        except ValueError:
            return f'<code class="tex">{html.escape(latex)}</code>'
    return html.escape(part.replace(r"\$", "$"), quote=True)
