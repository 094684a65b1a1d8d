r"""The solution that memorises, with a node for each pair of elements: its order at a frequency, and its norm.

Letters as in ``dynamics/solutions.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.blocks import ZERO, checked_groups, widened
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.figures import log_orders


@jd.setting
class Memory:
    """The solution that memorises, with random phases; ``exponent`` and ``factors`` are breaches."""

    exponent: jd.Swept = 2 / 3  # the nodes' modulus is d to its negative
    factors: jd.Code = jd.code("both", "first alone")  # product z_a * z_b, or z_a alone
    groups: tuple[str, ...] = ("5", "7", "23")  # groups, named by the orders of their cyclic factors

    def __post_init__(self) -> None:
        """Refuse names of no group."""
        checked_groups(self.groups)


def trial(s: Memory, key: PRNGKeyArray) -> jd.Observables:
    """Loss, errors, order and norm of the memorising solution of every group."""
    groups = checked_groups(s.groups)
    fits, orders, energies = [], [], []
    for group, k in zip(groups, jax.random.split(key, len(groups)), strict=True):
        first, second = solutions.memory_factors(group)
        both, alone = semiring.multiply(first, second), widened(first, group.order**2)
        x = jax.tree.map(lambda *e: jnp.where(s.factors == "both", *e), both, alone)
        x = semiring.multiply(x, solutions.unit(group, solutions.sample(k, group).phases))
        x = x._replace(z=x.z * jnp.asarray(group.order, jnp.float64) ** -s.exponent)
        fits.append(model.fit(semiring.weights(x, group), group))
        orders.append(jnp.min(jnp.sum(jnp.abs(x.z[:, 1:]) > 0, -1)).astype(jnp.float64))
        energies.append(semiring.energy(x))
    d = jnp.asarray([float(g.order) for g in groups])
    loss, wrong = (jnp.stack(v) for v in zip(*fits, strict=True))
    return jd.observables(
        predicted={
            "energy": jd.named(jnp.asarray([solutions.memory_energy(g) for g in groups]), "group"),
            "nodes": jd.named(jnp.stack([d**2, d]), "form group"),
        },
        measured={"energy": jd.named(jnp.stack(energies), "group"), "nodes": jd.named(jnp.stack(orders), "group")},
        recorded={"loss": jd.named(loss, "group"), "wrong": jd.named(wrong, "group")},
        coords={"form": ("derived", "printed"), "group": s.groups},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Loss, errors, order at every frequency, and norm."""
    return [
        jd.at_most("loss", ds.loss, ZERO),
        jd.at_most("pairs whose largest output is not their sum", ds.wrong, 0.0),
        jd.at_most("order at each frequency", jd.relative_error(ds, "nodes"), 0.0),
        jd.at_most("Fourier norm squared", jd.relative_error(ds, "energy"), 1e-12),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Order at each frequency and norm of the memorising solution against the order of the group."""
    left, right = fig.subplots(1, 2)
    d = np.array([parse(str(g)).order for g in ds.group.values], float)
    wide = np.geomspace(d.min(), d.max(), 50)
    for ax, name in ((left, "nodes"), (right, "energy")):
        values = ds[f"measured_{name}"].transpose("group", ...).values.reshape(len(d), -1)
        ax.plot(np.repeat(d, values.shape[1]), values.ravel(), "o", color=plotting.COLORS["measured"], label="zero-loss net")
    left.plot(wide, wide**2, color=plotting.COLORS["theory"], label=r"$d^2$")
    left.plot(wide, wide, "--", color=plotting.COLORS["control"], label="d, as printed")
    right.plot(wide, 3 * (wide - 1) * wide ** (2 / 3), color=plotting.COLORS["theory"], label=r"$3 (d-1) d^{2/3}$")
    right.plot(wide, 3 * 6 ** (1 / 3) * (wide - 1), "--", color=plotting.COLORS["third"], label=r"$z_{F6}$")
    left.set(yscale="log", xlabel="order of the group d", ylabel="nodes at each frequency")
    right.set(yscale="log", xlabel="order of the group d", ylabel="Fourier norm squared")
    log_orders(left, d)
    log_orders(right, d)
    right.yaxis.set_minor_formatter(NullFormatter())


STUDY = jd.Study(
    trial=trial,
    source="arXiv:2410.01779, corollaries on composed solutions",
    quick=jd.grid(Memory),
    paper=jd.grid(Memory, groups=("5", "7", "9", "15", "23", "31")),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    tested="The memorising network with random phases for the groups {groups}, on all pairs; {seeds} seeds. Nothing is trained.",
    bounds="derived: float64 rounding, squared in the loss; nodes and wrong pairs are counted",
    judge=judge,
    plot=plot,
    caption=r"Against the order $d$ of the group, one symbol per run: left the number of nodes at each frequency of the memorising "
    r"solution, with $d^2$ (line) and the printed $d$ (dashed); right its squared Fourier norm, with $3(d-1)d^{2/3}$ (line) and "
    r"that of $z_{F6}$ (dashed).",
)
ZM = STUDY.claim(
    id="cogo.zM",
    talks=("training:cogo-memorization",),
    title="Perfect memorisation is a composed solution, with large norm",
    statement=r"On $\mathbb{Z}_d$, perfect memorisation $z_M = d^{-2/3} z_a * z_b$, whose node of each pair $(g, g')$ of elements "
    r"has $d^{-2/3} (\omega^{kg}, \omega^{kg'}, \omega^{-k(g+g')})$, $\omega = e^{2\pi i/d}$, in the three layers at frequency $k "
    r"\ne 0$ (times three phases of product 1 that all nodes share), has zero loss and adds all pairs correctly. It has $d^2$ "
    r"nodes at each frequency and squared Fourier norm $3(d-1)\,d^{2/3}$.",
    decides={"all pairs": ("pairs whose largest output is not their sum", "z_a alone, of order d")},
    form="derived",
    controls={
        "normaliser d^(-1/3)": jd.Control({"exponent": 1 / 3}, breaks="d^{-2/3}"),
        "normaliser 1/d": jd.Control({"exponent": 1.0}, breaks="d^{-2/3}"),
        "z_a alone, of order d": jd.Control({"factors": "first alone"}, breaks="composed solution"),
    },
    rivals={},
)
CLAIMS = (
    ZM,
    ZM.as_printed(
        id="cogo.zM_order_as_printed",
        talks=("training:cogo-memorization",),
        title="The memorising solution has order d at each frequency",
        statement=r"On $\mathbb{Z}_d$, the memorising solution $z_M = d^{-2/3} z_a * z_b$ has order $d$ at each frequency.",
        form="printed",
        printed=r"talk training: perfect memorisation, $\mathbf{z}_M = d^{-2/3} \mathbf{z}_a * \mathbf{z}_b$, has order d per "
        r"frequency",
        source="talks on arXiv:2410.01779",
    ),
)
