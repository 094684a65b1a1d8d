"""``python -m jaxdyn.maintain TASK``: writes generated files.

Exit codes: 0 done, 1 a document is stale, 2 wrong use, 130 interrupted.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxdyn.engine.base import streams
from jaxdyn.engine.base.parsing import from_home, plain_digits
from jaxdyn.errors import UsageError
from jaxdyn.wording import plural

__all__ = ["main"]

KINDS = ("studies", "maps", "probes", "benchmarks", "ahead")


def build_parser() -> argparse.ArgumentParser:
    """The tasks and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m jaxdyn.maintain", description="Write jaxdyn's generated files, which are never edited by hand."
    )
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK", title="tasks")

    # documents
    docs = tasks.add_parser("docs", help="Renew the generated documents: README's table, theories, talks, studies, atlas.")
    docs.add_argument("--root", type=from_home, default=Path(), metavar="DIR", help="The checkout (default: the current folder).")
    docs.add_argument("--check", action="store_true", help="Write nothing; name the documents that are stale.")

    figures = tasks.add_parser("figures", help="Verify the claims whose figures the site shows; `make docs` does, and builds it.")
    figures.add_argument(
        "--root", type=from_home, default=Path(), metavar="DIR", help="The checkout (default: the current folder)."
    )

    picture = tasks.add_parser("picture", help="Take a picture of the beginning of a report; `make picture` makes docs/report.png.")
    picture.add_argument("folder", type=from_home, metavar="DIR", help="The --out of a verification.")
    picture.add_argument(
        "file", type=from_home, metavar="FILE", help="Write the picture to this file: a PNG, or an SVG of one figure."
    )
    picture.add_argument("--figure", metavar="CLAIM", help="The figure of this claim instead.")

    release = tasks.add_parser("release", help="Run all checks on main, and tag it with its version; `make release` does.")
    release.add_argument(
        "--root", type=from_home, default=Path(), metavar="DIR", help="The checkout (default: the current folder)."
    )

    run = tasks.add_parser("run", help="Run the code of pages and notebooks, and write its current output into them.")
    run.add_argument("files", type=from_home, nargs="+", metavar="FILE", help="A page (.md) or a notebook (.ipynb).")

    # files that ship with the package, some of them from verifications
    shipped = tasks.add_parser("shipped", help="Write catalogue.json and programs.json, which wheels ship; needs no runs.")
    shipped.add_argument("folder", type=from_home, metavar="DIR", help="Write them to this folder.")

    costs = tasks.add_parser("costs", help="Add the costs of programs to costs.json, from a verification that compiled them.")
    costs.add_argument("folder", type=from_home, metavar="DIR", help="The --out of that verification.")

    verdicts = tasks.add_parser("verdicts", help="Record the verdicts of a verification in verdicts.json.")
    verdicts.add_argument("folder", type=from_home, metavar="DIR", help="The --out of that verification.")

    referee = tasks.add_parser("referee", help="Record the referee's answers in referee's recorded.json.")
    referee.add_argument("folder", type=from_home, metavar="DIR", help="The --out of `jaxdyn referee`.")

    accused = tasks.add_parser("accused", help="Ask the referee about claims that changed, and the day's seventh of all others.")
    accused.add_argument("result", type=from_home, metavar="FILE", help="What `jaxdyn verify --json` printed.")
    accused.add_argument("folder", type=from_home, metavar="DIR", help="The --out of that verification.")
    accused.add_argument("--day", metavar="DATE", help="Ask the claims of this day (default: today).")
    accused.add_argument("--minutes", type=float, default=math.inf, metavar="M", help="Begin no claim after M minutes.")

    # records in the theories' folders
    studies = tasks.add_parser("studies", help="Store the results of verifications at paper scale in the theories' folders.")
    studies.add_argument("folders", type=from_home, nargs="+", metavar="DIR", help="The --out of a verification at paper scale.")

    maps = tasks.add_parser("maps", help="Make the maps of the atlas, in the theories' folders; resumes after an interruption.")
    maps.add_argument("folder", type=from_home, metavar="DIR", help="Write runs and maps to this folder.")
    maps.add_argument("names", nargs="*", metavar="NAME", help="Make these maps only (default: all).")

    _add_runs(tasks)
    return parser


def _add_runs(tasks: Any) -> None:
    """The tasks that run or compile programs again."""
    # what is recorded, and no longer current
    renew = tasks.add_parser("renew", help="Make recorded results that are not current anew: studies, maps, benchmarks, ...")
    renew.add_argument("--root", type=from_home, default=Path(), metavar="DIR", help="The checkout (default: the current folder).")
    renew.add_argument("--only", choices=KINDS, action="append", default=[], help="This kind only; may be repeated.")
    how = renew.add_mutually_exclusive_group(required=True)
    how.add_argument("--minutes", type=_minutes, metavar="N", help="Begin nothing after N minutes; commits nothing.")
    how.add_argument("--check", action="store_true", help="Run nothing; say how many of each kind are current.")
    renew.add_argument("-v", "--verbose", action="store_true", help="With --check: name those that are not, and what has changed.")

    # what is stored, and should be the same bits
    recheck = tasks.add_parser(
        "recheck", help="Run a seventh of the stored programs of a verification afresh: the bits must be equal."
    )
    recheck.add_argument("folder", type=from_home, metavar="DIR", help="The --out of that verification.")
    recheck.add_argument("--before", type=float, default=math.inf, metavar="SECONDS", help="Only what was stored before this time.")
    recheck.add_argument("--day", metavar="DATE", help="The day that decides which seventh (default: today).")
    recheck.add_argument(
        "--most", type=float, default=2.0, metavar="GB", help="Then remove what was not used longest (default: 2)."
    )

    # compilation ahead of time
    ahead = tasks.add_parser("ahead", help="Compile all programs for an accelerator that this machine lacks; resumes.")
    ahead.add_argument("platform", choices=["cuda", "tpu"], help="The accelerator's platform.")
    ahead.add_argument("--minutes", type=float, default=60.0, metavar="N", help="Stop after N minutes (default: 60).")


