r"""Maxima in different irreps are apart, and none mixes irreps (theorem 2, corollary 2): how far every path between them falls.

Let t be the share of a node's squared norm in one irrep p (with its conjugate), and e_k the energy of the maxima in irrep k. By
Cauchy's inequality for the blocks of u and v,

.. math:: E \le e_p t^2 + e'_p (1 - t)^2, \qquad e'_p = \max_{k \ne p} e_k,

with equality where both parts are maxima of their irreps. A path from irrep p to q crosses every t from 1 to 0, for p as for q, so
that its lowest energy is at most

.. math:: \min_{k \in \{p, q\}} \frac{e_k e'_k}{e_k + e'_k},

which the arcs :math:`\cos\theta\, w_p + \sin\theta\, w_q` between maxima attain, if need be by way of an irrep of the largest
energy. Weight that moves from one irrep to another changes E by a convex function of t: a node that mixes irreps is no maximum.
Letters as in ``dynamics/energy.py``; source: arXiv:2509.21519, theorem 2, derived here.
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
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.model import Activation

SHARES = tuple(round(0.1 * i, 1) for i in range(1, 10))  # t
ANGLES = 181  # points of an arc; the lowest is at the angle of which the tangent is a root of e_p / e_q
_EXACT = jax.lax.Precision.HIGHEST
MOVED = 0.5  # of the smaller part's squared norm, there and back: the change is quadratic, however large


@jd.setting
class Paths:
    """Maxima of each irrep of these groups, and ascents at a fixed share; an ``activation`` other than x^2 is a breach."""

    groups: tuple[str, ...] = ("7", "S3", "Q8")  # names of groups; a number M is the residues modulo M
    activation: Activation = "square"  # sigma of the energy; the bounds are those of x^2
    starts: int = jd.field(12, at_least=1)  # random starts of ascents for each irrep and share
    steps: int = jd.field(300, at_least=100)  # steps of each ascent; fewer do not converge

    def __post_init__(self) -> None:
        """Refuse names that are no groups, and groups with a single irrep but the trivial one."""
        count = min((len(energy.peaks(decompose(parse(name)))) for name in self.groups), default=0)
        jd.require(self, count >= 2, "there is at least one group, and each has two irreps but the trivial one", "groups")


def ceilings(heights: Float[np.ndarray, " p"], shares: Float[np.ndarray, " t"]) -> Float[np.ndarray, "p t"]:
    """The largest energy of a node with the share t in each irrep, from the energies of their maxima."""
    others = np.array([np.max(np.delete(heights, p)) for p in range(len(heights))])
    return np.asarray(heights[:, None] * shares**2 + others[:, None] * (1 - shares) ** 2)


def barriers(heights: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
    """The lowest energy of the best path between maxima of any two irreps; on the diagonal their own energy."""
    others = np.array([np.max(np.delete(heights, p)) for p in range(len(heights))])
    crossed = heights * others / (heights + others)
    return np.where(np.eye(len(heights), dtype=bool), heights[:, None], np.minimum(crossed[:, None], crossed))


def parts(irreps: Irreps) -> Float[np.ndarray, "p M M"]:
    """The projectors on all irreps but the trivial one, conjugate pairs together; functions of g and of its inverse alike."""
    return np.stack([np.sum([irreps.projector(k) for k in numbers], 0).real for numbers in irreps.merged[1:]])


def _on_both(projectors: Float[Array, "p M M"], w: Float[Array, "D p n"]) -> Float[Array, "D p n"]:
    """The part of both halves of each node in the irrep of its column."""
    return jnp.concatenate([jnp.einsum("pab,bpn->apn", projectors, half, precision=_EXACT) for half in jnp.split(w, 2)])


def _at_share(w: Float[Array, "D p n"], projectors: Float[Array, "p M M"], t: Float[Array, " n"]) -> Float[Array, "D p n"]:
    """Both parts of each node scaled so that the squared norm is t in the irrep and 1 - t outside."""
    inside = _on_both(projectors, w)
    outside = w - inside
    return jnp.sqrt(t) * inside / jnp.linalg.norm(inside, axis=0) + jnp.sqrt(1 - t) * outside / jnp.linalg.norm(outside, axis=0)


def trial(s: Paths, key: PRNGKeyArray) -> jd.Observables:
    """Highest energies at each share by ascents, lowest ones along arcs, and how energies change when weight moves."""
    rows = [_group(s, decompose(parse(name)), jax.random.fold_in(key, i)) for i, name in enumerate(s.groups)]
    most = max(len(row["ceiling"][0]) for row in rows)

    def padded(x: Float[Array, "*n"], axes: str) -> Float[Array, "*m"]:
        wide = [(0, most - n) if axis in ("irrep", "other") else (0, 0) for axis, n in zip(axes.split(), x.shape, strict=True)]
        return jnp.pad(jnp.asarray(x, jnp.float64), wide)

    axes = {"ceiling": "irrep share", "barrier": "irrep other", "within": "irrep", "moved": "irrep other"}

    def side(which: int) -> dict[str, jd.Named]:
        return {n: jd.named(jnp.stack([padded(row[n][which], a) for row in rows]), f"group {a}") for n, a in axes.items()}

    return jd.observables(
        predicted=side(0),
        measured=side(1),
        recorded={
            "height": jd.named(jnp.stack([padded(row["within"][0], "irrep") for row in rows]), "group irrep"),
            "size": jd.named(jnp.stack([padded(row["size"][0], "irrep other") for row in rows]), "group irrep other"),
        },
        coords={"group": s.groups, "share": SHARES},
    )


def _group(s: Paths, irreps: Irreps, key: PRNGKeyArray) -> dict[str, tuple[Array, ...]]:
    """Prediction and measurement of everything for one group."""
    peaks, projectors, count = energy.peaks(irreps), jnp.asarray(parts(irreps)), len(irreps.merged) - 1
    heights = np.array([peak.energy for peak in peaks])
    k_start, k_maxima, k_node = jax.random.split(key, 3)
    # nodes of all kinds, whose energies are one computation
    paths = [_turning(k, irreps, peak) for k, peak in zip(jax.random.split(k_maxima, count), peaks, strict=True)]
    arcs = _arcs(jnp.stack([path[:, 0] for path in paths], 1), heights)
    moved, predicted = _moving(jax.random.normal(k_node, (2 * irreps.group.order,), jnp.float64), irreps, projectors)
    kinds = [jnp.stack(paths, 1), arcs, moved, _climbed(s, k_start, irreps, projectors)]
    energies = energy.energy(jnp.concatenate([x.reshape(len(x), -1) for x in kinds], 1), irreps.group, s.activation)
    ends = np.cumsum([x[0].size for x in kinds])[:-1]
    inside, straight, around, over = (e.reshape(x.shape[1:]) for e, x in zip(jnp.split(energies, ends), kinds, strict=True))
    # the best path is the arc, or the arcs by way of an irrep of the largest energy
    straight, through = jnp.min(straight, 0), int(np.argmax(heights))
    best = jnp.maximum(straight, jnp.minimum(straight[:, through, None], straight[None, through]))
    return {
        "ceiling": (jnp.asarray(ceilings(heights, np.array(SHARES))), jnp.max(over.reshape(count, len(SHARES), -1), -1)),
        "barrier": (jnp.asarray(barriers(heights)), best),
        "within": (jnp.asarray(heights), jnp.min(inside, 1)),
        "moved": (predicted, (around[0] + around[2] - 2 * around[1]) * (1 - jnp.eye(count))),
        "size": (around[1],),
    }


def _climbed(s: Paths, key: PRNGKeyArray, irreps: Irreps, projectors: Float[Array, "p M M"]) -> Float[Array, "D p n"]:
    """Ends of ascents at each fixed share in each irrep; n counts shares and starts."""
    shares = jnp.repeat(jnp.asarray(SHARES, jnp.float64), s.starts)
    start = jnp.tile(jax.random.normal(key, (2 * irreps.group.order, 1, s.starts), jnp.float64), (1, len(projectors), len(SHARES)))

    def up(w: Float[Array, "D p n"], _: None) -> tuple[Float[Array, "D p n"], None]:
        g = energy.gradient(w.reshape(len(w), -1), irreps.group, s.activation).reshape(w.shape)
        return _at_share(w + g / jnp.linalg.norm(g, axis=0), projectors, shares), None

    return jax.lax.scan(up, _at_share(start, projectors, shares), length=s.steps)[0]


def _turning(key: PRNGKeyArray, irreps: Irreps, peak: energy.Peak) -> Float[Array, "D T"]:
    """A path of maxima of one irrep, of which the directions turn; in a real irrep of degree 1 it stays where it is."""
    a, b = jax.random.normal(key, (2, 3, 2, peak.degree), jnp.float64)
    angle = jnp.linspace(0, 0.0 if peak.dimension == 0 else np.pi / 2, ANGLES)
    return energy.maximum(a[..., None] * jnp.cos(angle) + b[..., None] * jnp.sin(angle), irreps, peak.irreps[0])


def _arcs(top: Float[Array, "D p"], heights: Float[np.ndarray, " p"]) -> Float[Array, "D T p p"]:
    """Arcs between maxima of two irreps, at the angles of a grid and at that of the lowest point."""
    lowest = np.arctan(np.sqrt(heights[:, None] / heights))  # tan^2 = e_p / e_q
    grid = np.broadcast_to(np.linspace(0, np.pi / 2, ANGLES)[:, None, None], (ANGLES, *lowest.shape))
    angle = jnp.asarray(np.concatenate([grid, lowest[None]]))
    return jnp.cos(angle) * top[:, None, :, None] + jnp.sin(angle) * top[:, None, None]


def _moving(
    w: Float[Array, " D"], irreps: Irreps, projectors: Float[Array, "p M M"]
) -> tuple[Float[Array, "D 3 p p"], Float[Array, "p p"]]:
    r"""A node of which squared norm -h, 0 and h is moved from irrep q to p, and the second difference of E in h.

    Each part is scaled as a whole, so that :math:`E_p` goes with the square of its squared norm :math:`m_p`: the difference is
    :math:`2 h^2 (E_p / m_p^2 + E_q / m_q^2)`.
    """
    each = _on_both(projectors, jnp.broadcast_to(w[:, None, None] / jnp.linalg.norm(w), (len(w), len(projectors), 1)))[..., 0]
    mass = jnp.sum(jnp.square(each), 0)
    one = jnp.eye(len(mass))
    step = MOVED * jnp.minimum(mass[:, None], mass)
    shift = jnp.array([-1.0, 0.0, 1.0])[:, None, None, None] * (one[:, None] - one) * step[..., None]
    moved = jnp.einsum("dk,spqk->dspq", each, jnp.sqrt(1 + shift / mass), precision=_EXACT)
    shares = energy.terms(w[:, None] / jnp.linalg.norm(w), irreps)[0]
    rate = jnp.stack([jnp.sum(shares[np.array(numbers)]) for numbers in irreps.merged[1:]]) / jnp.square(mass)
    return moved, 2 * step**2 * (rate[:, None] + rate) * (1 - one)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The highest energies at each share, the lowest along paths between irreps, and inside one irrep."""
    highest = (ds.measured_ceiling.max("seed") / ds.predicted_ceiling.max("seed")).where(ds.height.max("seed") > 0)
    return [
        jd.within("highest energy at a share over the predicted one", highest, 1 - 1e-3, 1 + 1e-9),
        jd.at_most("lowest energy of the best path between irreps, relative error", jd.relative_error(ds, "barrier"), 1e-9),
        jd.at_most("lowest energy of a path inside an irrep, relative error", jd.relative_error(ds, "within"), 1e-9),
    ]


