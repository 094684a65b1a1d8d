r"""Partial solutions at one pair of frequencies: the table of their potentials, and polynomials of a node.

Measured are sum potentials of real weights, through the Fourier transform. Letters as in ``dynamics/partial.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Complex, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo.blocks import widened
from jaxdyn.theories.cogo.dynamics import partial, semiring, spectrum
from jaxdyn.theories.cogo.dynamics.semiring import Element

SOLUTIONS = ("syn", "syn,alpha,beta", "nu", "nu = i", "xi", "twin of xi")
PLACES = tuple(  # layers and signs of k of every potential's factors
    tuple(entry.split()) for entry in "abc +++|abc -++|abc +-+|abc ++-|aac +-+|bbc +-+|aac +++|bbc +++|aac --+|bbc --+".split("|")
)
EXPONENTS = np.array(  # of u's a and b in its potentials, since c = 1 / (a b)
    [[0, 0], [-2, 0], [0, -2], [2, 2], [-1, -1], [-1, -1], [1, -1], [-1, 1], [-3, -1], [-1, -3]]
)
ORDERS = (2, 3, 4, 5, 6)
STAR = [place for place, name in enumerate(partial.ENTRIES) if name in ("~a~ac", "~b~bc")]


@jd.setting
class Node:
    """Random numbers in the partial solutions; ``modulus`` and ``rho`` break assumptions."""

    modulus: jd.Swept = jd.field(1.0, above=0)  # of nu, xi, alpha and beta
    rho: jd.Code = jd.code("whole", "a factor dropped")  # polynomial of u: whole, or without its factor of primitive roots
    group: str = "7"  # orders of the group's cyclic factors, as in 2x4
    frequency: int = 2  # k, one of a pair of conjugate frequencies

    def __post_init__(self) -> None:
        """Refuse names of no group, and frequencies with a real character."""
        partial.require_pair(parse(self.group), self.frequency)


def tables(
    nu: Complex[Array, ""], xi: Complex[Array, ""], alpha: Complex[Array, ""], beta: Complex[Array, ""]
) -> tuple[list[Complex[Array, "3 n"]], list[Complex[Array, "10"]]]:
    """Every partial solution's columns, and the table's values of its potentials."""
    i = jnp.asarray(1j, jnp.complex128)
    columns = [partial.syn(), partial.syn_ab(alpha, beta), partial.nu(nu), partial.nu(i), partial.xi(xi), partial.xi(xi, True)]
    predicted = [
        partial.syn_table(),
        partial.syn_ab_table(alpha, beta),
        partial.nu_table(nu),
        partial.nu_table(i),
        partial.xi_table(xi),
        partial.xi_table(xi, True),
    ]
    return columns, predicted


def measured_potentials(x: Element, group: Abelian, k: int) -> Complex[Array, "10"]:
    """The potentials at k and -k, in the order of ``partial.ENTRIES``, from the network's real weights."""
    z = spectrum.transform(semiring.weights(x, group), group)
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
    x = partial.embed(u, group, k)
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
        a, b = partial.turn(2 * jnp.pi * turns.astype(jnp.float64) / n)
        whole, dropped, one, fewer = _polynomials(partial.node(a, b, jnp.conj(a * b)), n, group, s.frequency)
        power = jnp.asarray(EXPONENTS, jnp.int32) @ turns % n
        predicted.append(jnp.where(power == 0, jnp.where(s.rho == "whole", one, fewer), 0.0))
        elements.append(jax.tree.map(lambda *e: jnp.where(s.rho == "whole", *e), whole, dropped))
    return jnp.stack(predicted), elements


def trial(s: Node, key: PRNGKeyArray) -> jd.Observables:
    """Potentials of every partial solution and of polynomials of a random node."""
    k_numbers, k_roots = jax.random.split(key)
    group = parse(s.group)
    angles = jax.random.uniform(k_numbers, (4,), jnp.float64, -jnp.pi, jnp.pi)
    # the partial solutions, and the table of their potentials
    columns, rows = tables(*(s.modulus * partial.turn(angles)))
    derived = jnp.stack(rows)
    printed = derived.at[SOLUTIONS.index("nu"), jnp.asarray(STAR)].set(0)
    # polynomials of random nodes; the potentials of all elements
    roots, elements = polynomials(s, k_roots, group)
    elements += [widened(partial.embed(c, group, s.frequency), max(ORDERS)) for c in columns]
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
            "entry": partial.ENTRIES,
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
    values = values.transpose("part", ...).values
    return values[0] + 1j * values[1]


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


STUDY = jd.Study(
    trial=trial,
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
TABLE = STUDY.claim(
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
    STUDY.claim(
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
)
