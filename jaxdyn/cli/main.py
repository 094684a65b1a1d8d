"""The command line: ``jaxdyn list``, ``show``, ``verify``, ``diff``, ``map``, ``referee``, ``lab``, ``sweep`` and others.

Nothing heavy is imported before the arguments are parsed. With ``--json``, all text for people goes to standard error.
Exit codes: 0 every verdict as expected, 1 some verdict differs, 2 wrong use or a mistake in a claim, 130 interrupted (143: asked
to end).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import NoReturn

from jaxdyn.cli.arguments import LAB_FIELDS, minutes_given, verify_words
from jaxdyn.cli.parser import build_parser
from jaxdyn.engine.base import streams
from jaxdyn.engine.base.parsing import from_home, parse_seeds, parse_sets, typed, whole_number
from jaxdyn.errors import UsageError, missing, shown

__all__ = ["main", "run"]

VARIABLES = {"jax": "JAX_", "matplotlib": "MPL"}  # libraries that read variables when they are imported, and how these begin
LOADING = "loading JAX"


def _list(args: argparse.Namespace) -> int:
    from jaxdyn.cli.listing import list_command

    return list_command(args.patterns, args.load, args.by_resolution, args.json)


def _show(args: argparse.Namespace) -> int:
    out = from_home(args.out)
    # prints of a user's file must not end up in the JSON
    with streams.telling(LOADING), streams.to_standard_error():
        from jaxdyn.cli import show

        claim = show.facts(args.claim, args.load, out)
    if args.json:
        print(json.dumps(claim, default=str))
        return 0
    for line in show.lines(claim, max(60, shutil.get_terminal_size((100, 20)).columns), out):
        print(line)
    return 0


def _report(args: argparse.Namespace) -> int:
    folder = from_home(args.folder)
    target = _page(args.report) or folder / "index.html"
    if not folder.exists():
        raise UsageError(f"{folder} does not exist; give the --out of `jaxdyn verify`")
    with streams.telling("writing the page"):
        from jaxdyn.cli import verify as outputs

        outputs.rebuild(folder, target)
    print(target)
    return 0


def _new(args: argparse.Namespace) -> int:
    target = from_home(args.file)
    if target.name == ".py":
        raise UsageError(f"{typed(args.file)} is not allowed: the file has no name; write one that ends in .py, e.g. my_claims.py")
    if target.suffix != ".py":
        raise UsageError(f"{typed(args.file)} is not allowed: the file's name must end in .py")
    if target.exists():
        raise UsageError(f"{target} exists already; nothing is overwritten, choose another name")
    from jaxdyn.engine.storage.store import atomic_write

    atomic_write(target, (Path(__file__).parent / "new_claim.tmpl").read_bytes())
    print(f"{target} written. Try:\n  jaxdyn show --load {target} mine.decay\n  jaxdyn verify --load {target} mine")
    return 0


def _completion(args: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise missing("completion", "shtab", "completion") from None
    parser = build_parser()
    for action in (a for command in _commands(parser) for a in command._actions):
        kind = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "A": shtab.FILE, "B": shtab.FILE}.get(str(action.metavar))
        if kind is not None:
            action.complete = kind  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell))
    return 0


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return list(group.choices.values())


def _allow_direct(load: Sequence[str]) -> None:
    """Spare this process the tracing of programs that are known, unless files are loaded: their code may change anything."""
    if not load:
        from jaxdyn.engine.programs import direct

        direct.allow()


def _by(text: str | None) -> list[str]:
    """The fields of ``--by``."""
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--by {typed(text or '')} is not allowed: write FIELD or FIELD,FIELD")
    return names


def _page(text: str | None) -> Path | None:
    """The file of ``--report``, a page in HTML: any other name may be that of the results, or of other work."""
    page = None if text is None else from_home(text)
    if page is not None and page.suffix.lower() not in (".html", ".htm") and not page.is_dir():
        raise UsageError(f"--report {typed(str(text))} is not allowed: the page's name must end in .html")
    return page


def _verify(args: argparse.Namespace) -> int:
    if args.fresh is not None and args.seeds is not None:
        raise UsageError("--fresh and --seeds are not allowed together: with --fresh each claim keeps its number of seeds")
    began = time.monotonic()
    with streams.telling(LOADING):
        from jaxdyn.cli import verify as outputs

    _allow_direct(args.load)
    with streams.to_standard_error():  # prints of a user's file or judge must not end up in the JSON
        whole, code = outputs.verify_command(
            args.patterns,
            scale=args.scale,
            seeds=parse_seeds(args.seeds),
            fresh=None if args.fresh is None else whole_number(args.fresh, "--fresh", 0),
            sets=parse_sets(args.sets),
            by=_by(args.by),
            out=from_home(args.out),
            report=_page(args.report),
            workers=None if args.workers is None else whole_number(args.workers, "--workers", 1),
            cluster=args.cluster,
            load=args.load,
            fail_fast=args.fail_fast,
            debug=args.debug,
            minutes=None if args.minutes is None else minutes_given(args.minutes, args.scale),
            csv=None if args.csv is None else from_home(args.csv),
            command=verify_words(args),
            began=began,
        )
    if args.json:
        print(json.dumps(whole))
    return code


def _diff(args: argparse.Namespace) -> int:
    from jaxdyn.cli.diff import diff_command

    return diff_command(args.a, args.b, args.json)


def _map(args: argparse.Namespace) -> int:
    with streams.telling(LOADING):
        from jaxdyn.cli.map import map_command

    _allow_direct(args.load)
    with streams.to_standard_error():
        result = map_command(
            args.claim,
            over=args.over,
            cells=whole_number(args.cells, "--cells", 1),
            scale=args.scale,
            seeds=parse_seeds(args.seeds),
            sets=parse_sets(args.sets),
            out=from_home(args.out or f"map-{args.claim}"),
            workers=None if args.workers is None else whole_number(args.workers, "--workers", 1),
            cluster=args.cluster,
            load=args.load,
        )
    if args.json:
        print(json.dumps(result))
    return int(all(cell["verdict"] == "error" for cell in result["cells"]))


def _referee(args: argparse.Namespace) -> int:
    with streams.telling(LOADING):
        from jaxdyn.cli.referee import referee_command

    _allow_direct(args.load)
    with streams.to_standard_error():
        whole, code = referee_command(
            args.patterns,
            quick=args.quick,
            out=from_home(args.out),
            workers=None if args.workers is None else whole_number(args.workers, "--workers", 1),
            load=args.load,
            minutes=None if args.minutes is None else minutes_given(args.minutes, "quick"),
        )
    if args.json:
        print(json.dumps(whole))
    return code


def _explore(args: argparse.Namespace) -> int:
    with streams.telling(LOADING):
        from jaxdyn.cli.explore import explore_command

    _allow_direct(args.load)
    return explore_command(
        args.claim,
        sets=parse_sets(args.sets),
        seeds=args.seeds,
        scale=args.scale,
        load=args.load,
        host=args.host,
        port=None if args.port is None else whole_number(args.port, "--port", 0),
        browser=not args.no_browser,
    )


def _lab(args: argparse.Namespace) -> int:
    given = [f"{name}={value}" for name in LAB_FIELDS if (value := getattr(args, name)) is not None]
    fields, seeds = parse_sets([*given, *args.sets]), parse_seeds(args.seeds)
    with streams.telling(LOADING):
        from jaxdyn.cli.lab import lab_command

    with streams.to_standard_error():  # prints of a user's file must not end up in the JSON
        result = lab_command(
            args.watch,
            variants=args.variants,
            fields=fields,
            seeds=seeds,
            out=from_home(args.out),
            workers=None if args.workers is None else whole_number(args.workers, "--workers", 1),
            cluster=args.cluster,
        )
    if args.json:
        print(json.dumps(result))
    return 0


def _sweep(args: argparse.Namespace) -> int:
    draws = [(name, text) for name in ("random", "sobol") if (text := getattr(args, name)) is not None]
    if args.draw is not None and not draws:
        raise UsageError("--draw is not allowed without --random or --sobol, whose points it draws")
    seed = 0 if args.draw is None else whole_number(args.draw, "--draw", 0)
    draw = next(((name, whole_number(text, f"--{name}", 1), seed) for name, text in draws), None)
    seeds = parse_seeds(args.seeds)
    with streams.telling(LOADING):
        from jaxdyn.cli.sweep import sweep_command

    with streams.to_standard_error():  # prints of a user's file must not end up in the JSON
        result = sweep_command(
            args.trial,
            setting=args.setting,
            items=args.grid,
            draw=draw,
            seeds=seeds,
            out=from_home(args.out or f"sweep-{args.trial.rpartition(':')[2]}"),
            csv=args.csv,
            workers=None if args.workers is None else whole_number(args.workers, "--workers", 1),
            cluster=args.cluster,
            options=_words(args),
        )
    if args.json:
        print(json.dumps(result, default=str))
    return 0


def _words(args: argparse.Namespace) -> list[str]:
    """The words of ``jaxdyn sweep`` that make the same page."""
    words = [args.trial, *(["--grid", *args.grid] if args.grid else [])]
    for name in ("random", "sobol", "draw", "setting", "seeds", "out"):
        value = getattr(args, name)
        words += [] if value is None else [f"--{name}", value]
    return words + ["--csv"] * args.csv


def _models(args: argparse.Namespace) -> int:
    with streams.telling(LOADING):
        from jaxdyn.cli.models import get_command, show_command

    with streams.to_standard_error():  # prints of libraries must not end up in the JSON
        facts, lines = get_command(args.name, args.wheel) if args.action == "get" else show_command(args.model, args.dtype)
    print(json.dumps(facts) if args.json else "\n".join(lines))
    return 0


def _memory(args: argparse.Namespace) -> int:
    with streams.telling(LOADING):
        from jaxdyn.cli.memory import memory_command
    from jaxdyn.errors import LARGEST

    leasts = {"rank": 1, "batch": 1, "length": 2}
    sizes = {name: whole_number(getattr(args, name), f"--{name}", least, LARGEST) for name, least in leasts.items()}

    out = from_home(args.out) if args.out else None
    facts, lines = memory_command(
        args.model, only=args.method, dtype=args.dtype, stored=args.stored, side=args.side, out=out, **sizes
    )
    print(json.dumps(facts) if args.json else "\n".join(lines))
    return 0


def _probe(args: argparse.Namespace) -> int:
    tokens, length = whole_number(args.tokens, "--tokens", 256), whole_number(args.length, "--length", 64)
    with streams.telling(LOADING):
        from jaxdyn.cli.probe import probe_command

    with streams.to_standard_error():
        result = probe_command(
            args.models,
            text=args.text,
            tokens=tokens,
            length=length,
            only=args.only,
            out=from_home(args.out) if args.out else None,
            dtype=args.dtype,
            steps=args.steps,
        )
    if args.json:
        print(json.dumps(result))
    return 0


COMMANDS = {
    "list": _list,
    "show": _show,
    "verify": _verify,
    "diff": _diff,
    "map": _map,
    "referee": _referee,
    "explore": _explore,
    "lab": _lab,
    "sweep": _sweep,
    "models": _models,
    "memory": _memory,
    "probe": _probe,
    "new": _new,
    "report": _report,
    "completion": _completion,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    debug = False
    streams.prepare()
    # compiled programs are kept where that is possible; JAX would say of every one that its folder cannot be written to
    warnings.filterwarnings("ignore", r"Error (reading|writing) persistent compilation cache", UserWarning)
    try:
        args = build_parser().parse_args(argv)
        debug = getattr(args, "debug", False)
        code = COMMANDS[args.command](args)
        sys.stdout.flush()
        return code
    # expected errors: one sentence and an exit code
    except UsageError as error:
        if debug:
            traceback.print_exc()
        print(f"jaxdyn: {error}", file=sys.stderr)
        return 2
    except BrokenExecutor:
        sentence = "a worker process died (out of memory?); run the same command to resume, with fewer --workers if memory is short"
        print(f"jaxdyn: {sentence}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(streams.INTERRUPTED, file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has closed its end
        streams.closed(BrokenPipeError())
        return 1
    except ValueError as error:
        refused = None if debug else _refused_import(error)
        if refused is None:
            raise
        print(f"jaxdyn: {refused}", file=sys.stderr)
        return 2
    except OSError as error:
        if debug:
            traceback.print_exc()
        sentence = streams.closed(error) if error.filename is None else f"jaxdyn: {error.filename}: {error.strerror or error}"
        print(sentence, file=sys.stderr)
        return 2


def _refused_import(error: ValueError) -> str | None:
    """A sentence on the environment variable for which a library could not be imported; None for any other error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code.co_name == "<module>"]
    library = frames[-1].f_globals["__name__"].partition(".")[0] if frames else ""
    if library not in VARIABLES:
        return None
    named = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(VARIABLES[library]) and value in str(error)]
    return f"{shown(', '.join(named) or library)} is not allowed: {library} cannot be imported ({shown(error)})"


def run() -> NoReturn:
    """Run the command line as a process, and exit with its code."""
    streams.obey()
    code = main()
    if "jaxdyn.engine.runs.preparing" in sys.modules and sys.modules["jaxdyn.engine.runs.preparing"].at_work():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
