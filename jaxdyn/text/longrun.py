"""Training for minutes to days from the host: one file holds state and records, so that a killed run can be resumed.

The file is replaced as a whole, so state and records in it belong together: a run that is killed at any moment and started again
with the same arguments ends with the same bits as one that was never interrupted. A file knows its run by the content of the first
state and of the data, and by the program of the step, besides what the caller says: weights or a text that were replaced under the
same name are noticed, and so is another rate.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import serialization
from jaxtyping import Array, Num, PyTree

from jaxdyn import train
from jaxdyn.engine.base.devices import own_devices
from jaxdyn.engine.base.parsing import from_home, parse_json, plain_file
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.programs.fingerprint import calls_back, plain_text
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import StoreError, UsageError, number, shown, whole

__all__ = ["Run", "check", "run"]

Record = dict[str, np.ndarray | np.generic]  # a number of a record has no axes
MAGIC = b"jaxdyn run 2\n"
# what identifies a run besides what the caller says
FIRST, DATA, STEP = "the first state (weights, seed)", "the arrays of data", "the step (its program, or the version of JAX)"
LAST = 2**31 - 1  # step: a state counts in int32


class Run(NamedTuple):
    """Steps of the records, up to ``until``; the records, stacked; the state at ``until``, None of a file that has gone further."""

    steps: Num[np.ndarray, " records"]
    records: dict[str, np.ndarray]
    state: train.State | None


def run(
    path: str | Path,
    about: Mapping[str, Any],
    step: Callable[..., train.State],
    start: Callable[[], train.State],
    observe: Callable[[train.State], Mapping[str, Array]],
    *,
    until: int,
    every: int,
    data: tuple[Any, ...] = (),
    save_seconds: float = 60.0,
    progress: Progress | None = None,
) -> Run:
    """Train to step ``until``, record before the first step and after each ``every``, and keep state and records in one file.

    An existing file is resumed, and extended if ``until`` is now larger; nothing in it is recomputed, but for the last record, by
    which another ``observe`` is noticed. The records are those of a run that goes to ``until`` at once: one at an end between two
    multiples of ``every`` is dropped when the run is extended.

    Args:
        path: the file; its folder is made.
        about: what else identifies the run, such as its settings, in JSON's types; a file of another run is refused.
        step: ``step(state, *data) -> state``, e.g. of :func:`jaxdyn.text.language.make_step`.
        start: the first state; called for a file that is resumed, too, and compared with that of the file by its bits, unless the
            file was begun on another kind of processor or card, whose rounding may be another.
        observe: a dict of arrays, of the same names, shapes and dtypes at all steps; called outside of jit.
        until: total number of steps.
        every: steps between two records.
        data: arrays handed to every step, compared with those of the file.
        save_seconds: time between saves; a kill loses at most this much work and one segment.
        progress: a progress bar, updated after each segment.

    Raises:
        StoreError: if the file is damaged, of another run or of another ``observe``, or cannot be read or written.
        UsageError: if a number is out of its range, ``about`` or a record is none, or the file has passed ``until`` unrecorded.
    """
    until, every = whole("until", until, least=0, most=LAST), whole("every", every, least=1, most=LAST)
    save_seconds = number("save_seconds", save_seconds, least=0)
    first = start()
    path, about = from_home(path), _identity(about) | {"every": every} | _contents(step, first, data)
    content = _read(path)
    stored = content is not None
    steps, records, state = _begun(first, observe) if content is None else _resumed(path, content, about, first, observe, until)
    last = state
    if progress:
        progress.start(until, steps[-1])
    saved = time.monotonic()
    for last in _segments(step, state, until, every, data):
        if progress:
            progress.advance(int(last.step) - steps[-1], {"compile_seconds": 0.0})
        steps.append(int(last.step))
        records.append(_host(observe(last)))
        _refuse_other(steps[-1], records[-1], records[0])
        stored = time.monotonic() - saved >= save_seconds
        if stored:
            _save(path, about, steps, records, last)
            saved = time.monotonic()
    if not stored:
        _save(path, about, steps, records, last)
    count = sum(s <= until for s in steps)  # all runs of a study have one length, also where a file holds further records
    return Run(np.asarray(steps[:count]), _stack(records[:count]), jax.device_get(last) if int(last.step) == until else None)


def check(
    path: str | Path,
    about: Mapping[str, Any],
    step: Callable[..., train.State],
    start: Callable[[], train.State],
    *,
    every: int,
    data: tuple[Any, ...] = (),
) -> bool:
    """Whether a file holds the beginning of this run; no file: False.

    Raises:
        StoreError: as :func:`run`, whose arguments these are.
    """
    first = start()
    every = whole("every", every, least=1, most=LAST)
    path, about = from_home(path), _identity(about) | {"every": every} | _contents(step, first, data)
    content = _read(path)
    if content is not None:
        _load(path, content, about, first)
    return content is not None


def _contents(step: Callable[..., train.State], first: train.State, data: tuple[Any, ...]) -> dict[str, Any]:
    """Hashes of the first state, with the processor or card that made it, of the data and of the program of a step."""
    where = own_devices()
    made_on = hashlib.sha256(f"{where.platform} {where.kind} {where.instructions}".encode()).hexdigest()[:20]
    return {FIRST: [made_on, _hashed(first)], DATA: _hashed(data), STEP: _program(step, first, data)}


def _program(step: Callable[..., train.State], first: train.State, data: tuple[Any, ...]) -> str | None:
    """A hash of the program of a step, for one platform whatever the one that runs it; None of one that calls back into Python."""
    try:
        staged = jax.jit(step).trace(first, *data)
    except (TypeError, ValueError):  # of another state: that is said where the state is compared, or where the step is run
        return None
    text = staged.lower(lowering_platforms=("cpu",)).as_text()
    if calls_back(text):
        return None
    return hashlib.sha256(plain_text(text).encode() + _hashed(staged.jaxpr.consts).encode()).hexdigest()[:20]


def _hashed(tree: PyTree) -> str:
    """A hash of the leaves of a tree, of their places, shapes and dtypes."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        key = isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.device_get(jax.random.key_data(leaf) if key else leaf))
        digest.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:20]


