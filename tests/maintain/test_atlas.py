"""The maps of the atlas are made by name and stored."""

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import library
from jaxdyn.errors import UsageError
from jaxdyn.maintain import atlas
from jaxdyn.report.atlas import read_map


@pytest.mark.parametrize("workers", [1, pytest.param(None, marks=pytest.mark.slow)])
def test_the_atlas_is_made_by_name_and_stored(tmp_path, monkeypatch, workers):
    """In this process, and with the workers that the atlas is made with, which take seconds to start."""
    law = jd.AtlasMap("law", "A law", "cal.uv_eos", ("u=1:3", "v=.1:.3"), "It holds.", 9, 1)
    monkeypatch.setattr(library, "maps", lambda prefix=None: (law,))
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: tmp_path / prefix / kind)
    atlas.make_maps(tmp_path / "out", ["law"], workers)
    assert len(read_map(law)["map"]["cells"]) == 9 and (tmp_path / "cal" / "maps" / "law.json").is_file()
    assert not atlas.changes(law, read_map(law))
    with pytest.raises(UsageError, match="lore is not in the atlas; it has law"):
        atlas.make_maps(tmp_path / "out", ["lore"])
