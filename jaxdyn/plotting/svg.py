"""A matplotlib SVG file as a compact element for a page: short ids, the page's text colour, no repeated styles, small pixels."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from html import escape
from xml.etree import ElementTree

from PIL import Image

from jaxdyn.plotting.helpers import INK
from jaxdyn.plotting.pointer import SERIES

__all__ = ["GLYPH", "bare", "compact", "is_glyph", "with_metadata"]

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
REFERENCE = re.compile(r"url\(#([^)]+)\)")
GLYPH = re.compile(r'<path id="(?:DejaVu|STIX|Cm)[^>]*/>')  # a letter's outline in what compact gives
METADATA = re.compile(r"<metadata>.*?</metadata>| data-series=\"\d+\"")
SHADES = 48  # colours of a cloud of points that is embedded as pixels


def is_glyph(name: str) -> bool:
    """Whether an id is that of a letter's outline: the same in all figures, so a page needs it once."""
    return name.startswith(("DejaVu", "STIX", "Cm"))


def compact(svg: str, label: str) -> str:
    """One ``<svg>`` element; the same drawing gives the same bytes. Ids are the figure's own, but those of glyphs.

    Args:
        svg: the file that matplotlib wrote.
        label: what the figure shows, in words.
    """
    root = ElementTree.fromstring(svg)
    for node in root.iter():
        node.tag = node.tag.removeprefix(SVG)
        if (link := node.attrib.pop(XLINK + "href", None)) is not None:
            node.set("href", link)
        node.text = node.tail = None
    for name in ("metadata", "style"):
        _drop(root, name)
    for node in root.iter("g"):
        if (name := node.attrib.get("id", "")).startswith(SERIES):
            node.attrib = {"data-series": name.removeprefix(SERIES)}
    _inherit(root)
    _tidy(root)
    _rename(root, "f" + hashlib.sha256(svg.encode()).hexdigest()[:8])
    head = {"class": "figure", "viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label, "fill": "currentColor"}
    root.attrib = head | {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True).replace(" />", "/>")
    return text.replace(INK, "currentColor").replace("#000000", "currentColor")


def with_metadata(svg: str, text: str) -> str:
    """A compact figure with a text in its ``<metadata>``."""
    return svg.replace(">", f"><metadata>{escape(text, quote=False)}</metadata>", 1) if text else svg


def bare(svg: str) -> str:
    """A compact figure without what only a page's script reads."""
    return METADATA.sub("", svg)


def _drop(node: ElementTree.Element, tag: str) -> None:
    for child in list(node):
        if child.tag == tag:
            node.remove(child)
        else:
            _drop(child, tag)


def _inherit(root: ElementTree.Element) -> None:
    """Remove from each use the styles that its symbol or the whole figure sets already."""
    defined = {node.attrib["id"]: _rules(node) for node in root.iter() if "id" in node.attrib}
    for use in root.iter("use"):
        own = defined.get(use.attrib["href"][1:], set()) | {f"fill: {INK}"}
        rules = [rule for rule in use.attrib.pop("style", "").split("; ") if rule and rule not in own]
        if rules:
            use.set("style", "; ".join(rules))


def _rules(node: ElementTree.Element) -> set[str]:
    return set(node.attrib.get("style", "").split("; "))


def _tidy(node: ElementTree.Element) -> None:
    """From the leaves up: shorter attributes, styles of siblings at their parent, no invisible paths and empty groups."""
    children: list[ElementTree.Element] = []
    glyphs = any(is_glyph(child.attrib.get("href", "#")[1:]) for child in node)
    for child in list(node):
        _tidy(child)
        _shorten(child, glyphs)
        empty = child.tag in ("g", "defs") and len(child) == 0
        if empty or (child.tag == "path" and child.attrib.get("style") == "fill:none"):
            continue
        bare = child.tag == "g" and not set(child.attrib) - {"id"} and "DejaVu" not in child.attrib.get("id", "")
        children.extend(child if bare else [child])
    node[:] = children
    styles = {child.attrib.get("style") for child in node}
    if node.tag == "g" and "style" not in node.attrib and len(node) > 1 and {c.tag for c in node} == {"use"} and len(styles) == 1:
        if (style := styles.pop()) is not None:
            node.set("style", re.sub(r"(?<![\w-])opacity:([\d.]+)", r"fill-opacity:\1;stroke-opacity:\1", style))
            for child in node:
                del child.attrib["style"]


def _shorten(node: ElementTree.Element, glyph_use: bool) -> None:
    """Numbers with the digits that can be seen; pixels in few colours."""
    places = 0 if is_glyph(node.attrib.get("id", "")) else 1
    if node.tag == "image":
        node.set("href", _quantised(node.attrib["href"]))
    if (d := node.attrib.get("d")) is not None:
        node.set("d", compact_path(d, 2 if "id" in node.attrib and places else places))
    if (style := node.attrib.get("style")) is not None:
        node.set("style", re.sub(r"\s*([:;])\s*", r"\1", _round(style.strip(), 3)))
    transform = node.attrib.get("transform")
    if transform and (shift := re.fullmatch(r"translate\((\S+) (\S+)\)", transform)) and node.tag == "use" and glyph_use:
        del node.attrib["transform"]
        node.attrib |= {k: _round(v, 1) for k, v in zip("xy", shift.groups(), strict=True) if float(v)}
    elif transform:
        node.set("transform", _round(transform, 6 if node.tag == "path" else 3))
    for name in ("x", "y"):
        if name in node.attrib:
            node.set(name, _round(node.attrib[name], 1))


def _round(text: str, places: int) -> str:
    """The text with its decimal numbers rounded."""
    return re.sub(r"-?\d+\.\d+", lambda n: _number(round(float(n[0]), places)), text)


def _number(value: float) -> str:
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else re.sub(r"^(-?)0\.", r"\1.", text)


def compact_path(d: str, places: int) -> str:
    """A path with rounded coordinates; long lines by their steps, whose errors do not add up."""
    if places != 1 or re.search("[^MLz\\d\\s.e-]", d):
        return re.sub(r" *([A-Za-z]) *", r"\1", " ".join(_round(d, places).split()))
    out, x, y = [], 0, 0
    for command, rest in re.findall(r"([MLz])([^MLz]*)", d):
        if command == "z":
            out.append("z")
            continue
        a, b = (round(10 * float(v)) for v in rest.split())
        if command == "M":
            out.append(f"M{_number(a / 10)} {_number(b / 10)}")
        elif (a, b) != (x, y):
            step = [_number((a - x) / 10), _number((b - y) / 10)]
            out.append(("l" if out and out[-1][0] in "Mz" else "" if step[0][0] == "-" else " ") + _pair(*step))
        x, y = a, b
    return "".join(out)


def _pair(a: str, b: str) -> str:
    return a + b if b[0] == "-" else f"{a} {b}"


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Ids that are used, short and unique to the figure; glyphs keep theirs."""
    used = {node.attrib["href"][1:] for node in root.iter() if node.attrib.get("href", "").startswith("#")}
    used |= {m for node in root.iter() for value in node.attrib.values() for m in REFERENCE.findall(value)}
    names = {old: f"{prefix}{i}" for i, old in enumerate(dict.fromkeys(n.attrib["id"] for n in root.iter() if "id" in n.attrib))}
    names |= {old: old for old in names if is_glyph(old)}
    for node in root.iter():
        if (old := node.attrib.pop("id", None)) in used:
            node.attrib = {"id": names[old], **node.attrib}
        for key, value in list(node.attrib.items()):
            if key == "href" and value.startswith("#"):
                node.set(key, f"#{names[value[1:]]}")
            elif "url(#" in value:
                node.set(key, REFERENCE.sub(lambda m: f"url(#{names[m[1]]})", value))


def _quantised(href: str) -> str:
    """A PNG image with few colours."""
    head, _, data = href.partition("base64,")
    image = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA")
    buffer = io.BytesIO()
    image.quantize(SHADES, method=Image.Quantize.FASTOCTREE).save(buffer, "png", optimize=True)
    return f"{head}base64,{base64.b64encode(buffer.getvalue()).decode()}"
