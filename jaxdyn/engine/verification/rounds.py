"""Rounds of a map: the runs of their cells, and the judge's verdict on each cell.

Workers on this machine judge as well as run: for a cheap trial the judge, called again for every rival, takes most of the time.
They look the claim up by its id, since judges cannot be pickled; a claim that exists only in this process is judged here, and so
is one whose file was edited since this process imported it.
"""

from __future__ import annotations

import concurrent.futures as cf
import dataclasses
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr

from jaxdyn.engine.base.failure import Failure
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.judging.digest import whole_digest
from jaxdyn.engine.judging.judged_runs import outside
from jaxdyn.engine.judging.verdict import judge_cell
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.runs.planning import plan
from jaxdyn.engine.runs.sweep import MOST_SEEDS, execute, load_stored
from jaxdyn.status import OK

__all__ = ["Rounds", "judged_cell", "claim_of_id"]

Values: TypeAlias = "dict[str, Any]"
Entry: TypeAlias = "dict[str, Any]"
PARTS = 2  # chunks per worker in a round; in the first round the others wait for the one that compiles the program


@dataclasses.dataclass
class Rounds:
    """Runs and judges rounds of cells, and counts their cost.

    ``load`` as in :class:`jaxdyn.engine.verification.verdict_map.Survey`.
    """

    claim: Claim
    load: tuple[str, ...] | None
    quick: bool
    store: Path | None
    pool: cf.Executor | None
    workers: int
    progress: Progress
    runs: int = 0
    stored: int = 0
    cpu_seconds: float = 0.0  # processor time of the workers, without this process
    programs: set[Program] = dataclasses.field(default_factory=set)

    def judge(self, requests: Sequence[Request], batch: Sequence[Values]) -> list[Entry]:
        """The entries of a round's cells.

        Args:
            requests: the runs of each cell.
            batch: the fields' values of each cell.

        Raises:
            Exception: whatever a trial raised.
        """
        count = sum(len(r.seeds) * len(r.grid.cells()) for r in requests)
        chunk = MOST_SEEDS if self.workers == 1 else max(1, -(-count // (PARTS * self.workers)))
        jobs = plan(requests, store=self.store, quick=self.quick, chunk=chunk)
        runs = load_stored(jobs)
        self.stored += sum(len(job.done) for job in jobs)
        costs = execute(jobs, runs, self.pool, self.progress, compiled=self.programs)
        for cost in costs.values():
            if isinstance(cost, Failure):
                raise cost.exception()
        self.programs.update(job.program for job in jobs)
        self.runs += count  # without the padding of chunks
        if self.pool is not None:
            self.cpu_seconds += sum(cost["cpu_seconds"] for cost in costs.values())
        return self._entries([(runs.dataset(r), values) for r, values in zip(requests, batch, strict=True)])

    def _entries(self, cells: list[tuple[xr.Dataset, Values]]) -> list[Entry]:
        """Judge cells, in the workers if they are processes of this machine that can find the claim."""
        if self.load is None or not isinstance(self.pool, cf.ProcessPoolExecutor):
            return [judged_cell(self.claim, data, values) for data, values in cells]
        if (own := whole_digest(self.claim)) is None:
            return [judged_cell(self.claim, data, values) for data, values in cells]
        share = -(-len(cells) // self.workers)
        shares = [cells[i : i + share] for i in range(0, len(cells), share)]
        futures = [self.pool.submit(judge_share, self.claim.id, self.load, own, part) for part in shares]
        answers = [future.result() for future in futures]
        self.cpu_seconds += sum(seconds for _, seconds in answers)
        entries = [
            [judged_cell(self.claim, data, values) for data, values in part] if found is None else found
            for part, (found, _) in zip(shares, answers, strict=True)
        ]
        return [entry for part in entries for entry in part]


def judged_cell(claim: Claim, data: xr.Dataset, values: Values) -> Entry:
    """The entry of one cell: its verdict, whether a run meets the assumptions, and the means of the assumed quantities."""
    assumed = {a.name: float(data[f"assumed_{a.name}"].mean()) for a in claim.assumes if f"assumed_{a.name}" in data}
    inside = bool(((data.status == OK) & ~outside(claim, data)).any())
    judged = claim if inside else dataclasses.replace(claim, assumes=())
    return {"at": dict(values), **judge_cell(judged, data), "inside": inside, "assumed": assumed}


@functools.cache
def claim_of_id(claim_id: str, load: tuple[str, ...]) -> Claim:
    """In a worker: the claim, looked up once."""
    return registry.select([claim_id], load)[0]


def judge_share(
    claim_id: str, load: tuple[str, ...], own: str, cells: list[tuple[xr.Dataset, Values]]
) -> tuple[list[Entry] | None, float]:
    """In a worker: the entries of some cells, and their processor time in seconds.

    There are none where the file of the claim was edited since, so that its digest here is not its ``own``.
    """
    cpu_start = time.process_time()
    if whole_digest(claim_of_id(claim_id, load)) != own:
        claim_of_id.cache_clear()  # a worker may be older than the claim
    claim = claim_of_id(claim_id, load)
    judged = [judged_cell(claim, data, values) for data, values in cells] if whole_digest(claim) == own else None
    return judged, time.process_time() - cpu_start
