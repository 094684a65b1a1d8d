"""Runs that are killed, interrupted, starved and shared: the same command again must end with the bits of an unbroken run.

Kills at random moments, in turn: the whole process group, one worker, Ctrl-C twice, SIGTERM, one Dask worker, the Dask scheduler.
Then once each: damaged and missing shards, a full disk, a read-only folder, files of the future (a clock set back), two processes
and two users in one folder.

    python benchmarks/kills.py [KILLS] [--claims PATTERN …]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import xarray as xr

CLAIMS = ("cal.*", "joma.exp_invariant", "snap.B_law", "rev.clock", "margin.*")
WAYS = ("group", "worker", "Ctrl-C twice", "SIGTERM", "Dask worker", "Dask scheduler")
ATTEMPTS = 30  # kills of one round, then it runs to its end
PYTHON = sys.executable
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Campaign:
    """The claims, a folder to work in, and the unbroken run."""

    def __init__(self, claims: list[str], work: Path) -> None:
        self.claims, self.work = claims, work
        self.rng = random.Random(20261127)
        self.run(work / "warm")  # fills the compilation cache
        start = time.monotonic()
        done = self.run(work / "whole")
        self.seconds = time.monotonic() - start
        self.whole, self.bits = essence(done.stdout), shards(work / "whole")

    def command(self, out: Path, *options: str) -> list[str]:
        """The command with its folder and further options."""
        return [PYTHON, "-m", "jaxdyn", "verify", *self.claims, "--out", str(out), "--json", "--workers", "2", *options]

    def run(self, out: Path, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """The command, run to its end."""
        return subprocess.run(self.command(out, *options), capture_output=True, encoding="utf-8", **more)

    def same(self, out: Path, printed: str) -> bool:
        """Whether a run ended as the unbroken one: verdicts, checks, resolutions, and every bit of every shard."""
        return essence(printed) == self.whole and shards(out) == self.bits

    def round(self, way: str, limit: int) -> tuple[int, bool, list[str]]:
        """One run, killed up to ``limit`` times and resumed: kills, whether it ends the same, and faults."""
        out, faults = self.work / "broken", []
        shutil.rmtree(out, ignore_errors=True)
        kills = 0
        with contextlib.ExitStack() as stack:
            while kills < limit:
                cluster = stack.enter_context(dask(self.work)) if way.startswith("Dask") else None
                options = () if cluster is None else ("--cluster", f"dask://{cluster['address']}")
                process = subprocess.Popen(
                    self.command(out, *options),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                    start_new_session=True,
                )
                try:
                    printed, said = process.communicate(timeout=self.rng.uniform(1.0, 0.9 * self.seconds))
                except subprocess.TimeoutExpired:
                    kills += kill(way, process, cluster)
                    printed, said = process.communicate(timeout=300)
                if "Traceback" in said:
                    faults.append(f"{way}: traceback: {said[-1000:]}")
                if process.returncode == 0:
                    return kills, self.same(out, printed), faults
                over = process.returncode == -signal.SIGINT and essence(printed) == self.whole  # Python itself was ending
                if way != "group" and not over and process.returncode not in (130, 143, 2, -signal.SIGTERM):
                    faults.append(f"{way}: exit code {process.returncode}: {said[-300:]}")
                stack.close()
        done = self.run(out)
        return kills, self.same(out, done.stdout), faults


def essence(printed: str) -> Any:
    """What must be equal: verdicts, checks, resolutions."""
    try:
        return [(c["id"], c["verdict"], c["checks"], c["resolution"]) for c in json.loads(printed)["claims"]]
    except ValueError:
        return None


def shards(out: Path) -> dict[str, str]:
    """The hash of the numbers of every shard, by program and chunk."""
    found = {}
    for file in sorted((out / "shards").rglob("*.nc")):
        ds = xr.load_dataset(file, engine="h5netcdf", decode_times=False)
        digest = hashlib.sha256()
        for name in sorted(map(str, ds.variables)):
            digest.update(name.encode() + ds[name].values.tobytes())
        found[f"{file.parent.name}/{file.name.split('.')[0]}"] = digest.hexdigest()
    return found


def children(pid: int) -> list[int]:
    """Processes below a process that calculate, by the system's own list."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        with contextlib.suppress(OSError):
            below = [int(p) for p in Path(f"/proc/{one}/task/{one}/children").read_text(encoding="utf-8").split()]
            found += below
            todo += below
    return [p for p in found if b"spawn_main" in _words(p)]


def _words(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def kill(way: str, process: subprocess.Popen[str], cluster: dict[str, Any] | None) -> int:
    """Kill in this way; returns how many kills that was."""
    with contextlib.suppress(ProcessLookupError, IndexError):
        if way == "group":
            os.killpg(process.pid, signal.SIGKILL)
        elif way == "worker":
            os.kill(random.choice(children(process.pid)), signal.SIGKILL)
        elif way == "Ctrl-C twice":
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.1)
            os.killpg(process.pid, signal.SIGINT)
        elif way == "SIGTERM":
            os.killpg(process.pid, signal.SIGTERM)
        elif cluster is not None:
            victim = cluster["workers"][0] if way == "Dask worker" else cluster["scheduler"]
            os.killpg(victim.pid, signal.SIGKILL)
        return 1
    return 0


