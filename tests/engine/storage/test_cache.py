"""The user's cache folder."""

import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxdyn.engine.storage import cache
from jaxdyn.engine.storage.cache import cache_dir, read_cached, write_cached
from jaxdyn.errors import UsageError


def test_the_environment_decides_and_an_empty_variable_does_not(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.setenv("JAXDYN_CACHE", "")
    assert cache_dir().name == "jaxdyn" and cache_dir() != Path()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(string.printable), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON, st.data())
def test_a_file_is_what_was_written_or_nothing(tmp_path, monkeypatch, content, data):
    """Cut off anywhere, or with any byte changed, it is not there."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    write_cached("file", content)
    assert read_cached("file") == content
    whole = (tmp_path / "file").read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    (tmp_path / "file").write_bytes(whole[:at])
    assert read_cached("file") is None
    (tmp_path / "file").write_bytes(whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :])
    assert read_cached("file") is None


@pytest.mark.parametrize("content", ["", "[]", "null", "{}", '"0123"\n[]', "\n[]"])
def test_a_file_of_somebody_else_is_nothing(tmp_path, monkeypatch, content):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    (tmp_path / "file").write_text(content, encoding="utf-8")
    assert read_cached("file") is None
    (tmp_path / "folder").mkdir()
    write_cached("folder", 3)
    assert read_cached("folder") is None and read_cached("missing") is None


def test_a_cache_in_a_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JAXDYN_CACHE", "~/c")
    assert cache.cache_dir() == tmp_path / "c"
    monkeypatch.setenv("JAXDYN_CACHE", "~nobody-of-this-name/c")
    for call in (cache.cache_dir, lambda: cache.read_cached("x"), lambda: cache.write_cached("x", 1)):
        with pytest.raises(UsageError, match="^JAXDYN_CACHE=~nobody-of-this-name/c is not allowed"):
            call()
    monkeypatch.delenv("JAXDYN_CACHE")
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: Path("~/.cache/jaxdyn"))  # what platformdirs gives without one
    with pytest.raises(UsageError, match="let JAXDYN_CACHE name a folder"):
        cache.cache_dir()
