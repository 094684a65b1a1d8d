"""Partial solutions at one pair of frequencies, and the least number of nodes that solve it.

Partial solutions at one pair of frequencies: the table of their potentials, and polynomials of a node.

Measured are sum potentials of real weights, through the Fourier transform. Letters as in ``dynamics/solutions.py``.

The least number of nodes that solve one pair of frequencies: four if another block cancels their mean, else six.

Blocks of every number of nodes are sought by least squares from random starts. Letters as in ``dynamics/solutions.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Complex, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo.blocks import ZERO, widened
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element

SOLUTIONS = ("syn", "syn,alpha,beta", "nu", "nu = i", "xi", "twin of xi")
PLACES = tuple(  # layers and signs of k of every potential's factors
    tuple(entry.split()) for entry in "abc +++|abc -++|abc +-+|abc ++-|aac +-+|bbc +-+|aac +++|bbc +++|aac --+|bbc --+".split("|")
)
EXPONENTS = np.array(  # of u's a and b in its potentials, since c = 1 / (a b)
    [[0, 0], [-2, 0], [0, -2], [2, 2], [-1, -1], [-1, -1], [1, -1], [-1, 1], [-3, -1], [-1, -3]]
)
ORDERS = (2, 3, 4, 5, 6)
STAR = [place for place, name in enumerate(solutions.ENTRIES) if name in ("~a~ac", "~b~bc")]


@jd.setting
class Node:
    """Random numbers in the partial solutions; ``modulus`` and ``rho`` break assumptions."""

    modulus: jd.Swept = jd.field(1.0, above=0)  # of nu, xi, alpha and beta
    rho: jd.Code = jd.code("whole", "a factor dropped")  # polynomial of u: whole, or without its factor of primitive roots
    group: str = "7"  # orders of the group's cyclic factors, as in 2x4
    frequency: int = 2  # k, one of a pair of conjugate frequencies

    def __post_init__(self) -> None:
        """Refuse names of no group, and frequencies with a real character."""
        solutions.require_pair(parse(self.group), self.frequency)


def tables(
    nu: Complex[Array, ""], xi: Complex[Array, ""], alpha: Complex[Array, ""], beta: Complex[Array, ""]
) -> tuple[list[Complex[Array, "3 n"]], list[Complex[Array, "10"]]]:
    """Every partial solution's columns, and the table's values of its potentials."""
    i = jnp.asarray(1j, jnp.complex128)
    columns = [
        solutions.syn(),
        solutions.syn_ab(alpha, beta),
        solutions.nu_nodes(nu),
        solutions.nu_nodes(i),
        solutions.xi_nodes(xi),
        solutions.xi_nodes(xi, True),
    ]
    predicted = [
        solutions.syn_table(),
        solutions.syn_ab_table(alpha, beta),
        solutions.nu_table(nu),
        solutions.nu_table(i),
        solutions.xi_table(xi),
        solutions.xi_table(xi, True),
    ]
    return columns, predicted


def measured_potentials(x: Element, group: Abelian, k: int) -> Complex[Array, "10"]:
    """The potentials at k and -k, in the order of ``partial.ENTRIES``, from the network's real weights."""
    z = semiring.transform(semiring.weights(x, group), group)
    at = {"+": z[:, k], "-": z[:, group.negative[k]]}
    layer = "abc".index
    each = ([at[sign][layer(name)] for name, sign in zip(names, signs, strict=True)] for names, signs in PLACES)
    return jnp.stack([jnp.sum(a * b * c) for a, b, c in each])


def _polynomials(
    u: Complex[Array, "3 1"], n: int, group: Abelian, k: int
) -> tuple[Element, Element, Float[Array, ""], Float[Array, ""]]:
    """The product of x - s over all roots of unity s of order n but 1, and over those that are no primitive ones; their rho(1)."""
    roots = range(1, n)
    every = semiring.annihilator([np.exp(2j * np.pi * s / n) for s in roots])
    fewer = semiring.annihilator([np.exp(2j * np.pi * s / n) for s in roots if np.gcd(s, n) > 1])
    x = solutions.embed(u, group, k)
    whole, dropped = (semiring.polynomial(x, c) for c in (every, fewer))
    return (
        widened(whole, max(ORDERS)),
        widened(dropped, max(ORDERS)),
        jnp.asarray(float(sum(every))),
        jnp.asarray(float(sum(fewer))),
    )


