"""Hooks for mkdocs: pages that no file holds, figures, links of claims, and formulas in MathML, which needs no script or network.

Made while the site is built: the catalogue of claims, the gallery, the pages of notebooks. In the documents a claim's link leads to
its file, and a notebook's to the notebook, as readers of the checkout want it; in the site to the catalogue and to its page.
"""

from __future__ import annotations

import functools
import html
import json
import re
from pathlib import Path
from typing import Any

from jaxdyn.cli.main import main
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.programs import direct
from jaxdyn.maintain.executed import as_page
from jaxdyn.report import catalogue, gallery
from jaxdyn.report.mathml import to_mathml

__all__ = ["draw_figures", "generated", "on_files", "on_page_content", "on_page_markdown"]

RESULTS = Path("build", "figures")  # in the checkout: the verification that drew the figures
FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.S)
NOTEBOOK = re.compile(r"\]\((?P<path>(?!https?:)[^)\s]*)\.ipynb\)")


def draw_figures(root: Path) -> int:
    """Verify the claims whose figures the site shows; the exit code of ``jaxdyn verify``."""
    return main(["verify", *gallery.names(root / "docs"), "--out", str(root / RESULTS)])


def generated(root: Path) -> dict[str, str]:
    """The pages and figures that no file of the checkout holds, by their places in the documents' folder."""
    docs = root / "docs"
    found = {"catalogue.md": catalogue.catalogue(list(all_claims().values()))}
    for notebook in sorted((docs / "notebooks").glob("*.ipynb")):
        text, figures = as_page(json.loads(notebook.read_text(encoding="utf-8")), notebook.stem)
        found |= {f"notebooks/{notebook.stem}.md": text} | {f"notebooks/{name}": svg for name, svg in figures.items()}
    return found | gallery.pages(root / RESULTS, docs)


@functools.cache
def _anchors() -> dict[str, str]:
    """The link in the catalogue of each claim, by what the documents link it to."""
    return {catalogue.place(claim): f"catalogue.md#{catalogue.anchor(claim)}" for claim in all_claims().values()}


def on_files(files: Any, config: Any) -> Any:
    """The site's files with those that are made here."""
    from mkdocs.structure.files import File

    direct.allow()  # the catalogue asks which studies are current: without it, all their programs would be traced
    for name, content in generated(_root(config)).items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A page with its figures, and with links into the site instead of into the checkout."""
    up, drawn = "../" * page.file.src_uri.count("/"), {Path(file.src_uri).stem for file in files if file.src_uri.endswith(".svg")}
    text = gallery.with_figures(markdown, drawn, up)
    text = catalogue.LINK.sub(lambda match: f"]({up}{_anchors()[match['place']]})", text)
    return NOTEBOOK.sub(r"](\g<path>.md)", text)


def on_page_content(content: str, **_: Any) -> str:
    """A page's HTML with MathML for each formula that ``pymdownx.arithmatex`` has marked.

    Raises:
        ValueError: a formula cannot be converted.
    """

    def formula(match: re.Match[str]) -> str:
        return to_mathml(html.unescape(match["latex"]).strip(), display=match["tag"] == "div")

    return FORMULA.sub(formula, content)


def _root(config: Any) -> Path:
    return Path(config.config_file_path).parent
