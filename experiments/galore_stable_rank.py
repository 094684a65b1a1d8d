"""GaLore, why gradients can be projected: stable ranks of the gradients of all matrices of a decoder, along training on a text.

Full Adam and GaLore, each at its own rate, on the bytes of Python's own manual; dotted: a Gaussian matrix of the same shape.
`--text DIR --level bpe` as for galore_ppl. Paper: arXiv 2403.03507, sections 3 and 5.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.galore.text.trial import Pretraining, trial

SCALES = {
    "quick": {"steps": 160, "records": 16},
    "paper": {"width": 64, "hidden": 172, "most": 16, "rank": 16.0, "batch": 16, "steps": 800, "records": 40, "windows": 32},
}
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--level": {"default": "bytes", "choices": ("bytes", "bpe", "words"), "help": "kind of tokens (default: bytes)"},
}
TITLES = {"full": "full Adam", "galore": "GaLore"}


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each matrix: stable ranks at the start, the least and at the end, and that of a Gaussian matrix."""
    mean = ds.measured_stable_rank.mean("seed")
    return [
        {
            "method": TITLES[m],
            "matrix": name,
            "start": float(x[0]),
            "least": float(x.min()),
            "end": float(x[-1]),
            "Gaussian": float(g[0]),
        }
        for m in ds.optimizer.values
        for name in ds.matrix.values
        for x, g in [(mean.sel(optimizer=m, matrix=name), ds.predicted_stable_rank.mean("seed").sel(optimizer=m, matrix=name))]
    ]


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Stable ranks over steps by kind of matrix, layers in light and dark, and those of Gaussian matrices."""
    kinds = list(dict.fromkeys(name.split()[0] for name in ds.matrix.values))
    panels = fig.subplots(ds.sizes["optimizer"], len(kinds), sharex=True, sharey=True, squeeze=False)
    for line, method in zip(panels, ds.optimizer.values, strict=True):
        for ax, kind in zip(line, kinds, strict=True):
            names = [name for name in ds.matrix.values if name.split()[0] == kind]
            for i, name in enumerate(names):
                mean = ds.measured_stable_rank.sel(optimizer=method, matrix=name).mean("seed")
                ax.plot(ds.step, mean, color=plotting.RAMP(i / max(1, len(names) - 1)), label=f"layer {name.split()[1]}")
            noise = float(ds.predicted_stable_rank.sel(optimizer=method, matrix=names[0]).mean())
            ax.axhline(noise, linestyle=":", color=plotting.COLORS["control"], label="Gaussian")
            ax.set(title=kind if method == ds.optimizer.values[0] else "", yscale="log")
        line[0].set_ylabel(f"{TITLES[method]}\nstable rank")
        line[0].set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    for ax in panels[-1]:
        ax.set_xlabel("step")
    for ax in panels.flat[1:]:
        for handle in ax.get_lines():
            handle.set_label(f"_{handle.get_label()}")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    ds = experiment.sweep(out, "runs", trial, jd.grid(Pretraining, optimizer=["full", "galore"], **SCALES[scale], **chosen), 3)
    experiment.table(out, "stable_rank", rows(ds), "Stable ranks of gradients along training, means over 3 seeds")
    experiment.figure(out, "galore_stable_rank", lambda fig: draw(ds, fig), (12, 4.4))
    experiment.save(out, "stable_rank", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