def polynomials(s: Node, key: PRNGKeyArray, group: Abelian) -> tuple[Float[Array, "n 10"], list[Element]]:
    """For every order n a node u of n-th roots of unity: the predicted potentials of rho(u), and rho(u)."""
    predicted, elements = [], []
    for n, k in zip(ORDERS, jax.random.split(key, len(ORDERS)), strict=True):
        turns = jax.random.randint(k, (2,), 0, n, dtype=jnp.int32)
        a, b = solutions.turn(2 * jnp.pi * turns.astype(jnp.float64) / n)
        whole, dropped, one, fewer = _polynomials(solutions.node(a, b, jnp.conj(a * b)), n, group, s.frequency)
        power = jnp.asarray(EXPONENTS, jnp.int32) @ turns % n
        predicted.append(jnp.where(power == 0, jnp.where(s.rho == "whole", one, fewer), 0.0))
        elements.append(jax.tree.map(lambda *e: jnp.where(s.rho == "whole", *e), whole, dropped))
    return jnp.stack(predicted), elements


def partial_trial(s: Node, key: PRNGKeyArray) -> jd.Observables:
    """Potentials of every partial solution and of polynomials of a random node."""
    k_numbers, k_roots = jax.random.split(key)
    group = parse(s.group)
    angles = jax.random.uniform(k_numbers, (4,), jnp.float64, -jnp.pi, jnp.pi)
    # the partial solutions, and the table of their potentials
    columns, rows = tables(*(s.modulus * solutions.turn(angles)))
    derived = jnp.stack(rows)
    printed = derived.at[SOLUTIONS.index("nu"), jnp.asarray(STAR)].set(0)
    # polynomials of random nodes; the potentials of all elements
    roots, elements = polynomials(s, k_roots, group)
    elements += [widened(solutions.embed(c, group, s.frequency), max(ORDERS)) for c in columns]
    stacked = jax.tree.map(lambda *e: jnp.stack(e), *elements)
    measured = _parts(jax.vmap(lambda x: measured_potentials(x, group, s.frequency))(stacked))
    return jd.observables(
        predicted={
            "table": jd.named(_parts(jnp.stack([derived, printed])), "form part solution entry"),
            "poly": jd.named(_parts(roots + 0j), "part n entry"),
        },
        measured={
            "table": jd.named(measured[:, len(ORDERS) :], "part solution entry"),
            "poly": jd.named(measured[:, : len(ORDERS)], "part n entry"),
        },
        coords={
            "form": ("derived", "printed"),
            "solution": SOLUTIONS,
            "entry": solutions.ENTRIES,
            "n": ORDERS,
            "part": ("re", "im"),
        },
    )


def _parts(x: Complex[Array, "*m row entry"]) -> Float[Array, "*m 2 row entry"]:
    """Real and imaginary parts on an axis before the last two."""
    return jnp.stack([x.real, x.imag], -3)


def judge_table(ds: xr.Dataset) -> list[jd.Check]:
    """All ten potentials of each partial solution."""
    return [jd.at_most("potentials against the table", jd.relative_error(ds, "table", "part entry"), 1e-12)]


def judge_poly(ds: xr.Dataset) -> list[jd.Check]:
    """All ten potentials of each polynomial."""
    return [jd.at_most("potentials against rho(1) or 0", jd.relative_error(ds, "poly", "part entry"), 1e-12)]


# All of R_* vanishes for any nu.
STAR_VANISHES = jd.swap(
    predicted_table=lambda ds: ds.predicted_table.where(~((ds.solution == "nu") & ds.entry.isin(["~a~ac", "~b~bc"])), 0.0)
)
# Each partial solution is a whole one.
WHOLE = jd.swap(predicted_table=lambda ds: ds.predicted_table.where(ds.entry == "abc", 0.0))
# All potentials but r_kkk vanish, whatever their values at u.
ALL_VANISH = jd.swap(predicted_poly=lambda ds: ds.predicted_poly.where(ds.entry == "abc", 0.0))


