"""Output folders: locked by one process, marked with their purpose, and written atomically.

Layout: ``jaxdyn.json`` (the folder's format and purpose), ``shards/<program>/<chunk>.<sha256>.nc``
(:mod:`jaxdyn.engine.storage.shard`) and, after a verification, ``conclusions/<claim>.gz``, ``result.json``, ``figures.json.gz``,
``history.jsonl``, ``index.html``.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import json
import os
import secrets
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from jaxdyn.engine.base.parsing import from_home, parse_json
from jaxdyn.errors import StoreError, UsageError, one_line

__all__ = ["atomic_write", "check_writable", "open_folder", "whole_path"]

MARKER, FORMAT = "jaxdyn.json", 1
LOCK, OWNER, HELD = ".lock", ".lock-owner", ".lock-held"
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # of file systems, such as some network mounts
_mine: contextvars.ContextVar[frozenset[Path]] = contextvars.ContextVar("folders that are open here", default=frozenset())
AGAIN = 0.1  # seconds: a lock that a killed process left is removed first


@contextlib.contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a StoreError of one sentence."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write to {path}: {error.strerror or error}; choose another output folder or free some space"
        ) from error


def atomic_write(path: Path, content: bytes | str) -> None:
    """Write a file so that it is either the old one or the whole new one, also after a crash."""
    data = content.encode() if isinstance(content, str) else content
    with _plain_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".tmp-{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def open_folder(out: str | Path, purpose: str) -> Iterator[Path]:
    """Hold an output folder for one process; make it if it is new.

    Args:
        out: the folder.
        purpose: what it is for, e.g. ``"verify"`` or ``"sweep of module:trial"``; a folder of another purpose is refused.

    Returns:
        Its absolute path, since chunks may run with another working directory.

    Raises:
        UsageError: ``out`` is not a path.
        StoreError: the folder has another purpose, holds files that are not jaxdyn's, cannot be written to, or is in use by
            another process.
    """
    path = whole_path(out)
    with _plain_errors(path):
        if broken := next((place for place in (path, *path.parents) if place.is_symlink() and not place.exists()), None):
            raise StoreError(f"{broken} is a link to {os.readlink(broken)}, which does not exist; choose another output folder")
        if path.exists() and not path.is_dir():
            raise StoreError(f"{path} is a file; an output folder is needed")
        path.mkdir(parents=True, exist_ok=True)
        present = [entry.name for entry in path.iterdir()]
    marker = path / MARKER
    if marker.exists():
        _check_marker(marker, purpose)
    elif any(name not in (LOCK, OWNER, HELD) and not name.startswith(".tmp-") for name in present):
        raise StoreError(f"{path} holds files that are not jaxdyn's; choose a new or empty output folder")
    if (place := path.resolve()) in _mine.get():
        yield path
        return
    with _locked(path):
        if not marker.exists():
            atomic_write(marker, json.dumps({"format": FORMAT, "purpose": purpose}))
        _clear_leftovers(path)
        held = _mine.set(_mine.get() | {place})
        try:
            yield path
        finally:
            _mine.reset(held)


def whole_path(out: Any) -> Path:
    """The absolute path of an output folder, given as a text or a ``Path``; ``~`` is the home folder.

    Raises:
        UsageError: it is neither, it is empty, it has characters that no file name may have, or there is no such home folder.
    """
    try:
        encoded = os.fsencode(out) if isinstance(out, str | Path) else b""
    except UnicodeEncodeError:
        encoded = b""
    if not encoded or b"\0" in encoded:
        raise UsageError(f"out={one_line(out)} is not allowed: out is the path of a folder")
    path = from_home(out)
    with _plain_errors(path):
        return path.absolute()


def _clear_leftovers(path: Path) -> None:
    """Remove temporary files of a killed run."""
    for leftover in (*path.glob(".tmp-*"), *path.glob("conclusions/.tmp-*"), *path.glob("shards/*/.tmp-*")):
        with contextlib.suppress(OSError):
            leftover.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a folder's lock; a second file names the process, since a locked file cannot be read on some systems."""
    owner = path / OWNER
    with _plain_errors(path):
        lock = _acquired(path / LOCK, owner)
    try:
        atomic_write(owner, f"{os.getpid()}\n{socket.gethostname()}\n")
        yield
    finally:
        lock.release()


def _acquired(file: Path, owner: Path) -> BaseFileLock:
    """The acquired lock; where the file system has no locks, a file that its process removes when it ends.

    Such a file outlives a process that is killed. On the process's own machine it is taken over; from another machine nobody can
    tell whether the process still runs.
    """
    lock: BaseFileLock = FileLock(file)
    try:
        try:
            with warnings.catch_warnings(action="ignore"):  # filelock says that it uses such a file where flock is missing
                lock.acquire(timeout=AGAIN)
        except OSError as error:
            if isinstance(error, Timeout) or error.errno not in NO_LOCKS:
                raise
            lock = SoftFileLock(file.with_name(HELD))
            lock.acquire(timeout=AGAIN)
    except Timeout:
        process = _holder(owner)
        advice = "wait until it ends or choose another output folder"
        if isinstance(lock, SoftFileLock):
            advice = f"wait until it ends, choose another output folder, or, if it was killed, remove {lock.lock_file}"
        raise StoreError(f"{file.parent} is in use by process {process}; {advice}") from None
    return lock


def _holder(owner: Path) -> str:
    """The process that holds a lock, in words: its number, and its machine."""
    try:
        number, *host = owner.read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return "unknown"
    return f"{number} on {' '.join(host)}" if host else number


def check_writable(path: Path) -> None:
    """Refuse, before hours of work, a file that could not be written after them; folders that are made for it are removed again.

    Raises:
        StoreError: the path is a folder, or its folder cannot be made or written to.
    """
    if path.is_dir():
        raise StoreError(f"cannot write to {path}: Is a directory; give the path of a file")
    trial_file = path.parent / f".tmp-{secrets.token_hex(8)}"
    new = [folder for folder in path.parents if not folder.exists()]
    atomic_write(trial_file, "")
    trial_file.unlink(missing_ok=True)
    for folder in new:  # one of them may be the output folder, which is refused with files that are not its own
        with contextlib.suppress(OSError):
            folder.rmdir()


def _check_marker(marker: Path, purpose: str) -> None:
    try:
        marker_facts = parse_json(marker.read_text(encoding="utf-8"))
        format_, own_purpose = marker_facts["format"], marker_facts["purpose"]
    except (ValueError, KeyError, TypeError, OSError):
        raise StoreError(f"{marker} is damaged; choose another output folder, or remove this one") from None
    if format_ != FORMAT:
        raise StoreError(
            f"{marker.parent} was written in format {format_}, this version writes format {FORMAT}; choose another output folder"
        )
    if own_purpose != purpose:
        raise StoreError(
            f"{marker.parent} holds the results of another job ({own_purpose}, not {purpose}); choose another output folder"
        )
