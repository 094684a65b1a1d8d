r"""The gradient: its closed form, its form for a decoder without overlap, and the pressure on distinct tokens.

The second is judged on the runs of ``frozen_decoder.py``. Letters as in ``model.py`` and ``dynamics/gradient.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics import clock
from jaxdyn.theories.snap.dynamics import gradient as theory
from jaxdyn.theories.snap.gradient import frozen_decoder
from jaxdyn.theories.snap.gradient.frozen_decoder import BREACHES, FROZEN, FROZEN_PAPER, TESTED

EARLY, LATE = 0.5, 300.0  # in units of K / eta: gamma rises before the first and falls after the second
SAVES = 25
SILENT = jd.swap(**{f"predicted_{n}": 0.0 for n in ("gradient", "gamma", "total", "peak", "peak_time", "rise", "fall")})
DECADES = (-2.0, 3.0)  # saved times of the full flow, in units of K / eta_Y


@jd.setting
class Random:
    """Random weights and classes, two of them to a query where ``queries`` is half of ``classes``."""

    query_share: jd.Swept = jd.field(0.0, at_least=0)  # of T / 10, how often the query is among the keys: 0 in the paper
    spread: jd.Swept = 1.0  # standard deviation of the entries of Y and Z
    tokens: int = 16  # M, tokens of the vocabulary
    classes: int = 4  # K, next tokens, each with a random law of the context
    queries: int = jd.field(2, at_least=1)  # R; class n has query n modulo R
    batch: int = jd.field(8, at_least=1)  # sequences of a step
    length: int = jd.field(20, at_least=1)  # contextual tokens of a sequence

    def __post_init__(self) -> None:
        """Refuse sizes that the arrays cannot hold."""
        ordered = self.queries <= self.classes <= self.tokens
        jd.require(self, ordered, "queries <= classes <= tokens", "queries", "classes", "tokens")


@jd.setting
class Overlapping:
    """Transformer and attention learn together from zero; the classes share a common token."""

    common: jd.Swept = jd.field(0.3, at_least=0, below=1)  # its share in every context
    factor: jd.Swept = 1.0  # multiplies this share: 0 leaves the classes disjoint
    ratio: jd.Swept = jd.field(10.0, above=0)  # learning rate of Y over that of Z
    tokens: int = 24  # M, tokens of the vocabulary
    classes: int = 4  # K, next tokens, each with a law of the context
    distinct: int = 3  # D, tokens that one class alone shows
    queries: int = 2  # R; class n has query n modulo R
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class; none: random

    def __post_init__(self) -> None:
        """Refuse vocabularies that are too small, and a product of both factors that is no share."""
        tasks.check(self)
        share = 0 <= self.common * self.factor < 1
        jd.require(self, share, "common times factor is a share, at least 0 and below 1", "common", "factor")


def reparam_trial(s: Random, key: PRNGKeyArray) -> jd.Observables:
    """Gradients of the network in (Y, Z) by autodiff and in closed form, at infinite length and for a batch of sequences."""
    # random weights and classes, and the gradient at infinite length
    k_weights, k_data = jax.random.split(key)
    sizes = np.cumsum([s.tokens**2, s.queries * s.tokens, s.classes * s.tokens, s.classes])
    y, z, p, weight = jnp.split(jax.random.normal(k_weights, (sizes[-1],), jnp.float64), sizes[:-1])  # one array compiles faster
    params = model.Params(s.spread * y.reshape(s.tokens, -1), s.spread * z.reshape(s.queries, -1))
    p, weight = jax.nn.softmax(p.reshape(s.classes, -1)), jax.nn.softmax(weight)
    query = jnp.arange(s.classes) % s.queries  # tokens 0, 1, ... are the queries
    label = s.tokens - 1 - jnp.arange(s.classes)
    key_of = jax.nn.one_hot(query, s.tokens, dtype=jnp.float64) * s.query_share
    attended = (p + 0.1 * key_of) / (1 + 0.1 * s.query_share)  # what the network attends to; the theory knows p alone
    law = jax.grad(model.loss)(params, model.Task(attended, query, label, weight))
    # the gradient for a batch of sequences
    uniform = jax.random.uniform(k_data, (s.batch, s.length + 1), jnp.float64)
    row = (s.classes * uniform[:, 0]).astype(jnp.int32)
    ids = jnp.sum(uniform[:, 1:, None] > jnp.cumsum(p, 1)[row][:, None, :-1], 2)
    x = jax.nn.one_hot(ids, s.tokens, dtype=jnp.float64)
    even = jnp.full(s.batch, 1 / s.batch, jnp.float64)
    counts = jnp.sum(x, 1) + 0.1 * s.length * key_of[row]
    batch = jax.grad(model.cross_entropy)(params, counts, query[row], label[row], even)

    # both in closed form
    def closed(projector: Array) -> tuple[Array, Array, Array, Array]:
        by_law = theory.ascent(*params, p, query, label, weight, projector)
        each = jax.vmap(theory.sample_ascent, (None, None, 0, 0, 0, None))(*params, x, query[row], label[row], projector)
        return *by_law, jnp.mean(each[0], 0), jnp.mean(each[1], 0)

    names = {"law_y": "token output", "law_z": "query token", "batch_y": "token output", "batch_z": "query token"}
    both = jax.vmap(closed)(jnp.asarray([1.0, 0.0], jnp.float64))  # with the projector, and without
    measured = (-law.y, -law.z, -batch.y, -batch.z)
    return jd.observables(
        predicted={n: jd.named(v[0], dims) for (n, dims), v in zip(names.items(), both, strict=True)},
        measured={n: jd.named(v, dims) for (n, dims), v in zip(names.items(), measured, strict=True)},
        recorded={f"unprojected_{n}": jd.named(v[1], dims) for (n, dims), v in zip(names.items(), both, strict=True)},
    )


def xi_trial(s: Overlapping, key: PRNGKeyArray) -> jd.Observables:
    r"""The pressure along the full flow: on each distinct token, :math:`\dot z_l/(w_n\eta_Z f_l^2)`, and in closed form."""
    # the full flow
    common = s.common * s.factor
    one = tasks.random_task(key, s.tokens, s.classes, s.distinct, common, queries=s.queries, weights=s.weights)
    unit = jnp.logspace(*DECADES, SAVES, dtype=jnp.float64)
    ts = s.classes * jnp.concatenate([jnp.zeros(1), unit])
    rate = model.Params._make((1.0, 1 / s.ratio))
    solution = flow.gradient_flow(model.loss, model.zeros(one), ts, one, rate=rate, solver="dopri8")
    ys = jax.tree.map(lambda leaf: leaf[1:], solution.ys)
    # the pressure on the distinct tokens along it, and in closed form
    rows = np.arange(s.classes)
    own = 1 + s.distinct * rows[:, None] + np.arange(s.distinct)  # the tokens that only class n has

    def on_distinct(params: model.Params) -> tuple[Array, Array]:
        velocity = -jax.grad(model.loss)(params, one).z
        f = model.normalized(model.attend(params.z[one.query], one.p))
        push = velocity[one.query[:, None], own] / (one.weight[:, None] * f[rows[:, None], own] ** 2)
        return push, theory.attention(params.z[one.query], one.p)

    push, c = jax.vmap(on_distinct)(ys)
    u = clock.clock(s.tokens * unit, float(s.tokens))
    xi = jax.vmap(lambda c, u: theory.xi(theory.unit(c), u, s.tokens))(c, u)
    scale, f = theory.gamma(u, s.tokens), theory.unit(one.p)
    return jd.observables(
        predicted={
            "xi": jd.named(xi, "time class"),
            "mean": scale[0] * theory.beta(s.tokens) * theory.excess(f) / s.classes,
        },
        measured={"xi": jd.named(push, "time class own"), "mean": jnp.mean(push[0])},
        recorded={"t": jd.named(unit, "time"), "gamma": jd.named(scale, "time"), "steps": solution.steps},
        assumed={"overlap": jnp.max(f @ f.T - jnp.eye(s.classes, dtype=f.dtype))},
        status=solution.status,
    )


def judge_reparam(ds: xr.Dataset) -> list[jd.Check]:
    """All four gradients."""
    names = {"law_y": ("Y, infinite length", "token output"), "law_z": ("Z, infinite length", "query token")}
    names |= {"batch_y": ("Y, batch of sequences", "token output"), "batch_z": ("Z, batch of sequences", "query token")}
    return [jd.at_most(f"gradient in {text}", jd.relative_error(ds, n, dims), 1e-10) for n, (text, dims) in names.items()]


def judge_form(ds: xr.Dataset) -> list[jd.Check]:
    """The vector form, gamma and its integral at every time; its peak; and its limits, early and late."""
    rise, fall = (jd.relative_error(ds, name) for name in ("rise", "fall"))
    return [
        jd.at_most("backpropagated gradient, relative error", jd.relative_error(ds, "gradient", "class token"), 1e-8),
        jd.at_most("gamma, relative error", jd.relative_error(ds, "gamma"), 1e-8),
        jd.at_most("integral of gamma, relative error", jd.relative_error(ds, "total"), 1e-8),
        jd.at_most("height of the peak of gamma, relative error", jd.relative_error(ds, "peak"), 1e-8),
        jd.at_most("time of the peak of gamma, relative error", jd.relative_error(ds, "peak_time"), 1e-5),
        jd.at_most("gamma against its early limit, relative", rise.where(ds.unit <= EARLY), 0.05),
        jd.at_most("gamma against its late limit, relative", fall.where(ds.unit >= LATE), 0.05),
    ]


# A decoder that never saturates, so that gamma rises for ever as it does at first.
UNSATURATED = jd.swap(
    predicted_gradient=lambda ds: ds.predicted_gradient * (ds.predicted_rise / ds.predicted_gamma),
    predicted_gamma="predicted_rise",
    predicted_fall="predicted_rise",
    predicted_total=lambda ds: ds.predicted_total * (ds.unit / ds.clock) ** 2,
)


def judge_xi(ds: xr.Dataset) -> list[jd.Check]:
    """Positive beyond the solver's tolerance, in the formula and on every distinct token; at first both agree, and their mean."""
    first = jd.relative_error(ds, "xi").isel(time=0)
    return [
        jd.at_least("xi / gamma along the full flow, smallest", ds.measured_xi / ds.gamma, 1e-9),
        jd.at_least("xi / gamma in closed form, smallest", ds.predicted_xi / ds.gamma, 1e-9),
        jd.at_most("relative difference at the first time", first, 0.01),
        jd.at_most("mean over classes at the first time against gamma beta ||E||, relative", jd.relative_error(ds, "mean"), 0.01),
    ]