def plot_table(ds: xr.Dataset, fig: Figure) -> None:
    """Potentials of all partial solutions against the table; next to them those of z_nu at (-k, -k)."""
    left, right = fig.subplots(1, 2)
    predicted = ds.predicted_table
    predicted = predicted.sel(form="derived") if "form" in predicted.dims else predicted
    plotting.scatter(left, predicted, ds.measured_table, "six partial solutions, all runs", log=False)
    star = ds.measured_table.sel(solution="nu", entry="~a~ac")
    angle = np.angle(_complex(ds.measured_table.sel(solution="nu", entry="~abc") - xr.DataArray([1.0, 0.0], dims="part"))) / -2
    right.plot(np.ravel(angle) / np.pi, np.ravel(np.abs(_complex(star))), "o", color=plotting.COLORS["measured"], label="network")
    turn = np.linspace(-0.5, 0.5, 201)
    modulus = np.abs(1 - np.exp(-4j * np.pi * turn))
    right.plot(turn, modulus, color=plotting.COLORS["theory"], label=r"$|1 - \bar\nu^4|$")
    right.plot(turn, 0 * turn, "--", color=plotting.COLORS["control"], label=r"$z_\nu \in R_*$, as printed")
    left.set(xlabel="table: real and imaginary parts", ylabel="network")
    right.set(xlabel=r"arg $\nu$ / $\pi$, up to a sign", ylabel=r"$|r_{a,-k,-k,k}(z_\nu)|$", ylim=(-0.1, 3.2))


def _complex(values: xr.DataArray) -> np.ndarray:
    real, imaginary = values.transpose("part", ...).values
    return real + 1j * imaginary


def plot_poly(ds: xr.Dataset, fig: Figure) -> None:
    """Moduli of the potentials of 1 + u + ... + u^(n-1): those that are 1 at u, and the others."""
    ax = fig.subplots()
    modulus = np.abs(_complex(ds.measured_poly.transpose("part", "n", ...))).reshape(len(ORDERS), -1)
    predicted = ds.predicted_poly.sel(part="re").transpose("n", ...).values.reshape(len(ORDERS), -1)
    for row, n in enumerate(ORDERS):
        for one, color, name in ((True, "measured", "r(u) = 1"), (False, "third", "other roots of unity")):
            values = modulus[row][(predicted[row] != 0) == one]
            shift = n + (0.06 if one else -0.06)
            ax.plot(
                np.full(values.size, shift), values, "o", color=plotting.COLORS[color], label=name if row == 0 else None, alpha=0.5
            )
    ax.plot(ORDERS, ORDERS, "_", color=plotting.COLORS["theory"], markersize=22, label=r"$\rho(1) = n$")
    ax.set(xlabel="n", ylabel=r"modulus of potentials of $\rho(u)$", xticks=ORDERS)


PARTIAL = jd.Study(
    trial=partial_trial,
    source="arXiv:2410.01779, partial solutions; the general entries: derived",
    form="derived",
    quick=jd.grid(Node),
    paper=jd.grid(Node, group="23", frequency=5),
    seeds=16,
    paper_seeds=256,
    evidence="algebra",
    tested="Random numbers of modulus {modulus} and random roots of unity, in networks for the group {group} at frequency "
    "{frequency}; {seeds} seeds. Potentials come from the network's real weights.",
    bounds="derived: float64 rounding",
)
TABLE = PARTIAL.claim(
    id="cogo.partial",
    talks=("training:cogo-partial-solutions",),
    title="The table of potentials of the partial solutions",
    statement=r"At one pair of frequencies $\pm k$ of $\mathbb{Z}_d$, the ten sums over nodes (abc, with one factor conjugated, "
    "aac and bbc, with one a or b or with both conjugated) are those of the paper's table, with the entries that it leaves out "
    r"derived, for nodes whose columns (a, b, c) at $k$ are $(1, 1, 1)$ and, with $\omega = e^{2\pi i/3}$: $(\omega, \omega, "
    r"\omega)$ and its conjugate ($z_{syn}$), $(\alpha\omega, \bar\alpha\omega, \omega)$ and $(\beta\bar\omega, "
    r"\bar\beta\bar\omega, \bar\omega)$ ($z_{syn,\alpha\beta}$), $(\nu, -\nu, -\bar\nu^2)$ ($z_\nu$) or $(\xi, \mp i\bar\xi, \pm "
    r"i)$ ($z_\xi$ and its twin), for random $\alpha, \beta, \nu, \xi$ of modulus one. So $z_\nu$ has the sums 2 (abc), $1 + "
    r"\bar\nu^2$ twice, $1 + \nu^4$, $1 - \bar\nu^2$, 0, and $1 - \bar\nu^4$ for both conjugated.",
    judge=judge_table,
    controls={"numbers of modulus 1.1": {"modulus": 1.1}, "numbers of modulus 0.9": {"modulus": 0.9}},
    rivals={"all of R_* for any nu": STAR_VANISHES, "all potentials but r_kkk vanish": WHOLE},
    plot=plot_table,
    caption=r"Left: real and imaginary parts of the potentials of the weights against the table, all partial solutions and runs; "
    r"line: equality. Right: modulus of the potential of $z_\nu$ at $(-k,-k)$ against the angle of $\nu$, one point per run; line: "
    r"$|1 - \bar\nu^4|$; dashed: the printed zero.",
)

