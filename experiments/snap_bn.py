r"""Scan & Snap: growth of B_n(t), the figure of the talks, with the table of exact values.

M = 10000, one class, C_0 = 1, and equal learning rates: :math:`B = \frac14\ln(1 + 2((M-1)/M)^2 u^2)`, next to the ODE it comes
from, :math:`\dot B = \eta\,\gamma(t)\,e^{-4B}`, integrated, and next to its two branches. Paper: arXiv 2305.16380, Theorem 4.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import experiment, flow, plotting
from jaxdyn.theories.snap.dynamics import growth
from jaxdyn.theories.snap.dynamics.clock import clock, miss
from jaxdyn.theories.snap.dynamics.gradient import gamma, gamma_integral
from jaxdyn.theories.snap.published import B_LINES

TALKS = ("training:snap-figure-b",)

LINES = list(B_LINES)


@jd.setting
class Lines:
    """One line of the figure: both learning rates, vocabulary, and C_0."""

    eta: jd.Swept = 1.0
    size: jd.Swept = 10_000.0
    c0: jd.Swept = 1.0
    saves: int = 200


def trial(s, key):
    """B along time by the law, by its branches, and by the ODE over the decoder's clock."""
    ts = jnp.linspace(0.0, 50.0, s.saves + 1, dtype=jnp.float64)
    us = clock(s.size * s.eta * ts, s.size)

    def field(u, b, args):
        eta, size, c0 = args
        return gamma(u, size) / (size * miss(u, size)) * jnp.exp(-4 * b) / c0

    sol = flow.solve(field, jnp.zeros((), jnp.float64), us, (s.eta, s.size, s.c0))
    drives = {
        "law": s.eta * gamma_integral(us, s.size, 1.0, s.eta),
        "early": s.eta * growth.early_drive(ts, s.size, 1.0, s.eta),
        "late": s.eta * growth.late_drive(jnp.maximum(ts, 1.0), s.size, 1.0, s.eta),
    }
    laws = {name: jd.named(growth.b_law(drive, s.c0)[1:], "time") for name, drive in drives.items()}
    return jd.observables(
        predicted={"b": laws["law"]},
        measured={"b": jd.named(sol.ys[1:], "time")},
        recorded={"early": laws["early"], "late": laws["late"], "t": jd.named(ts[1:], "time")},
        status=sol.status,
    )


def rows(ds):
    """The law, the ODE, and the values to reproduce, with the largest difference from these."""
    for eta, values in B_LINES.items():
        run = ds.sel(eta=eta).isel(seed=0)
        at = {t: int(np.argmin(abs(run.t.values - t))) for t in values}
        for name, line in (("law", run.predicted_b), ("ODE", run.measured_b)):
            ours = {f"t={t}": float(line[i]) for t, i in at.items()}
            yield {"eta": eta, "by": name, **ours, "largest difference": max(abs(ours[f"t={t}"] - v) for t, v in values.items())}
        yield {"eta": eta, "by": "paper", **{f"t={t}": v for t, v in values.items()}, "largest difference": None}


def draw(ds, fig):
    left, right = fig.subplots(1, 2)
    for eta, color in zip(LINES, plotting.CYCLE, strict=False):
        run = ds.sel(eta=eta).isel(seed=0)
        left.plot(run.t, run.measured_b, color=color, label=rf"$\eta_Y = \eta_Z = {eta:g}$")
        left.plot(list(B_LINES[eta]), list(B_LINES[eta].values()), "o", color=color)
    left.set(xlabel="t", ylabel="$B_n(t)$ (dots: table)", ylim=(0, 1.6), xlim=(0, 50))
    left.legend(loc="lower right")
    run = ds.sel(eta=1.0).isel(seed=0)
    start = 2 * np.log(1e4)
    right.plot(run.t, run.measured_b, color=plotting.COLORS["measured"], label=r"ODE, $\eta = 1$")
    right.plot(run.t.where(run.t < start), run.early, "--", color=plotting.COLORS["third"], label="early branch")
    right.plot(run.t.where(run.t > 3), run.late, "--", color=plotting.COLORS["theory"], label="late branch")
    for x, name in ((start / 2, r"$\ln M$"), (start, r"$2\ln M$")):
        right.axvline(x, color=plotting.COLORS["control"], linewidth=0.8)
        right.annotate(name, (x, 0.05), xytext=(3, 0), textcoords="offset points", fontsize=8.5)
    right.set(xlabel="t", ylabel="$B_n(t)$", ylim=(0, 1.8), xlim=(0, 50))
    right.legend(loc="center right")


def run(scale: str, out: Path) -> None:
    ds = experiment.sweep(out, "lines", trial, jd.grid(Lines, eta=LINES, saves={"quick": 200, "paper": 2000}[scale]), 1)
    experiment.table(out, "values", list(rows(ds)), "B_n(t), M = 10000: ours next to the exact values")
    experiment.figure(out, "bn", lambda fig: draw(ds, fig), (9.0, 3.7))
    experiment.save(out, "bn", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
