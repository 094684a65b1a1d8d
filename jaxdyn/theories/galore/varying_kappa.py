"""Bounds on the decay within fixed subspaces: as coefficients change, and how loose they are.

Descent within fixed subspaces where the coefficients of the gradient's form change with the weights.

How far the rate kappa of the bound on the projected gradient lies below the true rate of decay.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting, train
from jaxdyn.theories.galore import dynamics
from jaxdyn.theories.galore.descent import positive

FORMS = ("printed", "corrected")
WIDTH = 0.2  # of the slope of the "steep" coefficients, as a share of D
STEPS = 60


@jd.setting
class Varying:
    r"""Descent within random subspaces of ``rank`` dimensions, with coefficients that depend on W.

    :math:`A = A_0 + L_A \tanh W`, :math:`B_i = b_i(W) B_i^0` with :math:`\|B_i^0\|_F = 1` and C alike; ||W|| stays below D = 1.

    - "wave": :math:`b_i = \tfrac12 L_B (1 + \sin 2\langle E_i, W\rangle)`, E of norm one, in random directions;
    - "steep": B and C are multiples of :math:`pp^\top` and :math:`qq^\top`, p and q the subspaces' first directions, and fall as
      steeply as they may while W grows, from :math:`L_B D` on. They have rank one: Frobenius and spectral norm are the same.

    Args:
        kind: of the coefficients.
        step: step size as a share of the largest for constant coefficients.
        lip: L_B and L_C.
        lip_a: L_A.
        offset: added to b and c; 0 in the theorem: they stay below L D.
        size: m and n.
        rank: of the subspaces.
        terms: N.
    """

    kind: jd.Code = jd.code("wave", "steep")
    step: jd.Swept = jd.field(0.1, above=0)
    lip: jd.Swept = jd.field(1.0, above=0)
    lip_a: jd.Swept = jd.field(0.1, at_least=0)
    offset: jd.Swept = 0.0
    size: int = 5
    rank: int = jd.field(2, at_least=1)
    terms: int = 3

    def __post_init__(self) -> None:
        """Refuse subspaces that are the whole space."""
        jd.require(self, self.rank < self.size, "rank is below size", "rank", "size")


def unit(x: Float[Array, "N d d"]) -> Float[Array, "N d d"]:
    """Matrices of Frobenius norm 1."""
    return x / jnp.linalg.norm(x, axis=(1, 2), keepdims=True)


def height(s: Varying, line: Float[Array, "n n"], e: Float[Array, "N n n"], w: Float[Array, "n n"]) -> Float[Array, " N"]:
    """The coefficients b_i or c_i at W, with directions e of the waves and a line along which the steep ones fall."""
    wave = 0.5 * (1 + jnp.sin(2 * jnp.einsum("ijk,jk->i", e, w)))
    ramp = 1 - jnp.clip(jnp.vdot(line, w) - (1 - WIDTH), 0, WIDTH)
    return s.offset + s.lip * jnp.where(s.kind == "steep", ramp, wave)


def _matrices(s: Varying, keys: tuple[PRNGKeyArray, ...]) -> tuple[Array, ...]:
    """Bases of the subspaces, the coefficients' fixed parts, the direction of the steep fall, and those of the waves."""
    k_b, k_c, k_p, k_q, k_e = keys
    p, q = (linalg.qr(jax.random.normal(k, (s.size, s.rank), jnp.float64))[0] for k in (k_p, k_q))
    first_of = (jnp.outer(x[:, 0], x[:, 0]) for x in (p, q))
    drawn = (unit(positive(k, s.terms, s.size)) for k in (k_b, k_c))
    b0, c0 = (jnp.where(s.kind == "steep", one, other) for one, other in zip(first_of, drawn, strict=True))
    line = jnp.outer(p[:, 0], q[:, 0])  # the direction along which the steep coefficients fall, inside the subspaces
    directions = jax.random.normal(k_e, (2, s.terms, s.size, s.size), jnp.float64)
    return p, q, b0, c0, line, directions / jnp.linalg.norm(directions, axis=(2, 3), keepdims=True)


