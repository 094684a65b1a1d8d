r"""The reduced dynamics against the network's own gradient flow, where classes hardly overlap.

Two things show. A row of Z sees its class 1/K of the time (the paper's equation has no 1/K). And the decoder is made of past
attention: as soon as attention has moved by about the overlap over M, the class's own term, which drops out of the paper's
equation, holds the attention back. With this memory the reduced dynamics follows the flow; without it, it runs ahead by a share of
order :math:`(\eta_Z/\eta_Y)\,u^2`, which is small where the decoder learns much faster and grows with the clock u all the same.
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
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics import growth, reduced
from jaxdyn.theories.snap.dynamics.clock import clock
from jaxdyn.theories.snap.dynamics.gradient import excess, unit
from jaxdyn.theories.snap.population import population_flow

FORMS = ("printed", "instant", "memory")  # rho = 1; rho = 1/K; rho = 1/K and a decoder that remembers
SAVES = 16
LATE = 8.0  # clock from which the memory has taken more from the logits than the overlap of the classes has
END = 15.0  # clock up to which what the memory takes is of first order in eta_Z / eta_Y, at the ratios of ``snap.memory_lag``
EARLY = 0.5  # clock up to which the attention's own movement does not matter


@jd.setting
class Rare:
    """Classes with one rare common token, trained by gradient flow at rates ``ratio`` and 1 until eta_Y t = ``reach``."""

    common: jd.Swept = jd.field(0.03, above=0)  # weight of the common token; the distinct tokens of a class have weights of order 1
    crowd: jd.Swept = jd.field(1.0, above=0, role="breach")  # times as much of the common token
    ratio: jd.Swept = jd.field(1.0, above=0)  # eta_Y / eta_Z
    reach: jd.Swept = jd.field(1e5, above=0, role="time")  # eta_Y t at the end
    classes: int = jd.field(3, at_least=2)  # K, each with a query of its own
    distinct: int = jd.field(3, at_least=1)  # D, tokens that one class alone shows
    spare: int = jd.field(0, at_least=0)  # tokens of the vocabulary that never occur
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class; none: random

    def __post_init__(self) -> None:
        """Refuse impossible weights of the distinct tokens."""
        tasks.check_weights(self)


def trial(s: Rare, key: PRNGKeyArray) -> jd.Observables:
    """Logits of all queries along the network's flow, and by the reduced dynamics in its three forms."""
    # the classes, and the network's flow
    weights = jnp.exp(0.4 * jax.random.normal(key, (s.classes, s.distinct), jnp.float64))
    if s.weights is not None:
        weights = jnp.broadcast_to(jnp.asarray(s.weights, jnp.float64), weights.shape)
    task = tasks.weighted_task(weights, jnp.reshape(jnp.asarray(s.common * s.crowd, jnp.float64), 1))
    task = task._replace(p=jnp.pad(task.p, ((0, 0), (0, s.spare))))
    size, tokens = float(task.p.shape[1]), 1 + s.classes * s.distinct
    eta_y_t = jnp.concatenate([jnp.zeros(1), s.reach * jnp.logspace(-6, 0, SAVES, dtype=jnp.float64)])
    rates = model.Params(jnp.asarray(s.ratio, jnp.float64), jnp.ones((), jnp.float64))
    sol = population_flow(task, rates, eta_y_t / s.ratio)
    z = sol.ys.z[1:, :, :tokens]

    # the reduced dynamics, and by how much the memory lags
    def theory(rho: Float[Array, ""], memory: Float[Array, ""]) -> tuple[Array, Array]:
        member = jnp.eye(s.classes, dtype=jnp.float64)
        problem = reduced.Problem(task.p[:, :tokens], member, size, float(s.classes), rates.y, rates.z, rho)
        path = reduced.solve(problem, eta_y_t / s.ratio, memory=memory, rtol=1e-10)
        return path.z[1:], path.status

    share = 1 / s.classes
    predicted, status = jax.vmap(theory)(jnp.asarray([1.0, share, share]), jnp.asarray([0.0, 0.0, 1.0]))
    u, f = clock(size * eta_y_t[1:] / s.classes, size), unit(task.p[:, :tokens])
    lag = growth.memory_lag(predicted[1], f, u[:, None, None], s.ratio, size)
    return jd.observables(
        predicted={"z": jd.named(predicted, "form save query token"), "lag": jd.named(lag, "save query token")},
        measured={"z": jd.named(z, "save query token"), "lag": jd.named(z - predicted[1], "save query token")},
        recorded={
            "instant": jd.named(predicted[1], "save query token"),
            "all_time": jd.named(predicted[0], "save query token"),
            "u": jd.named(u, "save"),
            "eta_y_t": jd.named(eta_y_t[1:], "save"),
            "top": jd.named(jnp.argmax(weights, -1) + 1 + s.distinct * np.arange(s.classes), "query"),
        },
        assumed={"overlap": excess(f), "rate_ratio": s.ratio, "crowding": size * jnp.max(jnp.square(f[:, 0]))},
        status=jnp.maximum(sol.status, jnp.max(status)),
        coords={"form": FORMS},
    )


