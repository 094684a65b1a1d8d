"""Training for minutes to days from the host: one file holds state and records, so that a killed run can be resumed.

The file is replaced as a whole, so state and records in it belong together: a run that is killed at any moment and started again
with the same arguments ends with the same bits as one that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import serialization
from jaxtyping import Array, Num, PyTree

from jaxdyn import train
from jaxdyn.engine.progress import Progress
from jaxdyn.engine.store import atomic_write
from jaxdyn.errors import StoreError, UsageError

__all__ = ["Run", "run"]

MAGIC = b"jaxdyn run 1\n"


class Run(NamedTuple):
    """Steps of the records, up to ``until``; the records, stacked; the last state in the file."""

    steps: Num[np.ndarray, " records"]
    records: dict[str, np.ndarray]
    state: train.State


def run(
    path: Path,
    about: Mapping[str, Any],
    step: Callable[..., train.State],
    start: Callable[[], train.State],
    observe: Callable[[train.State], Mapping[str, Array]],
    *,
    until: int,
    every: int,
    data: tuple = (),
    save_seconds: float = 60.0,
    progress: Progress | None = None,
) -> Run:
    """Train to step ``until``, record before the first step and after each ``every``, and keep state and records in one file.

    An existing file is resumed, and extended if ``until`` is now larger; nothing in it is recomputed.

    Args:
        path: the file; its folder is made.
        about: what identifies the run (settings, digest of the text, ...), in JSON's types; a file of another run is refused.
        step: ``step(state, *data) -> state``, e.g. of :func:`jaxdyn.text.language.make_step`.
        start: the first state; called only for a new run.
        observe: a dict of arrays; called outside of jit.
        until: total number of steps.
        every: steps between two records.
        data: arrays handed to every step.
        save_seconds: time between saves; a kill loses at most this much work and one segment.
        progress: a progress bar, updated after each segment.

    Raises:
        StoreError: if the file is damaged, belongs to another run, or cannot be written.
        UsageError: if ``every`` is not positive.
    """
    if every < 1:
        raise UsageError(f"every={every} is not allowed: there is at least one step between two records")
    about = json.loads(json.dumps(dict(about) | {"every": every}, default=str))
    stored = path.exists()
    if stored:
        steps, records, state = _load(path, about, start)
    else:
        state = start()
        steps, records = [0], [_host(observe(state))]
    last = state
    if progress:
        progress.start(until, steps[-1])
    saved = time.monotonic()
    for last in train.segments(step, state, until=until, every=every, data=data):
        if progress:
            progress.advance(int(last.step) - steps[-1], {"compile_seconds": 0.0})
        steps.append(int(last.step))
        records.append(_host(observe(last)))
        stored = time.monotonic() - saved >= save_seconds
        if stored:
            _save(path, about, steps, records, last)
            saved = time.monotonic()
    if not stored:
        _save(path, about, steps, records, last)
    count = sum(s <= until for s in steps)  # all runs of a study have one length, also where a file holds further records
    return Run(np.asarray(steps[:count]), _stack(records[:count]), jax.device_get(last))


def _host(record: Mapping[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in jax.device_get(dict(record)).items()}


def _stack(records: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([r[name] for r in records]) for name in records[0]}


def _save(path: Path, about: dict, steps: list[int], records: list[dict], state: PyTree) -> None:
    tree = {"steps": np.asarray(steps), "records": _stack(records), "state": serialization.to_state_dict(jax.device_get(state))}
    body = json.dumps(about).encode() + b"\n" + serialization.msgpack_serialize(tree)
    atomic_write(path, MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def _load(path: Path, about: dict, start: Callable[[], train.State]) -> tuple[list[int], list[dict], train.State]:
    """Steps, records and state of a file."""
    content = path.read_bytes()
    checksum, body = content[len(MAGIC) : len(MAGIC) + 64], content[len(MAGIC) + 65 :]
    if not content.startswith(MAGIC) or hashlib.sha256(body).hexdigest().encode() != checksum:
        raise StoreError(f"{path} is damaged or not a run file; move it away to start again")
    head, _, packed = body.partition(b"\n")
    stored = json.loads(head)
    if stored != about:
        differ = sorted(k for k in {*stored, *about} if stored.get(k) != about.get(k))
        raise StoreError(f"{path} belongs to another run: it differs in {', '.join(differ)}; choose another output folder")
    tree = serialization.msgpack_restore(packed)
    template = jax.eval_shape(start)
    state = serialization.from_state_dict(template, tree["state"])
    count = len(tree["steps"])
    records = [{name: value[i] for name, value in tree["records"].items()} for i in range(count)]
    return [int(s) for s in tree["steps"]], records, state
