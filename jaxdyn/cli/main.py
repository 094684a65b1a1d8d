"""The command line: ``jaxdyn list | verify | new | report``.

Nothing heavy is imported before the arguments are parsed. Human text goes to standard error when ``--json`` is on.
Exit code: 0 every verdict as expected, 1 some verdict differs, 2 wrong use, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, NoReturn

from jaxdyn.errors import UsageError

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One plain sentence instead of argparse's usage dump."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="jaxdyn", description="Verify theorems about training dynamics against networks that really train.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{list,verify,new,report}", parser_class=_Parser)
    load = _Parser(add_help=False)
    load.add_argument("--load", action="append", default=[], metavar="FILE", help="a Python file with claims of your own")
    load.add_argument("--json", action="store_true", help="one JSON object on standard output; everything else on standard error")

    listing = commands.add_parser("list", parents=[load], help="show the claims")
    listing.add_argument("patterns", nargs="*", metavar="PATTERN", help="claim ids, e.g. joma.erf, 'joma.*' or joma")

    verify = commands.add_parser("verify", parents=[load], help="run claims and judge them")
    verify.add_argument(
        "patterns", nargs="*", metavar="PATTERN", help="claim ids, e.g. joma.erf, 'joma.*' or joma; all without one"
    )
    verify.add_argument(
        "--scale", default="quick", help="quick (2 CPU cores, minutes; the default) or paper (the publication's own scale)"
    )
    verify.add_argument("--seeds", metavar="N", help="number of seeds, or a range FROM:TO")
    verify.add_argument("--set", action="append", default=[], metavar="FIELD=V1,V2", dest="sets", help="override or sweep a field")
    verify.add_argument(
        "--by", default="", metavar="FIELD[,FIELD]", help="judge each cell of these swept fields: where does it stop holding?"
    )
    verify.add_argument("--out", default="report", metavar="DIR", help="folder for results and report (default: report)")
    verify.add_argument("--report", metavar="FILE", help="the report's path (default: DIR/index.html)")
    verify.add_argument("--workers", metavar="N", help="worker processes (default: one a core; 1 on an accelerator)")
    verify.add_argument("--cluster", metavar="URL", help="run on a Dask cluster, e.g. dask://scheduler:8786")

    new = commands.add_parser("new", help="write a working claim of your own to start from")
    new.add_argument("file", metavar="FILE")

    report = commands.add_parser("report", help="rebuild the report from stored results")
    report.add_argument("folder", metavar="DIR")
    report.add_argument("--report", metavar="FILE", help="the report's path (default: DIR/index.html)")
    return parser


def _whole(text: str, name: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise UsageError(f"{name} {text}: a whole number of at least {least} is needed")
    return number


def _seeds(text: str | None) -> Any:
    if text is None:
        return None
    if ":" in text:
        start, _, stop = text.partition(":")
        first, last = _whole(start, "--seeds", 0), _whole(stop, "--seeds", 1)
        if last <= first:
            raise UsageError(f"--seeds {text}: the range holds no seed; write FROM:TO with FROM below TO")
        return range(first, last)
    return _whole(text, "--seeds", 1)


def _sets(items: Sequence[str]) -> dict[str, Any]:
    """``FIELD=V1,V2`` as a list (an axis), ``FIELD=V`` as one value; types are the setting's business."""
    fields: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise UsageError(f"--set {item}: write FIELD=VALUE or FIELD=V1,V2,…")
        if name.strip() in fields:
            raise UsageError(f"--set {item}: {name.strip()} is given twice; write all its values behind one --set, with commas")
        values = [v.strip() for v in text.split(",") if v.strip()]
        if not values:
            raise UsageError(f"--set {item}: write FIELD=VALUE or FIELD=V1,V2,…")
        fields[name.strip()] = values if len(values) > 1 else values[0]
    return fields


def _list(args: argparse.Namespace) -> int:
    from jaxdyn.engine import registry

    entries = registry.catalogue(args.load)
    chosen = set(registry.select_ids([e["id"] for e in entries], args.patterns))
    entries = [e for e in entries if e["id"] in chosen]
    if args.json:
        print(json.dumps({"claims": entries}))
        return 0
    width = max(len(e["id"]) for e in entries)
    columns = max(80, shutil.get_terminal_size((120, 20)).columns)
    for e in entries:
        runs = e["runs"]
        print(f"{e['id']:<{width}}  {e['expected']:<8}  {runs['quick']:>6} runs quick, {runs['paper']:>7} paper")
        for line in textwrap.wrap(f"{e['statement']} [{e['source']}]", columns - 4):
            print(f"    {line}")
    print(f"{len(entries)} claim{'s' if len(entries) != 1 else ''}", file=sys.stderr)
    return 0


def _report(args: argparse.Namespace) -> int:
    from jaxdyn.cli import verify as outputs

    folder = Path(args.folder)
    target = Path(args.report) if args.report else folder / "index.html"
    outputs.rebuild(folder, target)
    print(target)
    return 0


def _new(args: argparse.Namespace) -> int:
    target = Path(args.file)
    if target.suffix != ".py":
        raise UsageError(f"{target}: the file's name must end in .py")
    if target.exists():
        raise UsageError(f"{target} exists already; nothing is overwritten, choose another name")
    from jaxdyn.engine.store import atomic_write

    atomic_write(target, (Path(__file__).parent / "new_claim.tmpl").read_bytes())
    print(f"{target} written. Try:\n  jaxdyn list --load {target} mine\n  jaxdyn verify --load {target} mine")
    return 0


def _verify(args: argparse.Namespace) -> int:
    # before equinox is imported anywhere: otherwise every diffrax program holds a host callback and misses the compile cache
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    from jaxdyn.cli import verify as outputs

    with contextlib.redirect_stdout(sys.stderr):  # what a user's file or judge prints must not land in the JSON
        whole, code = outputs.verify_command(
            args.patterns,
            scale=args.scale,
            seeds=_seeds(args.seeds),
            sets=_sets(args.sets),
            by=[f for f in args.by.split(",") if f],
            out=Path(args.out),
            report=Path(args.report) if args.report else None,
            workers=None if args.workers is None else _whole(args.workers, "--workers", 1),
            cluster=args.cluster,
            load=args.load,
        )
    if args.json:
        print(json.dumps(whole))
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        args = _parser().parse_args(argv)
        return {"list": _list, "verify": _verify, "new": _new, "report": _report}[args.command](args)
    except UsageError as error:
        print(f"jaxdyn: {error}", file=sys.stderr)
        return 2
    except BrokenExecutor:
        sentence = "a worker process died (out of memory?); what is finished is stored: the same command goes on"
        print(f"jaxdyn: {sentence}, and fewer --workers need less memory", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("jaxdyn: interrupted; the same command goes on where this one stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1


if __name__ == "__main__":
    sys.exit(main())