def plot_reparam(ds: xr.Dataset, fig: Figure) -> None:
    """Closed form against autodiff, at infinite length and for a batch."""
    for ax, kind, title in zip(fig.subplots(1, 2), ("law", "batch"), ("infinite length", "batch of sequences"), strict=True):
        ax.set_title(title)
        for name, color in ((f"{kind}_y", "measured"), (f"{kind}_z", "third")):
            some = ds[[f"predicted_{name}", f"measured_{name}"]].isel(seed=slice(4))
            plotting.scatter(ax, some[f"predicted_{name}"], some[f"measured_{name}"], name[-1].upper(), color, log=False)
        ax.set(xlabel="closed form", ylabel="autodiff of the network")


def plot_form(ds: xr.Dataset, fig: Figure) -> None:
    """Gamma with its two regimes, and its integral."""
    left, right = fig.subplots(1, 2)
    one = plotting.first_run(ds)
    color = plotting.COLORS
    for ax, name, label in ((left, "gamma", r"$\gamma$"), (right, "total", r"$\Gamma = \int\gamma\,dt$")):
        ax.loglog(one.unit, one[f"measured_{name}"], "o", color=color["measured"], label="trained decoder")
        ax.plot(one.unit, one[f"predicted_{name}"], color=color["theory"], label="closed form")
        ax.set(xlabel=r"$\eta t/K$", ylabel=label)
    early, late = one.unit <= 3, one.unit >= 10
    left.plot(one.unit[early], one.predicted_rise[early], "--", color=color["third"], label=r"$(1-1/M)^2\,\eta t/K$")
    words = r"$(1-1/M)^2\,K\,\ln(M\eta t/K)/(\eta t)$"
    left.plot(one.unit[late], one.predicted_fall[late], "--", color=color["fourth"], label=words)


