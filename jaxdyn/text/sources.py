"""Where a text comes from: a folder or a file on disk, the interpreter's own manual, or a generator."""

from __future__ import annotations

import functools
import importlib
import os
import pathlib
import stat
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.storage.cache import state_of
from jaxdyn.errors import UsageError, shown, whole
from jaxdyn.text import markov
from jaxdyn.text.corpus import PARTS, Corpus, split
from jaxdyn.text.subwords import number_subwords
from jaxdyn.text.tokens import BYTES, number_bytes, number_words, pieces, rank_words

__all__ = ["LEVELS", "load", "read", "topics"]

LEVELS = ("words", "bytes", "bpe")
LAYOUTS = ("{}.txt", "wiki.{}.tokens", "wiki.{}.raw")
LINE = 10**7  # bytes; a longer line is data or markup rather than text, and would be split into words as a whole
MARK = b"\xef\xbb\xbf"  # some editors write it at the start of a file; it is not part of the text


def read(path: str | os.PathLike[str], level: str = "words", max_words: int | None = None) -> Corpus:
    """The text of a folder with three parts, or of one plain file, whose tokens are split 90 / 5 / 5 percent as they stand.

    Words are numbered by their frequency in the training part; words that it lacks become ``<unk>`` elsewhere. Lines are joined:
    there is no token for the end of a line.

    Source: arXiv:2310.00535, section 5; arXiv:2305.16380, figure 7.

    Args:
        path: a folder with train.txt, valid.txt and test.txt, or the same parts as wiki.train.tokens or wiki.train.raw; or a file.
        level: "words", by :func:`~jaxdyn.text.split_words`; "bytes", the 256 bytes of UTF-8; or "bpe", byte-pair encoding.
        max_words: how many of the most frequent words are kept in addition to ``<unk>``, all if not given; with "bpe" the number of
            pieces (1024).

    Raises:
        UsageError: if the level or ``max_words`` is not allowed, a file or part is missing, cannot be read, is empty, too short,
            not UTF-8 or binary, or has a line of more than ten million bytes (words only).
    """
    max_words = _checked(level, max_words)
    path = _path(path)
    files = _files(path)
    return _corpus(path.resolve().name, [_text(file, level) for file in files], level, max_words)


def topics(level: str = "words", max_words: int | None = None) -> Corpus:
    """The interpreter's manual, ``pydoc_data.topics``, in the order of its keys, split 90 / 5 / 5 percent; always available.

    Each version of Python has its own: compare results by the digest. Arguments as for :func:`read`.

    Raises:
        UsageError: if the level or ``max_words`` is not allowed, or this interpreter came without the manual.
    """
    max_words = _checked(level, max_words)
    try:
        manual = importlib.import_module("pydoc_data.topics").topics
    except ImportError:
        raise UsageError("this Python came without pydoc_data.topics: use the text markov, or the path of a text") from None
    return _corpus("topics", ["\n".join(manual[key] for key in sorted(manual)).encode()], level, max_words)


def load(name: str | os.PathLike[str], level: str = "words", max_words: int | None = None) -> Corpus:
    """The text that a setting names: "topics", "markov", or a path for :func:`read` (./topics is a path); kept in memory.

    "markov" is :func:`~jaxdyn.text.markov.generate` at seed 0, with ``max_words`` words if that is given. A text on disk is read
    again when one of its files may have changed.

    Raises:
        UsageError: as :func:`read`; and for "markov" at another level than words.
    """
    max_words = _checked(level, max_words)
    if isinstance(name, str) and name in ("topics", "markov"):
        return _load(name, level, max_words, ())
    path = _path(name).absolute()
    return _load(str(path), level, max_words, tuple(map(state_of, _files(path))))


@functools.lru_cache(maxsize=8)
def _load(name: str, level: str, max_words: int | None, stamp: tuple[Any, ...]) -> Corpus:
    """The text itself; ``stamp`` only distinguishes the states of its files."""
    if name == "topics":
        return topics(level, max_words)
    if name != "markov":
        return read(name, level, max_words)
    if level != "words":
        raise UsageError(f"level={level} is not allowed: the text markov has words only")
    return markov.generate(0, **({} if max_words is None else {"words": max_words})).corpus