def judge_mixture(ds: xr.Dataset) -> list[jd.Check]:
    """The second difference, a sum of squares over squares."""
    return [
        jd.at_most("change when weight moves between irreps, relative error", jd.relative_error(ds, "moved", "irrep other"), 1e-10)
    ]


def straight_line(ds: xr.Dataset) -> xr.Dataset:
    """A rival: energies mix as shares do, so that no path need fall below the lower end."""
    others = ds.predicted_ceiling.sel(share=SHARES[0]) - SHARES[0] ** 2 * ds.height
    others = others / (1 - SHARES[0]) ** 2
    lower = np.minimum(ds.height, ds.height.rename(irrep="other"))
    return ds.assign(
        predicted_ceiling=ds.share * ds.height + (1 - ds.share) * others + 0 * ds.predicted_ceiling,
        predicted_barrier=lower + 0 * ds.predicted_barrier,
    )


def isolated(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the maxima of one irrep are apart, too, so that a path between them falls to a half."""
    return ds.assign(predicted_within=ds.predicted_within / 2)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Highest energies over the share in an irrep; lowest ones of the best paths between irreps."""
    left, right = fig.subplots(1, 2)
    for group, color in zip(ds.group.values, plotting.CYCLE, strict=False):
        one = ds.sel(group=group)
        predicted, measured = (one[f"{side}_ceiling"].max("seed").isel(irrep=0) for side in ("predicted", "measured"))
        left.plot(ds.share, predicted, color=color)
        left.plot(ds.share, measured, "o", color=color, label=str(group))
        plotting.scatter(right, one.predicted_barrier, one.measured_barrier, str(group), color, log=False)
    left.set(xlabel="share of the squared norm in one irrep", ylabel="highest energy", ylim=(0, None))
    right.set(xlabel="lowest energy of the best path, predicted", ylabel="along arcs")


def plot_mixture(ds: xr.Dataset, fig: Figure) -> None:
    """Second differences against the formula."""
    ax = fig.subplots()
    for group, color in zip(ds.group.values, plotting.CYCLE, strict=False):
        one = ds.sel(group=group)
        plotting.scatter(ax, one.predicted_moved, one.measured_moved, str(group), color)
    ax.set(xlabel="second difference of E, predicted", ylabel="of random nodes")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Paths),
    paper=jd.grid(Paths, groups=("7", "8", "15", "S3", "D4", "D5", "Q8", "A4", "S4", "F7:3"), starts=24),
    seeds=8,
    paper_seeds=16,
    source="arXiv:2509.21519, theorem 2 and corollary 2",
    bounds="derived: float64 rounding, and the convergence of ascents at a fixed share to .1%",
    tested="Groups that are commutative and not; {starts} ascents for {steps} steps at each of "
    f"{len(SHARES)} fixed shares in each irrep, arcs and turns between random maxima at {ANGLES} points; {{seeds}} seeds.",
)
RELU = {
    "relu": jd.Control({"activation": "relu", "groups": ("S3",)}, why="another activation breaks it on one group as on all of them")
}