def varying_trial(s: Varying, key: PRNGKeyArray) -> jd.Observables:
    """Ratios of successive norms of the projected gradient, and the bounds on them."""
    # coefficients and subspaces
    k_b, k_c, k_a, k_p, k_q, k_e = jax.random.split(key, 6)
    steep, n = s.kind == "steep", s.size
    p, q, b0, c0, line, waves = _matrices(s, (k_b, k_c, k_p, k_q, k_e))

    def parts(w: Array) -> tuple[Array, Array]:
        b, c = (height(s, line, e, w)[:, None, None] for e in waves)
        return b * b0, c * c0

    def form(w: Array) -> Array:
        b, c = parts(w)
        return jnp.einsum("imk,kl,iln->mn", b, w, c) / s.terms

    def gradient(w: Array) -> Array:
        return a0 + s.lip_a * jnp.tanh(w) - form(w)

    # A_0 makes the first gradient
    start = jnp.where(steep, (1 - WIDTH) * line, 0.0)
    first = jax.random.normal(k_a, (n, n), jnp.float64)
    wanted = jnp.where(steep, 0.02 * line, 0.3 * first / jnp.linalg.norm(first))
    a0 = wanted + form(start) - s.lip_a * jnp.tanh(start)
    eta = s.step / jnp.square(s.lip + s.offset)  # which is at least lambda_max of S, and so of its projection

    # descent within the subspaces
    def step(w: Array) -> Array:
        return w + eta * p @ (p.T @ gradient(w) @ q) @ q.T

    def observe(w: Array) -> tuple[Array, ...]:
        b, c = parts(w)
        heights = jnp.maximum(jnp.max(height(s, line, waves[0], w)), jnp.max(height(s, line, waves[1], w)))
        return jnp.linalg.norm(p.T @ gradient(w) @ q), dynamics.kappa(b, c, p, q), jnp.linalg.norm(w), heights

    _, (norms, kappas, sizes, heights) = train.record(step, start, observe, samples=STEPS, every=1)
    # the bounds on each step
    a, b, c = (jnp.asarray(x) for x in (s.lip_a, s.lip, s.lip))
    bounds = dynamics.factors(eta, kappas[:-1], (a, b, c), jnp.ones(()))
    inside = (norms[:-1] > 1e-9 * norms[0]) & (sizes[1:] < 1)  # above rounding errors, and W below D
    ratios = jnp.where(inside, norms[1:] / jnp.where(inside, norms[:-1], 1), 0)
    return jd.observables(
        predicted={"shrink": jd.named((bounds[:2] - 1) / eta, "form time")},
        measured={"shrink": jd.named((ratios - 1) / eta, "time")},
        recorded={
            "held": jd.named((bounds[2] - 1) / eta, "time"),
            "inside": jd.named(inside.astype(jnp.float64), "time"),
            "remaining": jd.named(sizes[:-1], "time"),
            "kappa": jd.named(kappas[:-1], "time"),
            "unit": jnp.square(jnp.asarray(s.lip, jnp.float64)),
        },
        assumed={
            "step_over_limit": s.step,  # below 1: eta < 1/lambda_max < 2/(kappa + lambda_max)
            "coefficients_over_bound": jnp.max(heights) / s.lip,
        },
        coords={"form": FORMS},
    )


def judge_varying(ds: xr.Dataset) -> list[jd.Check]:
    """Growth of the projected gradient's norm in every step against its bound; and the room of the steep case of rank 1.

    The room is in units of L_B L_C, D being 1.
    """
    excess = (ds.measured_shrink - ds.predicted_shrink).where(ds.inside > 0).max("time")
    checks = [jd.at_most("relative growth of |R| over the step size, minus its bound", excess, 1e-9)]
    if {"kind", "rank"} <= set(ds.dims) and "steep" in ds.kind.values and 1 in ds["rank"].values:
        room = (-excess / ds.unit).sel(kind="steep", rank=1)
        checks.append(jd.at_most("room below the bound in the steepest step of steep coefficients, in units of L_B L_C", room, 0.5))
    return checks


def plot_varying(ds: xr.Dataset, fig: Figure) -> None:
    """Growth of the norm over the step size along descent, and its bounds, by kind of coefficients."""
    kinds = [str(k) for k in np.atleast_1d(ds.kind.values)]
    for ax, kind in zip(np.atleast_1d(fig.subplots(1, len(kinds))), kinds, strict=True):
        part = ds.sel(kind=kind) if "kind" in ds.dims else ds
        part = part.isel({axis: 0 for axis in ("step", "rank") if axis in part.dims})
        time = np.arange(part.sizes["time"])
        plotting.band(ax, time, part.measured_shrink.where(part.inside > 0).transpose(..., "time"), "measured", "measured")
        plotting.band(ax, time, part.held.transpose(..., "time"), r"$-\kappa$", "third", linestyle=":")
        for form in (str(f) for f in np.atleast_1d(ds.form.values)):
            color = "theory" if form == "corrected" else "failed"
            bound = part.predicted_shrink.sel(form=form) if "form" in part.predicted_shrink.dims else part.predicted_shrink
            plotting.band(ax, time, bound.transpose(..., "time"), f"bound, {form}", color, linestyle="--")
        ax.set(title=kind, xlabel="step", ylabel=r"$(\|R_t\| / \|R_{t-1}\| - 1) / \eta$")


