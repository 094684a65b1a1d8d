"""A release: one commit of main, on which everything passes, with a tag of its version.

The version stands in pyproject.toml, in CITATION.cff, and as the first section of the changelog, which holds what is released.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from jaxdyn.errors import UsageError

__all__ = ["release", "version_of"]

UNRELEASED = "## Unreleased"
CHECKS = Path(".ci", "run")  # of every change, relative to the checkout


def version_of(root: Path) -> str:
    """The version that a checkout is to be released as.

    Raises:
        UsageError: pyproject.toml, CITATION.cff and the changelog do not agree, or the changelog holds what is in no version.
    """
    version = str(tomllib.loads(_read(root, "pyproject.toml"))["project"]["version"])
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UsageError(f"version {version} in pyproject.toml is not allowed: write it as 1.2.3")
    cited = re.search(r"^version: *[\"']?([^\s\"']+)", _read(root, "CITATION.cff"), re.M)
    if cited is None or cited[1] != version:
        raise UsageError(f"CITATION.cff does not have version {version} of pyproject.toml; write version: {version}")
    sections = re.split(r"^(?=## )", _read(root, "CHANGELOG.md"), flags=re.M)[1:]
    heads = [section.splitlines()[0] for section in sections]
    if UNRELEASED in heads and "\n- " in sections[heads.index(UNRELEASED)]:
        raise UsageError(f"CHANGELOG.md has entries under {UNRELEASED}; move them to ## {version}")
    first = next((head for head in heads if head != UNRELEASED), "")
    if first != f"## {version}":
        raise UsageError(
            f"CHANGELOG.md begins with {first.removeprefix('## ') or 'no version'}; its first version is to be {version}"
        )
    return version


def release(root: Path) -> str:
    """Run all checks on the commit of main, and tag it with its version; returns the tag. Nothing is pushed.

    Raises:
        UsageError: the checkout is on another branch or has changes, the version exists or is not the same everywhere, or a check
            fails.
    """
    version = version_of(root)
    tag = f"v{version}"
    if (branch := _git(root, "rev-parse", "--abbrev-ref", "HEAD")) != "main":
        raise UsageError(f"branch {branch} is not allowed: main is released")
    _refuse_changes(root)
    if _git(root, "tag", "--list", tag):
        raise UsageError(f"{tag} exists already; raise the version in pyproject.toml, CITATION.cff and CHANGELOG.md")
    if code := subprocess.run([root.resolve() / CHECKS], cwd=root, stdin=subprocess.DEVNULL).returncode:
        raise UsageError(f"{CHECKS} failed with exit code {code}: nothing is tagged")
    _refuse_changes(root)
    _git(root, "tag", "--annotate", tag, "--message", f"jaxdyn {version}")
    return tag


def _refuse_changes(root: Path) -> None:
    """Refuse a checkout that is not what its commit says."""
    if changed := _git(root, "status", "--porcelain"):
        raise UsageError(f"{changed.splitlines()[0][3:]} differs from the commit; commit or remove it")


def _read(root: Path, name: str) -> str:
    try:
        return (root / name).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{root / name} cannot be read: {error.strerror or error}") from None


def _git(root: Path, *words: str) -> str:
    """What git prints."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror or error}") from None
    if done.returncode:
        raise UsageError(f"git {words[0]} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout.strip()
