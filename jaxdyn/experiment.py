"""Tools that scripts in ``experiments/`` share: arguments, sweeps that resume, tables, figures, and stored data."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxdyn.engine.base import streams
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.runs.sweep import MOST_SEEDS
from jaxdyn.engine.runs.sweep import sweep as run_sweep
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.payload import environment
from jaxdyn.errors import UsageError
from jaxdyn.plotting import STYLE, finish
from jaxdyn.report.columns import CsvText

WIDE = 200

__all__ = ["deviation", "figure", "main", "record", "save", "sweep", "table"]


def main(
    run: Callable[..., None], doc: str | None, argv: Sequence[str] | None = None, options: Mapping[str, Mapping[str, Any]] = {}
) -> int:
    """Parse ``--scale`` and ``--out``, call ``run(scale, out)``, and report wrong use in one sentence with exit code 2.

    Args:
        run: the experiment.
        doc: its description, shown by ``--help``; the output folder is named after the script.
        argv: arguments, for tests.
        options: further arguments of the script, ``"--text": {"help": ...}``, as argparse takes them; ``run`` gets them by name.
    """
    streams.prepare()
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(prog=name, description=doc)
    parser.add_argument("--scale", choices=("quick", "paper"), default="quick", help="size of the study (default: quick)")
    parser.add_argument(
        "--out", default=f"out/{name}", metavar="DIR", help=f"folder for data, tables and figures (default: out/{name})"
    )
    for flag, option in options.items():
        parser.add_argument(flag, **option)
    args = vars(parser.parse_args(argv))
    scale, out = args.pop("scale"), args.pop("out")
    try:
        _refuse_counts(args, options)
        run(scale, from_home(out), **args)
    except UsageError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted; run the same command to resume", file=sys.stderr)
        return 130
    print(f"data, tables and figures: {out}", file=sys.stderr)
    return 0


def _refuse_counts(given: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse numbers below 1 of what is counted, and a value that a list has twice: it would count as two."""
    for flag, option in options.items():
        value = given.get(flag.lstrip("-").replace("-", "_"))
        if isinstance(value, list) and len(set(value)) < len(value):
            twice = next(one for one in value if value.count(one) > 1)
            raise UsageError(f"{flag} {' '.join(map(str, value))} is not allowed: {twice} is named twice")
        if option.get("type") is int and isinstance(value, int) and value < 1 and flag != "--seed":
            raise UsageError(f"{flag} {value} is not allowed: it is 1 or more")


def sweep(
    out: Path, name: str, trial: Callable[..., Any], grid: Grid, seeds: int | Sequence[int], chunk: int = MOST_SEEDS
) -> xr.Dataset:
    """A sweep with a progress bar and its shards under ``out/name``; the same call resumes it.

    ``chunk`` is the largest number of runs that an interruption can lose. With 1, a run is reused by every grid that contains it.
    """
    with Progress(name) as progress:
        return run_sweep(trial, grid, seeds, out=out / name, progress=progress, chunk=chunk)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def table(out: Path, name: str, rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print rows as a table and write them as ``out/name.csv``; published numbers go into columns ``paper …``.

    Columns are those of the first row, whatever the order in others; what a row lacks stays empty.
    """
    shown = Table(title=Text(title))
    for column in rows[0]:
        shown.add_column(Text(column), justify="right")
    for row in rows:
        shown.add_row(*(Text(_cell(row.get(column))) for column in rows[0]))
    Console(width=None if sys.stdout.isatty() else WIDE).print(shown)  # in a file, columns are not squeezed into 80 characters
    text = CsvText()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator=CsvText.ENDS)
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(out / f"{name}.csv", text.getvalue())


def deviation(values: Any) -> float | None:
    r"""The deviation of runs, :math:`\sqrt{\sum_i(x_i - \bar x)^2/(n - 1)}`; None for one run, of which it is not known."""
    x = np.asarray(values, float).ravel()
    return float(np.std(x, ddof=1)) if x.size > 1 else None


def figure(
    out: Path,
    name: str,
    draw: Callable[[Figure], None],
    size: tuple[float, float] = (7.0, 3.5),
    kinds: Sequence[str] = ("svg", "png"),
) -> None:
    """Draw a figure, add a legend to panels with labels, and write ``out/name.svg`` and ``out/name.png``."""
    options: dict[str, dict[str, Any]] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 160}}
    import matplotlib

    style: Any = STYLE
    with matplotlib.rc_context(style):
        fig = Figure(figsize=size, layout="constrained")
        draw(fig)
        finish(fig)
        for kind in kinds:
            buffer = io.BytesIO()
            fig.savefig(buffer, format=kind, facecolor="white", **options[kind])
            atomic_write(out / f"{name}.{kind}", buffer.getvalue())


def record(out: Path, name: str, question: str, **facts: Any) -> None:
    """Write the answer to a question as ``out/name.json``, with date, commit, versions and machine.

    Results worth keeping are copied to ``benchmarks/results``.
    """
    content = {"question": question, "environment": environment(), **finite(facts)}
    atomic_write(out / f"{name}.json", json.dumps(content, indent=1, allow_nan=False) + "\n")


def save(out: Path, name: str, ds: xr.Dataset) -> None:
    """Write a Dataset as ``out/name.nc``."""
    atomic_write(out / f"{name}.nc", bytes(ds.to_netcdf(engine="h5netcdf")))
