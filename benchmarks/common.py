"""What every benchmark shares: the machine's details, interleaved timing, measured peaks, one table and one JSON file."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
BEGAN = time.monotonic()
FOLDERS = r"(?<![\w.:/])/(?:[\w.+-]+/)+"  # of this machine, in what a process has said


def machine() -> dict[str, Any]:
    """Processor, cores, memory and versions: what is needed to interpret a timing later."""
    packages = {}
    for package in ("jax", "jaxlib", "diffrax", "optax", "numpy", "scipy", "torch", "torchdiffeq"):
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    sizes = {"cores": os.cpu_count(), "memory_gib": round(memory, 1)}
    return {"cpu": processor(), **sizes, "python": platform.python_version(), **packages}


def hardware(details: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells machines apart whose times are not to be mixed: the processor, and the accelerator where there is one."""
    return details["cpu"], details.get("accelerator")


def cores() -> int:
    """How many processor cores this process may use, by its affinity and by the quota of its container."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
        return max(1, min(count, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return count


def platform_of_runs() -> str:
    """The platform that JAX takes in a new process; this one opens no device, which it would keep from others."""
    code = "import jax; print(jax.default_backend())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, encoding="utf-8")
    return done.stdout.split()[-1]


def processor() -> str:
    """The processor's name with its family and model, since machines of different speed may bear one name."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    said = dict(line.split(":", 1) for line in info.read_text(encoding="utf-8").split("\n\n")[0].splitlines() if ":" in line)
    said = {name.strip(): value.strip() for name, value in said.items()}
    name = said.get("model name", platform.processor())
    return f"{name}, family {said['cpu family']}, model {said['model']}" if {"cpu family", "model"} <= said.keys() else name


def cpu_seconds() -> float:
    """Processor seconds of this process, all its threads, and of those processes that it started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def peak_memory() -> float:
    """GiB that this process has had in memory at most. ``ru_maxrss`` will not do on Linux: it begins with the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))[0]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)


def interleaved(
    contestants: Mapping[str, Callable[[], Any]], repeats: int = 5, warmup: int = 1, clock: Callable[[], float] = time.perf_counter
) -> dict[str, dict[str, Any]]:
    """Seconds of each contestant on a clock, run in turn A B A B ...: minimum, median and all samples."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(warmup + repeats):
        for name, run in contestants.items():
            start = clock()
            run()
            seconds = clock() - start
            if i >= warmup:
                samples[name].append(seconds)
            print(f"  {name}: {seconds:.3f} s{' (warm-up)' if i < warmup else ''}", file=sys.stderr)
    return {n: {"min": min(s), "median": statistics.median(s), "samples": s} for n, s in samples.items()}


def alternate(contestants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each contestant returns, run in turn A B A B ... after one warm-up round."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(rounds + 1):
        for name, seconds in contestants.items():
            value = seconds()
            if i:
                samples[name].append(value)
            print(f"  {name}: {value:.3g}{'' if i else ' (warm-up)'}", file=sys.stderr)
    return samples


class Children:
    """Processes of a script called with ``--child``: each is sent a number of steps and returns the seconds per step."""

    def __init__(self, stack: ExitStack, script: str, words: Sequence[object], processes: int) -> None:
        command = [sys.executable, script, "--child", *map(str, words)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.children = [stack.enter_context(subprocess.Popen(command, encoding="utf-8", **pipes)) for _ in range(processes)]
        for c in self.children:
            self.answer(c)

    def answer(self, c: Any) -> str:
        """The next line of a process."""
        line = c.stdout.readline()
        if not line:
            raise SystemExit("a process has ended, perhaps for want of PyTorch")
        return line

    def seconds(self, steps: int) -> float:
        """Seconds per step and run, when all processes make a run of that many steps at once."""
        for c in self.children:
            c.stdin.write(f"{steps}\n")
            c.stdin.flush()
        return statistics.mean([float(self.answer(c)) for c in self.children]) / len(self.children)


def serve(step: Callable[[int], Any]) -> None:
    """What a process of :class:`Children` does: for each line, a number of steps, it makes them and prints the seconds per step."""
    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        for i in range(int(line)):
            step(i)
        print((time.perf_counter() - begin) / int(line), flush=True)


def best_seconds(run: Callable[[], Any], repeats: int = 7, calls: int = 1) -> float:
    """Seconds of a call, the best of several tries after one that compiles; ``calls`` are queued and waited for together."""
    import jax

    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready([run() for _ in range(calls)])
        times.append((time.perf_counter() - start) / calls)
    return min(times)


def matmul_peak(size: int = 2048, repeats: int = 7, dtype: str = "float32", precision: str | None = None, calls: int = 1) -> float:
    """This machine's matrix-product rate through XLA, in flop/s: the best of several products of ``size``³.

    Numbers are drawn: on some accelerators products of equal numbers are faster.
    """
    import jax

    with jax.enable_x64(dtype == "float64"), jax.default_matmul_precision(precision):
        a = jax.random.normal(jax.random.key(0), (size, size), "float32").astype(dtype)
        product = jax.jit(lambda x: x @ x)
        return 2 * size**3 / best_seconds(lambda: product(a), repeats, calls)


def publish(name: str, question: str, rows: list[dict[str, Any]], *, save: bool = True, **facts: Any) -> None:
    """Print the table and write ``results/name.json`` (``save=False``, for quick trials, only prints)."""
    show(question, rows)
    if save:
        write(RESULTS / f"{name}.json", {"question": question, "machine": machine(), "rows": rows, **facts})


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a table; all rows have the same columns."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a result with its date and what it was made from; its ``machine`` is :func:`machine`, perhaps with an ``accelerator``.

    What the file holds of other hardware is kept, under ``elsewhere``; names of folders are left out.
    """
    path.parent.mkdir(exist_ok=True, parents=True)
    script = Path(getattr(sys.modules["__main__"], "__file__", None) or "").resolve()
    own = script.parent.name in ("benchmarks", "experiments")
    content = {"date": time.strftime("%Y-%m-%d"), **content}
    if own:
        from jaxdyn.maintain.renew import made_by  # not above: contestants in processes of their own have no JAX

        content["made_from"] = made_by(script, time.monotonic() - BEGAN)
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        known = [before, *before.pop("elsewhere", [])]
        if others := [one for one in known if hardware(one["machine"]) != hardware(content["machine"])]:
            content["elsewhere"] = others
    path.write_text(re.sub(FOLDERS, "…/", json.dumps(content, indent=1, ensure_ascii=False)) + "\n", encoding="utf-8")