def _begun(
    state: train.State, observe: Callable[[train.State], Mapping[str, Array]]
) -> tuple[list[int], list[dict[str, Any]], train.State]:
    """Steps, records and state of a new run."""
    return [0], [_host(observe(state))], state


def _segments(
    step: Callable[..., train.State], state: train.State, until: int, every: int, data: tuple[Any, ...]
) -> Iterator[train.State]:
    """States at the multiples of ``every``, also if the given one is not at one, and at the end."""
    multiple = -(-int(state.step) // every) * every
    for end in (min(multiple, until), until):
        part = train.segments(step, state, until=end, every=every, data=data)
        for state in part:
            yield state


def _identity(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a run is about, as it is read from a file."""
    if not isinstance(about, Mapping):
        raise UsageError(f"about={shown(about)} is not allowed: it is a dict of what identifies the run")
    found: dict[str, Any] = parse_json(json.dumps(_json("about", about)))
    return found


def _json(name: str, value: Any) -> Any:
    """A value in JSON's types, equal only to one that says the same: a number of NumPy or JAX as Python's, a path as its text."""
    if isinstance(value, np.generic | np.ndarray | jax.Array) and value.ndim == 0 and isinstance(value.dtype, np.dtype):
        value = value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | os.PathLike) and isinstance(text := os.fspath(value), str):
        return str(text)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _json(f"{name}.{key}", each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(f"{name}[{i}]", each) for i, each in enumerate(value)]
    allowed = "it is a text, a number, a truth value, None, or a list or dict of these, with texts as keys"
    raise UsageError(f"{name}={shown(value)} is not allowed: {allowed}")


def _marked(value: Any) -> Any:
    """A value in which truth values are not equal to the numbers 0 and 1."""
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, dict):
        return {key: _marked(each) for key, each in value.items()}
    return [_marked(each) for each in value] if isinstance(value, list) else value


def _host(record: Mapping[str, Array]) -> Record:
    """A record as NumPy arrays."""
    if not isinstance(record, Mapping):
        raise UsageError(f"a record of {type(record).__name__} is not allowed: observe gives a dict of arrays")
    arrays: Record = {}
    for name, value in jax.device_get(dict(record)).items():
        key = isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)
        arrays[name] = np.asarray(None if key else value)
        if arrays[name].dtype.kind in "OSU":
            raise UsageError(f"the record {name} is not allowed: observe gives a dict of arrays of numbers")
    return arrays


def _refuse_other(step: int, record: Record, first: Record) -> None:
    """Refuse a record that cannot stand in one array with the first."""
    for name in sorted({*record, *first}, key=str):
        found = [f"{r[name].dtype}{list(r[name].shape)}" if name in r else "nothing" for r in (record, first)]
        if found[0] != found[1]:
            raise UsageError(f"the record {name} at step {step} is {found[0]}, and the first is {found[1]}: they must be alike")


def _stack(records: list[Record]) -> dict[str, np.ndarray]:
    return {name: np.stack([r[name] for r in records]) for name in records[0]}


def _read(path: Path) -> bytes | None:
    """The content of the file; None if there is none."""
    try:
        return plain_file(path).read_bytes()
    except FileNotFoundError:
        return None
    except UsageError as error:
        raise StoreError(str(error)) from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _save(path: Path, about: dict[str, Any], steps: list[int], records: list[dict[str, Any]], state: PyTree) -> None:
    tree = {"steps": np.asarray(steps), "records": _stack(records), "state": serialization.to_state_dict(jax.device_get(state))}
    body = json.dumps(about).encode() + b"\n" + serialization.msgpack_serialize(tree)
    atomic_write(path, MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def _resumed(
    path: Path,
    content: bytes,
    about: dict[str, Any],
    first: train.State,
    observe: Callable[[train.State], Mapping[str, Array]],
    until: int,
) -> tuple[list[int], list[dict[str, Any]], train.State]:
    """Steps, records and state of a file that goes to step ``until``, without a record that such a run does not have."""
    steps, records, state = _load(path, content, about, first)
    _refuse_other_observe(path, records[-1], _host(observe(state)))
    if until < steps[-1] and until not in steps:
        raise UsageError(f"until={until} is not allowed: {path} has reached step {steps[-1]}, and has no record at step {until}")
    if steps[-1] % about["every"] and steps[-1] < until:
        del steps[-1], records[-1]
    return steps, records, state


def _refuse_other_observe(path: Path, stored: Record, now: Record) -> None:
    """Refuse a file whose last record is not what ``observe`` gives of its last state, but for another machine's rounding."""
    for name in sorted({*stored, *now}, key=str):
        before, after = stored.get(name), now.get(name)
        if (
            before is None
            or after is None
            or (before.shape, before.dtype) != (after.shape, after.dtype)
            or not _agree(before, after)
        ):
            raise StoreError(f"{path} holds records of another observe: {name} differs; choose another output folder")


def _agree(before: np.ndarray | np.generic, after: np.ndarray | np.generic) -> bool:
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return False
    if not jax.numpy.issubdtype(before.dtype, jax.numpy.inexact):
        return bool(np.array_equal(before, after))
    eps = max(float(jax.numpy.finfo(before.dtype).eps), float(np.finfo(np.float32).eps))
    wide = [np.asarray(x, complex if x.dtype.kind == "c" else float) for x in (before, after)]
    size = float(np.max(np.abs(wide[0][np.isfinite(wide[0])]), initial=0))
    return bool(np.allclose(wide[0], wide[1], rtol=3 * eps**0.5, atol=3 * eps**0.5 * size, equal_nan=True))


def _load(
    path: Path, content: bytes, about: dict[str, Any], first: train.State
) -> tuple[list[int], list[dict[str, Any]], train.State]:
    """Steps, records and state of a file, refused if it is of another run."""
    checksum, body = content[len(MAGIC) : len(MAGIC) + 64], content[len(MAGIC) + 65 :]
    if not content.startswith(MAGIC) or hashlib.sha256(body).hexdigest().encode() != checksum:
        raise StoreError(f"{path} is damaged or not a run file; move it away to start again")
    head, _, packed = body.partition(b"\n")
    stored = parse_json(head)
    if stored[FIRST][0] != about[FIRST][0]:  # begun elsewhere: the bits of random numbers may differ
        about = about | {FIRST: stored[FIRST]}
    differ = sorted(k for k in {*stored, *about} if [_marked(stored.get(k))] != [_marked(about.get(k))])  # NaN is itself
    _refuse_another(path, [name for name in differ if name not in (FIRST, STEP)])
    tree = serialization.msgpack_restore(packed)
    state = _restored(path, first, tree["state"])
    _refuse_another(path, differ)
    count = len(tree["steps"])
    records = [{name: value[i] for name, value in tree["records"].items()} for i in range(count)]
    return [int(s) for s in tree["steps"]], records, state


def _refuse_another(path: Path, differ: list[str]) -> None:
    if differ:
        raise StoreError(f"{path} belongs to another run: it differs in {', '.join(differ)}; choose another output folder")


def _restored(path: Path, template: train.State, state: dict[str, Any]) -> train.State:
    """The state of a file, refused if its leaves are not those of the template."""
    expected = serialization.to_state_dict(template)
    structures: list[Any] = [jax.tree.structure(tree) for tree in (expected, state)]
    same = structures[0] == structures[1]
    if not same or not jax.tree.all(jax.tree.map(lambda x, y: (x.shape, x.dtype) == (y.shape, y.dtype), expected, state)):
        raise StoreError(f"{path} belongs to another run: its weights or its optimizer are others; choose another output folder")
    return serialization.from_state_dict(template, state)
