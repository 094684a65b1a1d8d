"""The norm of solutions of orders 4 and 6: how many carriers share the bias at least cost.

Letters as in ``dynamics/solutions.py``; n is the number of pairs of frequencies, n6 that of carriers.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.blocks import ZERO, checked_groups, most_pairs
from jaxdyn.theories.cogo.dynamics import semiring, solutions


@jd.setting
class Carriers:
    """Solutions of orders 4 and 6 with every number of carriers, in these groups."""

    groups: tuple[str, ...] = ("23", "27")  # groups, named by the orders of their cyclic factors

    def __post_init__(self) -> None:
        """Refuse names of no group, even orders, and groups in which no number of carriers lies between one and all."""
        odd = all(not len(group.real) and len(group.pairs) > 2 for group in checked_groups(self.groups))
        jd.require(self, odd, "every group has an odd order of at least 7", "groups")


def trial(s: Carriers, key: PRNGKeyArray) -> jd.Observables:
    """Norm and loss of the composed net for every number of carriers, and where the norm is least."""
    groups = checked_groups(s.groups)
    n = solutions.sample(key, most_pairs(groups))
    # nets with every number of carriers
    energies, losses, least, stationary = [], [], [], []
    for group in groups:
        most = len(group.pairs)
        count = jnp.arange(1, most + 1)

        def energy_and_loss(carriers: Int[Array, ""], group: Abelian = group, pairs: int = most) -> tuple[Array, Array]:
            x = solutions.f46(group, solutions.first(group, carriers), n.nu[:pairs], n.xi[:pairs], n.phases[:pairs])
            return semiring.energy(x), model.fit(semiring.weights(x, group), group).loss

        energy, loss = jax.vmap(energy_and_loss)(count)
        energies.append(energy)
        losses.append(loss)
        least.append(1.0 + jnp.argmin(energy).astype(jnp.float64))
        stationary.append(jnp.sqrt(bias_cost(energy) / (energy[1] - energy[0] + bias_cost(energy) / 2)))
    # predicted norms, and the cost of the bias in them
    pairs = [len(g.pairs) for g in groups]
    each = [(m, n6) for m in pairs for n6 in range(1, m + 1)]
    predicted = solutions.energy(*np.array(each).T)
    bias = 6 ** (1 / 3) * np.array([(m - n6) / n6 for m, n6 in each])
    return jd.observables(
        predicted={
            "energy": jd.named(predicted, "net"),
            "stationary": jd.named(jnp.asarray([solutions.best_carriers(m) for m in pairs]), "group"),
        },
        measured={"energy": jd.named(jnp.concatenate(energies), "net"), "stationary": jd.named(jnp.stack(stationary), "group")},
        recorded={
            "loss": jd.named(jnp.concatenate(losses), "net"),
            "bias": jd.named(jnp.asarray(bias), "net"),
            "least": jd.named(jnp.stack(least), "group"),
            "pairs": jd.named(jnp.asarray(pairs, jnp.float64), "group"),
        },
        coords={"net": [f"{g}: {k}" for g, m in zip(groups, pairs, strict=True) for k in range(1, m + 1)], "group": s.groups},
    )


def bias_cost(energy: Float[Array, " n"]) -> Float[Array, ""]:
    """The C of norms A n6 + B + C / n6, from those of the nets with one, two and three carriers; A is then E2 - E1 + C / 2."""
    return 3 * (energy[2] - 2 * energy[1] + energy[0])


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Zero loss, the norm for every number of carriers, where it is stationary, and which whole number has the least."""
    return [
        jd.gate("loss", ds.loss, at_most=ZERO),
        jd.at_most("Fourier norm squared against E(n6)", jd.relative_error(ds, "energy"), 1e-12),
        jd.at_most("n6* against the stationary point of the nets' norms", jd.relative_error(ds, "stationary"), 1e-10),
        jd.at_most("number of carriers of least norm minus n6*", abs(ds.least - ds.predicted_stationary), 1.0),
    ]


# The bias costs nothing, so that one carrier is best.
WITHOUT_BIAS = jd.swap(predicted_energy=lambda ds: ds.predicted_energy - ds.bias, predicted_stationary=1.0)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Norm against the number of carriers: composed nets, the formula with and without bias, and where it is least."""
    axes = np.ravel(fig.subplots(1, ds.sizes["group"], squeeze=False))
    run = plotting.first_run(ds)
    names = [str(name).split(": ") for name in run.net.values]
    for ax, group in zip(axes, run.group.values, strict=True):
        part = run.isel(net=[i for i, name in enumerate(names) if name[0] == str(group)])
        count = np.arange(1, part.sizes["net"] + 1)
        ax.plot(count, part.measured_energy, "o", color=plotting.COLORS["measured"], label="zero-loss net")
        ax.plot(count, part.predicted_energy, color=plotting.COLORS["theory"], label=r"$E(n_6)$")
        ax.plot(count, part.predicted_energy - part.bias, "--", color=plotting.COLORS["control"], label="bias omitted")
        best = float(part.predicted_stationary.sel(group=group))
        ax.axvline(best, color=plotting.COLORS["third"], linestyle=":", label=r"$n_6^*$")
        ax.set(title=f"d = {group}", xlabel=r"number of blocks of order 6", ylabel="Fourier norm squared")


STUDY = jd.Study(
    trial=trial,
    source="derived; not in arXiv:2410.01779",
    quick=jd.grid(Carriers),
    paper=jd.grid(Carriers, groups=("7", "23", "27", "71")),
    seeds=8,
    evidence="algebra",
    tested="Composed networks for the groups {groups} with every number of carriers and random numbers of modulus one; "
    "{seeds} seeds. Nothing is trained.",
    bounds="derived: float64 rounding, and a convex function is least next to its stationary point",
    judge=judge,
    plot=plot,
    caption=r"Squared Fourier norm of composed nets of zero loss against the number of blocks of order 6, one panel per group (one "
    r"run). Line: $E(n_6)$; dashed: $E$ without the bias term; dotted: $n_6^*$.",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.n6_opt",
        title="How many order-6 blocks the solution of least norm has",
        statement=r"On $\mathbb{Z}_d$ with odd $d \ge 7$, $z_{F4/6}$ with $n_6$ carriers among $n = (d-1)/2$ pairs has squared "
        r"Fourier norm $E(n_6) = 6 \cdot 6^{1/3} n_6 + 6 \cdot 4^{1/3} (n - n_6) + 6^{1/3} (n - n_6)/n_6$ at zero loss. It is "
        r"stationary at $n_6^* = \sqrt{n\,6^{1/3} / (6 \cdot 6^{1/3} - 6 \cdot 4^{1/3})} = \sqrt{1.318\,n}$, and least at a whole "
        r"number next to it.",
        controls={"the norm of another number of carriers": jd.rolled(measured_energy="net")},
        rivals={
            "the bias costs nothing: one carrier": WITHOUT_BIAS,
            "order 6 at every frequency": jd.swap(predicted_stationary="pairs"),
        },
    ),
)
