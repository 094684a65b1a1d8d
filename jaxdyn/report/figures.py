"""Figures as the page stores them: each drawing once, the outlines of letters once for all figures, everything deflated.

A figure is stored as base64 of raw deflate; the page's script inflates it when it comes into view, and all figures before printing.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from jaxdyn.plotting.svg import GLYPH

__all__ = ["Figures", "Stored", "deflated", "inflate"]

IMAGE = re.compile(r'data:image/png;base64,[^"]*')


@dataclasses.dataclass(frozen=True)
class Stored:
    """One figure of the page.

    Args:
        packed: the SVG without letters, as base64 of raw deflate; empty if another claim has the same drawing.
        width, height: size of the drawing, in its own units.
        label: a description of the figure.
        same_as: the claim whose section has this drawing, if it is another one.
        text: a sentence that replaces a figure which could not be drawn.
    """

    packed: str = ""
    width: str = "504"
    height: str = "252"
    label: str = ""
    same_as: str | None = None
    text: str = ""


SAMPLES, SAMPLE = 8, 4000  # the text common to figures is taken from the first 4000 characters of 8 figures


class Figures(Mapping[str, Stored]):
    """The figures of a report by claim id; :attr:`glyphs` are the outlines of all their letters, packed.

    Many figures are packed as continuations of one stream of common text, :attr:`common`, which makes them a tenth smaller.
    """

    def __init__(self, figures: Mapping[str, str], together: bool = False) -> None:
        """Pack HTML of :func:`jaxdyn.plotting.render` by claim id; ``together``: all in one stream, which is a quarter smaller."""
        self._drawn: list[str] | None = [] if together else None
        self._stored: dict[str, Stored] = {}
        self._glyphs: dict[str, None] = {}
        drawings = [IMAGE.sub("", _bare(svg)) for svg in dict.fromkeys(figures.values()) if svg.lstrip().startswith("<svg")]
        samples = drawings[:: len(drawings) // SAMPLES][:SAMPLES] if len(drawings) >= 2 * SAMPLES and not together else []
        self._common = "".join(svg[:SAMPLE] for svg in samples)
        self._packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._start = self._packer.compress(self._common.encode()) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        first: dict[str, str] = {}
        for claim_id, svg in figures.items():
            owner = first.setdefault(svg, claim_id)
            self._stored[claim_id] = (
                self.add(svg) if owner == claim_id else dataclasses.replace(self[owner], packed="", same_as=owner)
            )

    def add(self, svg: str) -> Stored:
        """Add one more figure: its letters to those of all figures, the rest packed."""
        if not svg.lstrip().startswith("<svg"):
            return Stored(text=html.unescape(re.sub("<[^>]*>", "", svg)))
        self._glyphs |= dict.fromkeys(GLYPH.findall(svg))
        box = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)
        label = re.search(r'aria-label="([^"]*)"', svg)
        size = {"width": box[1], "height": box[2]} if box else {}
        return Stored(self._pack(_bare(svg)), **size, label=html.unescape(label[1]) if label else "")

    def _pack(self, text: str) -> str:
        if self._drawn is not None:
            self._drawn.append(text)
            return f"#{len(self._drawn) - 1}"
        packer = self._packer.copy()
        return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()

    @property
    def common(self) -> str:
        """The packed beginning that every packed figure continues; after inflating both, the first :attr:`skip` units go."""
        return base64.b64encode(self._start).decode() if self._common else ""

    @property
    def skip(self) -> int:
        """Length of what all inflated figures begin with, in units of UTF-16, in which the page's script counts."""
        return len(self._common.encode("utf-16-le")) // 2

    @property
    def together(self) -> str:
        """All figures in one stream, as JSON; figure ``#3`` is the fourth. Empty if each figure is packed separately."""
        return "" if self._drawn is None else deflated(json.dumps(self._drawn, ensure_ascii=False))

    @property
    def glyphs(self) -> str:
        """The outlines of all letters, packed; empty without figures."""
        svg = f"<svg><defs>{''.join(sorted(self._glyphs))}</defs></svg>"
        return self._pack(svg) if self._glyphs else ""

    def __getitem__(self, claim_id: str) -> Stored:
        return self._stored[claim_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _bare(svg: str) -> str:
    """A figure without its letters."""
    return GLYPH.sub("", svg).replace("<defs></defs>", "").replace("<defs/>", "")


def deflated(text: str) -> str:
    """A text as the page stores it: base64 of raw deflate."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()


def inflate(packed: Any, common: str = "", skip: int = 0) -> str:
    """The text or figure that the page stored; the inverse of :func:`deflated`."""
    text = zlib.decompress(base64.b64decode(common) + base64.b64decode(packed), -zlib.MAX_WBITS).decode()
    return text.encode("utf-16-le")[2 * skip :].decode("utf-16-le")
