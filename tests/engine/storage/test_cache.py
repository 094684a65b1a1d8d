"""The user's cache folder; and files are known by their content, whatever their size and times say."""

import hashlib
import json
import os
import string
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxdyn.engine.storage import cache
from jaxdyn.engine.storage.cache import cache_dir, content_of, read_cached, state_of, write_cached
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


# contents of files


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))


def sha(data):
    return hashlib.sha256(data).hexdigest()


def overwritten(file, data):
    file.write_bytes(data)


def replaced(file, data):
    other = file.with_name("other")
    other.write_bytes(data)
    os.replace(other, file)


@pytest.mark.parametrize("write", [overwritten, replaced])
def test_other_bytes_of_the_same_size_and_time_are_another_content(own_cache, tmp_path, write):
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    os.utime(file, ns=(10**18, 10**18))
    assert content_of(file) == sha(b"one")
    write(file, b"two")
    os.utime(file, ns=(10**18, 10**18))
    assert content_of(file) == sha(b"two")


@pytest.mark.parametrize("write", [overwritten, replaced])
def test_a_file_that_was_remembered_and_changed_is_hashed_again(own_cache, tmp_path, write, monkeypatch):
    monkeypatch.setattr(cache, "SETTLED", 10**7)
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    time.sleep(0.05)
    content_of(file)
    assert list(read_cached(cache.CONTENTS)) == [str(file)]
    write(file, b"two")
    assert content_of(file) == sha(b"two")


def test_what_is_written_to_a_map_of_the_file_is_another_content(own_cache, tmp_path, monkeypatch):
    """Such writing moves the time once, and then not until the system has written the page to the disk."""
    monkeypatch.setattr(cache, "SETTLED", 10**7)
    file = tmp_path / "weights"
    file.write_bytes(bytes(4096))
    mapped = np.memmap(file, np.uint8, "r+")
    for number in range(1, 4):
        mapped[0] = number
        time.sleep(0.05)
        content_of(file)
        if read_cached(cache.CONTENTS) is None:
            pytest.skip("a file system without times of change")
        mapped[0] = number + 100
        assert content_of(file) == sha(bytes([number + 100]) + bytes(4095))


def test_what_is_remembered_is_not_read_again(own_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SETTLED", -(10**18))
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    assert content_of(file) == content_of(file) == sha(b"one")
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert content_of(file) == sha(b"one")


def test_a_file_that_was_just_written_is_not_remembered(own_cache, tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    content_of(file)
    assert read_cached(cache.CONTENTS) is None


def test_content_is_that_of_the_file_behind_a_link(own_cache, tmp_path):
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "two").write_bytes(b"two")
    link = tmp_path / "link"
    for name in ("one", "two"):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        assert content_of(link) == sha(name.encode())


@given(entry=st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=6))
@settings(max_examples=30, deadline=None)
def test_odd_entries_of_the_cache_are_not_believed(tmp_path_factory, entry):
    folder = tmp_path_factory.mktemp("odd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXDYN_CACHE", str(folder))
        file = folder / "weights"
        file.write_bytes(b"one")
        cache.write_cached(cache.CONTENTS, {str(file): entry} if len(json.dumps(entry)) % 2 else entry)
        assert content_of(file) == sha(b"one")


def test_few_enough_are_remembered(own_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SETTLED", -(10**18))
    monkeypatch.setattr(cache, "MOST_CONTENTS", 2)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"")
        content_of(tmp_path / name)
    assert list(read_cached(cache.CONTENTS)) == [str(tmp_path / "b"), str(tmp_path / "c")]


@pytest.mark.parametrize("call", [content_of, state_of])
def test_what_is_no_file_is_a_sentence(own_cache, tmp_path, call):
    with pytest.raises(UsageError, match="nothing cannot be read: No such file or directory"):
        call(tmp_path / "nothing")
    with pytest.raises(UsageError, match="cannot be read"):
        content_of(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_has_no_content(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe cannot be read: it is no plain file"):
        content_of(tmp_path / "pipe")
