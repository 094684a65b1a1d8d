"""CoGO, Figure 3: one network in training. Losses and accuracies, orders of its frequencies, potentials along the way.

The setting of the authors' log (d = 23, q = 512, rate .01, decay 1e-4, seed 5) and, at paper scale, that of their read-me
(d = 71, rate .002, decay 5e-5, seed 1). Figures show that seed and, thin, four others. Potentials are scaled to the paper's.
Paper: arXiv 2410.01779.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import classify, training
from jaxdyn.theories.cogo.dynamics import semiring

TALKS = ("training:cogo-figure-solution",)

CASES = {
    "quick": {"log": {"group": "23", "lr": 0.01, "decay": 1e-4}},
    "paper": {
        "log": {"group": "23", "lr": 0.01, "decay": 1e-4},
        "readme": {"group": "71", "lr": 0.002, "decay": 5e-5},
    },
}
SHOWN = {"log": 5, "readme": 1}
SEEDS = (1, 2, 3, 4, 5)
EARLY = 200
PUBLISHED = "paper: train accuracy 1 at epoch 12-15 with test accuracy 0, losses 1e-5 to 4e-4 at the end"


def biases(w: jax.Array, s: training.Training) -> dict[str, jax.Array]:
    """|r_{a,k,-k,k}| and |r_{a,k,1-k,k}| of one k of each pair, paper scale."""
    group = parse(s.group)
    z = semiring.transform(w, group)
    k = group.pairs
    sizes = {}
    for name, m in (("still", 0), ("turning", 1)):
        other = group.add[m][group.negative[k]]
        sizes[name] = 2 * group.order * jnp.abs(jnp.sum(z[0][k] * z[0][other] * z[2][k], -1))
    return sizes


def trial(s: training.Training, key: jax.Array) -> jd.Observables:
    """Train; records along the way, and the order of every frequency at the end."""
    run = training.train(s, key, lambda w: biases(w, s))
    order = classify.nodes(run.w, parse(s.group)).order
    curves = {name: jd.named(x, "epoch frequency" if x.ndim == 2 else "epoch") for name, x in run.curves.items()}
    return jd.observables(
        measured={"order": jd.named(order.astype(jnp.float32), "frequency")},
        recorded=curves,
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def summary(late: xr.Dataset, early: xr.Dataset, case: dict) -> list[dict]:
    """One line per seed: when each accuracy is 1, what the end looks like."""
    lines = []
    for seed in late.seed.values:
        one, begin, end = late.sel(seed=seed), early.sel(seed=seed), late.sel(seed=seed).isel(epoch=-1)
        row = {"d": int(case["group"]), "seed": int(seed)}
        for part in ("train", "test"):
            perfect = np.flatnonzero(np.ravel(begin[f"{part}_accuracy"]) == 1)
            row[f"{part} accuracy 1 at epoch"] = int(perfect[0]) if perfect.size else None
        orders = one.measured_order.values.ravel()
        row |= {
            "order 4": int((orders == 4).sum()),
            "order 6": int((orders == 6).sum()),
            "others": int(((orders != 4) & (orders != 6)).sum()),
        }
        row |= {f"{part} loss, end": float(end[f"{part}_loss"]) for part in ("train", "test")}
        row |= {"diagonal / (d - 1)": float(end.diagonal) / (int(case["group"]) - 1), "cross": float(end.cross)}
        lines.append(row)
    return lines


def draw_start(early: xr.Dataset, shown: int, fig: Figure) -> None:
    """Losses and accuracies over the first epochs."""
    left, right = fig.subplots(1, 2)
    for part, color in zip(("train", "test"), plotting.CYCLE, strict=False):
        for seed in early.seed.values:
            one, main = early.sel(seed=seed), seed == shown
            style = {
                "color": color,
                "linewidth": 1.8 if main else 0.7,
                "alpha": 1.0 if main else 0.4,
                "label": part if main else None,
            }
            left.plot(early.epoch, one[f"{part}_loss"], **style)
            right.plot(early.epoch, one[f"{part}_accuracy"], **style)
    left.set(yscale="log", xlabel="epoch", ylabel="loss")
    right.set(xlabel="epoch", ylabel="accuracy", xlim=(0, 60))


def draw_potentials(late: xr.Dataset, shown: int, d: int, fig: Figure) -> None:
    """Histogram of orders; sums of diagonal and of cross potentials; one layer's potentials, by the order of their frequency."""
    panels = fig.subplots(1, 4)
    one = late.sel(seed=shown)
    orders = late.measured_order.values.ravel()
    panels[0].hist(
        orders, bins=np.arange(-0.5, 10.5), weights=np.full(orders.size, 100 / orders.size), color=plotting.COLORS["measured"]
    )
    panels[0].set(xlabel="order of a frequency", ylabel="share (%)", title=f"{late.sizes['seed']} seeds, end")
    panels[1].plot(one.epoch, one.diagonal, color=plotting.CYCLE[0], label="diagonal")
    panels[1].plot(one.epoch, one.cross, color=plotting.CYCLE[1], label="all others")
    panels[1].axhline(d - 1, linestyle="--", color=plotting.COLORS["control"], label="d - 1")
    panels[1].set(xlabel="epoch", title="sums of $r_{k_1k_2k}$")
    for ax, name, title in ((panels[2], "still", "$|r_{a,k,-k,k}|$"), (panels[3], "turning", "$|r_{a,k,1-k,k}|$")):
        for order, color in ((4, plotting.CYCLE[0]), (6, plotting.CYCLE[1])):
            for i, k in enumerate(np.flatnonzero(one.measured_order.values == order)):
                label = f"order {order}" if i == 0 else None
                ax.plot(one.epoch, one[name].isel(frequency=k), color=color, linewidth=0.8, label=label)
        ax.set(xlabel="epoch", title=title)


def run(scale: str, out: Path) -> None:
    """Train every case twice, finely at first and to the end; print, draw, save."""
    for name, case in CASES[scale].items():
        late = experiment.sweep(out, f"{name}_late", trial, jd.grid(training.Training, **case), SEEDS)
        early = experiment.sweep(out, f"{name}_early", trial, jd.grid(training.Training, **case, epochs=EARLY, every=1), SEEDS)
        title = f"d = {case['group']}, rate {case['lr']:g}, decay {case['decay']:g}; {PUBLISHED}"
        experiment.table(out, f"{name}_seeds", summary(late, early, case), title)
        experiment.figure(out, f"cogo_fig3_{name}_start", lambda fig, e=early, n=name: draw_start(e, SHOWN[n], fig))
        d = int(case["group"])
        experiment.figure(
            out, f"cogo_fig3_{name}", lambda fig, x=late, n=name, d=d: draw_potentials(x, SHOWN[n], d, fig), (13.0, 3.4)
        )
        experiment.save(out, f"cogo_fig3_{name}_late", late)
        experiment.save(out, f"cogo_fig3_{name}_early", early)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
