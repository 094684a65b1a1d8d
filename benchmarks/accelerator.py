"""What an accelerator brings: the same work there and on the CPU of the same machine, in at most eight minutes.

``python benchmarks/accelerator.py`` needs no network and assumes nothing of the machine but what ``jax.devices()`` says. Each side
is a process of its own that does one piece after another: rates of products and of memory, then a training of Li2's network, the
word language model, Figure 6 of Scan & Snap, a network of the laboratory with its instruments, some claims by ``jaxdyn verify``, a
published model that reads and is probed, and a map of thousands of networks. A piece has its share of the time that is left; where
it fails or takes longer, that is written down, and the others go on. ``benchmarks/results/accelerator.json`` is written after every
piece.

``run``: seconds of the work once it is compiled; where not all of its equal parts were run, those that were are multiplied, and the
note says so. ``compile``: what the first part took longer, which includes planning, tracing and loading. Nothing that was compiled
before is used. ``faster``: the CPU's run over the accelerator's. ``of peak``: the operations of the large products over the run and
the measured rate of products in full float32. ``difference``: the largest of means (losses, entropies, logits, predicted and
measured variables, checks), in units of their root mean square.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import RESULTS, machine, show, write
from pieces import ALONE, last_line

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("accelerator", "cpu")
SHARES = {  # of the time, of a piece by each side; what one leaves goes to the others
    "calibration": (40, 15),
    "li2": (30, 20),
    "language": (45, 25),
    "fig6": (60, 25),
    "laboratory": (40, 25),
    "verdicts": (90, 40),
    "probe": (60, 45),
    "map": (60, 40),
}
OPENING = 90.0  # seconds that a side may take to import JAX and open its devices
LEAST = 3.0  # seconds with which no piece is begun
MEASURING = 0.7  # of a piece's time: then no further part is begun


class Side:
    """A process that does pieces, started when it is first needed, and again after one that failed."""

    script = Path(__file__).with_name("pieces.py")

    def __init__(self, name: str, caches: Path) -> None:
        own = {"JAX_PLATFORMS": "cpu"} if name == "cpu" else {}
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = os.environ | own | {
            "PYTHONPATH": os.pathsep.join(paths),  # the package may not be installed
            "EQX_ON_ERROR": "nan",  # as by the command line: otherwise ODE programs are not taken from the cache
            "JAX_COMPILATION_CACHE_DIR": str(caches / name),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }  # fmt: skip
        self.log = caches / f"{name}.log"
        self.process: subprocess.Popen[str] | None = None
        self.lines: queue.Queue[str | None] = queue.Queue()

    def start(self) -> subprocess.Popen[str]:
        """The process, and a thread that reads its lines."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with self.log.open("w", encoding="utf-8") as log:
            command = [sys.executable, str(self.script)]
            process = subprocess.Popen(command, env=self.environment, stderr=log, encoding="utf-8", start_new_session=True, **pipes)
        self.process, self.lines = process, queue.Queue()
        threading.Thread(target=forward, args=(process.stdout, self.lines), daemon=True).start()
        return process

    def ask(self, piece: str, limit: float, quick: bool, model: str | None) -> tuple[dict[str, dict[str, Any]], str]:
        """What the parts of a piece found within so many seconds, and why it has failed if it has."""
        end = time.monotonic() + limit
        if piece in ALONE:
            self.close()
        process = self.process or self.start()
        order = {"piece": piece, "seconds": MEASURING * limit, "quick": quick, "model": model}
        with contextlib.suppress(BrokenPipeError):  # it has ended: its lines say so
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        found: dict[str, dict[str, Any]] = {}
        failure = ""
        while not failure:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                failure = f"stopped after {limit:.0f} s"
                break
            if line is None:
                failure = (
                    f"its process ended with {process.wait()}: {last_line(self.log.read_text(errors='replace', encoding='utf-8'))}"
                )
                break
            facts = json.loads(line)
            if "done" in facts:
                break
            if "part" in facts:
                found.setdefault(facts.pop("part"), {}).update(facts)
            else:
                failure = facts["failed"]
        if failure or piece in ALONE:
            self.close()  # after an error of a device nothing else may work in that process
        return found, failure

    def close(self) -> None:
        """End the process and all that it has started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process = None


def forward(stream: Any, lines: queue.Queue[str | None]) -> None:
    """Lines of a process as they come, and None at its end."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def difference(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, str] | None:
    """The largest difference of numbers that both sides have, in units of their scale, and which it is; None: there are none."""
    a, b = one.get("values", {}), other.get("values", {})
    gaps = [(abs(a[n][0] - b[n][0]) / (max(a[n][1], b[n][1]) or 1.0), n) for n in a if n in b]
    return max(gaps) if gaps else None


