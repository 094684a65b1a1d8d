"""What does the sweep engine cost beyond the runs themselves, in CPU seconds and in memory?

    python benchmarks/sweep_overhead.py [--only PART … | --large | --cluster] [--quick]

Parts, each in a process of its own: ``million`` (10⁶ runs of a trivial trial: ``jit(vmap)`` by hand, ``jd.sweep`` in memory,
stored, restored), ``memory`` (the peak of each), ``few`` (10⁴ runs), ``network`` (a small trained network), ``verify`` (what
judging and the report of a claim take with 20,000 seeds). Two are run only when asked for: ``large`` (10⁷ runs, stored) and
``cluster`` (two Dask workers). CPU seconds are those of all threads of the process and of what it started. Results of parts that
are not run are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from command_line import call
from common import RESULTS, cpu_seconds, hardware, interleaved, machine, peak_memory, publish
from kills import dask
from sweep_trials import Net, Trivial, slow, trained, trivial

import jaxdyn as jd

Row: TypeAlias = dict[str, Any]
QUICK = 100  # times fewer runs with --quick
AXIS = np.linspace(0.1, 1.0, 10)
STORE_BLOCK = 1 << 25  # bytes that are packed at a time, as the store does
SHARE_OF_MEMORY = 0.85  # of the machine's, at which a process is ended, before the system ends another one
CLAIM = "cal.quadratic_rate"


class Counted:
    """A progress bar that only counts."""

    total = stored = 0

    def start(self, total: int, done: int) -> None:  # noqa: D102
        self.total, self.stored = total, done

    def advance(self, runs: int, facts: dict[str, Any]) -> None:  # noqa: D102
        pass


def key_of(seed: jax.Array) -> jax.Array:
    """A run's key, as the engine derives it."""
    return jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), seed)


def measured(a: jax.Array, b: jax.Array, seed: jax.Array) -> dict[str, jax.Array]:
    """One run of the trivial trial."""
    return {f"measured_{name}": item.value for name, item in trivial(Trivial(a=a, b=b), key_of(seed)).measured.items()}


def by_hand(seeds: int) -> Callable[[], dict[str, np.ndarray]]:
    """10 x 10 cells and the seeds 0, 1, … of the trivial trial, with JAX alone: one draw per seed, as the engine makes it."""
    of_seeds = jax.vmap(measured, (None, None, 0))
    args = AXIS, AXIS, np.arange(seeds, dtype=np.uint32)
    run = compiled(jax.vmap(jax.vmap(of_seeds, (None, 0, None)), (0, None, None)), *args)
    return lambda: run(*args)


def as_list(seeds: int) -> Callable[[], dict[str, np.ndarray]]:
    """The same over one list of runs, each of which derives its key: simpler to write, and slower."""
    args = tuple(x.ravel() for x in np.meshgrid(AXIS, AXIS, np.arange(seeds, dtype=np.uint32), indexing="ij"))
    run = compiled(jax.vmap(measured), *args)
    return lambda: {name: values.reshape(10, 10, seeds) for name, values in run(*args).items()}