COUNTS = (2, 3, 4, 5, 6)
MEANS = ("its own", "taken by others")
LEAST = (6, 4)
LEFT = {("its own", 4): 1 / 6, ("taken by others", 3): 1 / 6, ("its own", 5): 0.0}  # what so many nodes leave of the loss


@jd.setting
class Search:
    """Least squares over blocks of every order from random starts; ``star`` is a breach."""

    spread: jd.Swept = jd.field(0.7, above=0)  # standard deviation of the real and imaginary parts at the start
    star: jd.Swept = 1.0  # 0 drops the potentials of R_*
    starts: int = jd.field(8, at_least=1)  # random starts of a search, of which the best counts
    steps: int = jd.field(200, at_least=1)  # steps of least squares from each start


def order_trial(s: Search, key: PRNGKeyArray) -> jd.Observables:
    """The least loss at every order over all starts, with the mean in the loss and without, and along the search of five nodes."""
    x = s.spread * jax.random.normal(key, (2, s.starts, 3, max(COUNTS)), jnp.float64)
    # every number of nodes, with the mean in the loss and without
    count, bias = (v.ravel() for v in jnp.meshgrid(jnp.asarray(COUNTS), jnp.asarray([1.0, 0.0], jnp.float64)))
    nodes = jnp.arange(max(COUNTS)) < count[:, None]

    def search(nodes: Bool[Array, " n"], bias: Float[Array, ""]) -> tuple[Array, Array]:
        ends = jax.vmap(lambda start: solutions.solve(start, nodes, bias, s.star, s.steps))(x[0] + 1j * x[1])
        best = jnp.argmin(ends.loss[:, -1])
        return ends.loss[best], ends.energy[best]

    # the best of all starts
    along = [v.reshape(len(MEANS), len(COUNTS), s.steps) for v in jax.vmap(search)(nodes, bias)]
    loss, energy = (v[..., -1] for v in along)
    five, size = (v[MEANS.index("its own"), COUNTS.index(5)] for v in along)
    # the least order that is solved
    solved = jnp.concatenate([loss < ZERO, jnp.ones((len(MEANS), 1), bool)], 1)
    least = jnp.asarray([*COUNTS, COUNTS[-1] + 1])[jnp.argmax(solved, 1)]
    return jd.observables(
        predicted={
            "order": jd.named(jnp.asarray(LEAST, jnp.float64), "mean"),
            "left": jd.named(jnp.asarray([*LEFT.values()], jnp.float64), "few"),
        },
        measured={
            "order": jd.named(least.astype(jnp.float64), "mean"),
            "left": jd.named(jnp.stack([loss[MEANS.index(mean), COUNTS.index(count)] for mean, count in LEFT]), "few"),
        },
        recorded={
            "loss": jd.named(loss, "mean nodes"),
            "energy": jd.named(energy, "mean nodes"),
            "five_loss": jd.named(five, "step"),
            "five_energy": jd.named(size, "step"),
        },
        coords={
            "mean": MEANS,
            "nodes": COUNTS,
            "few": [f"{count} nodes, mean {mean}" for mean, count in LEFT],
            "step": range(1, s.steps + 1),
        },
    )


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """The least order that is solved exactly, and what fewer nodes leave."""
    best = ds.measured_left.min(ds.status.dims)
    return [
        jd.at_most("least order minus 6 or 4", abs(ds.measured_order - ds.predicted_order), 0.0),
        jd.at_most("predicted share left by fewer nodes minus the share left", ds.predicted_left - ds.measured_left, 1e-9),
        jd.at_most("least share left by fewer nodes minus the predicted one", best - ds.predicted_left, 1e-3),
    ]


