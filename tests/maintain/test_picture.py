"""A picture of a report, taken by a browser."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.maintain import picture
from jaxdyn.maintain.__main__ import main
from jaxdyn.report import page as report
from tests.report.handmade import FIGURES, claim

ROOT = Path(__file__).parents[2]


def test_the_picture_has_its_size_and_more_than_one_colour(tmp_path, capsys):
    if not any(map(shutil.which, picture.BROWSERS)):
        pytest.skip("no Chromium on this machine")
    report.write(tmp_path / "index.html", {"claims": [claim("toy.law")], "environment": {}}, FIGURES)
    assert main(["picture", str(tmp_path), str(tmp_path / "own.png")]) == 0
    drawn = (tmp_path / "own.png").read_bytes()
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", drawn[16:24]) == picture.SIZE
    assert len(drawn) > 20_000, "an empty page takes some 7,000 bytes"
    assert "own.png is renewed" in capsys.readouterr().out


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="holds no report"):
        picture.write_picture(tmp_path, tmp_path / "own.png")
    (tmp_path / "index.html").write_text("<p>a page</p>", encoding="utf-8")
    monkeypatch.setattr(picture.shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="a picture needs chromium or"):
        picture.write_picture(tmp_path, tmp_path / "own.png")
    monkeypatch.setattr(picture.shutil, "which", lambda name: "/bin/false")
    with pytest.raises(UsageError, match="does not draw the report"):
        picture.write_picture(tmp_path, tmp_path / "own.png")
    assert not (tmp_path / "own.png").exists()


def test_the_picture_of_the_documents_is_made_by_a_command():
    said = subprocess.run(["make", "-n", "picture"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    assert "maintain picture build/picture docs/report.png" in said and "make picture" in (ROOT / "docs" / "index.md").read_text(
        encoding="utf-8"
    )