def _minutes(text: str) -> float:
    minutes = float(plain_digits(text))
    if not 0 < minutes < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not allowed: it is a number above 0")
    return minutes


def _docs(args: argparse.Namespace) -> int:
    from jaxdyn.engine.programs import direct
    from jaxdyn.maintain import documents

    direct.allow()
    if args.check:
        stale = documents.stale(args.root)
        print("\n".join(f"{path} is stale" for path in stale) or "no document is stale")
        return int(bool(stale))
    print(documents.renew(args.root))
    return 0


def _figures(args: argparse.Namespace) -> int:
    from jaxdyn.maintain.site import draw_figures

    return draw_figures(args.root)


def _picture(args: argparse.Namespace) -> int:
    from jaxdyn.maintain import picture

    if args.figure is None:
        picture.write_picture(args.folder, args.file)
    else:
        picture.write_figure(args.folder, args.figure, args.file)
    print(f"{args.file} is renewed")
    return 0


def _release(args: argparse.Namespace) -> int:
    from jaxdyn.maintain.release import release

    tag = release(args.root)
    print(f"{tag} is tagged; `git push origin {tag}` publishes it")
    return 0


def _run(args: argparse.Namespace) -> int:
    from jaxdyn.maintain import executed

    for file in args.files:
        executed.write(file)
        print(f"{file} is renewed")
    return 0


def _shipped(args: argparse.Namespace) -> int:
    from jaxdyn.maintain import shipped

    claims, programs = shipped.write_shipped(args.folder)
    print(f"{plural(claims, 'claim')} and {plural(programs, 'program')} written to {args.folder}")
    return 0


def _costs(args: argparse.Namespace) -> int:
    from jaxdyn.engine.runs.costs import REFERENCE
    from jaxdyn.maintain import shipped

    print(f"{plural(shipped.write_costs(args.folder), 'program')} written to {REFERENCE.name}")
    return 0


def _verdicts(args: argparse.Namespace) -> int:
    from jaxdyn.engine.verification import last_verdicts as recorded

    print(f"{plural(recorded.write_verdicts(args.folder), 'verdict')} written to {recorded.RECORDED.name}")
    return 0


def _referee(args: argparse.Namespace) -> int:
    import datetime

    from jaxdyn.attacks import recorded
    from jaxdyn.engine.catalogue import registry

    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    count = recorded.write_answers(args.folder, today, registry.all_claims())
    print(f"answers on {plural(count, 'claim')} written to {recorded.RECORDED.name}")
    return 0


def _studies(args: argparse.Namespace) -> int:
    from jaxdyn.report import studies

    stored = sum(len(studies.write_studies(folder)) for folder in args.folders)
    print(f"{plural(stored, 'study')} stored")
    return 0


def _maps(args: argparse.Namespace) -> int:
    from jaxdyn.maintain import atlas

    atlas.make_maps(args.folder, args.names)
    return 0


def _recheck(args: argparse.Namespace) -> int:
    from jaxdyn.engine.programs import direct
    from jaxdyn.engine.storage.store import open_folder
    from jaxdyn.maintain import recheck

    direct.allow()
    day = recheck.chosen_day(args.day)
    with open_folder(args.folder, "verify") as folder:
        code = recheck.report(recheck.recheck(folder, args.before, day))
        if gone := recheck.prune(folder, int(args.most * 10**9)):
            print(f"removed, since not used for the longest time: {plural(gone, 'shard')}")
    return code


def _accused(args: argparse.Namespace) -> int:
    from jaxdyn.engine.programs import direct
    from jaxdyn.maintain import recheck
    from jaxdyn.maintain.accused import accused

    direct.allow()
    found = list(accused(args.result, args.folder, recheck.chosen_day(args.day), args.minutes))
    for line in found:
        print(line)
    print(f"{plural(len(found), 'finding')} not on record")
    return int(bool(found))


def _renew(args: argparse.Namespace) -> int:
    from jaxdyn.engine.programs import direct
    from jaxdyn.maintain import renew

    direct.allow()
    lines = renew.check(args.root, args.only, args.verbose) if args.check else renew.renew(args.root, args.minutes, args.only)
    for line in lines:
        print(line, flush=True)
    return 0


def _ahead(args: argparse.Namespace) -> int:
    from jaxdyn.maintain import ahead

    done, all_ = ahead.write(args.platform, 60 * args.minutes)
    print(f"compiled: {done} of {plural(all_, 'program')}, in {ahead.RESULTS}")
    return 0


TASKS = {
    "docs": _docs,
    "figures": _figures,
    "picture": _picture,
    "release": _release,
    "run": _run,
    "shipped": _shipped,
    "costs": _costs,
    "verdicts": _verdicts,
    "referee": _referee,
    "accused": _accused,
    "studies": _studies,
    "maps": _maps,
    "renew": _renew,
    "ahead": _ahead,
    "recheck": _recheck,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one task; returns the exit code."""
    streams.prepare()
    args = build_parser().parse_args(argv)
    try:
        return TASKS[args.task](args)
    except UsageError as error:
        print(f"jaxdyn.maintain: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: what is finished is stored, and the same command resumes the rest", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