def compiled(function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """The function compiled for such arguments, in 64 bits, to NumPy; whatever is done to JAX's caches, it stays compiled."""
    with jax.enable_x64(True):
        executable = jax.jit(function).lower(*args).compile()

    def run(*args: Any) -> Any:
        with jax.enable_x64(True):
            return jax.device_get(executable(*args))

    return run


def by_engine(seeds: int, out: Path | None = None, *, restored: bool = False) -> Any:
    """The same as a sweep; one that only restores must run nothing."""
    bar = Counted()
    ds = jd.sweep(trivial, jd.grid(Trivial, a=AXIS.tolist(), b=AXIS.tolist()), seeds, out=out, progress=bar)
    assert bar.stored == (bar.total if restored else 0), f"{bar.stored} of {bar.total} runs were restored"
    return ds


def agree(hand: dict[str, np.ndarray], ds: Any) -> None:
    """Refuse results that differ by more than the roundings of the draw, a product and a sum."""
    assert (ds.status.values == 0).all()
    for name, values in hand.items():
        assert ds[name].dtype == values.dtype == np.float64
        np.testing.assert_allclose(ds[name].values, values, rtol=4 * np.finfo(np.float64).eps, err_msg="the contestants disagree")


def packed(ds: Any, path: Path) -> None:
    """Write the arrays plainly, packed as the store packs them: bytes shuffled, zlib of level 1, fsync."""
    with open(path, "wb") as file:
        for variable in ds.data_vars.values():
            flat = np.ravel(variable.values)
            for i in range(0, flat.nbytes, STORE_BLOCK):
                block = flat[i // flat.itemsize : (i + STORE_BLOCK) // flat.itemsize].view(np.uint8)
                data = zlib.compress(block.reshape(-1, flat.itemsize).T.tobytes(), 1)
                file.write(len(data).to_bytes(8) + flat.itemsize.to_bytes(8) + data)
        file.flush()
        os.fsync(file.fileno())


def unpacked(path: Path) -> list[np.ndarray]:
    """Read what :func:`packed` wrote."""
    data, blocks = memoryview(path.read_bytes()), []
    while data:
        size, itemsize = int.from_bytes(data[:8]), int.from_bytes(data[8:16])
        block = np.frombuffer(zlib.decompress(data[16 : 16 + size]), np.uint8)
        blocks.append(block.reshape(itemsize, -1).T.copy())
        data = data[16 + size :]
    return blocks


def row(
    part: str,
    what: str,
    unit: str,
    samples: list[float],
    bar: float | None = None,
    *,
    plain: float | None = None,
    note: str = "",
) -> Row:
    """One line of the table. The median decides; ``plain`` is what the same work takes without the engine."""
    median = statistics.median(samples)
    return {
        "part": part,
        "what": what,
        "median": median,
        "min": min(samples),
        "unit": unit,
        "bar": "" if bar is None else bar,
        "met": "" if bar is None else "met" if median <= bar else "NOT MET",
        "plain / median": "" if plain is None else plain / median,
        "note": note,
        "date": time.strftime("%Y-%m-%d"),
    }


def million(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """10⁶ runs by hand, in memory, stored, restored, interleaved; beside the plain packing of the same arrays."""
    seeds, repeats = (10**4 // QUICK, 1) if quick else (10**4, 5)
    hand, listed, folders = by_hand(seeds), as_list(seeds), list[Path]()
    with tempfile.TemporaryDirectory() as work:

        def stored() -> Any:
            folders.append(Path(work) / f"stored-{len(folders)}")
            return by_engine(seeds, folders[-1])

        def restored() -> Any:
            return by_engine(seeds, folders[-1], restored=True)

        start = cpu_seconds()
        expected, ds = hand(), by_engine(seeds)
        for found in (ds, stored(), restored()):
            agree(expected, found)
        agree(listed(), ds)
        first, plain = cpu_seconds() - start, Path(work) / "plain"
        contestants = {
            "by hand": hand,
            "by hand, a list of runs": listed,
            "in memory": lambda: by_engine(seeds),
            "stored": stored,
            "restored": restored,
            "plain write": lambda: packed(ds, plain),
            "plain read": lambda: unpacked(plain),
        }
        times = interleaved(contestants, repeats, clock=cpu_seconds)
        sizes = {"arrays": ds.nbytes, "plain": plain.stat().st_size, "stored": size_of(folders[-1])}
    names = {"million": f"{100 * seeds:,} runs"}
    hand_s, memory_s, stored_s = (times[name]["median"] for name in ("by hand", "in memory", "stored"))
    write_s, read_s = times["plain write"]["median"], times["plain read"]["median"]

    def line(name: str, *args: Any, **more: Any) -> Row:
        return row("million", f"{names['million']}, {name}", "CPU s", times[name]["samples"], *args, **more)

    rows = [
        line("by hand"),
        line("by hand, a list of runs"),
        line("in memory", 1.5 * hand_s + 1, plain=hand_s, note="bar: 1.5 x by hand + 1 s; plain: by hand"),
        line("stored", memory_s + 2, plain=hand_s + write_s, note="bar: in memory + 2 s; plain: by hand + shuffle, zlib, fsync"),
        line("restored", 1.0, plain=read_s, note="plain: reading and inflating the same arrays"),
    ]
    rates = {
        "plain write (bytes/s)": sizes["arrays"] / write_s,
        "plain read (bytes/s)": sizes["arrays"] / read_s,
        "storing, beyond the runs in memory (bytes/s)": sizes["arrays"] / max(stored_s - memory_s, 1e-9),
        "restoring (bytes/s)": sizes["arrays"] / times["restored"]["median"],
    }
    return rows, {"first calls, with compilation (CPU s)": first, "bytes": sizes, "rates": rates, "times": times}


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def alone(kind: str, seeds: int, out: Path) -> dict[str, float]:
    """Run one contestant in this process, once and cold; the memory before (JAX, jaxdyn, an open device) and at most, in GiB."""
    jax.block_until_ready(jnp.zeros(1))
    before, start = peak_memory(), cpu_seconds()
    if kind == "by hand":
        by_hand(seeds)()
    else:
        stored_in = None if kind == "in memory" else out
        ds = by_engine(seeds, stored_in, restored=kind == "restored")
        few = min(seeds, 100)
        agree(by_hand(few)(), ds.isel(seed=slice(few)))
    return {"before": before, "peak": peak_memory(), "cpu_seconds": cpu_seconds() - start}


def memory(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """The peak of the contestants with 10⁶ runs, each in a process of its own."""
    seeds = 10**4 // QUICK if quick else 10**4
    with tempfile.TemporaryDirectory() as work:
        kinds = ("by hand", "in memory", "stored", "restored")
        found = {kind: fresh("alone", kind, seeds, Path(work) / "out") for kind in kinds}
    rows = [
        row(
            "memory",
            f"{100 * seeds:,} runs, {kind}, peak",
            "GB",
            [one["peak"] * GIB],
            None if kind == "by hand" else 1.5,
            note=f"{one['before'] * GIB:.2f} GB of it before the first run: Python, JAX, jaxdyn",
        )
        for kind, one in found.items()
    ]
    return rows, {"GiB": found}


GIB = 2**30 / 1e9


def large(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """10⁷ runs, stored, in a process that is ended where it takes nearly all memory of the machine."""
    seeds = 10**5 // QUICK if quick else 10**5
    limit = SHARE_OF_MEMORY * machine()["memory_gib"]
    with tempfile.TemporaryDirectory() as work:
        one = fresh("alone", "stored", seeds, Path(work) / "out", limit=limit)
        size = size_of(Path(work))
    note = (
        f"ended at {limit:.1f} GiB" if "cpu_seconds" not in one else f"{one['cpu_seconds']:.0f} CPU s, {size / 1e6:.0f} MB stored"
    )
    return [row("large", f"{100 * seeds:,} runs, stored, peak", "GiB", [one["peak"]], 16.0, note=note)], one


def few(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """10⁴ runs in memory, warm."""
    seeds = 1 if quick else 100
    hand = by_hand(seeds)
    agree(hand(), by_engine(seeds))
    contestants = {"by hand": hand, "in memory": lambda: by_engine(seeds)}
    times = interleaved(contestants, 3 if quick else 25, clock=cpu_seconds)
    plain, name = times["by hand"]["median"], f"{100 * seeds:,} runs"
    rows = [
        row("few", f"{name}, by hand", "CPU s", times["by hand"]["samples"]),
        row("few", f"{name}, in memory", "CPU s", times["in memory"]["samples"], 0.05, plain=plain, note="plain: by hand"),
    ]
    return rows, {"times": times}


def network(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A small network, trained by hand and by a sweep with shards."""
    rates, seeds, steps = np.linspace(0.02, 0.3, 16).tolist(), 6 if quick else 64, 200 if quick else 2000

    def one(lr, seed):
        return trained(Net(lr=lr, steps=steps), key_of(seed)).measured["loss"].value

    args = np.array(rates, np.float32), np.arange(seeds, dtype=np.uint32)
    run = compiled(jax.vmap(jax.vmap(one, (0, None)), (None, 0)), *args)

    def engine() -> Any:
        with tempfile.TemporaryDirectory() as out:
            return jd.sweep(trained, jd.grid(Net, lr=rates, steps=steps), seeds, out=Path(out) / "store", executor="vmap")

    # contracting steps in float32: 2000 roundings of a loss of order 1
    ours = (
        engine().measured_loss.transpose("seed", "lr", "steps", "step", missing_dims="ignore").values.reshape(seeds, len(rates), -1)
    )
    np.testing.assert_allclose(ours, run(*args), rtol=1e-3, atol=1e-5, err_msg="the contestants disagree")
    times = interleaved({"by hand": lambda: run(*args), "stored": engine}, 2 if quick else 7, clock=cpu_seconds)
    plain, name = times["by hand"]["median"], f"small network, {len(rates) * seeds:,} runs of {steps} steps"
    rows = [
        row("network", f"{name}, by hand", "CPU s", times["by hand"]["samples"]),
        row(
            "network", f"{name}, stored", "CPU s", times["stored"]["samples"], 1.05 * plain, plain=plain, note="bar: 1.05 x by hand"
        ),
    ]
    return rows, {"times": times}


def verify(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """What a verification with 20,000 seeds takes beyond one with 8 and beyond its runs, and how much larger its page is."""
    counts, repeats = (8, 20000 // QUICK if quick else 20000), 1 if quick else 3
    os.environ["PJRT_NPROC"] = "1"  # one thread for the runs, so that their wall time is their processor time
    found: dict[int, list[dict[str, Any]]] = {seeds: [] for seeds in counts}
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as cwd:

        def command(seeds: int) -> None:
            out, start = Path(cwd) / f"{seeds}-{len(found[seeds])}", cpu_seconds()
            words = ("verify", CLAIM, "--seeds", str(seeds), "--workers", "1", "--json", "--out", str(out))
            answer = call(*words, cache=cache, cwd=cwd)
            facts = {kind: sum(cost[kind] for cost in answer["costs"]) for kind in ("runs", "run_seconds", "compile_seconds")}
            facts |= {"cpu_seconds": cpu_seconds() - start, "page": (out / "index.html").stat().st_size}
            claim = answer["claims"][0]
            found[seeds].append(facts | {"verdict": claim["verdict"], "resolution": claim["resolution"]})

        interleaved({f"{n} seeds": lambda n=n: command(n) for n in counts}, repeats, clock=cpu_seconds)
    for calls in found.values():
        del calls[0]  # the warm-up, which compiles
    beyond = {n: [one["cpu_seconds"] - one["run_seconds"] for one in calls] for n, calls in found.items()}
    small, many = counts
    judging = row(
        "verify",
        f"{CLAIM}, {many:,} seeds: judging, controls, rivals, resolution, report",
        "CPU s",
        [more - statistics.median(beyond[small]) for more in beyond[many]],
        10.0,
        note=f"beyond its {found[many][-1]['runs']:,} runs, and beyond the same with {small} seeds; "
        f"verdict {found[many][-1]['verdict']}, with {small} seeds {found[small][-1]['verdict']}",
    )
    if not found[many][-1]["resolution"]["scale"]:  # only claims that are upheld have one
        judging["met"] = "incomplete" if judging["met"] == "met" else judging["met"]
        judging["note"] += "; there was no resolution to find"
    rows = [
        judging,
        row(
            "verify",
            f"{CLAIM}, {many:,} seeds: page, over that with {small} seeds",
            "ratio",
            [found[many][-1]["page"] / found[small][-1]["page"]],
            1.1,
            note=f"{found[many][-1]['page']:,} bytes, {found[small][-1]['page']:,} bytes",
        ),
    ]
    return rows, {"calls": {f"{n} seeds": calls for n, calls in found.items()}}


def cluster(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """Planner and collection with two Dask workers, relative to the runs' own time, which a loop by hand measures."""
    from distributed import Client

    os.environ["PJRT_NPROC"] = "1"  # one thread for the runs, here and in the workers
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    seeds = 1 if quick else 100
    one = compiled(lambda a, b, seed: slow(Trivial(a=a, b=b), key_of(seed)).measured["mean"].value, AXIS[0], AXIS[0], np.uint32(0))

    def loop(count: int) -> np.ndarray:
        return np.array([one(AXIS[0], b, np.uint32(seed)) for seed in range(count) for b in AXIS])

    expected = loop(1)
    start = cpu_seconds()
    loop(20)
    each = (cpu_seconds() - start) / (20 * len(AXIS))
    grid = jd.grid(Trivial, a=AXIS.tolist(), b=AXIS.tolist())
    with tempfile.TemporaryDirectory() as work, dask(Path(work)) as processes, Client(processes["address"]) as client:
        client.wait_for_workers(2, timeout=60)
        pool, options = client.get_executor(), {"executor": "map", "cluster": client.get_executor()}
        jd.sweep(slow, grid, [seeds], out=Path(work) / "first", **options)  # modules are imported, the trial is known
        spent = {
            "planner": cpu_seconds,
            "scheduler": lambda: client.run_on_scheduler(time.process_time),
            "workers": lambda: sum(client.run(time.process_time).values()),
        }
        before, start = {who: clock() for who, clock in spent.items()}, time.perf_counter()
        ds = jd.sweep(slow, grid, seeds, out=Path(work) / "store", **options)
        wall = time.perf_counter() - start
        took = {who: clock() - before[who] for who, clock in spent.items()}
        pool.shutdown()
    # products of 64 terms in float32, contracted by tanh: some hundred roundings
    found = ds.measured_mean.isel(a=0, seed=0).values
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg="the contestants disagree")
    own = 100 * seeds * each
    note = f"runs of {1e3 * each:.1f} ms; workers {took['workers']:.1f} CPU s for {own:.1f} CPU s by hand; {wall:.1f} s in all"
    share = (took["planner"] + took["scheduler"]) / own
    what = f"two Dask workers, {100 * seeds:,} runs: planner, scheduler and collection, over the runs"
    return [row("cluster", what, "ratio", [share], 0.2, note=note)], took | {"own": own, "seconds of a run": each, "wall": wall}


ORDINARY: dict[str, Callable[[bool], tuple[list[Row], dict[str, Any]]]] = {
    "million": million,
    "memory": memory,
    "few": few,
    "network": network,
    "verify": verify,
}
PARTS = ORDINARY | {"large": large, "cluster": cluster}


def fresh(*words: object, limit: float = float("inf")) -> Any:
    """What a process of its own prints as its last line; one that takes more than ``limit`` GiB is ended, with that as its peak."""
    command = [sys.executable, __file__, "--child", *map(str, words)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed, subprocess.Popen(command, stdout=printed) as child:
        while child.poll() is None:
            if resident(child.pid) > limit:
                child.kill()
                return {"peak": limit}
            time.sleep(0.2)
        if child.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}: its process ended with {child.returncode}")
        printed.seek(0)
        return json.loads(printed.readlines()[-1])


def resident(pid: int) -> float:
    """GiB that a process has in memory; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (OSError, IndexError):
        return 0.0


def answer(words: list[str]) -> Any:
    """What a process of its own does: a contestant alone, or a part."""
    if words[0] == "alone":
        return alone(words[1], int(words[2]), Path(words[3]))
    return PARTS[words[0]](words[1] == "True")


def together(before: dict[str, Any], rows: list[Row], facts: dict[str, Any]) -> tuple[list[Row], dict[str, Any]]:
    """The results with those of parts that were not run now, if they are of this machine; in the order of the parts."""
    if "details" in before and hardware(before["machine"]) == hardware(machine()):
        rows = [one for one in before["rows"] if one["part"] not in facts] + rows
        facts = before["details"] | facts
    order = list(PARTS)
    return sorted(rows, key=lambda one: order.index(one["part"])), {part: facts[part] for part in order if part in facts}


def parsed(words: list[str]) -> argparse.Namespace:
    """The options; ``only`` holds the parts to run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"some of {', '.join(PARTS)}")
    which.add_argument("--large", action="store_const", const=["large"], dest="only", help="10 million runs, stored")
    which.add_argument("--cluster", action="store_const", const=["cluster"], dest="only", help="two Dask workers")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} times fewer runs, no result written: does it work?")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.only = options.only or list(ORDINARY)
    return options


def main(words: list[str]) -> None:
    options, path = parsed(words), RESULTS / "sweep_overhead.json"
    if options.child:
        print(json.dumps(answer(options.child)))
        return
    rows: list[Row] = []
    facts: dict[str, Any] = {}
    for part in options.only:
        print(part, file=sys.stderr, flush=True)
        found, facts[part] = fresh(part, options.quick)
        rows += found
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not options.quick else {}
    rows, facts = together(before, rows, facts)
    missed = sum(one["met"] not in ("", "met") for one in rows)
    question = f"What the engine costs beyond the runs ({missed} of {sum(one['met'] != '' for one in rows)} bars are not met)"
    if options.quick:
        question = f"What the engine costs beyond the runs, {QUICK} times fewer runs: the bars are those of the whole"
    publish("sweep_overhead", question, rows, save=not options.quick, details=facts)


if __name__ == "__main__":
    main(sys.argv[1:])
