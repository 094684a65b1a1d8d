r"""The entropy bounce of Fig. 4: attention first concentrates on the large components, then spreads again.

Gradient ascent near a critical point, under attention normalised over all tokens. The upper gradient ``mu - v`` is inserted: these
are the theory's reduced dynamics, not a network in training. The logits are prescribed by Theorem 1's law for exp attention
(``law``: ``z = v^2/T``, the recursion behind the figure), or trained along with v: by a gradient that takes the normalisation A(t)
as given (``trained``), or by that of the softmax (``softmax``), which differentiates A(t) as well. The theory is the exact solution
of :math:`\dot v = (\mu - v) \circ \mathrm{softmax}(v^2/T)`, and for ``softmax`` the equations of ``dynamics/nonlinear.py``. Steps
and the exact solution differ by the step size, so the judge tests the order in the step size and the limit.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.dynamics.nonlinear import entropy_of_logits, orbit_in_softmax_time, softmax_logits
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps
from jaxdyn.theories.joma.nonlinear.model import ATTENTIONS, gradients, sample_mu

DRAWS, LOGITS, DRIVES = ("random", "fig4"), ("law", "trained", "softmax"), ("critical", "linear")
RECORDS = 5000  # times at which the entropy is recorded; one step apart at step size span / RECORDS
PREDICTED = 20  # the entropy is predicted at every 20th of them
TEXT = 2.0  # the temperature of the paper's text


@jd.setting
class Bounce:
    """Tokens near a critical point mu, under attention softmax(v^2/T).

    Args:
        draw: mu is random, or that of the figure (repeated or cut to the number of tokens).
        logits: z = v^2/T by Theorem 1, or trained, with the normalisation as given or differentiated.
        drive: "linear" replaces the upper gradient mu - v by mu: no critical point.
        eta: step size.
        span: training time, number of steps times step size.
        temperature: T.
        spread: factor on the distances of mu from its mean; 0 makes all components equal.
        start: v at the start, for all tokens.
        mu_low: random components are uniform in [mu_low, mu_high).
        mu_high: see mu_low.
        mu: the critical point itself, one number per token, in place of ``draw``.
        tokens: number of components.
        settle: further steps of size one, which reach the limit.
    """

    draw: jd.Code = jd.code(*DRAWS)
    logits: jd.Code = jd.code(*LOGITS)
    drive: jd.Code = jd.code(*DRIVES)
    eta: jd.Swept = jd.field(0.02, above=0)
    span: jd.Swept = jd.field(100.0, above=0)
    temperature: jd.Swept = jd.field(3.0, above=0)
    spread: jd.Swept = 1.0
    start: jd.Swept = jd.field(0.05, above=0)
    mu_low: jd.Swept = 1.0
    mu_high: jd.Swept = 4.0
    mu: tuple[float, ...] | None = None
    tokens: int = 10
    settle: int = 10_000

    def __post_init__(self) -> None:
        """Refuse a start that is not below mu, and records between steps."""
        jd.require(self, self.start < self.mu_low, "start is below mu_low", "start", "mu_low")
        jd.require(self, self.mu_low < self.mu_high, "mu_low is below mu_high", "mu_low", "mu_high")
        if self.mu is not None:
            jd.require(self, len(self.mu) == self.tokens, "mu has one number per token", "mu", "tokens")
            jd.require(self, min(self.mu) > self.start, "every component of mu is above start", "mu", "start")
        steps = self.span / (RECORDS * self.eta)
        whole = steps > 1 - 1e-6 and abs(steps - round(steps)) <= 1e-6
        jd.require(self, whole, f"span / {RECORDS} is a whole multiple of eta", "span", "eta")


def place(s: Bounce, key: PRNGKeyArray) -> Float[Array, " d"]:
    """The critical point of a run."""
    if s.mu is not None:
        mu = jnp.asarray(s.mu, jnp.float64)
    else:
        fig4 = jnp.resize(jnp.asarray(published.FIG4_MU, jnp.float64), (s.tokens,))
        mu = jnp.where(s.draw == "fig4", fig4, sample_mu(key, s.mu_low, s.mu_high, s.tokens))
    return jnp.mean(mu) + s.spread * (mu - jnp.mean(mu))


def step(
    state: tuple[Float[Array, " d"], Float[Array, " d"]], mu: Float[Array, " d"], eta: Float[Array, ""], s: Bounce
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """One step of gradient ascent of v and of the logits (learning-rate ratio 2/T), replaced by v^2/T under ``law``."""
    v, z = state
    g = jnp.where(s.drive == "critical", mu - v, mu)
    softmax, normalised = ATTENTIONS.index("softmax"), ATTENTIONS.index("normalised")
    attention = jd.Code(jnp.where(s.logits == "softmax", softmax, normalised), ATTENTIONS)
    dv, dz = gradients(v, z - jnp.max(z), g, attention)
    v = v + eta * g * dv
    return v, jnp.where(s.logits == "law", v * v / s.temperature, z + eta * (2 / s.temperature) * dz)


def trial(s: Bounce, key: PRNGKeyArray) -> jd.Observables:
    """Entropy of the attention along training, and along the exact solution."""
    # training, and further steps to the limit
    mu = place(s, key)
    v0 = jnp.full_like(mu, s.start)
    every = jnp.round(s.span / (RECORDS * s.eta)).astype(jnp.int32)
    state, (z, v) = train.record(
        lambda state: step(state, mu, s.eta, s),
        (v0, v0 * v0 / s.temperature),
        lambda state: state[::-1],
        samples=RECORDS,
        every=every,
    )
    settled = jax.lax.fori_loop(0, s.settle, lambda _, state: step(state, mu, jnp.ones_like(s.eta), s), state)
    h = entropy_of_logits(z)
    # the theory: with the normalisation as given, with the text's temperature, and with the normalisation differentiated
    tau = s.span * jnp.arange(0, RECORDS + 1, PREDICTED, dtype=jnp.float64) / RECORDS
    given, text = (_theory(tau, mu, v0, t) for t in (s.temperature, jnp.full_like(s.temperature, TEXT)))
    after = jnp.concatenate([tau, jnp.array([s.span + s.settle], jnp.float64)])
    solution = softmax_logits(after, mu, v0, s.temperature)
    softmax = entropy_of_logits(solution.ys[1])
    own = entropy_of_logits(mu * mu / s.temperature)
    return jd.observables(
        predicted={
            "entropy": jd.named(jnp.where(s.logits == "softmax", softmax[:-1], given), "time"),
            "limit": jnp.where(s.logits == "softmax", softmax[-1], own),
        },
        measured={"entropy": jd.named(h[::PREDICTED], "time"), "limit": entropy_of_logits(settled[1])},
        recorded={
            "t": jd.named(tau, "time"),
            "held": jd.named(given, "time"),
            "held_limit": own,
            "text": jd.named(text, "time"),
            "text_limit": entropy_of_logits(mu * mu / TEXT),
            "lowest": jnp.min(h),
            "lowest_at": jnp.argmin(h).astype(jnp.float64),
            "last": h[RECORDS - 1],
            "critical_point": jd.named(mu, "token"),
            "v": jd.named(v[::100], "snapshot token"),
        },
        status=jnp.where(
            s.logits == "softmax", jnp.maximum(solution.status, train.finite_status(settled)), train.finite_status(settled)
        ),
    )


def _theory(
    tau: Float[Array, " T"], mu: Float[Array, " d"], v0: Float[Array, " d"], temperature: Float[Array, ""]
) -> Float[Array, " T"]:
    """Entropy of softmax(v^2/T) along the exact solution."""
    s = orbit_in_softmax_time(tau, mu * mu / temperature, -jnp.log1p(-v0 / mu))
    return entropy_of_logits(jnp.square(mu * jnp.expm1(-s)) / temperature)


SETTLED = 0.01  # trained logits reach their limit in steps of size one, whose error is of that order
FALL, RISE = 0.8, 0.25  # nats, of the entropy, mean over critical points; single ones differ by a factor of ten
SOFTMAX_FALL, SOFTMAX_RISE, SOFTMAX_ABOVE = 0.15, 0.08, 0.4  # where the normalisation is differentiated
MEAN = "mean over critical points"
RISES = f"rise of the entropy to its limit, {MEAN}"
ROUNDING = 1e-15  # an error below it has no order in the step size


def _error(ds: xr.Dataset) -> xr.DataArray:
    """Root mean square over time of the error of the entropy."""
    return np.maximum(np.sqrt(((ds.measured_entropy - ds.predicted_entropy) ** 2).mean("time")), ROUNDING)


def judge(ds: xr.Dataset, fall: float = FALL, rise: float = RISE) -> list[jd.Check]:
    """Entropy along the steps against the exact solution, its fall and rise, and its limit."""
    ds = halving_steps(ds)
    fine = ds.isel(eta=-1, drop=True)
    limit = extrapolated(ds.measured_entropy)
    lowest = limit.min("time", skipna=False)
    miss = abs(fine.measured_limit - fine.predicted_limit)
    law = [x for x in np.atleast_1d(ds.logits.values) if x == "law"] if "logits" in ds.dims else []
    others = miss.drop_sel(logits=law) if law else miss
    return [
        jd.within("order of the step error", stats.loglog_slope(ds.eta, _error(ds), "eta"), 0.85, 1.15),
        jd.at_most("entropy extrapolated to step 0, error at any time", abs(limit - fine.predicted_entropy), 1e-5),
        jd.mean_within(f"fall of the entropy, {MEAN}", limit.isel(time=0) - lowest, over="seed", low=fall),
        jd.mean_within(RISES, fine.measured_limit - lowest, over="seed", low=rise),
        jd.at_most("trained logits: error of the limit of the entropy", others, SETTLED),
        *([jd.at_most("logits v^2/T: error of the limit of the entropy", miss.sel(logits=law), 1e-6)] if law else []),
    ]


def judge_softmax(ds: xr.Dataset) -> list[jd.Check]:
    """The same where the normalisation is differentiated, and how far the limit lies above that of given normalisation."""
    fine = halving_steps(ds).isel(eta=-1, drop=True)
    return [
        *judge(ds, SOFTMAX_FALL, SOFTMAX_RISE),
        jd.mean_within(
            f"limit of the entropy above that of softmax(mu^2/T), {MEAN}",
            fine.measured_limit - fine.held_limit,
            over="seed",
            low=SOFTMAX_ABOVE,
        ),
    ]


def judge_figure(ds: xr.Dataset) -> list[jd.Check]:
    """The numbers of the recursion behind the figure."""
    low, at, last = published.FIG4.values()
    return [
        jd.within("entropy at the minimum", ds.lowest, low - 1e-3, low + 1e-3),
        jd.within("step of the minimum", ds.lowest_at, at - 1, at + 1),
        jd.within("entropy at step 4999", ds["last"], last - 1e-3, last + 1e-3),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of the attention along the steps with the theory, for each kind of logits; and v of one run coloured by time."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(eta=-1) if "eta" in ds.dims else ds
    one = one if "logits" in one.dims else one.expand_dims("logits")
    for kind, color in zip(one.logits.values, ("measured", "third", "control"), strict=False):
        part = plotting.first_run(one.sel(logits=kind), "seed")
        rows = part.measured_entropy.transpose("seed", "time").values
        t = np.ravel(part.t)[: rows.shape[1]]
        left.plot(t, rows.T, color=plotting.COLORS[color], linewidth=1)
        left.plot(
            t, part.predicted_entropy.transpose("seed", "time").values.T, "--", color=plotting.COLORS["theory"], linewidth=0.8
        )
        left.plot([], [], color=plotting.COLORS[color], label=f"logits: {kind}")
    left.plot([], [], "--", color=plotting.COLORS["theory"], label="theory")
    left.set(xlabel="steps × step size", ylabel="entropy of the attention (nats)")
    left.set_ylim(top=1.6 * float(one.measured_entropy.max()))  # room for the legend
    left.legend(loc="upper right")
    plot_snapshots(right, one.isel(logits=0, seed=0))


def plot_snapshots(ax: Axes, run: xr.Dataset) -> None:
    """Snapshots of v over the tokens, coloured by time, with mu dashed."""
    token, t = np.arange(run.sizes["token"]), np.linspace(0, float(np.max(run.t)), run.sizes["snapshot"])
    plotting.lines(ax, token, run.v.transpose("snapshot", "token").values, color_by=t, name="steps × step size", linewidth=0.8)
    ax.plot(token, run.critical_point, "--", color=plotting.COLORS["theory"], label=r"$\mu$")
    ax.set(xlabel="token", ylabel="$v$")
    ax.legend()


GRID = jd.grid(Bounce, logits=["law", "trained"], eta=[0.02, 0.01, 0.005])
BOUNCE = jd.Study(
    trial=trial,
    quick=GRID,
    seeds=16,
    max_seeds=64,
    paper_seeds=64,
    evidence="reduced",
    bounds=jd.tuned(on="0:16", confirmed_on="56000000:56000016"),
    tested="Reduced dynamics, no network in training: {tokens} tokens near random critical points, components uniform in "
    "[{mu_low}, {mu_high}), all weights {start} at the start; steps of {eta} for a time of {span}, then {settle} steps "
    "of size one to the limit; logits set to $v^2/T$ (law) or following their gradient (trained); seeds: {seeds}.",
    source="arXiv:2310.00535, section 4 and Fig. 4",
    plot=plot,
    caption=r"Left: entropy of attention along the steps at the smallest step size, one line per random critical point and kind of "
    r"logits; dashed: theory. Right: $v$ of the first run over the tokens at equally spaced times, coloured by time, and $\mu$ "
    r"(dashed).",
)
BREACHES: dict[str, Any] = {"linear dynamics": {"drive": "linear"}, "all mu equal": jd.Control({"spread": 0.0}, breaks=r"\mu")}
DOMAIN = {
    "start": (0.05, 0.5),
    "temperature": (3.0, 3.0),
    "mu_low": (1.0, 1.0),
    "mu_high": (4.0, 4.0),
    "spread": (1.0, 1.0),
    "tokens": (10, 10),
}
UNIFORM = jd.swap(predicted_entropy=float(np.log(10)), predicted_limit=float(np.log(10)))
TEXT_LOGITS = jd.swap(predicted_entropy="text", predicted_limit="text_limit")

CLAIMS = (
    BOUNCE.claim(
        id="joma.bounce",
        talks=("training:joma-catch-up",),
        title="Near a minimum, attention first concentrates and then spreads again",
        statement=r"In the reduced dynamics of one node near a critical point $\mu$ (upper gradient $\mu - v$; attention "
        r"normalised over ten tokens by a sum that is not differentiated; $T = 3$, components of $\mu$ uniform between 1 and 4, "
        "equal weights near zero at the start) the entropy of attention falls by at least .8 nats and then rises by at least "
        r".25, on average over $\mu$, to that of $\mathrm{softmax}(\mu^2/T)$, along the exact solution of $\dot v = (\mu - "
        r"v)\circ\mathrm{softmax}(v^2/T)$.",
        decides={"first concentrates and then spreads again": (RISES, "linear dynamics")},
        holds=DOMAIN,
        judge=judge,
        controls=BREACHES,
        rivals={"attention stays uniform": UNIFORM, "the text's logits, $v^2/2$": TEXT_LOGITS},
    ),
    BOUNCE.claim(
        id="joma.bounce_softmax",
        talks=("training:joma-figure-4", "training:joma-catch-up"),
        title="With a softmax that is differentiated, attention spreads further",
        statement=r"In the reduced dynamics of one node near a critical point $\mu$ (upper gradient $\mu - v$) with the full "
        r"gradient of the softmax $p$ over ten tokens, $\dot z = (\frac{d}{dt}v^2 - p\,\frac{d}{dt}\|v\|^2)/T$, $T = 3$, "
        r"components of $\mu$ uniform between 1 and 4 and equal weights near zero at the start, the entropy of attention falls "
        r"by at least .15 nats and rises again by at least .08, to a limit at least .4 nats above the entropy of "
        r"$\mathrm{softmax}(\mu^2/T)$, on average over $\mu$.",
        tested="Reduced dynamics, no network in training: {tokens} tokens near random critical points, components uniform in "
        "[{mu_low}, {mu_high}), all weights {start} at the start; steps of {eta} for a time of {span}, then {settle} "
        "steps of size one to the limit; seeds: {seeds}.",
        source="arXiv:2310.00535, section 4 and Theorem 1 (softmax); derived here",
        quick=GRID.replace(logits="softmax"),
        holds=DOMAIN,
        judge=judge_softmax,
        controls=BREACHES,
        rivals={
            "attention stays uniform": UNIFORM,
            "normalisation not differentiated": jd.swap(predicted_entropy="held", predicted_limit="held_limit"),
        },
    ),
    BOUNCE.claim(
        id="joma.fig4",
        talks=("training:joma-figure-4",),
        title="The numbers behind Figure 4's fall and rise of the entropy",
        statement=r"In the reduced dynamics behind Figure 4, $v \leftarrow v + \eta(\mu - v)\circ\mathrm{softmax}(v^2/T)$ "
        r"with $T = 3$, $\eta = .02$, the figure's $\mu$ and weights of .05 at the start, the entropy of attention has its "
        "minimum .9416 at step 669 and is 1.5493 at step 4999 (to .001 and one step). The text's logits $v^2/2$ do not give "
        "these numbers.",
        decides={"minimum": ("entropy at the minimum", "the text's logits, v^2/2")},
        tested=r"The recursion itself, with the figure's ten critical values $\mu$, steps $\eta$ of {eta} and all weights $v$ "
        "at {start} in the beginning.",
        quick=jd.grid(Bounce, draw="fig4"),
        seeds=1,
        paper_seeds=1,
        judge=judge_figure,
        bounds="paper",
        controls=BREACHES
        | {"the text's logits, v^2/2": {"temperature": 2.0}, "normalisation differentiated": {"logits": "softmax"}},
        rivals={},
        plot=lambda ds, fig: plot_snapshots(fig.subplots(), ds.isel(seed=0)),
        caption=r"$v$ over the tokens at equally spaced times, coloured by time, and $\mu$ (dashed).",
    ),
)
