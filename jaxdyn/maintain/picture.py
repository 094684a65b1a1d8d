"""A picture of the beginning of a report in a browser, and one of its figures; ``make picture`` makes those of the documents."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError
from jaxdyn.report.gallery import standalone
from jaxdyn.report.results import read_results

__all__ = ["BROWSERS", "write_figure", "write_picture"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZE = (1280, 1500)  # pixels
PATIENCE = 120  # seconds


def write_picture(folder: Path, target: Path) -> None:
    """Write a PNG file of the first screen of the report in an output folder, figures included.

    Raises:
        UsageError: the folder has no report, there is no browser that can draw it, or it fails.
    """
    page = folder / "index.html"
    if not page.is_file():
        raise UsageError(f"{folder} holds no report; give the folder that was --out of `jaxdyn verify`")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UsageError(f"no browser draws the report: a picture needs {' or '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as scratch:
        drawn = Path(scratch) / "report.png"
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={scratch}/profile")
        view = (f"--window-size={SIZE[0]},{SIZE[1]}", "--virtual-time-budget=10000", f"--screenshot={drawn}")
        try:
            subprocess.run([browser, *options, *view, page.resolve().as_uri()], capture_output=True, timeout=PATIENCE, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"{browser} does not draw the report: {error}") from None
        if not drawn.is_file():
            raise UsageError(f"{browser} drew no picture of the report")
        atomic_write(target, drawn.read_bytes())


def write_figure(folder: Path, claim: str, target: Path) -> None:
    """Write the figure of a claim in an output folder as an SVG file.

    Raises:
        UsageError: the folder has no results, or no figure of the claim.
    """
    _, figures = read_results(folder)
    if claim not in figures:
        raise UsageError(f"{folder} has no figure of {claim}: verify it first")
    atomic_write(target, standalone(figures[claim]))
