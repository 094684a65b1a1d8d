"""Accelerators of this machine: the cards that workers share, and those that JAX does not use. No device is opened."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import jax

from jaxdyn.engine.programs.program import check_device
from jaxdyn.errors import UsageError
from jaxdyn.wording import plural

__all__ = ["asked", "has_tpu", "nvidia_cards", "shared_cards", "shares", "unused"]

ROOT = Path("/")
VISIBLE = "CUDA_VISIBLE_DEVICES"
LIBRARIES = {"gpu": ("jax_cuda13_plugin", "jax_cuda12_plugin"), "tpu": ("libtpu",)}  # JAX needs one of them to find the devices
NAMES = {"gpu": ("", "gpu", "cuda"), "tpu": ("", "tpu")}  # values of JAX_PLATFORMS
GOOGLE = "0x1ae0"  # vendor id among PCI devices; Google's network cards have it, too, so the device id decides:
TPUS = ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")


def nvidia_cards(root: Path = ROOT) -> tuple[str, ...]:
    """The NVIDIA cards visible to this process, by their names in ``CUDA_VISIBLE_DEVICES``.

    If the driver and the device files disagree, the smaller number counts: a container may have files of only some cards.
    """
    nodes = root / "dev"
    if not any((nodes / name).exists() for name in ("nvidia0", "nvidiactl", "dxg")):
        return ()
    if (visible := os.environ.get(VISIBLE)) is not None:
        names = dict.fromkeys(name.strip() for name in visible.split(","))  # a card that is named twice is one card
        return tuple(itertools.takewhile(lambda name: name[:1] not in ("", "-"), names))  # like CUDA, up to the first invalid name
    files = _count((root / "proc/driver/nvidia/gpus").glob("*")), _count(nodes.glob("nvidia[0-9]*"))
    return tuple(map(str, range(min(filter(None, files)) if files[0] else _listed())))


def _count(items: Iterable[object]) -> int:
    return sum(1 for _ in items)


def _listed() -> int:
    """Number of cards that ``nvidia-smi`` lists; 0 if it is missing or fails."""
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, encoding="utf-8", timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    return _count(line for line in done.stdout.splitlines() if line.startswith("GPU "))


def has_tpu(root: Path = ROOT) -> bool:
    """Whether this machine has a TPU."""
    for vendor in (root / "sys/bus/pci/devices").glob("*/vendor"):
        try:
            if (
                vendor.read_text(encoding="utf-8").strip() == GOOGLE
                and vendor.with_name("device").read_text(encoding="utf-8").strip() in TPUS
            ):
                return True
        except OSError:
            continue
    return False


def _installed(kind: Literal["gpu", "tpu"]) -> bool:
    return any(importlib.util.find_spec(name) is not None for name in LIBRARIES[kind])


def asked() -> str:
    """The platform that the user requested from JAX; empty if JAX chooses."""
    return str(jax.config.values["jax_platforms"] or "").partition(",")[0]


def _platform(root: Path) -> str:
    """The platform that runs will use: judged from files if possible; otherwise JAX is asked, which opens the devices."""
    if asked() in NAMES["gpu"] and _installed("gpu") and nvidia_cards(root):
        return "gpu"
    if asked() in NAMES["tpu"] and _installed("tpu") and has_tpu(root):
        return "tpu"
    check_device()
    return jax.default_backend()


def shared_cards(workers: int | None, root: Path = ROOT) -> tuple[str, ...]:
    """The cards that the workers share; empty if one process makes all runs, or if they are made on CPU.

    Raises:
        UsageError: more workers than cards, or several workers on devices that only one process can open.
    """
    if workers is None or workers == 1 or (platform := _platform(root)) == "cpu":
        return ()
    refusal = f"--workers {workers} is not allowed"
    if platform != "gpu":
        raise UsageError(f"{refusal} on a {platform.upper()}: one process uses all its chips, leave --workers out")
    cards = nvidia_cards(root)
    if len(cards) < workers:
        raise UsageError(f"{refusal}: each worker needs a card of its own, and JAX sees {plural(len(cards), 'NVIDIA card')}")
    return cards


def shares(cards: Sequence[str], workers: int) -> list[str]:
    """``CUDA_VISIBLE_DEVICES`` of each worker: the same number of cards for all, since plans are made for that number."""
    each = len(cards) // workers
    return [",".join(cards[i * each : (i + 1) * each]) for i in range(workers)]


def unused(root: Path = ROOT) -> str | None:
    """A sentence on an accelerator that JAX does not use, and how to change that; None if the CPU was requested or none exists."""
    if asked() == "cpu" or jax.default_backend() != "cpu":
        return None
    if nvidia_cards(root):
        name, extra, reason = "an NVIDIA GPU", "cuda13", "CUDA 13 needs a driver from 580 on, see `nvidia-smi`"
    elif has_tpu(root):
        name, extra, reason = "a TPU", "tpu", "another process may use it"
    else:
        return None
    cure = f"make verify EXTRA={extra}, or pip install 'jaxdyn[{extra}]'"
    cure = f"JAX could not open it ({reason})" if _installed("gpu" if extra == "cuda13" else "tpu") else cure
    return f"{name} is present but not used: {cure}; JAX_PLATFORMS=cpu hides this message"
