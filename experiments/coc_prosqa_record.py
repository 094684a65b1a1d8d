"""Coconut on ProsQA: the stored studies of `coc_prosqa.py`, a panel for each width and length, and a table of where their runs end.

Nothing is trained. `--record FILE` is a collection of what that script has written, `benchmarks/results/coc_prosqa.json` unless
told otherwise. Runs of one width and number of steps share a panel. Paper: arXiv 2412.06769.
"""

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

from jaxdyn import experiment
from jaxdyn.errors import UsageError
from jaxdyn.theories.coc import released

TALKS = ("practical:coc-table",)

RECORD = Path(__file__).parents[1] / "benchmarks/results/coc_prosqa.json"
OPTIONS = {
    "--record": {"default": str(RECORD), "metavar": "FILE", "help": "file of studies (default: benchmarks/results/coc_prosqa.json)"}
}


def load(path: str) -> dict:
    """The record.

    Raises:
        UsageError: if it cannot be read or holds no studies.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        if rows(record) and panels(record) and all("file" in one for one in record["rules"].values()):
            return record
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    raise UsageError(f"{path} holds no studies of coc_prosqa.py")


def panels(record: dict) -> dict[tuple[int, int], list[dict]]:
    """Runs with a course, by width and number of steps."""
    found: dict[tuple[int, int], list[dict]] = {}
    for study in record["studies"]:
        key = study["settings"]["width"], study["settings"]["steps"]
        found.setdefault(key, []).extend(one for one in study["runs"] if one.get("steps"))
    return {key: courses for key, courses in sorted(found.items()) if courses}


def rows(record: dict) -> list[dict]:
    """Where every run ends, in percent."""
    return [
        {
            "width": study["settings"]["width"],
            "method": one["method"],
            "seed": one["seed"],
            "steps": one["reached"],
            "released": one["accuracy"][-1],
            "balanced": one["balanced"][-1],
            "balanced, apart from training": one["apart"]["balanced"][-1] if "apart" in one else None,
        }
        for study in record["studies"]
        for one in study["runs"]
    ]


def draw(record: dict, fig: Figure) -> None:
    """A panel for each width and number of steps, two in a row."""
    parts = panels(record)
    axes = fig.subplots(-(-len(parts) // 2), 2, sharey=True, squeeze=False).ravel()
    for ax, ((width, steps), courses) in zip(axes, parts.items(), strict=False):
        released.along(ax, courses, record["rules"])
        ax.set_title(f"width {width}, {steps} steps")
    for ax in axes[len(parts) :]:
        ax.remove()


def run(scale: str, out: Path, record: str = str(RECORD)) -> None:
    """Print and draw; the scale makes no difference."""
    studies = load(record)
    experiment.table(out, "prosqa_studies", rows(studies), "ProsQA from scratch: right answers when training ends (%)")
    experiment.figure(out, "coc_prosqa_record", lambda fig: draw(studies, fig), (7, 3.2 * -(-len(panels(studies)) // 2)))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
