"""What ``jaxdyn verify`` does around the engine: workers, announcements, one line a claim, stored results, the report."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import dataclasses
import functools
import html
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import xarray as xr

from jaxdyn import plotting
from jaxdyn.engine import registry
from jaxdyn.engine.claim import Claim
from jaxdyn.engine.payload import payload
from jaxdyn.engine.progress import Progress
from jaxdyn.engine.store import atomic_write, open_folder
from jaxdyn.engine.verify import Conclusion, Plan, Task, Verified, conclude, make_plan, run_plan
from jaxdyn.errors import UsageError
from jaxdyn.report import page as report

__all__ = ["rebuild", "verify_command"]

RESULT, FIGURES = "result.json", "figures.json"


def draw(claim: Claim, data: xr.Dataset) -> str:
    """A claim's figure as HTML; a plot that fails must not cost the verdict."""
    try:
        return plotting.render(claim.plot, data)
    except Exception as error:
        return f"<p>The figure could not be drawn: {type(error).__name__}: {html.escape(str(error))}</p>"


def _conclude_and_draw(claim: Claim, data: xr.Dataset, controls: dict, by: Sequence[str], narrowed: bool) -> Conclusion:
    return dataclasses.replace(conclude(claim, data, controls, by, narrowed=narrowed), figure=draw(claim, data))


def _conclude_by_id(claim_id: str, load: Sequence[str], *rest: Any) -> Conclusion:
    """In a worker: the claim is found again by its id, since judges and plots do not travel."""
    return _conclude_and_draw(registry.all_claims(load)[claim_id], *rest)


def _conclude_task(pool: cf.Executor | None, task: Task, data: xr.Dataset, controls: dict[str, xr.Dataset]) -> Any:
    rest = (data, controls, task.by, task.narrowed)
    if isinstance(pool, cf.ProcessPoolExecutor):
        return pool.submit(_conclude_by_id, task.claim.id, task.load, *rest)
    return _conclude_and_draw(task.claim, *rest)


def _worker_setup() -> None:
    os.dup2(2, 1)  # what a user's file or judge prints must not land in the JSON on standard output
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle


@contextlib.contextmanager
def _executor(workers: int | None, cluster: str | None, programs: int) -> Iterator[cf.Executor | None]:
    """Where chunks run: a Dask cluster, a pool of spawned processes, or (None) this process."""
    if cluster is not None:
        with _dask(cluster) as client:
            yield client.get_executor()
        return
    count = workers or (os.cpu_count() or 1 if jax.default_backend() == "cpu" else 1)
    if min(count, programs) <= 1:
        yield None
        return
    pool = cf.ProcessPoolExecutor(min(count, programs), mp_context=multiprocessing.get_context("spawn"), initializer=_worker_setup)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise


def _dask_address(url: str) -> str:
    scheme, _, address = url.partition("://")
    if scheme != "dask" or ":" not in address:
        raise UsageError(f"--cluster {url}: write dask://HOST:PORT of a Dask scheduler")
    return f"tcp://{address}"


def _dask(url: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--cluster needs Dask: install jaxdyn[dask]") from None
    try:
        return Client(_dask_address(url), timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(f"--cluster {url}: no Dask scheduler answers there ({type(error).__name__})") from None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _announce(plan: Plan, workers: int) -> None:
    names = f"{len(plan.tasks)} claim{'s' if len(plan.tasks) > 1 else ''}"
    stored = f", {plan.done} of them stored" if plan.done else ""
    minutes = plan.seconds() / 60 / max(1, workers)
    about = "under a minute" if minutes < 1 else f"about {minutes:.0f} min"
    _say(f"{names}: {len(plan.jobs)} programs, {plan.runs} runs{stored}; {about} expected")


SIGNS = {True: "✓", False: "✗"}


def _describe(verified: Verified) -> None:
    """One line a claim; for a verdict that differs: what failed, its worst run, and the command that repeats just that."""
    decision, claim = verified.conclusion.decision, verified.claim
    expected = "" if verified.as_expected else f"  (expected {claim.expected})"
    _say(f" {SIGNS[verified.as_expected]} {claim.id:<34} {decision.verdict}{expected}")
    for cell in verified.by or []:
        at = ", ".join(f"{k}={v}" for k, v in cell["at"].items())
        _say(f"      {at}: {cell['verdict']}{'' if cell['failed'] is None else ' - ' + cell['failed']}")
    if verified.as_expected:
        return
    if decision.message:
        _say(f"      {decision.message}")
    failed = [c for c in decision.checks if not c.passed]
    for check in failed:
        worst = ", ".join(f"{k}={v}" for k, v in check.worst.items())
        _say(f"      failed: {check.name}: {check.value:.4g}, bound {check.bound}{f' (worst at {worst})' if worst else ''}")
    for control in decision.controls:
        if not control.rejected:
            _say(f"      control {control.name!r} is not rejected{f': {control.reason}' if control.reason else ''}")
    _say(f"      repeat: {_repeat(verified, failed)}")


def _repeat(verified: Verified, failed: list) -> str:
    """The command of the claim, narrowed to the worst run's seed where the failing check names one."""
    command = verified.task.command
    seed = next((c.worst["seed"] for c in failed if "seed" in c.worst), None)
    return command if seed is None or "--seeds" in command else f"{command} --seeds {seed}:{seed + 1}"


def verify_command(
    patterns: Sequence[str],
    *,
    scale: str,
    seeds: Any,
    sets: dict[str, Any],
    by: list[str],
    out: Path,
    report: Path | None,
    workers: int | None,
    cluster: str | None,
    load: Sequence[str],
) -> tuple[dict[str, Any], int]:
    """Verify the selected claims; returns the JSON object and the exit code."""
    start = time.perf_counter()
    if cluster is not None:
        _dask_address(cluster)  # a slip of the pen shows at once
    claims = registry.select(patterns, load)
    with open_folder(out, "verify") as folder:
        plan = make_plan(claims, scale=scale, seeds=seeds, overrides=sets, by=by, load=load, store=folder.resolve())
        count = workers or (os.cpu_count() or 1)
        _announce(plan, min(count, len(plan.jobs)))
        with _executor(workers, cluster, len(plan.jobs)) as pool, Progress("verifying") as progress:
            results = run_plan(plan, pool, progress, functools.partial(_conclude_task, pool))
        for verified in results:
            _describe(verified)
        whole = payload(results, time.perf_counter() - start)
        figures = {v.claim.id: v.conclusion.figure for v in results if v.conclusion.figure is not None}
        atomic_write(folder / RESULT, json.dumps(whole, indent=1))
        atomic_write(folder / FIGURES, json.dumps(figures))
        target = report or folder / "index.html"
        rebuild(folder, target)
    differ = [v.claim.id for v in results if not v.as_expected]
    _say(f"{len(results) - len(differ)} of {len(results)} verdicts as expected, {whole['seconds']:.0f} s; report: {target}")
    return whole, 1 if differ else 0


def rebuild(folder: Path, target: Path) -> None:
    """Write the report from the stored results of a verification.

    Raises:
        UsageError: the folder holds no results.
    """
    try:
        whole, figures = (json.loads((folder / name).read_text()) for name in (RESULT, FIGURES))
        if not (isinstance(whole, dict) and isinstance(whole.get("claims"), list) and isinstance(figures, dict)):
            raise ValueError
    except (OSError, ValueError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    report.write(target, whole, figures)
