r"""The local maxima of a node's energy: their values, their Fourier blocks, the dimension of the set they form (theorem 2).

Many nodes climb their energy from random starts on each group; predictions are those for the irrep in which a node ends. Members
are the starts' parts in the group's largest irrep, with v = u. Letters as in ``dynamics/energy.py``.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, sampling
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2.dynamics import ascent, energy
from jaxdyn.theories.li2.model import Activation


@jd.setting
class Maxima:
    """Gradient ascent from random starts; an ``activation`` other than x^2 is a breach."""

    groups: tuple[str, ...] = ("7", "8", "S3", "Q8", "A4", "SL2:3")  # names of groups; a number M is the residues modulo M
    activation: Activation = "square"  # sigma of the energy; the theory is that of x^2
    starts: int = jd.field(16, at_least=1)  # random starts of ascents on each group
    steps: int = jd.field(300, at_least=100)  # steps of each ascent; fewer do not converge

    def __post_init__(self) -> None:
        """Refuse names that are no groups, and trivial groups."""
        orders = [parse(name).order for name in self.groups]
        jd.require(self, min(orders, default=0) >= 2, "there is at least one group, of at least two elements", "groups")


def trial(s: Maxima, key: PRNGKeyArray) -> jd.Observables:
    """The ends of the ascents on each group, and the predictions for the irreps in which they lie."""
    # the ascents, group by group
    groups = [parse(name) for name in s.groups]
    normal = sampling.normal(key, (2, 2 * max(g.order for g in groups), s.starts))
    rows = [_explored(s, decompose(g), normal[:, : 2 * g.order]) for g in groups]
    predicted, measured, recorded = ({name: _stacked([row[i][name] for row in rows]) for name in rows[0][i]} for i in range(3))
    # names of the axes; predictions have the form first
    axes = {name: "form group start" for name in ("energy", "mixture", "zeros")} | dict.fromkeys(
        ("values", "member"), "group start rank"
    )
    axes |= {"hit": "group peak"}

    def named(arrays: dict[str, Array], forms: bool) -> dict[str, jd.Named]:
        dims = {name: axes.get(name, "group start") for name in arrays}
        return {
            n: jd.named(jnp.moveaxis(x, 0, 1), dims[n])
            if forms and "form" in dims[n]
            else jd.named(x, dims[n].removeprefix("form "))
            for n, x in arrays.items()
        }

    return jd.observables(
        predicted=named(predicted, True),
        measured=named(measured, False),
        recorded=named(recorded, False),
        coords={"form": ("derived", "printed"), "group": s.groups},
    )


def _stacked(arrays: list[Float[Array, "*rows _"]]) -> Float[Array, "arrays *rows longest"]:
    """Arrays of different lengths along their last axis, stacked; zeros fill the shorter ones."""
    longest = max(a.shape[-1] for a in arrays)
    return jnp.stack([jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, longest - a.shape[-1])]) for a in arrays])


def _explored(s: Maxima, irreps: Irreps, ways: Float[Array, "2 D K"]) -> tuple[dict[str, Array], ...]:
    """Predictions, measurements and records of one group."""
    # the ascents, and where their ends lie
    group, peaks = irreps.group, energy.peaks(irreps)
    w = ascent.climb(ways, group, s.activation, s.steps)
    end = ascent.top(w, group, s.activation)
    u, v = energy.split(w, group)
    share = energy.shares(u, irreps), energy.shares(v, irreps)
    start = energy.shares(energy.split(ways[0], group)[0], irreps)
    place = jnp.argmax(share[0] + share[1], 1)
    values, aligned, normal = energy.shapes(u, v, irreps, place)
    member, mixture, formula = energy.members(ways[0], irreps)

    def at(numbers: list) -> Float[Array, " K"]:
        return jnp.asarray(numbers, jnp.float64)[place]

    # what the theory predicts, derived and printed
    exact, printed = at([p.energy for p in peaks]), at([_printed(p, group.order) for p in peaks])
    zeros = at([p.dimension for p in peaks])
    one = jnp.ones(len(place), jnp.float64)
    pick = jnp.take_along_axis
    predictions = {
        "energy": jnp.stack([exact, printed]),
        "zeros": jnp.stack([zeros, jnp.maximum(zeros, 1.0)]),
        "mixture": jnp.stack([formula, jnp.full_like(formula, energy.largest(peaks).energy)]),
        "values": normal,
        "aligned": at([0.5**0.5 if p.kind == "quaternionic" else 1.0 for p in peaks]),
        "balance": one / 2,
        "purity": one,
    }
    # what the ends are
    measurements = {
        "energy": end.energy,
        "zeros": end.zeros.astype(jnp.float64),
        "mixture": mixture,
        "values": values,
        "aligned": aligned,
        "balance": jnp.sum(jnp.square(u), 0),
        "purity": jnp.min(jnp.stack([pick(x, place[:, None], 1)[:, 0] for x in share]), 0),
    }
    records = {
        "tied": at([_tied(p) for p in peaks]),
        "frequency": at([float(p.kind == "complex") for p in peaks]),
        "member": member,
        "largest": end.largest,
        "gradient": end.gradient,
        "start_purity": jnp.max(start, 1),
        "place": place.astype(jnp.float64),
        "hit": jnp.sum(place[:, None] == np.arange(len(peaks)), 0).astype(jnp.float64),
        "peaks": one * len(peaks),
    }
    return predictions, measurements, records


def _printed(peak: energy.Peak, order: int) -> float:
    """M/8d, M/16d for a pair; the paper does not distinguish quaternionic type from real."""
    return order / ((16 if peak.kind == "complex" else 8) * peak.degree)


def _tied(peak: energy.Peak) -> int:
    """The dimension of the maxima with v = u."""
    d = peak.degree
    return {"real": 2 * d - 2, "complex": 4 * d - 3, "quaternionic": 4 * d - 5}[peak.kind]


SOURCE = "arXiv:2509.21519, theorem 2"
LEAST = 100  # starts on each group


def _enough(ds: xr.Dataset) -> None:
    """Few starts miss maxima."""
    jd.need(ds, seed=-(-LEAST // ds.sizes["start"]))


def _error(ds: xr.Dataset, name: str) -> xr.DataArray:
    return abs(ds[f"measured_{name}"] - ds[f"predicted_{name}"])


def judge_values(ds: xr.Dataset) -> list[jd.Check]:
    """Energies and irreps of all ends, the Hessian there, and the number of ends in each irrep."""
    _enough(ds)
    hits = ds.hit.sum("seed", min_count=1)
    exists = ds.peak < ds.peaks.max("start").max("seed")
    return [
        jd.at_most("energy at the end, relative error", jd.relative_error(ds, "energy"), 1e-6),
        jd.at_most("share outside of one irrep", _error(ds, "purity"), 1e-6),
        jd.at_most("largest eigenvalue of the Hessian over the largest modulus", ds.largest, 1e-4),
        jd.gate("starts that end in each irrep", hits.where(exists), at_least=1.0),
    ]


def judge_set(ds: xr.Dataset) -> list[jd.Check]:
    """Singular values and alignment of the blocks, halves of the norm, and the energy of members that are no maxima."""
    _enough(ds)
    return [
        jd.at_most("singular values of the blocks, error", _error(ds, "values"), 1e-5),
        jd.at_most("alignment of the blocks of u and v, error", _error(ds, "aligned"), 1e-6),
        jd.at_most("squared norm of u, error", _error(ds, "balance"), 1e-6),
        jd.at_most("energy of a random u in the irrep with v = u, relative error", jd.relative_error(ds, "mixture"), 1e-10),
    ]


def judge_flatness(ds: xr.Dataset) -> list[jd.Check]:
    """The number of zero eigenvalues at each end."""
    _enough(ds)
    return [jd.at_most("number of zero eigenvalues, error", _error(ds, "zeros"), 0.0)]


def judge_cyclic(ds: xr.Dataset) -> list[jd.Check]:
    """Purity in frequency and energy on cyclic groups, of odd and of even order."""
    _enough(ds)
    names = _cyclic(ds)
    if {int(name) % 2 for name in names} != {0, 1}:
        raise jd.Inconclusive("cyclic groups of odd and of even order are needed")
    ds = ds.sel(group=names)
    return [
        jd.at_most("share outside of one frequency, of u and of v", _error(ds, "purity"), 1e-6),
        jd.at_most("energy at the end, relative error", jd.relative_error(ds, "energy"), 1e-6),
    ]


def _cyclic(ds: xr.Dataset) -> list[str]:
    return [str(name) for name in ds.group.values if str(name).isdigit()]


def any_direction(ds: xr.Dataset) -> xr.Dataset:
    """A rival: every u in the irrep is as good as the maximum."""
    return ds.assign(predicted_mixture=ds.predicted_mixture / (ds.member**4).sum("rank"))


def quaternionic_as_real(ds: xr.Dataset) -> xr.Dataset:
    """A rival: twice the energy for quaternionic type."""
    return ds.assign(predicted_energy=ds.predicted_energy * (1 + (ds.predicted_aligned < 1)))


def quaternionic_as_complex(ds: xr.Dataset) -> xr.Dataset:
    """A rival: two more zero eigenvalues for quaternionic type."""
    return ds.assign(predicted_zeros=ds.predicted_zeros + 2 * (ds.predicted_aligned < 1))


def sign_as_pair(ds: xr.Dataset) -> xr.Dataset:
    """A rival: half of the energy for the alternating sign."""
    return ds.assign(predicted_energy=ds.predicted_energy * (1 + ds.frequency) / 2)


def _places(ds: xr.Dataset) -> list[tuple[str, int, np.ndarray]]:
    """Group, irrep and the mask of its ends."""
    place = ds.place.transpose("group", ...).values.reshape(ds.sizes["group"], -1)
    return [
        (str(g), int(k), place[i] == k) for i, g in enumerate(ds.group.values) for k in np.unique(place[i][np.isfinite(place[i])])
    ]


def _flat(values: xr.DataArray) -> np.ndarray:
    """Rows of groups; of a prediction in several forms the derived one."""
    values = values.sel(form="derived") if "form" in values.dims else values
    return values.transpose("group", ...).values.reshape(values.sizes["group"], -1)


def plot_values(ds: xr.Dataset, fig: Figure) -> None:
    """Energies at the ends for each group, and the predicted levels."""
    ax = fig.subplots()
    measured, predicted = _flat(ds.measured_energy), _flat(ds.predicted_energy)
    for i in range(len(measured)):
        ax.plot(
            i + np.linspace(-0.3, 0.3, measured.shape[1]),
            measured[i],
            ".",
            color=plotting.COLORS["measured"],
            alpha=0.5,
            label="end of an ascent" if i == 0 else None,
        )
        for level in np.unique(np.round(predicted[i], 9)):
            ax.plot(
                [i - 0.4, i + 0.4],
                [level, level],
                color=plotting.COLORS["theory"],
                linewidth=1,
                zorder=1.5,
                label="predicted" if i == 0 and level == np.round(predicted[i], 9).min() else None,
            )
    ax.set_xticks(range(len(measured)), [str(g) for g in ds.group.values])
    ax.set(xlabel="group", ylabel="energy", ylim=(0, None))


def plot_cyclic(ds: xr.Dataset, fig: Figure) -> None:
    """Energies at the ends for each cyclic group, and the predicted levels."""
    plot_values(ds.sel(group=_cyclic(ds)), fig)


def plot_set(ds: xr.Dataset, fig: Figure) -> None:
    """Second singular values at ends and of random members; energies of members."""
    left, right = fig.subplots(1, 2)
    several = [i for i, g in enumerate(ds.group.values) if decompose(parse(str(g))).degrees.max() > 1]
    part = ds.isel(group=several)
    for name, color, label in (("measured_values", "measured", "end of an ascent"), ("member", "control", "random u in the irrep")):
        values = np.maximum(_flat(part[name].isel(rank=1)), 1e-17)
        x = np.arange(len(several))[:, None] + np.linspace(-0.3, 0.3, values.shape[1])
        left.plot(x.ravel(), values.ravel(), ".", color=plotting.COLORS[color], alpha=0.5, label=label)
    left.axhline(0.5**0.5, linestyle=":", color=plotting.COLORS["theory"], label="quaternionic")
    left.set_xticks(range(len(several)), [str(g) for g in part.group.values])
    left.set(yscale="log", xlabel="group", ylabel="second singular value", ylim=(1e-18, 30))
    plotting.scatter(right, part.predicted_mixture, part.measured_mixture, "random u in the irrep, v = u")
    right.set(xlabel=r"$(2M/d)\sum_i s_i^4$", ylabel="energy")


def plot_zeros(ds: xr.Dataset, fig: Figure) -> None:
    """Counts at the ends against the dimension of the set of maxima."""
    ax = fig.subplots()
    predicted, measured = _flat(ds.predicted_zeros), _flat(ds.measured_zeros)
    names = []
    for i, (group, k, mask) in enumerate(_places(ds)):
        row = [str(g) for g in ds.group.values].index(group)
        peak = energy.peaks(decompose(parse(group)))[k]
        names.append(f"{group}\n{peak.kind[0].upper()}{peak.degree}")
        ax.plot(
            i + np.linspace(-0.25, 0.25, mask.sum()),
            measured[row][mask],
            ".",
            color=plotting.COLORS["measured"],
            alpha=0.5,
            label="end of an ascent" if i == 0 else None,
        )
        ax.plot(
            [i - 0.4, i + 0.4],
            [predicted[row][mask][0]] * 2,
            color=plotting.COLORS["theory"],
            label="predicted" if i == 0 else None,
        )
    ax.set_xticks(range(len(names)), names, fontsize=7)
    ax.set(xlabel="group; type and degree of the irrep", ylabel="zero eigenvalues of the Hessian")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Maxima),
    paper=jd.grid(
        Maxima,
        groups=("7", "8", "15", "2x2x2", "S3", "D4", "D5", "Q8", "A4", "Q12", "D6", "S4", "SL2:3", "F7:3", "H3", "F5:4"),
        starts=32,
    ),
    seeds=8,
    paper_seeds=16,
    source=SOURCE,
    form="derived",
    evidence="reduced",
    bounds="derived: the convergence of the ascents; zero eigenvalues are counted",
    tested="{starts} random starts on each of several groups, commutative and not, with irreps of real, complex and "
    "quaternionic type, followed for {steps} steps of ascent, and for as many again from a hundredth off where they end; {seeds} "
    "seeds. Derivatives by automatic differentiation.",
)
RELU = jd.Control(
    {"activation": "relu", "groups": ("S3",)}, every_seed=True, why="another activation breaks it on one group as on all of them"
)
STARTS, QUARTER = jd.swap(measured_purity="start_purity"), jd.scaled(predicted_energy=0.25)
LEVELS = "Energy at the end of each ascent from a random start, by group: dots, ends of all runs; bars, the predicted levels."

VALUES = STUDY.claim(
    id="li2.maxima_values",
    talks=(
        "grokking:li2-theorem-2-values",
        "grokking:li2-theorem-2-all",
    ),
    title="Nodes climb to single irreps, to energies known in closed form",
    statement=r"In the reduced dynamics of one node with square activation $\sigma = x^2$ on all pairs, gradient ascents of its "
    "energy on the unit sphere from random starts end in local maxima inside one irrep of degree d, or a pair of conjugate ones, "
    "with the energy $M/2d$ for real type and $M/4d$ for a pair or quaternionic type, in a group of M elements.",
    judge=judge_values,
    controls={"relu": RELU, "starts instead of ends": STARTS},
    rivals={"quaternionic type taken for real": quaternionic_as_real, "a quarter of the energy, as printed": QUARTER},
    plot=plot_values,
    caption=LEVELS,
)
SET = STUDY.claim(
    id="li2.maxima_set",
    talks=("grokking:li2-theorem-2", "grokking:li2-theorem-2-all"),
    title="Maxima of a node's energy have Fourier blocks of the least rank",
    statement=r"In the reduced dynamics of one node with $\sigma = x^2$ on all pairs, gradient ascents on the unit sphere "
    r"from random starts end where the weights u for the first operand and v for the inverse of the second have the Fourier "
    r"blocks $\hat u_k = a r^*$ and $\hat v_k = b r^*$, with directions a and b, a common r and half of the squared norm each "
    r"(quaternionic type: two equal singular values). A random u in an irrep of degree d with v = u has the energy "
    r"$(2M/d) \sum_i s_i^4$ of the singular values $s_i$ of its blocks instead, in a group of M elements.",
    judge=judge_set,
    controls={"random u in the irrep": jd.swap(measured_values="member"), "relu": RELU},
    rivals={
        "each u in the irrep is a maximum": any_direction,
        "the whole norm in the weights for one operand": jd.scaled(predicted_values=2**0.5, predicted_balance=2.0),
        "blocks of u and v without a common direction": jd.swap(predicted_aligned=0.0),
        "half of that energy for a random u": jd.scaled(predicted_mixture=0.5),
    },
    plot=plot_set,
    caption="Left: second singular value of the blocks at the ends of ascents and of random functions in the irrep, by group, "
    "for groups with irreps of higher degree; dotted, the value for quaternionic type. Right: energy of random functions with "
    "v = u against the formula; the line is equality.",
)
FLATNESS = STUDY.claim(
    id="li2.flatness",
    title="How many flat directions each maximum has",
    statement=r"In the reduced dynamics of one node with square activation $\sigma = x^2$ on all pairs, the Hessian of the "
    "energy on the unit sphere has, at a maximum in an irrep of degree d, $3(d-1)$ zero eigenvalues for real type (none if d = "
    "1), $6d - 4$ for a complex pair and $6d - 6$ for quaternionic type.",
    judge=judge_flatness,
    controls={"the eigenvalues of another group": jd.rolled(measured_zeros="group")},
    rivals={
        "no flat direction": jd.swap(predicted_zeros=0.0),
        "v = u forced": jd.swap(predicted_zeros="tied"),
        "quaternionic type taken for complex": quaternionic_as_complex,
    },
    plot=plot_zeros,
    caption="Number of zero eigenvalues of the Hessian on the sphere at the end of each ascent, by irrep (type R, C or Q and "
    "degree): dots, ends of all runs; bars, the dimension of the set of maxima.",
)
CYCLIC = STUDY.claim(
    id="li2.cor2",
    talks=("grokking:li2-corollary-2", "grokking:li2-corollary-2-values"),
    title="For modular addition a node ends with a single frequency",
    statement=r"In the reduced dynamics of one node with square activation $\sigma = x^2$ on all pairs of residues modulo M, the "
    "weights for both operands end, from random starts on the unit sphere, with one and the same frequency and the "
    "energy $M/4$, or $M/2$ where that frequency is the alternating sign of even M.",
    source="arXiv:2509.21519, corollary 2",
    judge=judge_cyclic,
    tested="{starts} random starts on residues modulo 7 and 8 (at the paper's scale 15, too), followed for {steps} steps of "
    "ascent, and for as many again from a hundredth off where they end; {seeds} seeds. Derivatives by automatic differentiation.",
    quick=jd.grid(Maxima, groups=("7", "8")),
    paper=jd.grid(Maxima, groups=("7", "8", "15"), starts=32),
    controls={"starts instead of ends": STARTS},
    rivals={"energy of a pair for the alternating sign": sign_as_pair, "a quarter of the energy, as printed": QUARTER},
    plot=plot_cyclic,
    caption=LEVELS,
)

CLAIMS = (
    VALUES,
    VALUES.as_printed(
        id="li2.maxima_values_as_printed",
        talks=("grokking:li2-theorem-2-values", "grokking:li2-corollary-2-values"),
        title="Printed: the energies of the maxima",
        statement=r"As printed: in the reduced dynamics of one node with $\sigma = x^2$ on all pairs, the local maxima of its "
        "energy on the unit sphere are $M/8d$ in a real irrep of degree d of a group of M elements, and $M/16d$ in a complex "
        "pair.",
        printed=r"talk grokking, Theorem 2: $\mathcal{E}^* = M/8d_k$ in a real irrep, $\mathcal{E}^* = M/16d_k$ in a complex pair",
        form="printed",
    ),
    SET,
    SET.as_printed(
        id="li2.maxima_set_as_printed",
        talks=("grokking:li2-theorem-2",),
        title="Printed: every function in an irrep gives a maximum",
        statement=r"As printed: in the reduced dynamics of one node with $\sigma = x^2$ on all pairs, $[u; \pm Pu]$ is a local "
        "maximum of its energy for every u in an irrep (P inverts the group element), so that all of them have the energy of "
        "the maximum.",
        printed=r"talk grokking, Theorem 2: local maxima $\mathbf{w}^* = [\mathbf{u}; \pm P\mathbf{u}]$ with $\mathbf{u} \in "
        r"\mathcal{H}_k$",
        form="printed",
    ),
    FLATNESS,
    FLATNESS.as_printed(
        id="li2.flatness_as_printed",
        title="Printed: every maximum has a flat direction",
        statement=r"As printed: in the reduced dynamics of one node with $\sigma = x^2$ on all pairs of a group of more than "
        "two elements, every local maximum of its energy is flat in some direction.",
        printed=r"arXiv:2509.21519, corollary 1: for $M > 2$ the local maxima are flat in at least one direction",
        source="arXiv:2509.21519, corollary 1",
        form="printed",
    ),
    CYCLIC,
)