def plot_xi(ds: xr.Dataset, fig: Figure) -> None:
    """Pressure on the distinct tokens in units of gamma, for each share of the common token."""
    axes = np.ravel(fig.subplots(1, ds.sizes.get("ratio", 1), sharey=True, squeeze=False))
    for i, ax in enumerate(axes):
        one = ds.isel(ratio=i) if "ratio" in ds.dims else ds
        for k, share in enumerate(np.atleast_1d(one.common)):
            part = one.sel(common=share) if "common" in one.dims else one
            t, color = part.t.values.reshape(-1, part.sizes["time"])[0], plotting.CYCLE[k]
            plotting.band(ax, t, (part.measured_xi / part.gamma).transpose(..., "time"), f"common share {share:g}", color)
            plotting.band(ax, t, (part.predicted_xi / part.gamma).transpose(..., "time"), "", color, linestyle="--")
        ax.set(xscale="log", yscale="log", xlabel=r"$\eta_Y t/K$", title=rf"$\eta_Y/\eta_Z$ = {float(one.ratio):g}")
    axes[0].set_ylabel(r"$\xi/\gamma$ (dashed: closed form)")


CLAIMS = (
    jd.Study(
        trial=reparam_trial,
        quick=jd.grid(Random, spread=[0.3, 3.0]),
        paper=jd.grid(Random, spread=[0.1, 0.3, 1.0, 3.0], tokens=[16, 64], classes=[4, 12], batch=32, length=128),
        seeds=16,
        paper_seeds=64,
        source="arXiv:2305.16380, Lemma 1",
    ).claim(
        id="snap.reparam",
        talks=("training:snap-reparameterisation",),
        title="The gradient in decoder and attention logits has a closed form",
        evidence="algebra",
        bounds="derived: float64 rounding of sums over the tokens and the batch",
        statement="In the decoder $Y$ and the attention logits $Z$, the gradient of the expected log-likelihood $J$ is "
        r"$\partial_Y J = \sum_n w_n f_n (e_{y_n} - \alpha_n)^\top$ and $\partial_{z_m} J = \sum_{n:\,\psi(n)=m} "
        r"w_n\,\mathrm{diag}(f_n) (I - f_n f_n^\top)\,Y(e_{y_n} - \alpha_n)$; class $n$ has frequency $w_n$, query $\psi(n)$, "
        r"next token $y_n$, normalised attention $f_n$ on the tokens before the query, and predicted probabilities $\alpha_n$. "
        "Averaged over its sequences, the same holds for a batch of finite length.",
        tested="Automatic differentiation in float64 at random weights (standard deviation {spread}): {classes} classes with "
        "random laws and frequencies, {queries} queries, {tokens} tokens; batches of {batch} sequences of {length} tokens; "
        "{seeds} seeds.",
        judge=judge_reparam,
        rivals={"no projector, diag(f) g": jd.swap(predicted_law_z="unprojected_law_z", predicted_batch_z="unprojected_batch_z")},
        controls={"query among the keys": {"query_share": 1.0}},
        plot=plot_reparam,
        caption="Entries of the gradient in $Y$ and in $Z$ by automatic differentiation of the network against the closed "
        "form, with the line of equality, at infinite length (left) and for a batch of sequences (right); the first four "
        "seeds.",
    ),
    jd.Study(
        trial=frozen_decoder.trial,
        quick=FROZEN,
        paper=FROZEN_PAPER,
        tested=TESTED,
        seeds=8,
        paper_seeds=16,
        source="arXiv:2305.16380, Theorem 1; peak and integral are ours",
    ).claim(
        id="snap.g_form",
        title="The gradient that reaches the attention rises, peaks and decays",
        statement="For frozen inputs $f_n$ that do not overlap and $K$ equally frequent classes, the decoder propagates back "
        r"the gradient $g_n = \gamma(t)\,(\iota f_n - \beta \sum_{n' \ne n} f_{n'})$ with $\iota = M/(M-1)$, $\beta = "
        r"M/(M-1)^2$ and $\gamma = (M-1)^2 h/(M-1+e^u)$, where $M$ is the size of the vocabulary and $u = Mh$ the advantage of "
        r"the right logit over the others. With $t$ in units of $K/\eta$, $\gamma$ is $((M-1)/M)^2\,t$ up to $t = .5$ and "
        r"$((M-1)/M)^2 \ln(Mt)/t$ from $t = 300$ on, both within 5% for $M$ from 21 to 300; it peaks where $e^u(u-1) = M-1$. "
        r"Its integral over time is $(M-1)^2 K h^2/(2\eta)$.",
        holds={"tokens": (21, 300)},
        judge=judge_form,
        evidence="flow",
        bounds="derived: the solver's tolerance, and the next order of both limits",
        rivals={"the decoder does not learn: no gradient": jd.off(SILENT), "a decoder that never saturates": UNSATURATED},
        controls=BREACHES,
        plot=plot_form,
        caption=r"$\gamma$ (left) and its integral $\Gamma$ (right) along $\eta t/K$: dots for the trained decoder, lines in "
        r"closed form, dashed the early and the late limit. One run.",
    ),
    jd.Study(
        trial=xi_trial,
        quick=jd.grid(Overlapping, common=[0.05, 0.3], ratio=[0.1, 1.0, 10.0]),
        paper=jd.grid(Overlapping, common=[0.02, 0.05, 0.1, 0.3], ratio=[0.1, 1.0, 10.0, 100.0], tokens=[24, 64]),
        seeds=8,
        paper_seeds=64,
        source="arXiv:2305.16380, Theorem 1 (a)",
    ).claim(
        id="snap.xi_pos",
        talks=("training:snap-theorem-3-bounds",),
        title="Overlapping classes push attention towards their distinct tokens",
        evidence="flow",
        bounds=jd.tuned(on="0:8", confirmed_on="4000:4008"),
        statement=r"Classes that overlap through a common token ($f_n^\top f_{n'} < .6$ at the start, $f_n$ the normalised "
        r"attention of class $n$) push attention towards their distinct tokens: until $\eta_Y t/K = 1000$ the pressure $\xi_n = "
        r"\gamma\beta\sum_{n' \ne n} f_n^\top f_{n'}$ is positive, with the strength $\gamma$ of the gradient that reaches the "
        r"attention and $\beta = M/(M-1)^2$ for $M$ tokens; and so is what stands for it in training at $\eta_Y/\eta_Z$ from .1 to "
        r"100, $\dot z_l/(w_n \eta_Z f_{nl}^2)$ with the logit $z_l$ of every distinct token $l$ and the frequency $w_n$ of its "
        r"class. Early, at $\eta_Y t/K = .01$, the two agree within 1%, and their mean over classes is $\gamma\beta\|E\|$ within "
        r"1%, with $F^\top F = I + E$ for $F = (f_1, \dots, f_K)$.",
        holds={"ratio": (0.1, 100.0)},
        assumes=(jd.below("overlap", 0.6),),
        tested=r"Gradient flow of decoder and attention from zero in float64, $\eta_Y/\eta_Z$ of {ratio}, until $\eta_Y t/K = "
        "1000$: {classes} classes with {distinct} distinct tokens each and one common token, whose share of every context is "
        "{common}; {queries} queries, {tokens} tokens; {seeds} seeds.",
        judge=judge_xi,
        decides={"every distinct token": ("xi / gamma along the full flow, smallest", "disjoint classes")},
        rivals={"no pressure": jd.off(predicted_xi=0.0, predicted_mean=0.0)},
        controls={"disjoint classes": {"factor": 0.0}, "three times the overlap, K||E|| up to 12": {"factor": 3.0}},
        plot=plot_xi,
        caption=r"Pressure $\xi/\gamma$ on the distinct tokens along $\eta_Y t/K$: in the network's flow (solid) and in closed "
        r"form (dashed), a colour for each share of the common token, a panel for each $\eta_Y/\eta_Z$; median and central 90% "
        r"over seeds, classes and tokens.",
    ),
)