def _checked(level: str, max_words: int | None) -> int | None:
    """The number of words; refused with the level if one of them is not allowed."""
    if level not in LEVELS:
        raise UsageError(f"level={level!r} is not allowed: it is one of {', '.join(LEVELS)}")
    if max_words is None:
        return None
    if level == "bytes":
        raise UsageError(f"max_words={max_words!r} is not allowed: it counts words, and level=bytes has none")
    return whole("max_words", max_words, least=1)


def _path(path: str | os.PathLike[str]) -> pathlib.Path:
    """The path, with the home folder for ~."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise UsageError(f"a text of {shown(path)} is not allowed: give topics, markov, or the path of a text")
    return from_home(path)


def _kind(path: pathlib.Path) -> str:
    """What lies at the path: "folder", "file", "other" or "nothing"."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except (OSError, ValueError) as error:
        raise UsageError(f"the text {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    """The one file, or the three parts of a folder."""
    kind = _kind(path)
    if kind == "folder":
        return _parts(path)
    if kind == "nothing":
        made = "topics or markov, which are made up"
        raise UsageError(f"there is no text at {path}: give {made}, a folder with {_spoken(LAYOUTS[0])}, or a text file")
    if kind == "other":
        raise UsageError(f"{path} is neither a folder nor a plain file, so it cannot be read as a text")
    return [path]


def _spoken(layout: str) -> str:
    train, valid, test = (layout.format(part) for part in PARTS)
    return f"{train}, {valid} and {test}"


def _parts(folder: pathlib.Path) -> list[pathlib.Path]:
    """The three files of a folder, in the layout that has the largest number of them."""
    kinds = {layout: [_kind(folder / layout.format(part)) for part in PARTS] for layout in LAYOUTS}
    layout = min(LAYOUTS, key=lambda layout: kinds[layout].count("nothing"))
    if kinds[layout].count("nothing") == len(PARTS):
        raise UsageError(f"the folder {folder} holds no text: it needs {' or '.join(_spoken(layout) for layout in LAYOUTS)}")
    for part, kind in zip(PARTS, kinds[layout], strict=True):
        file = layout.format(part)
        if kind == "nothing":
            raise UsageError(f"the folder {folder} lacks {file}: it needs {_spoken(layout)}")
        if kind != "file":
            raise UsageError(f"{folder / file} is {'a folder' if kind == 'folder' else 'no plain file'}, it must be a text file")
    return [folder / layout.format(part) for part in PARTS]


def _text(file: pathlib.Path, level: str) -> bytes:
    """The checked contents of a file, without a byte-order mark."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"the text {file} cannot be read: {error.strerror or error}") from None
    skipped = len(MARK) if data.startswith(MARK) else 0
    data = data[skipped:]
    if not data or data.isspace():
        raise UsageError(f"the text {file} is empty")
    if (place := data.find(b"\0")) >= 0:
        raise UsageError(f"{file} is binary, not text: byte {skipped + place} is NUL; give a text in UTF-8")
    for start, piece in pieces(data):
        try:
            piece.decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"the text {file} is not UTF-8 at byte {skipped + start + error.start}: convert it to UTF-8") from None
    if level == "words" and (longest := _longest_line(data)) > LINE:
        raise UsageError(
            f"the text {file} has a line of {longest} bytes, and words are read from lines of {LINE} bytes or less: "
            "break its lines, or use level=bytes"
        )
    return data


def _longest_line(data: bytes) -> int:
    """The longest line's bytes."""
    if len(data) <= LINE:
        return len(data)  # no line is longer
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero((codes == ord("\n")) | (codes == ord("\r")))
    return int(np.diff(ends, prepend=-1, append=len(data)).max()) - 1


def _corpus(name: str, parts: Sequence[bytes], level: str, max_words: int | None) -> Corpus:
    """Tokens of one part, to be split, or of three."""
    words: Sequence[str]
    if level == "words":
        streams, words = number_words(parts)
    elif level == "bpe":
        streams, words = number_subwords(parts, max_words)
    else:
        streams, words = [number_bytes(part) for part in parts], BYTES
    train, valid, test = split(streams[0]) if len(parts) == 1 else streams
    if level != "words":
        return Corpus(name, train, valid, test, tuple(words))
    vocabulary, number = rank_words(words, np.bincount(train, minlength=len(words)), max_words)
    return Corpus(name, number[train], number[valid], number[test], vocabulary)