VARYING_STUDY = jd.Study(
    trial=varying_trial,
    quick=jd.grid(Varying, rank=[1, 2], kind=["wave", "steep"], step=[0.02, 0.1]),
    paper=jd.grid(Varying, rank=[1, 2], kind=["wave", "steep"], step=[0.02, 0.1, 0.3], size=[5, 10], terms=[1, 10]),
    seeds=128,
    paper_seeds=512,
    evidence="reduced",
    bounds="derived: float64 rounding, and half of the distance from the printed bound",
    assumes=(jd.below("step_over_limit", 1.0), jd.below("coefficients_over_bound", 1.0 + 1e-12)),
    source="arXiv:2403.03507, theorem 3.8",
    tested="60 steps of gradient descent within random subspaces of {rank} of {size} dimensions on both sides, at step sizes of "
    "{step}; {terms} terms whose coefficients wave with the weights, or have rank one and fall as steeply as they may, $L_A$ = "
    "{lip_a}, $L_B = L_C$ = {lip}, $D$ = 1; {seeds} problems.",
)

VARYING = VARYING_STUDY.claim(
    id="galore.fixed_proj_varying",
    title="Decay within a fixed subspace as coefficients change, corrected",
    statement=r"In the reduced dynamics of gradient descent within fixed subspaces on $G = A(W) - \frac1N\sum_i B_i(W) W C_i(W)$ "
    r"with Lipschitz constants $L_A, L_B, L_C$, symmetric positive semidefinite $B_i$, $C_i$, $\|W\| \le D$, $\|B_i\| \le "
    r"L_B D$, $\|C_i\| \le L_C D$ (Frobenius norms) and $\eta L_B L_C D^2 < 1$, the projected gradient $R_t = P^\top G_t Q$ has "
    r"$\|R_t\| \le [1 - \eta(\kappa_{t-1} - L_A - 2 L_B L_C D^2)]\,\|R_{t-1}\|$ in every step, "
    r"$\kappa = \frac1N\sum_i \lambda_{min}(P^\top B_i P)\,\lambda_{min}(Q^\top C_i Q)$ with the "
    r"subspaces' orthonormal bases P, Q. Where all $B_i$ are multiples of $PP^\top$ and all $C_i$ of $QQ^\top$, P and Q of one "
    r"column, and fall as steeply as they may while $W$ grows, and where $L_A$ is at most a tenth of $L_B L_C D^2$, the room "
    r"below the bound in the steepest step is at most $0.5\,\eta L_B L_C D^2$.",
    source="derived, in place of arXiv:2403.03507, theorem 3.8, with the bounds on B and C that its last term needs",
    form="corrected",
    holds={"lip": (1.0, 2.0)},
    judge=judge_varying,
    controls={r"coefficients larger than $L_B D$ and $L_C D$": {"offset": 1.0}},
    rivals={
        "the coefficients do not change: $1 - \\eta\\kappa$": jd.swap(predicted_shrink="held"),
        "changes count four times": jd.swap(predicted_shrink=lambda ds: ds.predicted_shrink + 2.0),
    },
    plot=plot_varying,
    caption=r"Change of $\|R\|$ in a step, relative and over the step size, along descent, with its bounds, for coefficients "
    r"that wave (left) and that fall as steeply as they may while $W$ grows (right), in subspaces of one dimension; medians and "
    r"central 90% of the runs.",
)


@jd.setting
class Spread:
    """Random B and C with eigenvalues around 1, and random subspaces."""

    terms: jd.Swept = jd.field(3.0, at_least=1)  # N, terms in use
    spread: jd.Swept = jd.field(0.5, at_least=0, below=1)  # eigenvalues of B and C lie between 1 - spread and 1 + spread
    size: int = 8  # rows and columns of B and C
    rank: int = jd.field(3, at_least=1)  # dimensions of each subspace
    most: int = 10  # terms at most

    def __post_init__(self) -> None:
        """Refuse fractions of a term, and subspaces that are the whole space."""
        whole = self.terms <= self.most and self.terms == round(self.terms)
        jd.require(self, whole, "terms is a whole number from 1 to most", "terms", "most")
        jd.require(self, self.rank < self.size, "rank is below size", "rank", "size")


def loose_trial(s: Spread, key: PRNGKeyArray) -> jd.Observables:
    """The smallest eigenvalue of the projected S, by which R decays at least, and the bound kappa on it."""
    k_b, k_c, k_p, k_q = jax.random.split(key, 4)
    eye = jnp.eye(s.size, dtype=jnp.float64)
    b, c = (eye + 2 * s.spread * (positive(k, s.most, s.size) - eye) for k in (k_b, k_c))
    share = jnp.where(jnp.arange(s.most) < s.terms, s.most / s.terms, 0.0)  # the mean is over those in use
    p, q = (linalg.qr(jax.random.normal(k, (s.size, s.rank), jnp.float64))[0] for k in (k_p, k_q))
    theory = dynamics.within(share[:, None, None] * b, c, jnp.zeros((s.size, s.size), jnp.float64), p, q)
    mean_b, mean_c = (jnp.mean(share[:, None, None] * x, 0)[None] for x in (b, c))
    return jd.observables(
        predicted={"rate": theory.kappa},
        measured={"rate": theory.slowest},
        recorded={"of_means": dynamics.kappa(mean_b, mean_c, p, q)},
    )


