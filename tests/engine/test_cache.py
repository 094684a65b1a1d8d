"""The user's cache folder."""

from pathlib import Path

from jaxdyn.engine.cache import cache_dir


def test_the_environment_decides_and_an_empty_variable_does_not(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.setenv("JAXDYN_CACHE", "")
    assert cache_dir().name == "jaxdyn" and cache_dir() != Path()