def miss(ds: xr.Dataset) -> xr.DataArray:
    """Distance of predicted from measured logits over the size of the prediction, for every query and save."""
    return jd.relative_error(ds, "z", "token")


def judge_early(ds: xr.Dataset) -> list[jd.Check]:
    """Before the attention's own movement matters."""
    return [jd.at_most("logits early in training, relative", miss(ds).where(ds.u < EARLY), 0.05)]


def judge_memory(ds: xr.Dataset) -> list[jd.Check]:
    """At every save."""
    return [jd.at_most("logits at all times, relative", miss(ds), 0.01)]


def judge_lag(ds: xr.Dataset) -> list[jd.Check]:
    """What the flow's logits lack of those without memory, late in training: its law, and that it is small."""
    late, slowest = (ds.u > LATE) & (ds.u < END), ds.sel(ratio=ds.ratio.max()) if "ratio" in ds.dims else ds
    error = jd.relative_error(ds, "lag", "token").where(late).mean(("save", "query"))
    along = (slowest.measured_lag * slowest.predicted_lag).sum("token") / (slowest.predicted_lag**2).sum("token")
    return [
        jd.at_most("logits without memory, relative", miss(ds).where(ds.u < END), 0.05),
        jd.mean_within("error of what they miss late in training, relative", error, over="seed", high=0.1),
        jd.within("its part along the law, at the largest ratio", along.where((slowest.u > LATE) & (slowest.u < END)), 0.97, 1.03),
    ]


def plot_lag(ds: xr.Dataset, fig: Figure) -> None:
    """What the logits without memory miss, against the memory's small parameter."""
    ax = fig.subplots()
    for ratio, color in zip(np.atleast_1d(ds.ratio.values), plotting.CYCLE, strict=False):
        run = plotting.first_run(ds.sel(ratio=ratio) if "ratio" in ds.dims else ds).isel(query=0)
        size = _norm(run.instant)
        ax.loglog(run.u**2 / ratio, _norm(run.measured_lag) / size, "o-", color=color, label=rf"flow, $\eta_Y/\eta_Z$ = {ratio:g}")
        ax.loglog(run.u**2 / ratio, _norm(run.predicted_lag) / size, "--", color=plotting.COLORS["theory"])
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label="law")
    ax.set(xlabel=r"$(\eta_Z/\eta_Y)\,u^2$", ylabel="share of the logits that is missing")
    ax.legend()


def _norm(values: xr.DataArray) -> xr.DataArray:
    return (values**2).sum("token") ** 0.5


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The dominant token's logit in the flow and by every form, and the relative distance of all logits."""
    left, right = fig.subplots(1, 2)
    ratio = float(ds.ratio.values.min()) if "ratio" in ds.dims else None
    part = ds if ratio is None else ds.sel(ratio=ratio)
    part = part.isel(common=-1) if "common" in part.dims else part
    part = part.isel({d: 0 for d in ("classes", "spare") if d in part.dims})
    run = plotting.first_run(part).isel(query=0)
    token = int(run.top)
    line = {"color": plotting.COLORS["measured"], "linewidth": 3, "alpha": 0.6, "label": "flow"}
    left.loglog(run.eta_y_t, run.measured_z.isel(token=token), **line)
    names = {"printed": r"$\rho = 1$", "instant": r"$\rho = 1/K$", "memory": r"$\rho = 1/K$, memory"}
    for form, color in zip(FORMS, ("control", "third", "theory"), strict=True):
        if "form" in ds.dims:
            one = part.sel(form=form)
            left.loglog(
                run.eta_y_t, run.predicted_z.sel(form=form, token=token), "--", color=plotting.COLORS[color], label=names[form]
            )
            error = miss(one).max("query").transpose(..., "save")
            plotting.band(right, run.eta_y_t, error, names[form], color)
    right.set(xscale="log", yscale="log", xlabel=r"$\eta_Y t$", ylabel="distance of all logits, relative")
    left.set(xlabel=r"$\eta_Y t$", ylabel="logit of the dominant token")
    left.set_title("" if ratio is None else rf"$\eta_Y/\eta_Z = {ratio:g}$")
    left.legend()
    right.legend()


