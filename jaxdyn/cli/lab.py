"""``jaxdyn lab``: trains variants of one transformer and reads laws and instruments along the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdyn.cli.pool import executor, reserved, worker_count
from jaxdyn.engine.base.devices import check_options
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.runs.sweep import chosen_seeds
from jaxdyn.errors import UsageError
from jaxdyn.laboratory.lab import Order, order
from jaxdyn.laboratory.trial import trial
from jaxdyn.report import laboratory as pages
from jaxdyn.wording import plural

__all__ = ["lab_command"]


def lab_command(
    watch: str,
    *,
    variants: str | None,
    fields: Mapping[str, Any],
    seeds: Any,
    out: Path,
    workers: int | None,
    cluster: str | None,
) -> dict[str, Any]:
    """Announce a study, run it, and write its page; returns the cells as JSON."""
    check_options()
    if own := {"watch", "variants"} & set(fields):
        raise UsageError(f"--set {min(own)} is not allowed: it is the option --{min(own)}")
    cards = reserved(workers, cluster)
    plan = order(watch, variants, **fields)
    _say(_announcement(plan, seeds))
    if earlier := _other_study(out, plan, seeds):
        _say(f"{out} holds the page of {earlier}, which is replaced; --out DIR keeps it")
    count = worker_count(workers, len(plan.grids))
    with executor(count, cluster, cards) as (pool, _), Progress("lab") as progress:
        found = pages.lab(watch, variants, seeds=seeds, out=out, cluster=pool, progress=progress, **fields)
    for line in str(found).splitlines():
        _say(line)
    _say(f"page: {out / pages.FILES[0]}")
    return pages.to_json(found)


def _announcement(plan: Order, seeds: Any) -> str:
    """What a study will do, in words."""
    number = seeds if isinstance(seeds, int) else len(seeds)
    cells = [len(grid.cells()) for grid in plan.grids.values()]
    runs = sum(cells) * number
    refused = [f"{law} is not asked of {name}: {reason}" for (law, name), reason in plan.refused.items()]
    read = [plural(len(some), word) for some, word in ((plan.laws, "law"), (plan.instruments, "instrument")) if some]
    parts = [*read, plural(len(plan.variants), "variant"), f"{plural(runs, 'run')} in {plural(len(plan.grids), 'program')}"]
    return "\n".join([f"{', '.join(parts)}; Ctrl-C is safe, the same command resumes", *refused])


def _other_study(folder: Path, plan: Order, seeds: Any) -> str:
    """What was watched, of which variants and seeds, on the page in a folder, in words, unless all of it is this study's."""
    try:
        stored = json.loads((folder / pages.FILES[1]).read_text(encoding="utf-8"))
        watched = [one["name"] for one in (*stored["laws"], *stored.get("instruments", ()))]
        variants, fields = stored["variants"], stored["fields"]
        before = str(stored["seeds"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    own = next((Request(trial, grid, chosen_seeds(seeds)).seed_range for grid in plan.grids.values()), before)
    asked = json.loads(json.dumps([plan.watched, plan.variants, plan.fields, own]))
    return "" if asked == [watched, variants, fields, before] else f"{', '.join(watched)}: {', '.join(variants)}; seeds {before}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