def disagreeing(one: dict[str, Any], other: dict[str, Any]) -> tuple[int, list[str]]:
    """How many verdicts both sides have, and those that differ."""
    a, b = one.get("verdicts", {}), other.get("verdicts", {})
    both = [name for name in a if name in b]
    return len(both), [f"{name}: {a[name]} against {b[name]}" for name in both if a[name] != b[name]]


def row(part: str, sides: Sequence[dict[str, Any]], failures: Sequence[str], peak: float | None) -> dict[str, Any]:
    """One line of the table.

    Args:
        part: its name.
        sides: what the accelerator and the CPU found.
        failures: why they failed, or "".
        peak: the accelerator's rate of products, if it is known.
    """
    ours, cpu = sides
    gap, (count, unequal) = difference(ours, cpu), disagreeing(ours, cpu)
    notes = [f"{name} failed: {failure}" for name, failure in zip(SIDES, failures, strict=True) if failure]
    for name, found in zip(SIDES, sides, strict=True):
        if "run" in found and found.get("timed", 0) + 1 < found.get("parts", 0):
            notes.append(f"{name}: {found['timed']} of {found['parts']} parts timed, multiplied")
        elif "first" in found and "run" not in found:
            notes.append(f"{name}: only its first part, {found['first']:.1f} s with compilation")
        notes += [f"{name}: {note}" for note in found.get("notes", ())]
    if count:
        notes.append("; ".join(unequal) or f"{count} verdicts equal")
    if gap is not None and gap[0] > 1e-3:
        notes.append(f"largest difference: {gap[1]}")
    known = "run" in ours and "run" in cpu
    flops = ours.get("flops", 0)
    return {
        "work": part,
        "run s": ours.get("run", ""),
        "compile s": ours.get("compile", ""),
        "CPU run s": cpu.get("run", ""),
        "CPU compile s": cpu.get("compile", ""),
        "faster": cpu["run"] / ours["run"] if known else "",
        "of peak": flops / ours["run"] / peak if flops and peak and "run" in ours else "",
        "difference": "" if gap is None else gap[0],
        "note": "; ".join(notes),
    }