@contextlib.contextmanager
def dask(work: Path) -> Iterator[dict[str, Any]]:
    """A scheduler and two workers of their own, each with one thread of XLA, as the two workers of the unbroken run have."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    begin = {"cwd": work, "start_new_session": True, "env": os.environ | {"PJRT_NPROC": "1"}, **QUIET}
    address = f"127.0.0.1:{port}"
    scheduler = subprocess.Popen([PYTHON, "-m", "distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"], **begin)
    time.sleep(3)
    words = [PYTHON, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    workers = [subprocess.Popen(words, **begin) for _ in range(2)]
    time.sleep(3)
    try:
        yield {"address": address, "scheduler": scheduler, "workers": workers}
    finally:
        for process in (*workers, scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """How a command that could not go on ended."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("jaxdyn: ")]
    return {"code": done.returncode, "sentences": lines, "traceback": "Traceback" in done.stderr + done.stdout}


def once(campaign: Campaign) -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything that is tried a single time."""
    work, run = campaign.work, campaign.run

    def copied(name: str) -> Path:
        shutil.rmtree(work / name, ignore_errors=True)
        return Path(shutil.copytree(work / "whole", work / name))

    def some(out: Path) -> Path:
        return campaign.rng.choice(sorted((out / "shards").rglob("*.nc")))

    hurts = {
        "truncated": lambda b: b[: len(b) // 2],
        "empty": lambda b: b"",
        "flipped": lambda b: b[:99] + bytes([b[99] ^ 8]) + b[100:],
    }
    for name, hurt in hurts.items():
        file = some(copied("hurt"))
        file.write_bytes(hurt(file.read_bytes()))
        yield f"{name} shard", said(run(work / "hurt"))
    some(copied("hurt")).unlink()
    yield "missing shard", {"same": campaign.same(work / "hurt", run(work / "hurt").stdout)}
    out = copied("future")
    for file in out.rglob("*"):
        os.utime(file, (time.time() + 10**7, time.time() + 10**7))
    some(out).unlink()
    yield "files of the future", {"same": campaign.same(out, run(out).stdout)}
    shutil.rmtree(work / "two", ignore_errors=True)
    first = subprocess.Popen(campaign.command(work / "two"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
    while not (work / "two" / ".lock-owner").exists():
        time.sleep(0.2)
    second = said(run(work / "two"))
    yield "two processes in one folder", {**second, "first the same": campaign.same(work / "two", first.communicate()[0])}
    if os.getuid() == 0:
        yield from _as_root(campaign, copied)


def _as_root(campaign: Campaign, copied: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """What needs the right to mount and to be somebody else."""
    work, run = campaign.work, campaign.run
    out = copied("foreign")
    for place in (out, *out.rglob("*")):
        shutil.chown(place, "nobody")
    lowered = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    if shutil.which("setpriv"):  # else root may write everywhere
        done = subprocess.run([*lowered, *campaign.command(out)], capture_output=True, encoding="utf-8")
        yield "another user's folder", said(done)
    disk = work / "disk"
    disk.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=150k", "tmpfs", str(disk)], **QUIET).returncode:
        return
    try:
        yield "full disk", said(run(disk / "out"))
        subprocess.run(["mount", "-o", "remount,size=512m", str(disk)], check=True)
        yield "the same with room", {"same": campaign.same(disk / "out", run(disk / "out").stdout)}
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        yield "read-only folder", said(run(disk / "out"))
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def main() -> None:
    """Run the campaign, print it, and store its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=200)
    parser.add_argument("--claims", nargs="+", default=list(CLAIMS))
    parser.add_argument("--name", default="kills")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(args.claims, Path(folder))
        print(f"unbroken: {len(campaign.bits)} shards, {campaign.seconds:.0f} s", flush=True)
        kills, rounds, same, faults = Counter[str](), Counter[str](), Counter[str](), list[str]()
        while kills.total() < args.kills:
            way = WAYS[rounds.total() % len(WAYS)]
            limit = min(args.kills - kills.total(), 2 if way.startswith("Dask") else ATTEMPTS)
            count, equal, found = campaign.round(way, limit)
            kills[way] += count
            rounds[way] += 1
            same[way] += equal
            faults += found + ([] if equal else [f"{way}: another end than the unbroken run's"])
            print(f"{way}: {count} kills, {'the same' if equal else 'ANOTHER END'}; {kills.total()} in all", *found, flush=True)
        single = dict(once(campaign))
        for name, facts in single.items():
            print(f"{name}: {facts}", flush=True)
        rows = [{"way": w, "kills": kills[w], "rounds": rounds[w], "end the same": same[w]} for w in rounds]
        facts = {"claims": args.claims, "seconds_unbroken": campaign.seconds, "shards": len(campaign.bits), "faults": faults}
    common.publish(args.name, "Killed and resumed: does it end with the bits of an unbroken run?", rows, **facts, once=single)


if __name__ == "__main__":
    main()
