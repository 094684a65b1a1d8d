r"""Blocks of composed solutions at every pair of frequencies, with random numbers, as several topics use them.

Letters as in ``dynamics/solutions.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Complex, Float

import jaxdyn as jd
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo.dynamics import solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element

ZERO = 1e-20  # a loss below it is the square of rounding errors; the solutions here have at most 1e-28


def checked_groups(names: tuple[str, ...]) -> list[Abelian]:
    """The groups of these names.

    Raises:
        UsageError: if there are none, or a name is not that of a group.
    """
    if not names:
        raise jd.UsageError("groups=() is not allowed: at least one group is needed, e.g. 5:7")
    return [parse(name) for name in names]


def most_pairs(groups: list[Abelian]) -> Abelian:
    """The group with the most pairs of frequencies: numbers sampled for it suffice for all groups."""
    return max(groups, key=lambda group: len(group.pairs))


def all_blocks(n: solutions.Numbers) -> Complex[Array, "5 k 3 6"]:
    """Blocks of six places at every pair: of order 6, of order 4, of order 6 with alpha and beta, z_syn alone, a wrong product."""
    sixes, fours = solutions.six(n.nu, n.phases), solutions.four(n.xi, n.phases)
    others = solutions.six_ab(n.alpha, n.beta, n.phases), _syn_blocks(n.phases), _wrong_blocks(n)
    return jnp.stack([sixes, jnp.pad(fours, ((0, 0), (0, 0), (0, 2))), *others])


def _syn_blocks(phases: Float[Array, "k 2"]) -> Complex[Array, "k 3 6"]:
    """Blocks of z_syn alone, at 3^(-1/3), in six places."""
    blocks = jax.vmap(lambda y: solutions.multiply(solutions.syn(), solutions.unit(y)))(phases) / 3 ** (1 / 3)
    return jnp.pad(blocks, ((0, 0), (0, 0), (0, 3)))


def _wrong_blocks(n: solutions.Numbers) -> Complex[Array, "k 3 6"]:
    """Blocks of z_syn,alpha,beta * z_nu with any nu."""

    def block(
        alpha: Complex[Array, ""], beta: Complex[Array, ""], nu: Complex[Array, ""], y: Float[Array, " 2"]
    ) -> Complex[Array, "3 6"]:
        return solutions.multiply(solutions.syn_ab(alpha, beta), solutions.nu_nodes(nu), solutions.unit(y))

    return jax.vmap(block)(n.alpha, n.beta, n.nu, n.phases) / 6 ** (1 / 3)


def widened(x: Element, width: int) -> Element:
    """The element with empty places at its end, up to the width."""
    more = width - x.nodes.size
    return Element(jnp.pad(x.z, ((0, 0), (0, 0), (0, more))), jnp.pad(x.nodes, (0, more)))


def replaced(net: str, by: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A breach: the loss and errors of one net are those of another."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        other = ds.sel(net=by, drop=True)
        return ds.assign({name: ds[name].where(ds.net != net, other[name]) for name in ("loss", "wrong")})

    return breach