def rate(part: str, sides: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One line of the table of rates."""
    rates = [found.get("rate", found.get("failed", "")) for found in sides]
    size = next((found["size"] for found in sides if "size" in found), "")
    unit = next((found["unit"] for found in sides if "unit" in found), "")
    ratio = rates[0] / rates[1] if all(isinstance(x, float) for x in rates) else ""
    return {"what": part, "unit": unit, "size": size, "accelerator": rates[0], "CPU": rates[1], "ratio": ratio}


Found = dict[str, tuple[dict[str, dict[str, dict[str, Any]]], dict[str, str]]]  # by piece: of each side the parts, and its failure


def tables(found: Found) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rates, and times of the same work on both sides."""
    rates, rows, peak = [], [], None
    for piece, (parts, failures) in found.items():
        names = dict.fromkeys(name for side in SIDES for name in parts[side])
        pairs = {name: [parts[side].get(name, {}) for side in SIDES] for name in names}
        if piece == "calibration":
            rates = [rate(name, pair) for name, pair in pairs.items()]
            peak = next((1e12 * r["accelerator"] for r in rates if r["what"].endswith("full") and r["accelerator"]), None)
        why = [failures[side] for side in SIDES]
        timed = {n: p for n, p in pairs.items() if any("first" in f or "run" in f for f in p)} if piece != "calibration" else {}
        # a piece's failure is that of its last part: the others are complete
        rows += [row(n, p, why if n == list(timed)[-1] else ("", ""), peak) for n, p in timed.items()]
        if any(why) and not timed:
            rows.append(row(piece, ({}, {}), why, None))
    return rates, rows


def content(found: Found, places: dict[str, dict[str, Any]], options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """The result, as far as it is known."""
    rates, rows = tables(found)
    kept = {
        piece: {side: {n: {k: v for k, v in f.items() if k != "values"} for n, f in parts[side].items()} for side in SIDES}
        for piece, (parts, _) in found.items()
    }
    card = places["accelerator"]
    return {
        "question": "What does an accelerator bring? The same work on the CPU of the same machine",
        "machine": machine() | {"accelerator": f"{card['count']} x {card['kind']} ({card['platform']})"},
        "places": places,
        "minutes": options.minutes,
        "quick": options.quick,
        "seconds": seconds,
        "rates": rates,
        "rows": rows,
        "pieces": kept,
    }


def explained(place: dict[str, Any]) -> str:
    """Why there is no accelerator, and what to do."""
    there = "an NVIDIA card is there, which JAX does not use: pip install 'jax[cuda13]', and see nvidia-smi: it needs driver 580"
    return f"JAX finds no accelerator, only {place['kind']}: {there if place['driver'] else '--quick tries the pieces there'}"


def work(options: argparse.Namespace, sides: dict[str, Side], places: dict[str, dict[str, Any]], begin: float) -> Found:
    """Piece after piece, by each side; the result is written after each."""
    end = begin + 60 * options.minutes
    turns = [(piece, i) for piece in options.pieces for i in range(len(SIDES))]
    found: Found = {}
    for at, (piece, i) in enumerate(turns):
        now, name = time.monotonic(), SIDES[i]
        limit = (end - now) * SHARES[piece][i] / sum(SHARES[later][j] for later, j in turns[at:])
        parts, failures = found.setdefault(piece, ({}, {}))
        if limit < LEAST:
            parts[name], failures[name] = {}, "no time was left"
        else:
            parts[name], failures[name] = sides[name].ask(piece, limit, options.quick, options.model)
        spent = f"{time.monotonic() - now:.1f} of {limit:.0f} s"
        print(f"  {piece}, {name}: {spent}; {failures[name] or 'done'}", file=sys.stderr, flush=True)
        if i and options.out is not None:
            write(options.out, content(found, places, options, time.monotonic() - begin))
    return found


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pieces", default=",".join(SHARES), help="some of them, with commas: %(default)s")
    parser.add_argument("--minutes", type=float, default=8.0, help="of all together (default: %(default)g)")
    parser.add_argument(
        "--model", help="a model's folder or file (default: SmolLM2 if it is here, else random weights of its shape)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, also where there is only a CPU: does it work?")
    parser.add_argument("--out", type=Path, help="the file (default: benchmarks/results/accelerator.json; none with --quick)")
    options = parser.parse_args(words)
    options.pieces = options.pieces.split(",")
    if unknown := [piece for piece in options.pieces if piece not in SHARES]:
        parser.error(f"--pieces {unknown[0]} is not allowed: pieces are {', '.join(SHARES)}")
    if not 0 < options.minutes < float("inf"):
        parser.error(f"--minutes {options.minutes:g} is not allowed: it is a number above 0")
    if options.out is None and not options.quick:
        options.out = RESULTS / "accelerator.json"
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Both sides, the tables, the file."""
    options, begin = parsed(words), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        sides = {name: Side(name, Path(folder)) for name in SIDES}
        places = {}
        for name, side in sides.items():
            stack.callback(side.close)
            parts, failure = side.ask("devices", OPENING, options.quick, None)
            if failure:
                print(f"{name}: {failure}", file=sys.stderr)
                return 2
            places[name] = parts["devices"]
            print(f"{name}: {places[name]}", file=sys.stderr, flush=True)
        here = places["accelerator"]
        if here["platform"] == "cpu" and not options.quick:
            print(explained(here), file=sys.stderr)
            return 2
        found = work(options, sides, places, begin)
    rates, rows = tables(found)
    note = "; NO ACCELERATOR IS HERE: both sides are the CPU" if here["platform"] == "cpu" else ""
    title = f"{here['count']} x {here['kind']} against {places['cpu']['cores']} cores{note}"
    if rates:
        show(f"Rates: {title}", rates)
    if rows:
        show(f"The same work: {title}", rows)
    print(f"{time.monotonic() - begin:.0f} s" + (f"; written to {options.out}" if options.out is not None else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
