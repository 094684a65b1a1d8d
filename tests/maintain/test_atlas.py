"""The maps of the atlas are made by name and kept."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.maintain import atlas
from jaxdyn.report import maps
from jaxdyn.report.plates import Plate


@pytest.mark.parametrize("workers", [1, pytest.param(None, marks=pytest.mark.slow)])
def test_the_atlas_is_made_by_name_and_kept(tmp_path, monkeypatch, workers):
    """In this process, and with the workers that the atlas is made with, which take seconds to start."""
    plate = Plate("law", "A law", "cal.uv_eos", ("u=1:3", "v=.1:.3"), "It holds.", 9, 1)
    monkeypatch.setattr(atlas, "PLATES", (plate,))
    atlas.make_maps(tmp_path / "out", ["law"], tmp_path / "kept", workers)
    assert len(maps.kept("law", tmp_path / "kept")["map"]["cells"]) == 9
    with pytest.raises(UsageError, match="lore is not in the atlas; it has law"):
        atlas.make_maps(tmp_path / "out", ["lore"])
