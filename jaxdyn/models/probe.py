"""A probe: instruments on a model's own weights, or on each of a series of checkpoints, stored one by one and resumed.

``jaxdyn.probe(model)`` is the command ``jaxdyn probe MODEL``: the model is loaded, the text is cut into pieces, and every
instrument measures in turn. What is stored already is not measured again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import importlib
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Int
from threadpoolctl import ThreadpoolController

from jaxdyn.engine.base.devices import check_options
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.base.streams import telling
from jaxdyn.engine.storage.store import atomic_write, open_folder
from jaxdyn.errors import UsageError, shown
from jaxdyn.instruments import Instrument, NotApplicable, Number, registry
from jaxdyn.instruments.pieces import finite_pieces, pieces_read, reading_cost
from jaxdyn.models import probe_store
from jaxdyn.models.loading import Model, load
from jaxdyn.models.probe_text import RawText, cut, open_text
from jaxdyn.models.series import given_steps, labels, steps_of
from jaxdyn.models.summary import describe
from jaxdyn.nn import Transformer
from jaxdyn.wording import plural

__all__ = ["NUMBERS", "Checkpoint", "Outcome", "Plan", "Probe", "expand", "plan", "probe"]

PURPOSE, NUMBERS = "probe", "probe.json"
LEFT_OUT = "left_out"  # attribute of a Dataset: a sentence on pieces
TOKENS, LENGTH = 4096, 512
SIZES = ("depth", "heads", "key_heads", "width", "hidden", "vocabulary")  # of a network, the same in a series
WORK = 256  # side of the matrices by whose product a machine's speed is estimated
EFFICIENCY = 0.5  # of a whole network, compared with such products


class Outcome(NamedTuple):
    """What one instrument found; without data, the sentence that says why."""

    instrument: Instrument
    data: xr.Dataset | None
    skipped: str
    seconds: float

    @property
    def read(self) -> tuple[int, int] | None:
        """How many pieces of the text it read, and how many tokens of each; None: no text."""
        return None if self.data is None else pieces_read(self.data)

    def numbers(self) -> list[Number]:
        """What the page shows in digits."""
        return [] if self.data is None else self.instrument.numbers(self.data)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """One model of a probe: its name, its step if it is one of a series with steps, a description in lines, and what was found.

    ``left_out`` is a sentence on the pieces that were left out, if there are any; ``label`` tells it from others of its series.
    """

    name: str
    step: int | None
    lines: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    left_out: str = ""
    label: str = ""

    @property
    def data(self) -> dict[str, xr.Dataset]:
        """The Datasets by instrument."""
        return {one.instrument.name: one.data for one in self.outcomes if one.data is not None}


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a probe will do: pieces of text, instruments, which of them are stored, and the rough cost of the others."""

    text: str
    pieces: Int[np.ndarray, "piece n"]
    instruments: tuple[Instrument, ...]
    stored: tuple[str, ...]
    seconds: float
    bytes: float


@dataclasses.dataclass(frozen=True)
class Probe:
    """A finished probe.

    Args:
        checkpoints: one, or a series by step, or in the order given where there are no steps.
        text: what was read.
        digest: of the text.
        tokens: how many tokens of it were read, a token that begins each piece among them.
        length: of a piece.
    """

    checkpoints: tuple[Checkpoint, ...]
    text: str
    digest: str
    tokens: int
    length: int

    @property
    def data(self) -> dict[str, xr.Dataset]:
        """The Datasets by instrument, of the last checkpoint."""
        return self.checkpoints[-1].data

    def latest(self, number: int) -> Checkpoint:
        """The last checkpoint of which an instrument has data; the last one of all if it has none of any."""
        there = [one for one in self.checkpoints if one.outcomes[number].data is not None]
        return (there or self.checkpoints)[-1]

    def to_json(self) -> dict[str, Any]:
        """Numbers, intervals and expectations in JSON types, without arrays."""
        checkpoints = [
            {
                "model": one.name,
                "step": one.step,
                "left_out": one.left_out or None,
                "instruments": [
                    {
                        "name": outcome.instrument.name,
                        "title": outcome.instrument.title,
                        "source": outcome.instrument.source,
                        "skipped": outcome.skipped or None,
                        "seconds": outcome.seconds,
                        "read": outcome.read,
                        "numbers": [dataclasses.asdict(number) for number in outcome.numbers()],
                    }
                    for outcome in one.outcomes
                ],
            }
            for one in self.checkpoints
        ]
        text = {"name": self.text, "digest": self.digest, "tokens": self.tokens, "length": self.length}
        found: dict[str, Any] = finite({"text": text, "checkpoints": checkpoints})
        return found


