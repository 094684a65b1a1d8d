r"""Top-down modulation (theorem 7): irreps that the hidden layer has learned are absent from the energy of further nodes.

The hidden layer holds generic maxima, in pairs [u; v], [u; -v], of given irreps; the top layer is the least squares solution.
Letters as in ``dynamics/energy.py``; S is the set of irreps learned.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting, sampling
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ascent, energy

SOURCE = "arXiv:2509.21519, theorem 7"
CUT = 1e-9  # singular values of features below this share of the largest are rounding


@jd.setting
class Learned:
    """A hidden layer that holds some irreps of these groups; ``learned`` = 0 empties it.

    ``irreps`` has for each group the numbers of those held, joined by "+", among the irreps but the trivial one, conjugate
    pairs counted once: ``irreps=("0+2", "1")`` for two groups; None holds every second one.
    """

    learned: jd.Swept = jd.field(1.0, at_least=0)  # size of the hidden layer's features
    groups: tuple[str, ...] = ("7", "S3", "Q8", "A4")  # names of groups; a number M is the residues modulo M
    irreps: tuple[str, ...] | None = None  # held by the layer, for each group ("0+2"); None: every second
    starts: int = jd.field(16, at_least=1)  # random starts of ascents on each group
    steps: int = jd.field(300, at_least=100)  # steps of each ascent

    def __post_init__(self) -> None:
        """Refuse groups in which nothing is left to learn."""
        jd.require(self, len(self.groups) >= 1, "there is at least one group", "groups")
        counts = [len(decompose(parse(name)).merged) - 1 for name in self.groups]
        jd.require(self, min(counts) >= 2, "each group has at least two irreps but the trivial one", "groups")
        if self.irreps is not None:
            jd.require(self, len(self.irreps) == len(counts), "there is one entry for each group", "irreps", "groups")
            for place, count in enumerate(counts):
                allowed = f"{self.groups[place]} has {count} irreps, 0 to {count - 1}; some are held and some left to learn"
                jd.require(self, _some(self.irreps[place], count), allowed, "irreps")

    def learned_irreps(self, place: int) -> list[int]:
        """The numbers of the irreps that the hidden layer holds of the group in this place."""
        if self.irreps is None:
            return list(range(0, len(decompose(parse(self.groups[place])).merged) - 1, 2))
        return sorted(map(int, self.irreps[place].split("+")))


def _some(numbers: str, count: int) -> bool:
    """Whether these are numbers below ``count``, without repetition, and not all of them."""
    parts = numbers.split("+")
    return all(p.isdigit() and int(p) < count for p in parts) and len({*map(int, parts)}) == len(parts) < count


def trial(s: Learned, key: PRNGKeyArray) -> jd.Observables:
    """The residual of the least squares solution, the energy that it leaves, and the ends of ascents on that energy."""
    # groups, starts, and directions of the hidden layer's maxima
    k_hidden, k_starts = jax.random.split(key)
    decomposed = [decompose(parse(name)) for name in s.groups]
    m = max(i.group.order for i in decomposed)
    normal = sampling.normal(k_starts, (2, 2 * m, s.starts))
    d = max(energy.peaks(irreps)[k].degree for place, irreps in enumerate(decomposed) for k in s.learned_irreps(place))
    directions = sampling.normal(k_hidden, (3, 2, d, 3 * d**4 + d**3))
    rows = [_explored(s, place, irreps, directions, normal[:, : 2 * irreps.group.order]) for place, irreps in enumerate(decomposed)]

    # names of the axes; zeros fill the smaller groups
    def square(x: Float[Array, "*form product class"]) -> Float[Array, "*form m m"]:
        return jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, m - x.shape[-1])] * 2)

    axes = {"energy": "group start", "reached": "group start", "inside": "group start", "whole": "group start", "spread": "group"}

    def named(i: int) -> dict[str, jd.Named]:
        return {n: jd.named(jnp.stack([row[i][n] for row in rows]), axes[n]) for n in rows[0][i] if n != "residual"}

    predicted = jnp.stack([square(row[0]["residual"]) for row in rows], 1)
    measured = jnp.stack([square(row[1]["residual"]) for row in rows])
    return jd.observables(
        predicted={"residual": jd.named(predicted, "form group product class"), **named(0)},
        measured={"residual": jd.named(measured, "group product class"), **named(1)},
        recorded=named(2),
        coords={"form": ("derived", "printed"), "group": s.groups},
    )


def _explored(
    s: Learned, place: int, irreps: Irreps, directions: Float[Array, "3 2 d n"], ways: Float[Array, "2 D K"]
) -> tuple[dict[str, Array], ...]:
    """Predictions, measurements and records of one group."""
    # the residual that the hidden layer leaves
    group, peaks = irreps.group, energy.peaks(irreps)
    held = s.learned_irreps(place)
    rest = [k for number, peak in enumerate(peaks) if number not in held for k in peak.irreps]
    samples = model.pairs(group.order)
    f = s.learned * model.centred(model.features(_hidden(directions, irreps, [peaks[number] for number in held]), samples))
    y = model.centred(model.targets(group, samples))
    error = y - f @ linalg.lstsq(f, y, rcond=CUT)
    by_class = error.reshape(group.order, group.order, -1)[np.arange(group.order), group.table[group.inverse].T]
    residual = jnp.mean(by_class, 1)
    # ascents on the energy of that residual, and the irreps of their ends
    w = ascent.climb(ways, group, steps=s.steps, residual=residual)
    start = ways[0] / jnp.linalg.norm(ways[0], axis=0)
    every = energy.terms(jnp.concatenate([start, w], 1), irreps)
    terms = jnp.sum(every[:, rest], 1)
    mass = energy.masses(jnp.concatenate(energy.split(w, group), 1), irreps)
    mass = mass[: s.starts] + mass[s.starts :]
    end = jnp.argmax(jnp.stack([jnp.sum(mass[:, list(p.irreps)], 1) for p in peaks], 1), 1)
    levels = jnp.asarray([p.energy for p in peaks], jnp.float64)[end]
    # the theorem's residual, derived and printed
    projectors = [irreps.projector(k) for k in rest]
    rank_one = [np.outer(c, c.conj()) * irreps.degrees[k] / group.order for k in rest for c in [irreps.characters[k]]]
    forms = jnp.asarray(np.stack([sum(projectors).real, sum(rank_one).real]))
    one = jnp.ones(s.starts, jnp.float64)
    return (
        {"residual": forms, "energy": terms[: s.starts], "reached": levels, "inside": one},
        {
            "residual": residual,
            "energy": jnp.sum(jnp.square(error.T @ model.features(start, samples)), 0) / 2,
            "reached": terms[s.starts :],
            "inside": jnp.sum(mass[:, rest], 1),
        },
        {"spread": jnp.max(jnp.abs(by_class - residual[:, None])), "whole": jnp.sum(every[: s.starts], 1)},
    )


def _hidden(directions: Float[Array, "3 2 d n"], irreps: Irreps, peaks: list[energy.Peak]) -> Float[Array, "D K"]:
    """Generic maxima of these irreps and their mirror images, enough to span the irreps."""
    halves = []
    for peak in peaks:
        d = peak.degree
        count = {"real": d**3 * (d + 1) // 2, "complex": 3 * d**4 + d**3, "quaternionic": d**4}[peak.kind]
        halves.append(energy.maximum(directions[:, :, :d, :count], irreps, peak.irreps[0]))
    w = jnp.concatenate(halves, 1)
    sign = jnp.where(jnp.arange(2 * irreps.group.order) < irreps.group.order, 1.0, -1.0)
    return jnp.concatenate([w, sign[:, None] * w], 1)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The residual, the energy of random nodes, and the irreps and energies of the ends of ascents."""
    error = jd.relative_error(ds, "residual", "product class")
    return [
        jd.at_most("residual, relative error by classes and spread within", error + ds.spread, 1e-9),
        jd.at_most("energy of random nodes, relative error", jd.relative_error(ds, "energy"), 1e-9),
        jd.at_most("share of an ascent's end in irreps held", abs(ds.measured_inside - ds.predicted_inside), 1e-6),
        jd.at_most("energy at the end, relative error", jd.relative_error(ds, "reached"), 1e-6),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Residual against the projector, and the share of each end that lies in irreps not held."""
    left, right = fig.subplots(1, 2)
    for group, color in zip(ds.group.values, plotting.CYCLE, strict=False):
        m = parse(str(group)).order
        part = plotting.first_run(ds).sel(group=group).isel({"product": slice(m), "class": slice(m)})
        plotting.scatter(left, part.predicted_residual, part.measured_residual, str(group), color, log=False)
    left.set(xlabel=r"$\sum_{k \notin S} \Pi_k[h, h']$", ylabel="residual of least squares")
    values = ds.measured_inside.transpose("group", ...).values.reshape(ds.sizes["group"], -1)
    x = np.arange(len(values))[:, None] + np.linspace(-0.3, 0.3, values.shape[1])
    right.plot(x.ravel(), values.ravel(), ".", color=plotting.COLORS["measured"], alpha=0.6, label="end of an ascent")
    right.set_xticks(range(len(values)), [str(g) for g in ds.group.values])
    right.set(xlabel="group", ylabel="share outside of S", ylim=(-0.05, 1.05))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Learned),
    paper=jd.grid(Learned, groups=("7", "8", "15", "S3", "D4", "D5", "Q8", "A4", "Q12", "S4"), starts=32),
    seeds=8,
    source=SOURCE,
    form="derived",
    evidence="reduced",
    bounds="derived: float64 rounding of least squares, and the convergence of the ascents",
    tested="Several groups, commutative and not; the layer holds every second irrep, the top layer is that of least squares; "
    "{starts} ascents on each group, of {steps} steps; {seeds} seeds.",
)

RESIDUAL = STUDY.claim(
    id="li2.thm7",
    talks=("grokking:li2-theorem-7", "grokking:li2-theorem-7-maxima"),
    title="Irreps that are learned vanish from the energy of further nodes",
    statement=r"A construction for all pairs and $\sigma = x^2$: a hidden layer made of enough generic maxima in a set S of "
    "irreps, and of as many mirror images, the weights of one operand negated ($d^3(d + 1)/2$ for a real irrep of degree d, "
    r"$3d^4 + d^3$ for a complex and $d^4$ for a quaternionic one), leaves the least squares residual $\sum_{k \notin S} "
    r"\Pi_k[h, h']$, the projectors on the other irreps k but the trivial one, for product h and class h'. Further nodes then "
    "have the energy of the irreps outside of S alone, and in the reduced dynamics all their ascents end outside of S, at the "
    "maxima there.",
    judge=judge,
    decides={"all their ascents": ("share of an ascent's end in irreps held", "nothing learned")},
    controls={"nothing learned": {"learned": 0.0}},
    rivals={"no modulation, the energy of all irreps": jd.swap(predicted_energy="whole")},
    plot=plot,
    caption="Left: entries of the residual of least squares against the projector on the irreps not held, for one run, a "
    "colour per group; the line is equality. Right: for each group, the share of an ascent's end that lies in irreps not held, "
    "a dot per start and run.",
)

CLAIMS = (
    RESIDUAL,
    RESIDUAL.as_printed(
        id="li2.thm7_as_printed",
        talks=("grokking:li2-theorem-7",),
        title="Printed: the residual has rank one in each irrep",
        statement=r"As printed: for all pairs and $\sigma = x^2$, a hidden layer that holds the irreps S leaves the residual "
        r"$\Phi\Phi^*$ with the columns $\sqrt{d_k / M}\, \chi_k$, $k \notin S$ (degree $d_k$, character $\chi_k$, M elements), "
        r"of rank one in each irrep. (Print has $k \in S$, but concludes that the missing irreps, $k \notin S$, remain.)",
        printed=r"arXiv:2509.21519, theorem 7: $\Phi_S = [\sqrt{d_k / M}\, \chi_k]_{k \in S}$",
        form="printed",
    ),
)
