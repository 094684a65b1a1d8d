"""The regular representation in blocks: each irrep as often as its degree (equation 9 with its multiplicities)."""

from __future__ import annotations

import functools
from typing import Literal

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Complex, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose


@jd.setting
class Groups:
    """The groups; ``stranger`` = 1 exchanges two rows of each permutation, which is then no product by an element."""

    stranger: int = 0  # 1: two rows of each permutation matrix are exchanged
    groups: tuple[str, ...] = ("7", "S3", "D5", "Q8", "A4", "S4", "F7:3")  # names of groups; a number M is the residues modulo M

    def __post_init__(self) -> None:
        jd.require(self, self.stranger in (0, 1), "stranger is 0 or 1", "stranger")
        jd.require(self, min((parse(name).order for name in self.groups), default=0) >= 2, "there is at least one group", "groups")


def permutations(table: np.ndarray, stranger: int = 0) -> Float[np.ndarray, "h m m"]:
    r"""All :math:`R_h` with :math:`R_h e_g = e_{hg}`, from the group's table; with two rows exchanged for a stranger."""
    matrices = np.eye(len(table))[:, table].transpose(1, 0, 2)
    return matrices[:, [1, 0, *range(2, len(table))]] if stranger else matrices


def basis(irreps: Irreps) -> Complex[np.ndarray, "m m"]:
    r"""The unitary Q: columns :math:`\sqrt{d_k/M}\,\overline{C_k(g)_{ab}}`, irrep after irrep, a within b within k."""
    m = irreps.group.order
    parts = [np.sqrt(c.shape[1] / m) * c.conj().transpose(0, 2, 1).reshape(m, -1) for c in irreps.matrices]
    return np.concatenate(parts, 1).astype(complex)


def block_sum(irreps: Irreps, h: int) -> Complex[np.ndarray, "m m"]:
    r""":math:`\bigoplus_k I_{d_k} \otimes C_k(h)`."""
    m, at = irreps.group.order, 0
    out = np.zeros((m, m), complex)
    for c in irreps.matrices:
        size = c.shape[1] ** 2
        out[at : at + size, at : at + size] = np.kron(np.eye(c.shape[1]), c[h])
        at += size
    return out


@functools.cache
def counted(name: str, stranger: int) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, " c"], float]:
    r"""Degrees; multiplicities :math:`\frac1M \sum_h \overline{\chi_k(h)}\,\mathrm{tr}\,R_h`; largest entry outside the blocks."""
    irreps = decompose(parse(name))
    matrices, q = permutations(np.asarray(irreps.group.table), stranger), basis(irreps)
    traces = np.trace(matrices, axis1=1, axis2=2)
    found = (irreps.characters.conj() @ traces).real / irreps.group.order
    apart = max(float(abs(q.conj().T @ r @ q - block_sum(irreps, h)).max()) for h, r in enumerate(matrices))
    return irreps.degrees.astype(float), found, apart


def trial(s: Groups, key: PRNGKeyArray) -> jd.Observables:
    """Degrees of all irreps, how often each occurs, and how far the regular representation is from its blocks."""
    del key
    rows = [counted(name, s.stranger) for name in s.groups]
    most = max(len(degrees) for degrees, _, _ in rows)

    def padded(column: Literal[0, 1]) -> np.ndarray:
        return np.stack([np.pad(row[column], (0, most - len(row[column]))) for row in rows])

    return jd.observables(
        predicted={"often": jd.named(jnp.asarray(padded(0)), "group irrep")},
        measured={"often": jd.named(jnp.asarray(padded(1)), "group irrep")},
        recorded={"apart": jd.named(jnp.asarray([row[2] for row in rows]), "group")},
        coords={"group": s.groups, "irrep": range(most)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Multiplicities against degrees, and what is left outside of the blocks."""
    return [
        jd.at_most("how often an irrep occurs, minus its degree", abs(ds.measured_often - ds.predicted_often), 1e-9),
        jd.at_most("largest entry of the representation minus its blocks", ds.apart, 1e-9),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """How often each irrep occurs over its degree."""
    ax, one = fig.subplots(), plotting.first_run(ds)
    shown = one.predicted_often.values > 0
    plotting.scatter(ax, one.predicted_often.values[shown], one.measured_often.values[shown], label="irreps of all groups")
    ax.set(xlabel="degree of the irrep", ylabel="how often it occurs")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Groups),
        evidence="algebra",
        source="arXiv:2509.21519, equation 9; Serre, Linear Representations of Finite Groups, section 2.4",
        tested="The groups {groups}: cyclic, symmetric, dihedral, quaternion, alternating, Frobenius.",
        plot=plot,
        caption="How often each irrep occurs in the regular representation, by its degree; all groups.",
    ).claim(
        id="li2.regular",
        title="The regular representation holds each irrep as often as its degree",
        statement=r"The regular representation of a group is $R_h = Q\bigl(\bigoplus_k I_{m_k} \otimes C_k(h)\bigr)Q^*$ with a "
        r"unitary $Q$ and $m_k = d_k$ copies of the irrep $C_k$ of degree $d_k$, for all elements $h$, to $10^{-9}$.",
        talks=("grokking:li2-decomposition",),
        bounds="derived: float64 rounding of a change of basis",
        judge=judge,
        decides={
            "all elements": (
                "largest entry of the representation minus its blocks",
                "permutations that are no products by an element",
            ),
        },
        controls={"permutations that are no products by an element": {"stranger": 1}},
        rivals={"each irrep occurs once": jd.swap(predicted_often=lambda ds: ds.predicted_often.clip(max=1.0))},
    ),
)