def probe(
    model: Any,
    text: Any = None,
    tokens: int = TOKENS,
    only: Sequence[str] | str | None = None,
    out: str | Path | None = None,
    *,
    length: int = LENGTH,
    dtype: str | None = None,
    steps: Sequence[int] | str | None = None,
    say: Callable[[str], None] | None = None,
    pages: Callable[[Probe], Mapping[str, str]] | None = None,
) -> Probe:
    """Instruments on a model, or on each of a series of checkpoints.

    Args:
        model: whatever :func:`jaxdyn.models.load` takes, a loaded :class:`~jaxdyn.models.Model`, a pattern such as ``runs/step*``,
            or a list of models. Several are ordered by the one number in which their names differ; models in memory, and those
            whose names hold no number, stay in the order given.
        text: the path of a text, or of a folder whose test part is read; token numbers; "markov"; by default Python's manual.
        tokens: how many tokens of the text are read, 256 or more.
        only: names of instruments, as a list or with commas; by default all.
        out: a folder in which every instrument's Dataset is stored as soon as it is finished, and the numbers at the end; a probe
            with the same model and text resumes there. Nothing is written without it.
        length: tokens of a piece, 64 or more.
        dtype: of the parameters, as of :func:`jaxdyn.models.load`; models in memory have theirs.
        steps: of each model of a list, where names do not tell them: whole numbers, or a text with commas.
        say: is told what will be done, and what it costs, before it is done.
        pages: makes further files of the folder, by name, which are written with the numbers: all are of one probe.

    Raises:
        UsageError: for unknown instruments, models that cannot be read, texts that are too short, and a series whose names leave
            its order open; and for a model whose pass over the text is not finite, on any piece of it.
        StoreError: for a folder that is another job's, or damaged.
    """
    check_options()
    chosen, models, raw = registry.choose(only), expand(model, steps), open_text(text)
    if dtype is not None and any(isinstance(one, Model) for *_, one in models):
        raise UsageError(f"dtype={shown(dtype)} is not allowed: the parameters of a model in memory have their own")
    with contextlib.ExitStack() as stack:
        folder = None if out is None else stack.enter_context(open_folder(out, PURPOSE))
        checkpoints, first = [], None
        named = labels([name for name, *_ in models], [step for _, step, _ in models])
        for (name, step, one), label in zip(models, named, strict=True):
            loaded = one if isinstance(one, Model) else _load(one, "float32" if dtype is None else dtype, say)
            pieces = cut(raw, loaded, tokens, length)
            first = (loaded.shape, pieces) if first is None else first
            if (other := _difference(loaded.shape, pieces, *first)) is not None:
                raise UsageError(f"{name} is not allowed in this series: it {other} than {models[0][0]}")
            checkpoints.append(_measure(name, step, label, loaded, raw, pieces, chosen, folder, say))
        result = Probe(tuple(checkpoints), raw.name, raw.digest, int(pieces.size), int(pieces.shape[1]))
        if folder is not None:
            files = {} if pages is None else pages(result)
            for file in files:
                (folder / file).unlink(missing_ok=True)  # an interruption leaves none of another probe next to new numbers
            for file, content in ({NUMBERS: json.dumps(result.to_json(), indent=1)} | dict(files)).items():
                atomic_write(folder / file, content)
    return result


def _difference(
    shape: Transformer, pieces: Int[np.ndarray, "piece n"], first: Transformer, read: Int[np.ndarray, "piece n"]
) -> str | None:
    """Why a model's numbers cannot stand next to those of the first one of its series, in words; None: they can."""
    if any(getattr(shape, size) != getattr(first, size) for size in SIZES):
        return "is another network"
    return None if np.array_equal(pieces, read) else "reads the text as other tokens"