CLAIMS = (
    STUDY.claim(
        id="li2.apart",
        talks=("grokking:li2-theorem-2-apart",),
        title="Between maxima in different irreps every path falls, to a known depth",
        statement=r"Nodes of norm 1 with $\sigma = x^2$ on all pairs: with a share t of the squared norm in irrep k the energy is "
        r"at most $e_k t^2 + e'_k (1 - t)^2$, where $e_k$ is the energy of the maxima in k (and its conjugate) and $e'_k$ the "
        r"largest one in other irreps. So every path from a maximum in p to one in q falls to $\min_{k \in \{p, q\}} e_k e'_k / "
        "(e_k + e'_k)$ at least, half of the maximum between two frequencies of odd M, and arcs between maxima fall no further, if "
        "need be by way of one of the largest energy. Inside one irrep that is not real of degree 1 maxima are not apart: turning "
        "their directions joins them at one energy.",
        evidence="algebra",
        judge=judge,
        decides={"every path": ("highest energy at a share over the predicted one", "energies mix as shares do")},
        controls=RELU,
        rivals={"energies mix as shares do": straight_line, "maxima of one irrep are apart, too": isolated},
        plot=plot,
        caption="A colour per group. Left: highest energy at a fixed share of the squared norm in the first irrep: dots, largest "
        "end of all ascents; lines, the formula. Right: lowest energy of the best path between maxima in two irreps, along arcs, "
        "against the formula; the line is equality.",
    ),
    STUDY.claim(
        id="li2.unmixed",
        talks=("grokking:li2-theorem-2-all",),
        title="No maximum of a node's energy mixes irreps",
        statement=r"Nodes with $\sigma = x^2$ on all pairs: moving squared norm h from one irrep to another by scaling both parts "
        r"changes the energy by a quadratic in h, of curvature $2 (E_p / m_p^2 + E_q / m_q^2)$ with the energies $E_k$ and squared "
        r"norms $m_k$ of the parts. It is positive where either has energy, so that one direction leads up: a local maximum lies "
        "in a single irrep, with its conjugate.",
        evidence="algebra",
        judge=judge_mixture,
        controls=RELU,
        rivals={
            "energies mix as shares do": jd.swap(predicted_moved=0.0),
            "the parts' energies count, not their squared norms": jd.swap(predicted_moved=lambda ds: ds["size"]),
        },
        plot=plot_mixture,
        caption="Second difference of the energy of random nodes when squared norm moves between two irreps, there and back, "
        "against the formula; a colour per group. The line is equality.",
    ),
)
