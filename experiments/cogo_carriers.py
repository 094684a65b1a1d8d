"""Bias carriers in trained networks, and how many order-6 frequencies there are (512 nodes, rate .01).

A frequency of order 4 leaves a mean of modulus sqrt 2 in the output; nodes of order-6 frequencies take it away. The least norm has
n6* = sqrt(1.318 (d-1)/2) of them. Not in the paper (arXiv 2410.01779), whose orders it explains.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from cogo_sweep import DECAYS, GROUPS, networks
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import classify
from jaxdyn.theories.cogo.dynamics import solutions


def parts(ds: xr.Dataset, group: str) -> xr.Dataset:
    """Means that each group of nodes gives at every frequency, orders, and the squared norm, of every network."""
    g = parse(group)
    runs = ds.measured_w.stack(run=("lr", "decay", "seed")).transpose("run", "layer", "element", "node")

    def one(w: jax.Array) -> dict[str, jax.Array]:
        nodes = classify.nodes(w, g)
        mean = classify.means(nodes, g)
        return {"re": mean.real, "im": mean.imag, "order": nodes.order, "norm": jnp.sum(jnp.square(w))}

    with jax.enable_x64(True):
        measured = jax.device_get(jax.jit(lambda w: jax.lax.map(one, w))(jnp.asarray(runs.values, jnp.float64)))
    dims = {"re": ("run", "part", "frequency"), "im": ("run", "part", "frequency"), "order": ("run", "frequency"), "norm": ("run",)}
    shaped = {name: (dims[name], np.asarray(value)) for name, value in measured.items()}
    return xr.Dataset(shaped, coords={"run": runs.run, "part": list(classify.PARTS)}).unstack("run").isel(lr=0)


def rows(measured: xr.Dataset, d: int) -> list[dict]:
    """One line per decay: orders, how well the means cancel (median and worst of all order-4 frequencies), and the norm."""
    lines, n = [], (d - 1) // 2
    group = parse(str(d))
    for decay in measured.decay.values:
        one = measured.sel(decay=decay)
        mean = one.re + 1j * one.im
        own = mean.sel(part="own").where(one.order == 4)
        left = abs(own + mean.sel(part="order 6")) / abs(own)
        others = abs(mean.sel(part=["order 4", "rest"])).max("part") / abs(own)
        six = (one.order == 6).sum("frequency")
        norm = solutions.trained_norm(group, solutions.energy(n, np.maximum(six.values, 1)))
        line = {"d": d, "decay": float(decay), "order 4, mean": float((one.order == 4).sum("frequency").mean())}
        line |= {"order 6, mean": float(six.mean()), "n6* (least norm)": solutions.best_carriers(n)}
        line |= {"|own mean|": float(abs(own).mean()), "exact": solutions.OWN}
        line |= {"left, median": float(left.median()), "left, worst": float(left.max()), "others, worst": float(others.max())}
        lines.append(line | {"norm^2 / that of the composed solution": float((one.norm / norm).mean())})
    return lines


def draw(measured: xr.Dataset, d: int, fig: Figure) -> None:
    """What order-6 nodes add against what each order-4 frequency leaves; the norm over the number of order-6 frequencies."""
    left, right = fig.subplots(1, 2)
    mean = measured.re + 1j * measured.im
    four = (measured.order == 4) & (measured.decay >= 5e-5)
    own, added = (mean.sel(part=part).where(four).values.ravel() for part in ("own", "order 6"))
    known = np.isfinite(own.real)
    for name, part, color in (("real parts", np.real, "measured"), ("imaginary parts", np.imag, "third")):
        plotting.scatter(left, -part(own[known]), part(added[known]), name, color, log=False)
    left.set(xlabel="minus the own mean (prediction)", ylabel="mean from order-6 nodes", title=f"d = {d}, decay 5e-5 and more")
    n = (d - 1) // 2
    count = np.arange(1, n + 1)
    right.plot(count, solutions.energy(n, count), color=plotting.COLORS["theory"], label="composed solution")
    right.axvline(solutions.best_carriers(n), color=plotting.COLORS["theory"], linestyle="--", label="least norm")
    scale = float(solutions.trained_norm(parse(str(d)), 1.0))
    for decay, color in zip(DECAYS, plotting.CYCLE, strict=False):
        one = measured.sel(decay=decay)
        right.plot(
            (one.order == 6).sum("frequency"), one.norm / scale, "o", color=color, alpha=0.7, label=f"trained, decay {decay:g}"
        )
    right.set(xlabel="order-6 frequencies", ylabel="Fourier norm squared, paper scale")


def run(scale: str, out: Path) -> None:
    """Train or load all networks, measure, draw."""
    lines = []
    for group in GROUPS[scale]:
        d = parse(group).order
        measured = parts(networks(out, group), group)
        lines += rows(measured, d)
        experiment.table(
            out, "carriers", lines, "Bias of order-4 frequencies and what order-6 nodes leave of it; relative to the own mean"
        )
        experiment.figure(out, f"cogo_carriers_{d}", lambda fig, x=measured, d=d: draw(x, d, fig), (9.0, 3.8))
        experiment.save(out, f"cogo_carriers_{d}", measured)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
