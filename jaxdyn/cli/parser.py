"""The commands of the command line and their options."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from jaxdyn.cli.arguments import (
    Parser,
    add_diff,
    add_explore,
    add_lab,
    add_load,
    add_memory,
    add_models,
    add_probe,
    add_sweep,
    filled,
    help_texts,
)

__all__ = ["build_parser"]

RUNS = (
    "The runs next to a claim are its own; a total counts every distinct run once, including those of controls. "
    "Exit code: 0 if every verdict is as expected (with --by: if no claim ends in an error), 1 otherwise, 2 for wrong use."
)
REFEREE = "Exit code: 0 if no finding is open, 1 otherwise, 2 for wrong use. The same command resumes."
SET = """Override or sweep a field; a value with a comma in double quotes: 'text="a,b.txt"'."""
WORKERS = "Use N processes (default: one per core, or a single one with all cards). On GPUs each process gets its own cards."


class _Version(argparse.Action):
    def __call__(self, *_: Any) -> NoReturn:
        """Print the version, which is looked up only on request."""
        from jaxdyn import __version__

        print(f"jaxdyn {__version__}")
        sys.exit(0)


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = Parser(prog="jaxdyn", description="Verify theorems about training dynamics against networks that really train.")
    parser.add_argument("--version", action=_Version, nargs=0, help="Print the version.")
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="{list,show,verify,diff,map,referee,explore,lab,sweep,models,memory,probe,new,report,completion}",
        parser_class=Parser,
    )
    # options that several commands share
    load = Parser(add_help=False)
    add_load(load)
    load.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    load.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")
    patterns = Parser(add_help=False)
    patterns.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="Claim ids, patterns ('THEORY.*') or theories, as `jaxdyn list` shows them (default: all claims).",
    )

    # claims: list, show, verify, diff, map, referee, explore; and lab, sweep
    list_ = commands.add_parser("list", parents=[patterns, load], **help_texts("Show the claims."))
    list_.add_argument(
        "--by-resolution", action="store_true", help="Order claims by the factor by which their law may be wrong unnoticed."
    )

    show = commands.add_parser(
        "show", parents=[load], **help_texts("Show one claim: its statement, the basis of its verdict, and the last verdict.")
    )
    show.add_argument("claim", metavar="CLAIM", help="The claim's id, as `jaxdyn list` shows it.")
    show.add_argument(
        "--out", default="report", type=filled, metavar="DIR", help="Read the last verdict from this folder (default: report)."
    )

    _add_verify(commands, patterns, load)
    add_diff(commands)
    _add_map(commands, load)
    _add_referee(commands, patterns, load)
    add_explore(commands)
    add_lab(commands)
    add_sweep(commands)
    # models: models, memory, probe
    add_models(commands)
    add_memory(commands)
    add_probe(commands)

    _add_files(commands)
    return parser


def _add_files(commands: Any) -> None:
    """The options of ``jaxdyn new``, ``report`` and ``completion``."""
    new = commands.add_parser("new", **help_texts("Write a working example of a claim, to start your own from."))
    new.add_argument("file", type=filled, metavar="FILE", help="Write it to this file; an existing file is not overwritten.")

    report = commands.add_parser("report", **help_texts("Rebuild the report from stored results."))
    report.add_argument(
        "folder", type=filled, metavar="DIR", help="Read the results from this folder (the --out of `jaxdyn verify`)."
    )
    report.add_argument("--report", type=filled, metavar="FILE", help="Write the report to this file (default: DIR/index.html).")

    completion = commands.add_parser("completion", **help_texts("Print a completion script for your shell."))
    completion.add_argument("shell", choices=("bash", "zsh"), help="The shell.")


def _add_verify(commands: Any, patterns: argparse.ArgumentParser, load: argparse.ArgumentParser) -> None:
    """The options of ``jaxdyn verify``."""
    verify = commands.add_parser("verify", parents=[patterns, load], **help_texts("Run claims and judge them."), epilog=RUNS)
    verify.add_argument("--scale", default="quick", help="Run at quick scale (minutes; the default) or at paper scale.")
    verify.add_argument("--seeds", metavar="N", help="Use N seeds, or the seeds FROM:TO.")
    verify.add_argument("--fresh", metavar="START", help="Use seeds from START on; each claim keeps its number of seeds.")
    verify.add_argument("--set", action="append", default=[], metavar="FIELD=V1,V2", dest="sets", help=SET)
    verify.add_argument("--by", metavar="FIELD[,FIELD]", help="Judge each value of these fields separately.")
    verify.add_argument(
        "--minutes",
        metavar="M",
        help="Run what fits into M minutes, first a claim of every theory, then headlines; the same command runs the rest later.",
    )
    verify.add_argument("--fail-fast", action="store_true", help="Stop at the first verdict that is not as expected.")
    verify.add_argument(
        "--out", default="report", type=filled, metavar="DIR", help="Write results and report to this folder (default: report)."
    )
    verify.add_argument("--report", type=filled, metavar="FILE", help="Write the report to this file (default: DIR/index.html).")
    verify.add_argument("--csv", type=filled, metavar="DIR", help="Write checks.csv and runs.csv to this folder.")
    verify.add_argument("--workers", metavar="N", help=WORKERS)
    verify.add_argument("--cluster", type=filled, metavar="URL", help="Run on a Dask cluster, e.g. dask://scheduler:8786.")


def _add_map(commands: Any, load: argparse.ArgumentParser) -> None:
    """The options of ``jaxdyn map``."""
    map_ = commands.add_parser("map", parents=[load], **help_texts("Map where a claim holds over one or two fields."))
    map_.add_argument("claim", metavar="CLAIM", help="The claim's id, as `jaxdyn list` shows it.")
    map_.add_argument(
        "--over",
        action="append",
        default=[],
        type=filled,
        metavar="FIELD=LOW:HIGH[:log]",
        help="A field and its range, or its values (FIELD=V1,V2); once or twice.",
    )
    map_.add_argument("--cells", default="243", metavar="N", help="Judge at most N cells (default: 243).")
    map_.add_argument("--scale", default="quick", help="Take all other fields from the quick grid (the default) or the paper grid.")
    map_.add_argument("--seeds", metavar="N", help="Use N seeds, or the seeds FROM:TO.")
    map_.add_argument("--set", action="append", default=[], metavar="FIELD=V1,V2", dest="sets", help=SET)
    map_.add_argument("--out", type=filled, metavar="DIR", help="Write runs and map to this folder (default: map-CLAIM).")
    map_.add_argument("--workers", metavar="N", help=WORKERS)
    map_.add_argument("--cluster", type=filled, metavar="URL", help="Run on a Dask cluster, e.g. dask://scheduler:8786.")


def _add_referee(commands: Any, patterns: argparse.ArgumentParser, load: argparse.ArgumentParser) -> None:
    """The options of ``jaxdyn referee``."""
    referee = commands.add_parser(
        "referee", parents=[patterns, load], **help_texts("Ask of claims what a hostile referee would ask."), epilog=REFEREE
    )
    referee.add_argument("--quick", action="store_true", help="Ask only what needs no new runs.")
    referee.add_argument(
        "--minutes", metavar="M", help="Begin no claim after M minutes, the cheapest first; the same command asks the rest later."
    )
    referee.add_argument(
        "--out",
        default="report",
        type=filled,
        metavar="DIR",
        help="Write answers to this folder, and use runs that `jaxdyn verify` left there (default: report).",
    )
    referee.add_argument("--workers", metavar="N", help=WORKERS)