def expand(model: Any, steps: Sequence[int] | str | None = None) -> list[tuple[str, int | None, Any]]:
    """Names, steps and models, in the order of their steps; where there are none (None), in the order given.

    Raises:
        UsageError: for a pattern that fits nothing, an empty list, names that leave the order open
            (:mod:`jaxdyn.models.series`), and steps for a pattern, whose order nobody sees.
    """
    several = list(model) if isinstance(model, list | tuple) and not isinstance(model, Model) else [model]
    for one in several:
        if not isinstance(one, Model | str | Path) or not str(one).strip():
            raise UsageError(f"model={shown(repr(one))} is not allowed: it is a path, a name org/model, or a model that was loaded")
    found: list[Any] = []
    for one in several:
        text = str(one)
        if isinstance(one, Model) or not glob.has_magic(text) or Path(text).exists():
            found.append(one)
            continue
        matches = sorted(glob.glob(str(from_home(text))))
        if not matches:
            raise UsageError(f"{text} fits no file or folder")
        if steps is not None:
            raise UsageError(f"steps={shown(steps)} is not allowed with a pattern, {text}: list the models in their steps' order")
        found += matches
    if not found:
        raise UsageError("model=[] is not allowed: there is at least one")
    if len(found) == 1 and steps is None:
        return [(_name(found[0]), None, found[0])]
    if steps is not None:
        numbers = given_steps(steps, len(found))
    else:
        in_memory = any(isinstance(one, Model) for one in found)
        told = None if in_memory else steps_of([str(Path(one)) for one in found])
        if told is None:
            return [(_name(one), None, one) for one in found]
        numbers = told
    return [(_name(found[i]), numbers[i], found[i]) for i in sorted(range(len(found)), key=numbers.__getitem__)]


def _name(model: Any) -> str:
    if not isinstance(model, Model):
        return str(model)
    return "a model in memory" if model.summary is None else str(model.summary.path)


def _load(model: Any, dtype: str, say: Callable[[str], None] | None) -> Model:
    """Read a model; its description comes first."""
    if say is not None:
        for line in describe(model, dtype=dtype).lines():
            say(line)
    with telling("reading the weights"):
        return load(model, dtype=dtype)


def _measure(
    name: str,
    step: int | None,
    label: str,
    model: Model,
    raw: RawText,
    pieces: Int[np.ndarray, "piece n"],
    chosen: tuple[Instrument, ...],
    folder: Path | None,
    say: Callable[[str], None] | None,
) -> Checkpoint:
    """All instruments on one model, each stored as it ends."""
    data, which = (None, {}) if folder is None else (folder / "data", probe_store.identities(model, pieces, chosen))
    found = {one.name: None if data is None else probe_store.read(data, one.name, which[one.name]) for one in chosen}
    ahead = plan(model, raw.name, pieces, chosen, tuple(n for n, stored in found.items() if stored is not None))
    if say is not None:
        say(_announced(ahead))
    known = [stored[0] for stored in found.values() if stored is not None and isinstance(stored[0], xr.Dataset)]
    places, left_out = np.arange(len(pieces)), next((str(ds.attrs[LEFT_OUT]) for ds in known if LEFT_OUT in ds.attrs), "")
    if any(one.pieces for one in chosen if found[one.name] is None):
        with telling("reading the text once, for logits that are not finite"):
            places, left_out = _read(name, model, pieces)
    if left_out:
        (warnings.warn if say is None else say)(f"{name}: {left_out}")
    outcomes = []
    with Progress(label, unit=plural(len(ahead.instruments), "instrument").partition(" ")[2]) as bar:
        bar.start(len(chosen), 0)
        for one in chosen:
            stored = found[one.name]
            result, seconds = stored if stored is not None else _run(one, model, pieces[places], bar)
            if stored is None and isinstance(result, xr.Dataset):
                result = _labelled(result, places, left_out)
            if stored is None and data is not None:
                probe_store.write(data, one.name, which[one.name], result, seconds)
            if stored is not None:
                bar.advance(1, {"compile_seconds": 0.0})
            skipped = result if isinstance(result, str) else ""
            outcomes.append(Outcome(one, None if isinstance(result, str) else result, skipped, seconds))
            if say is not None:
                ending = f"skipped: {skipped}" if skipped else "stored already" if stored is not None else f"{seconds:.0f} s"
                bar.say(f"  {one.name:<14} {ending}") if stored is None else say(f"  {one.name:<14} {ending}")
    lines = () if model.summary is None else tuple(model.summary.lines())
    return Checkpoint(name, step, lines, tuple(outcomes), left_out, label)