def read(ds: xr.Dataset) -> list[jd.Reading]:
    """How far the rate of decay lies above kappa, by the number of terms."""
    jd.need(ds, terms=[3.0, 10.0])
    over = ds.measured_rate / ds.predicted_rate
    return [jd.mean_reading(f"smallest eigenvalue over kappa, mean, terms: {n}", over.sel(terms=n), over="seed") for n in (3, 10)]


def plot_loose(ds: xr.Dataset, fig: Figure) -> None:
    """The smallest eigenvalue over kappa, by the number of terms."""
    ax = fig.subplots()
    over = ds.measured_rate / ds.predicted_rate
    for i, terms in enumerate(ds.terms.values):
        values = over.sel(terms=terms).values.ravel()
        ax.plot(np.full(values.size, i), values, "o", color=plotting.COLORS["measured"], alpha=0.2)
    ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--")
    ax.set_xticks(range(ds.sizes["terms"]), [str(n) for n in ds.terms.values])
    ax.set(xlabel="terms N", ylabel=r"$\lambda_{min}(\hat S) / \kappa$")


CLAIMS = (
    VARYING,
    VARYING.as_printed(
        id="galore.fixed_proj_varying_as_printed",
        title="Decay within a fixed subspace as coefficients change, as printed",
        form="printed",
        printed=r"arXiv:2403.03507, Theorem 3.8: $\|R_t\|_F \le [1 - \eta(\kappa_{t-1} - L_A - L_B L_C D^2)]\,\|R_{t-1}\|_F$",
        statement=r"In the reduced dynamics of gradient descent within fixed subspaces on $G = A(W) - \frac1N\sum_i B_i(W) W "
        r"C_i(W)$ in $N$ terms, $A$ and positive semidefinite $B_i$, $C_i$ with Lipschitz constants $L_A, L_B, L_C$ and $\|W\| \le "
        r"D$ (Frobenius norms), the projected gradient $R_t = P^\top G_t Q$ has $\|R_t\| \le [1 - \eta(\kappa_{t-1} - "
        r"L_A - L_B L_C D^2)]\,\|R_{t-1}\|$ in every step, with $\kappa$ and the subspaces' bases P, Q as in "
        "`galore.fixed_proj_varying`. The counterexamples have $B$, $C$ and $R$ of rank one, so that it makes no "
        "difference whether norms are spectral ones.",
        source="arXiv:2403.03507, theorem 3.8",
    ),
    jd.Study(
        trial=loose_trial,
        quick=jd.grid(Spread, terms=[3, 10]),
        paper=jd.grid(Spread, terms=[3, 10]),
        seeds=128,
        paper_seeds=512,
        evidence="algebra",
        source="arXiv:2403.03507, theorem 3.8; the question: ours",
    ).claim(
        id="galore.kappa_loose",
        title="How loose the bound on the decay of a projected gradient is",
        tested=r"Random symmetric matrices of {size} by {size} with eigenvalues from $1-b$ to $1+b$, b = {spread}, in {terms} "
        r"terms, "
        "projected on random subspaces of {rank} dimensions; {seeds} problems.",
        statement=r"How many times as large as the rate $\kappa = \frac1N\sum_i \lambda_{min}(P^\top B_i P)\,\lambda_{min}(Q^\top "
        "C_i Q)$ of the bound in `galore.fixed_proj` (letters of that claim) is the true rate of late decay, the smallest "
        "eigenvalue of S within the subspaces, on average over random matrices with eigenvalues from 1/2 to 3/2, in 3 and in 10 "
        "terms, and random subspaces of 3 of 8 dimensions? (An algebraic question.)",
        expected="measured",
        judge=read,
        recorded={
            "smallest eigenvalue over kappa, mean, terms: 3": (1.16, 1.191, 1.22),
            "smallest eigenvalue over kappa, mean, terms: 10": (1.32, 1.337, 1.36),
        },
        controls={"all eigenvalues equal": {"spread": 0.0}},
        rivals={"the smallest eigenvalues of the mean matrices": jd.swap(predicted_rate="of_means")},
        plot=plot_loose,
        caption=r"True rate of decay of the projected gradient over the bound's $\kappa$, by the number of "
        "terms; one point per run.",
    ),
)
