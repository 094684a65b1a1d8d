"""A hook for mkdocs that converts formulas to MathML while the site is built, so that pages need no script and no network."""

from __future__ import annotations

import html
import re
from typing import Any

from jaxdyn.report.mathml import to_mathml

__all__ = ["on_page_content"]

FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.S)


def on_page_content(content: str, **_: Any) -> str:
    """A page's HTML with MathML for each formula that ``pymdownx.arithmatex`` has marked.

    Raises:
        ValueError: a formula cannot be converted.
    """

    def formula(match: re.Match[str]) -> str:
        return to_mathml(html.unescape(match["latex"]).strip(), display=match["tag"] == "div")

    return FORMULA.sub(formula, content)
