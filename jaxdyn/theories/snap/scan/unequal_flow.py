r"""Two unequal common tokens, which Theorem 2 does not cover: which of them gains in the network's own gradient flow, and why.

Each is frequent in some classes and rare in the others. Without the decoder's memory of past attention both lose throughout; with
it (``dynamics/reduced.py``) the class's own past holds up the one that is rare elsewhere, as soon as attention learns about as
fast as the decoder. "Measured" is the flow of the network's loss in (Y, Z), by automatic differentiation, from zero; predicted are
the reduced dynamics with memory, on the same laws. Laws and letters as in ``random_laws_flow.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.snap import model, random_laws
from jaxdyn.theories.snap.dynamics import reduced
from jaxdyn.theories.snap.dynamics.gradient import excess, unit
from jaxdyn.theories.snap.population import population_flow
from jaxdyn.theories.snap.random_laws import COMMONS
from jaxdyn.theories.snap.scan.random_laws_flow import SAVES, TESTED, LawsFlow


def trial(s: LawsFlow, key: PRNGKeyArray) -> jd.Observables:
    """Logits of the common tokens along the flow and by the reduced dynamics with memory and without; which of them ever gain."""
    # the network's flow
    p = random_laws.random_laws(s, key)
    tokens = p.shape[1]
    size = tokens + 2 * s.classes
    n = np.arange(s.classes)
    query = jnp.floor(n / s.per_query).astype(jnp.int32)
    task = model.Task(jnp.pad(p, ((0, 0), (0, size - tokens))), query, tokens + s.classes + n, jnp.full(s.classes, 1 / s.classes))
    eta_y_t = jnp.concatenate([jnp.zeros(1), s.reach * jnp.logspace(-6, 0, SAVES, dtype=jnp.float64)])
    rates = model.Params(jnp.asarray(s.ratio, jnp.float64), jnp.ones((), jnp.float64))
    sol = population_flow(task, rates, eta_y_t / s.ratio)
    z = sol.ys.z[:, query, :COMMONS]
    # the reduced dynamics without memory and with it
    member = reduced.queries(s.classes, s.per_query)
    problem = reduced.Problem(p, member, float(size), float(s.classes), s.ratio, 1.0, 1 / s.classes)

    def theory(memory: Float[Array, ""]) -> tuple[Array, Array]:
        path = reduced.solve(problem, eta_y_t / s.ratio, memory=memory, rtol=1e-9)
        return jnp.einsum("rk,trd->tkd", member, path.z)[..., :COMMONS], path.status

    (instant, remembered), status = jax.vmap(theory)(jnp.asarray([0.0, 1.0], jnp.float64))
    return jd.observables(
        predicted={
            "gains": jd.named(_gains(remembered), "class common_token"),
            "z": jd.named(remembered, "save class common_token"),
        },
        measured={"gains": jd.named(_gains(z), "class common_token"), "z": jd.named(z, "save class common_token")},
        recorded={
            "gains_instant": jd.named(_gains(instant), "class common_token"),
            "instant": jd.named(instant, "save class common_token"),
            "eta_y_t": jd.named(eta_y_t, "save"),
        },
        assumed={"overlap": excess(unit(p)), "rate_ratio": s.ratio},
        status=jnp.maximum(sol.status, jnp.max(status)),
    )


def _gains(z: Float[Array, "T K C"]) -> Float[Array, "K C"]:
    """1 where a logit rises between any two saves, 0 where it never does."""
    return jnp.any(jnp.diff(z, axis=0) > 0, 0).astype(z.dtype)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Every common token of every class."""
    agrees = (ds.measured_gains == ds.predicted_gains).where(ds.measured_gains.notnull())
    share = agrees.mean(["class", "common_token"], skipna=False)
    return [jd.at_least("share of a run's common tokens that gain as predicted", share, 1.0)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Logits of the first class's common tokens along training, in the flow and by both reduced dynamics, for each ratio."""
    ratios = np.atleast_1d(ds.ratio.values)
    for ax, ratio in zip(np.atleast_1d(fig.subplots(1, len(ratios))), ratios, strict=True):
        run = plotting.first_run(ds.sel(ratio=ratio) if "ratio" in ds.dims else ds).isel({"class": 0, "save": slice(1, None)})
        for token, (name, color) in enumerate((("rare elsewhere", "measured"), ("frequent elsewhere", "third"))):
            one = run.isel(common_token=token)
            ax.semilogx(run.eta_y_t, one.measured_z, color=plotting.COLORS[color], linewidth=3, alpha=0.6, label=name)
            ax.semilogx(run.eta_y_t, one.predicted_z, "--", color=plotting.COLORS["theory"])
            ax.semilogx(run.eta_y_t, one.instant, ":", color=plotting.COLORS["control"])
        ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.8)
        ax.set(xlabel=r"$\eta_Y t$", title=rf"$\eta_Y/\eta_Z$ = {ratio:g}")
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label="reduced, memory")
    ax.plot([], [], ":", color=plotting.COLORS["control"], label="reduced, no memory")
    ax.legend()
    fig.axes[0].set_ylabel("attention logit of the first class")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(LawsFlow, ratio=[0.1, 0.2, 3.0, 10.0], common=0.02, second=0.02, unequal=1.5, per_query=[1.0, 2.0]),
        seeds=8,
        paper_seeds=64,
        source="arXiv:2305.16380, Theorem 2(b), beyond its assumption; the memory is derived",
    ).claim(
        id="snap.unequal_flow",
        talks=("training:snap-common-down",),
        title="A memory lets one of two unequal common tokens gain attention",
        statement="In the network's gradient flow of four classes one of two common tokens, of which one is $e^3$ times as "
        "frequent as the other in the first class and as much rarer in the others, can gain attention for some time, which "
        r"Theorem 2(b) excludes for equal ones. With overlap $K\|E\| < .2$ ($K$ classes, $E = F^\top F - I$ for the normalised "
        r"attention $F$ at the start) and $\eta_Y/\eta_Z$ of .1, .2, 3 or 10, the attention logit of a common token rises "
        "between some two records exactly where it does so in the reduced dynamics of a decoder that remembers past "
        "attention, in every class of every run; the dynamics without this memory misses it.",
        tested=TESTED
        + r" The weights of the two tokens are multiplied by $e^{1.5}$ and divided by it in the first class, divided and "
        "multiplied in the others.",
        evidence="flow",
        bounds=jd.tuned(on="0:8", confirmed_on="81000000:81000008"),
        assumes=(jd.below("overlap", 0.2),),
        judge=judge,
        decides={
            "exactly": ("share of a run's common tokens that gain as predicted", "gains of another class"),
            "every class": ("share of a run's common tokens that gain as predicted", "gains of another class"),
        },
        controls={
            "strong overlap, K||E|| above 2": jd.Control(
                {"common": 0.1, "second": 0.1, "ratio": 0.1},
                every_seed=True,
                why="Both common tokens have the same weight, so that overlap alone is what changes.",
            ),
            "gains of another class": jd.rolled(measured_gains="class"),
        },
        rivals={"a decoder without memory": jd.off(predicted_gains="gains_instant")},
        plot=plot,
        caption=r"Attention logits of the first class's common tokens along $\eta_Y t$ in the network's flow (thick), by the "
        r"reduced dynamics with the decoder's memory (dashed) and without (dotted), for each $\eta_Y/\eta_Z$; one run.",
    ),
)
