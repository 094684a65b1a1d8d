"""What an earlier call with the same folder found for claims that a call selects and does not run; the page shows it greyed.

The ``earlier`` of an entry under ``not_run`` in the results has the verdict, date, commit and checks of the last call that judged
the claim; its figure is stored with those of the claims that were run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.errors import UsageError
from jaxdyn.report.results import RESULT, numbers_of, read_results

__all__ = ["Earlier", "add_earlier", "read_earlier"]

JUDGED = ("upheld", "refuted", "toothless", "inconclusive", "measured")
KEPT = ("verdict", "digest", "command", "scale", "made_from", "runs", "diverged", "checks", "gates", "readings")
WHEN = ("date", "commit")


class Earlier(NamedTuple):
    """A claim that an earlier call judged.

    Args:
        entry: verdict, date, commit, command, runs, checks, gates and readings, and the digest of the claim then.
        figure: HTML; None if none was stored.
    """

    entry: dict[str, Any]
    figure: str | None


def read_earlier(folder: Path) -> dict[str, Earlier]:
    """The judged claims of a folder's last call, and those that this call had kept from calls before it, by id.

    A folder without results has none; entries that are damaged, or without a date, are left out.

    Raises:
        UsageError: the folder's results are damaged, changed, or a newer version's.
    """
    if not (folder / RESULT).exists():
        return {}
    whole, figures = read_results(folder)
    environment = whole.get("environment")
    when = {name: environment.get(name) for name in WHEN} if isinstance(environment, Mapping) else {}
    found = [(one["id"], {**{name: one.get(name) for name in KEPT}, **when}) for one in whole["claims"]]
    not_run = whole.get("not_run")
    for one in not_run if isinstance(not_run, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("id"), str) and isinstance(one.get("earlier"), dict):
            found.append((one["id"], {name: one["earlier"].get(name) for name in (*KEPT, *WHEN)}))
    return {name: Earlier(one, figures.get(name)) for name, one in found if _whole({"id": name, **one})}


def _whole(entry: Mapping[str, Any]) -> bool:
    """Whether the claim was judged, on a known date, and its checks can be read."""
    with contextlib.suppress(UsageError):
        numbers_of(entry)
        return entry["verdict"] in JUDGED and isinstance(entry.get("date"), str)
    return False


def add_earlier(
    not_run: Iterable[dict[str, Any]], earlier: Mapping[str, Earlier], changed: Callable[[str, Mapping[str, Any]], bool]
) -> dict[str, str]:
    """Add to entries of claims that were not run what an earlier call found; returns the figures of these claims.

    ``stale`` says whether their runs, checks, controls or rivals may have changed since.

    Args:
        not_run: the entries.
        earlier: from :func:`read_earlier`.
        changed: whether a claim's runs, or what judges them, are others than those of an entry.
    """
    figures = {}
    for entry in not_run:
        if (found := earlier.get(entry["id"])) is not None:
            stale = entry["digest"] is None or found.entry["digest"] != entry["digest"] or changed(entry["id"], found.entry)
            entry["earlier"] = {**found.entry, "stale": stale}
            if found.figure is not None:
                figures[entry["id"]] = found.figure
    return figures