def equal_lag(ds: xr.Dataset) -> xr.DataArray:
    """A memory that takes the same share from all tokens, so that the attention keeps its direction."""
    return (ds.predicted_lag * ds.instant).sum("token") / (ds.instant**2).sum("token") * ds.instant


NO_LAG = jd.swap(predicted_lag=0.0)  # the decoder has no memory, and nothing is missing
EQUAL_LAG = jd.swap(predicted_lag=equal_lag)
NOTHING_MOVES = jd.swap(predicted_z=0.0)  # the attention stays where it starts
# In place of the flow, attention driven by a decoder that has learned from the attention of the moment alone.
WITHOUT_MEMORY = jd.swap(measured_z="instant", measured_lag=0.0)

UNCROWDED = (jd.below("crowding", 0.05),)

study = jd.Study(
    trial=trial,
    quick=jd.grid(Rare, common=[0.003, 0.03], ratio=[0.1, 10.0, 100.0, 1000.0], classes=[3, 6], spare=[0, 15]),
    paper=jd.grid(Rare, common=[0.003, 0.03], ratio=[0.1, 10.0, 100.0, 1000.0], classes=[3, 6, 12], spare=[0, 72]),
    seeds=4,
    paper_seeds=4,
    source="arXiv:2305.16380, Theorem 2",
    tested=r"Gradient flow of decoder and attention from zero in float64 until $\eta_Y t$ = {reach}, $\eta_Y/\eta_Z$ of "
    "{ratio}: {classes} classes with {distinct} distinct tokens of random weights around 1 each, and a common token of "
    "weight {common}; {spare} further tokens of the vocabulary never occur; {seeds} seeds.",
    evidence="flow",
    bounds=jd.tuned(on="0:4", confirmed_on="31000000:31000004"),
    plot=plot,
    caption=r"Left: the dominant token's logit along $\eta_Y t$ in the network's flow (thick) and by the reduced dynamics in "
    "its forms (dashed), one run. Right: relative distance of all logits, the largest over queries, from those of the flow, "
    r"by form; median and central 90% over runs. At the smallest $\eta_Y/\eta_Z$ and the largest weight of the common token.",
)

rate = study.claim(
    id="snap.z_rate",
    title="An attention row learns from its class one step in K",
    statement="In the network's gradient flow with $K$ classes that hardly overlap (one common token, at most .03 times as "
    r"frequent as a typical distinct one) and $\eta_Y/\eta_Z$ of .1 or more, each row of attention logits learns from its "
    "class $1/K$ of the time: early in training (decoder's clock $u < .5$) the logits are those of the reduced dynamics with "
    r"$\rho = 1/K$ within 5%, relative, for every query.",
    form="instant",
    judge=judge_early,
    holds={"ratio": (0.1, 1000.0), "common": (0.003, 0.03)},
    controls={"much overlap": {"crowd": 50.0}},
    rivals={"nothing moves": jd.off(NOTHING_MOVES), "rho = 1": jd.swap(predicted_z="all_time")},
)
memory = study.claim(
    id="snap.memory",
    talks=("training:snap-assumptions",),
    title="With a decoder that remembers, the reduced ODE follows the network",
    statement=r"The decoder holds the attention of its past, $g_n \propto (M-1)G_n - \sum_{n'\ne n}G_{n'}$ with $G_n = \int "
    r"f_n\,du$ ($f_n$ the normalised attention of class $n$, $u$ the decoder's clock, $M$ the size of the vocabulary). With it "
    "the reduced dynamics gives the attention logits of the network's gradient flow within 1%, relative, at all recorded "
    "times, where classes of two or more distinct tokens hardly overlap (one common token, at most .03 times as frequent as a "
    "typical distinct one, and $M f_c^2 < .05$ for the normalised attention $f_c$ on it at the start).",
    source=f"derived; {study.source}",
    form="memory",
    judge=judge_memory,
    assumes=UNCROWDED,
    holds={"common": (0.003, 0.03), "distinct": (2, 8)},
    controls={"much overlap": {"crowd": 50.0}, "a decoder that knows the attention of the moment alone": WITHOUT_MEMORY},
    rivals={"nothing moves": jd.off(NOTHING_MOVES), "the attention of the moment": jd.swap(predicted_z="instant")},
)