def _read(name: str, model: Model, pieces: Int[np.ndarray, "piece n"]) -> tuple[Int[np.ndarray, " kept"], str]:
    """Places of the pieces over which the model's pass is finite, as many as instruments read; a sentence on the others.

    NaN would pass for a number wherever something is counted or compared, and for a missing one in means.

    Raises:
        UsageError: if there is none.
    """
    places, read = finite_pieces(model, pieces, max(one.pieces for one in registry.instruments().values()))
    if not places.size:
        raise UsageError(
            f"{name} cannot be probed: its logits, or its residual stream, are finite on none of the text's {plural(read, 'piece')}"
        )
    lost = read - places.size
    return places, f"{lost} of {plural(read, 'piece')} left out, without finite logits" if lost else ""


def _labelled(ds: xr.Dataset, places: Int[np.ndarray, " kept"], left_out: str) -> xr.Dataset:
    """A Dataset whose pieces have their places in the text, and which says what was left out."""
    known = ds.assign_coords(piece=places[: ds.sizes["piece"]]) if "piece" in ds.dims else ds
    return known.assign_attrs({LEFT_OUT: left_out}) if left_out else known


def _run(one: Instrument, model: Model, pieces: Int[np.ndarray, "piece n"], bar: Progress) -> tuple[xr.Dataset | str, float]:
    """One instrument's Dataset, or why there is none, and its seconds.

    LAPACK has one thread: an eigenvalue problem of a model's size takes several times as long with two that wait for one another.
    JAX takes SciPy's, which is loaded here: what is loaded later is not limited.
    """
    importlib.import_module("scipy.linalg")
    started, done = time.perf_counter(), 0.0

    def tick(share: float) -> None:
        nonlocal done
        done += share
        bar.advance(share, {"compile_seconds": 0.0})  # type: ignore[arg-type]  # a share of an instrument

    try:
        with ThreadpoolController().limit(limits=1, user_api="blas"):
            result: xr.Dataset | str = one.measure(model, pieces, tick)
    except NotApplicable as reason:
        result = str(reason)
    bar.advance(1 - done, {"compile_seconds": 0.0})  # type: ignore[arg-type]
    return result, time.perf_counter() - started


def plan(
    model: Model, text: str, pieces: Int[np.ndarray, "piece n"], chosen: tuple[Instrument, ...], stored: tuple[str, ...] = ()
) -> Plan:
    """What measuring costs on this machine, roughly."""
    costs = [one.cost(model.shape, pieces) for one in chosen if one.name not in stored]
    if most := max((one.pieces for one in chosen if one.name not in stored), default=0):
        costs.append(reading_cost(most, pieces.shape[1])(model.shape, pieces))  # are they finite?
    memory = sum(np.asarray(leaf.nbytes) for leaf in jax.tree.leaves(model.params))
    rate = _rate(str(model.shape.dtype)) * EFFICIENCY if costs else 1.0
    compiling = 8.0 * len(costs)
    seconds = sum(cost.flops for cost in costs) / rate + compiling
    return Plan(text, pieces, chosen, stored, seconds, float(memory) + max([cost.bytes for cost in costs], default=0.0))


@functools.cache
def _rate(dtype: str) -> float:
    """Operations a second in products of matrices, the best of some."""
    a = jnp.ones((WORK, 8 * WORK), dtype)
    product = jax.jit(lambda x: x @ x.T)
    product(a).block_until_ready()
    times = []
    for _ in range(5):
        started = time.perf_counter()
        product(a).block_until_ready()
        times.append(time.perf_counter() - started)
    return float(2 * WORK**2 * 8 * WORK / min(times))


def _announced(ahead: Plan) -> str:
    """What will be done and what it costs, in one line."""
    count, length = ahead.pieces.shape
    left = len(ahead.instruments) - len(ahead.stored)
    stored = f", {len(ahead.stored)} of them stored" if ahead.stored else ""
    minutes = f"about {max(1, round(ahead.seconds / 60))} min" if left else "nothing to measure"
    hint = "; --text FILE reads yours" if ahead.text == "the interpreter's manual" else ""
    text = f"{plural(count, 'piece')} of {plural(length, 'token')} of {ahead.text}{hint}"
    return f"{plural(len(ahead.instruments), 'instrument')}{stored}; {text}; {minutes}, {ahead.bytes / 1e9:.2g} GB of memory"