def plot_order(ds: xr.Dataset, fig: Figure) -> None:
    """Least loss and its norm against the number of nodes."""
    left, right = fig.subplots(1, 2)
    for name, color, shift in zip(MEANS, ("measured", "third"), (-0.06, 0.06), strict=True):
        for ax, values in ((left, np.maximum(ds.loss, 1e-33)), (right, ds.energy)):
            values = values.sel(mean=name).transpose("nodes", ...).values.reshape(len(COUNTS), -1)
            place = np.repeat(np.array(COUNTS) + shift, values.shape[1])
            ax.plot(place, values.ravel(), "o", color=plotting.COLORS[color], alpha=0.5, label=f"mean: {name}")
    for order, color in zip(LEAST, ("measured", "third"), strict=True):
        left.axvline(order, color=plotting.COLORS[color], linestyle=":", label=f"predicted: {order}")
    left.set(yscale="log", xlabel="nodes", ylabel="best share of the loss left", xticks=COUNTS)
    right.set(yscale="log", xlabel="nodes", ylabel=r"Fourier norm squared", xticks=COUNTS)


ORDER = jd.Study(
    trial=order_trial,
    source="numerical finding on arXiv:2410.01779, no theorem",
    quick=jd.grid(Search),
    paper=jd.grid(Search, starts=16, steps=400),
    seeds=4,
    paper_seeds=16,
    evidence="reduced",
    tested="Least squares on the loss of one pair of frequencies, in the spectra of up to six nodes: {steps} steps from "
    "{starts} random starts of standard deviation {spread}, of which the best counts; {seeds} seeds.",
    bounds=jd.tuned(on="0:8", confirmed_on="4000:4008"),
    judge=judge_order,
    plot=plot_order,
    caption=r"Left: the least loss over all starts, as a share of the loss without nodes, against the number of nodes; right: the "
    r"squared Fourier norm there. One point per run, for a block with a mean of its own and for one whose mean other blocks "
    r"cancel. Dotted: the predicted least orders, 6 and 4.",
)


CLAIMS = (
    TABLE,
    TABLE.as_printed(
        id="cogo.nu_star_as_printed",
        talks=("training:cogo-partial-solutions",),
        title="One partial solution has no potentials of equal signs",
        statement=r"At one pair of frequencies of $\mathbb{Z}_d$, $z_\nu$ is in $R_*$: all its potentials $r_{p,\pm k,\pm k,k}$ "
        r"are 0, for any $\nu$ of modulus one.",
        source="talks on arXiv:2410.01779",
        form="printed",
        printed=r"talk training, partial solution #2: $\mathbf{z}_v^{(k)} \in R_*$",
    ),
    PARTIAL.claim(
        id="cogo.poly",
        title="A polynomial of a node makes chosen potentials vanish",
        statement=r"For a node $u$ of $n$-th roots of unity, $n = 2, \dots, 6$, with potentials $r(u)$, the polynomial $\rho(u) = "
        r"1 + u + \dots + u^{n-1}$ has the potentials $\rho(r(u))$: those with $r(u) = 1$ become $\rho(1) = n$ and all others 0.",
        source="arXiv:2410.01779, polynomial construction",
        judge=judge_poly,
        decides={"all others": ("potentials against rho(1) or 0", "a factor of rho dropped")},
        controls={"a factor of rho dropped": {"rho": "a factor dropped"}},
        rivals={
            "every potential but r_kkk vanishes": ALL_VANISH,
            "potentials that are 1 stay 1": jd.swap(predicted_poly=lambda ds: ds.predicted_poly / ds.n),
        },
        plot=plot_poly,
        caption=r"Modulus of the potentials of $1 + u + \dots + u^{n-1}$ against $n$, one point for each potential and run: "
        r"potentials that are 1 at $u$, and those that are other roots of unity. Bars: $\rho(1) = n$.",
    ),
    ORDER.claim(
        id="cogo.minimal_order",
        title="Four nodes solve a frequency if others cancel its mean, else six",
        statement=r"In the reduced loss of one pair of frequencies $\pm k$ with $4k \ne 0$, the best of several searches by least "
        "squares from random starts is a solution with four nodes, and with no fewer, if others cancel the mean that they leave; "
        "the best with three leaves a sixth of the loss. With a mean of its own it is a solution with six nodes only: the best "
        "with four leaves a sixth, and the best with five less than a thousandth, but not zero. No search is a proof for all "
        "weights.",
        holds={"starts": (4, 16), "steps": (100, 400)},
        decides={"only": ("least order minus 6 or 4", "the mean takes no nodes: four")},
        controls={"potentials of R_* dropped": jd.Control({"star": 0.0}, breaks="reduced loss")},
        rivals={
            "the mean takes no nodes: four": jd.swap(predicted_order=4.0),
            "six in any case": jd.swap(predicted_order=6.0),
            "five leave as much as four": jd.swap(predicted_left=1 / 6),
            "few nodes leave nothing in the end": jd.swap(predicted_left=0.0),
        },
    ),
)