CLAIMS = (
    rate,
    rate.as_printed(
        id="snap.z_rate_as_printed",
        title="The attention's equation as printed, without the factor 1/K",
        statement="In the network's gradient flow with $K$ classes that hardly overlap, the attention logits early in "
        r"training (decoder's clock $u < .5$) are those of the attention's equation as printed, without $1/K$ ($\rho = 1$), "
        "within 5%, relative.",
        form="printed",
        printed=r"arXiv:2305.16380, Theorem 2: $\dot z_m = \eta_Z\gamma(t)\sum_{n\in\psi^{-1}(m)} \text{diag}(f_n)(f_nf_n^\top - I)"
        r"\sum_{n'\ne n}\beta_{nn'}f_{n'}$, for one sample per step",
    ),
    memory,
    study.claim(
        id="snap.memory_beyond",
        talks=("training:snap-assumptions",),
        title="The reduced ODE without memory at any ratio of learning rates",
        statement="In the network's gradient flow, where classes hardly overlap ($M f_c^2 < .05$, letters of `snap.memory`), "
        "the attention logits are at all recorded times within 1% those of the reduced dynamics with the gradient of the "
        r"attention of the moment, $g_n = \gamma(\iota f_n - \beta\sum_{n'\ne n} f_{n'})$, at $\rho = 1/K$ (letters of "
        r"`snap.g_form`), at any $\eta_Y/\eta_Z$, also beyond the theorem's assumption $\eta_Y \gg \eta_Z$.",
        form="instant",
        counterpart="memory",
        expected="refuted",
        judge=judge_memory,
        assumes=UNCROWDED,
        rivals={},
        source="arXiv:2305.16380, Theorems 1 and 2, beyond their assumption on the learning rates",
    ),
    study.claim(
        id="snap.memory_lag",
        talks=("training:snap-assumptions",),
        title="What the decoder's memory takes from the attention has a closed form",
        statement="In the network's gradient flow, with two or more distinct tokens per class and one common token, .003 "
        "times as frequent as a typical distinct one, and a decoder that learns 100 to 1000 times as fast as the attention, "
        "the logits $z$ of the reduced dynamics without memory are right within 5% while the decoder's clock $u$ is below 15, "
        "and what they miss grows with $u$: for $u$ from 8 to 15 it is, with $M$ tokens in the vocabulary and normalised "
        r"attention $f$, $-\frac16\frac{\eta_Z}{\eta_Y}\frac{M-1}{M}u^2 f_l^2(z_l - \sum_j f_j^2z_j)$ within 10% on average "
        r"over times, queries and runs, and at $\eta_Y/\eta_Z = 1000$ its part along this law is the law's within 3%.",
        source=f"derived; {study.source}",
        bounds=jd.tuned(on="11000000:11000008", confirmed_on="31000000:31000008"),
        seeds=8,
        max_seeds=64,
        quick=jd.grid(Rare, common=0.003, ratio=[100.0, 1000.0], classes=[3, 6], spare=[0, 15]),
        paper=jd.grid(Rare, common=0.003, ratio=[100.0, 1000.0], classes=[3, 6, 12], spare=[0, 72]),
        paper_seeds=8,
        form="instant",
        judge=judge_lag,
        assumes=(jd.above("rate_ratio", 90.0), jd.below("crowding", 0.05)),
        holds={"common": (0.003, 0.003), "ratio": (100.0, 1000.0), "distinct": (2, 8)},
        controls={"attention that learns ten times faster than the decoder": {"ratio": 0.1}, "no memory": WITHOUT_MEMORY},
        rivals={"nothing is missing": jd.off(NO_LAG), "the same share of every logit": EQUAL_LAG, "nothing moves": NOTHING_MOVES},
        plot=plot_lag,
        caption="Distance of the flow's logits from those without memory, over the latter's size, against "
        r"$(\eta_Z/\eta_Y)\,u^2$: measured (a colour for each $\eta_Y/\eta_Z$) and to first order (dashed); one run of each "
        "ratio.",
    ),
)
