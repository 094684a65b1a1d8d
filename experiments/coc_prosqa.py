"""Coconut, table 1, column ProsQA: decoders trained from scratch on generated graphs answer a released file; the stored study.

Training graphs are generated with the statistics of the released ones; names, order of edges and of candidates are drawn anew each
time. Whatever the method, training begins with pointing along one of six edges; balanced trees of three hops follow, wide ones of
four, then graphs like the released ones. `--data FILE` is the released file that judges (test.json); next to it stands the share of
right answers on generated problems of the balanced variant, where it takes a path to answer. `--scale paper` is 256 wide;
`--width`, `--methods`, `--seeds` and `--steps` choose a part. The table's second half are rules that look for no path, or short
ones. Each run
lies in a file of its own: stop at any time, the same command resumes it to the same bits. `coc_prosqa.json` records settings,
versions and all runs step by step; those of studies are kept in `benchmarks/results` and drawn by `coc_prosqa_record.py`. The
published networks are pretrained GPT-2. Papers: arXiv 2412.06769, 2505.12514.
"""

import dataclasses
import hashlib
import sys
from pathlib import Path

import numpy as np

from jaxdyn import experiment
from jaxdyn.data import prosqa
from jaxdyn.errors import UsageError
from jaxdyn.text import longrun
from jaxdyn.theories.coc import model, published, released

TALKS = (
    "practical:coc-table",
    "practical:coc-table-cot",
    "practical:coc-table-no-cot",
    "practical:coc-table-coconut",
    "practical:coc-better-than-no-cot",
)

SCALES = {
    "quick": (released.Long(width=32, batch=16, problems=500, steps=400, every=100), (0,)),
    "paper": (released.Long(), (0, 1, 2)),
}
METHODS = ("coconut", "cot", "no_cot")
OPTIONS = {
    "--data": {"required": True, "metavar": "FILE", "help": "a released file of ProsQA"},
    "--methods": {"nargs": "+", "choices": model.METHODS, "help": f"methods to train (default: {' '.join(METHODS)})"},
    "--seeds": {"type": int, "nargs": "+", "metavar": "SEED", "help": "seeds (default: 0 1 2; 0 at --scale quick)"},
    "--width": {"type": int, "metavar": "N", "help": "width of the decoder, a multiple of 32 (default: 256; 32 at --scale quick)"},
    "--steps": {"type": int, "metavar": "N", "help": "steps of training in all (default: 100000; 400 at --scale quick)"},
}
Runs = dict[str, list[longrun.Run]]


def answered(method: str, run: longrun.Run, record: str = "accuracy") -> np.ndarray:
    """Right answers in percent after the method's own number of inputs, by record."""
    return 100 * run.records[record][:, released.inputs(released.Long(method=method))]


def course(method: str, seed: int, run: longrun.Run) -> dict:
    """One run step by step, in percent: right answers on the file, on balanced problems and on trees; right next nodes at its end.

    The next nodes are those after 0 to 6 inputs.
    """
    shares = {"accuracy": "accuracy", "balanced": "balanced_accuracy", "trees": "tree_accuracy"}
    ends = {name: [round(float(x), 3) for x in answered(method, run, record)] for name, record in shares.items()}
    following = [round(100 * float(x), 3) for x in run.records["next"][-1]]
    return {"method": method, "seed": seed, "reached": int(run.steps[-1]), "steps": run.steps.tolist()} | ends | {"next": following}


def rows(runs: Runs, rules: dict[str, float], balanced: dict[str, float]) -> list[dict]:
    """A line for each method, with the mean of its runs and the published number, and one for each rule.

    ``rules`` and ``balanced`` are what each rule has on the file and on problems of the balanced variant.
    """
    lines = []
    for name, group in runs.items():
        last = [float(answered(name, r)[-1]) for r in group]
        even = float(np.mean([answered(name, r, "balanced_accuracy")[-1] for r in group]))
        line = {"method": name, "seeds": len(last), "accuracy": float(np.mean(last)), "lowest": min(last), "highest": max(last)}
        lines.append(line | {"balanced": even, "paper": published.PROSQA[name][0]})
    for name, share in rules.items():
        line = {"method": f"rule {name}", "seeds": None, "accuracy": 100 * share, "lowest": None, "highest": None}
        lines.append(line | {"balanced": 100 * balanced[name], "paper": None})
    return lines


def run(
    scale: str,
    out: Path,
    data: str = "",
    methods: list[str] | None = None,
    seeds: list[int] | None = None,
    width: int | None = None,
    steps: int | None = None,
) -> None:
    """Train or resume all runs, print, draw."""
    base, usual = SCALES[scale]
    chosen = dict.fromkeys(seeds or usual)
    if wrong := [seed for seed in chosen if not 0 <= seed < released.APART]:
        raise UsageError(f"--seeds {wrong[0]} is not allowed: seeds are from 0 to {released.APART - 1}")
    if steps is not None and steps < 1:
        raise UsageError(f"--steps {steps} is not allowed: it is at least 1")
    if width is not None and (width < 1 or width % released.HEAD):
        raise UsageError(f"--width {width} is not allowed: it is a multiple of {released.HEAD}")
    base = dataclasses.replace(base, steps=steps or base.steps, width=width or base.width)
    rules = prosqa.shortcuts(prosqa.load(data))
    balanced = prosqa.shortcuts(prosqa.draw(released.APART, released.FRESH, "balanced"))
    runs: Runs = {
        name: [
            released.run(out / f"{name}-{seed}.run", dataclasses.replace(base, method=name), seed, Path(data)) for seed in chosen
        ]
        for name in methods or METHODS
    }
    courses = [course(name, seed, one) for name, group in runs.items() for seed, one in zip(chosen, group, strict=True)]
    found = {name: {"file": 100 * rules[name], "balanced": 100 * balanced[name]} for name in rules}
    experiment.record(
        out,
        "coc_prosqa",
        "ProsQA from scratch: right answers along training (%), on a released file, balanced problems and trees of three hops",
        settings={k: v for k, v in dataclasses.asdict(base).items() if k != "method"},
        file={"name": Path(data).name, "sha256": hashlib.sha256(Path(data).read_bytes()).hexdigest()},
        runs=courses,
        rules=found,
    )
    title = f"Right answers on {Path(data).name} (%), width {base.width}, {base.steps} steps"
    experiment.table(out, "prosqa", rows(runs, rules, balanced), title)
    experiment.figure(out, "coc_prosqa", lambda fig: released.along(fig.subplots(), courses, found), (7, 4))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
