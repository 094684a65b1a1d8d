r"""Energies of a Fourier node and of a memorising node on the pairs of figure 7, which the talks print without a normalisation.

A normalisation that is a common factor leaves the ratio of both energies. Letters as in ``dynamics/energy.py``.
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
from jaxdyn.theories.li2.dynamics import ascent, energy, retention
from jaxdyn.theories.li2.published import BOUNDARY_ENERGIES, PARTIAL

NOISE = 1e-2  # of a memorising node's start, off its pair
FOURIER, MEMORY = "energy of a Fourier node on the training pairs, mean", "energy of a memorising node, mean"
RATIO, WHOLE = "logarithm of their ratio, mean", "energy of a Fourier node on all pairs, mean"


@jd.setting
class Boundary:
    """Nodes of norm 1 on random pairs of residues modulo ``order``."""

    order: int = jd.field(127, at_least=3)  # M, the modulus
    pairs: int = jd.field(PARTIAL, at_least=2)  # training pairs, drawn at random from all M^2
    nodes: int = jd.field(8, at_least=1)  # Fourier nodes, and as many memorising ones
    steps: int = jd.field(60, at_least=1)  # steps of ascent of a memorising node

    def __post_init__(self) -> None:
        """Refuse more pairs than there are."""
        jd.require(self, self.pairs <= self.order**2, f"pairs is at most {self.order**2}, all of them", "pairs", "order")


def waves(key: PRNGKeyArray, order: int, count: int) -> Float[Array, "D K"]:
    """Nodes of a random frequency, with a random phase for each operand, of norm 1: maxima on all pairs of odd order."""
    k_frequency, k_phase = jax.random.split(key)
    frequency = jax.random.randint(k_frequency, (count,), 1, (order + 1) // 2)
    phase = jax.random.uniform(k_phase, (2, 1, count), jnp.float64, 0, 2 * np.pi)
    w = jnp.cos(2 * np.pi * frequency * jnp.arange(order)[:, None] / order + phase)
    return w.reshape(2 * order, count) / jnp.sqrt(order)


def trial(s: Boundary, key: PRNGKeyArray) -> jd.Observables:
    """Energies of both kinds of nodes on random pairs, and on all."""
    group, (k_pairs, k_waves, k_noise) = parse(str(s.order)), jax.random.split(key, 3)
    rank = retention.random_order(k_pairs, s.order, 1)[:, :, 0]
    mask = (rank < s.pairs).astype(jnp.float64)
    fourier = waves(k_waves, s.order, s.nodes)
    # a node that answers to one of the pairs climbs to the maximum next to it
    first, second = jnp.divmod(jnp.argsort(rank.ravel())[: s.nodes], s.order)
    at = jnp.concatenate([jax.nn.one_hot(x, s.order, dtype=jnp.float64) for x in (first, second)], 1).T
    start = at + NOISE * jax.random.normal(k_noise, at.shape, jnp.float64)
    memory = ascent.ascend(start, group, steps=s.steps, mask=mask)
    return jd.observables(
        measured={
            "fourier": jd.named(energy.energy(fourier, group, mask=mask), "node"),
            "memory": jd.named(energy.energy(memory, group, mask=mask), "node"),
        },
        recorded={
            "fourier_whole": jd.named(energy.energy(fourier, group), "node"),
            "memory_whole": jd.named(energy.energy(memory, group), "node"),
            "largest": jd.named(jnp.max(jnp.square(memory), 0), "node"),
        },
    )


def judge(ds: xr.Dataset) -> list[jd.Reading]:
    """Both energies, their ratio, and a Fourier node's energy on all pairs."""
    fourier, memory, whole = (ds[name].mean("node") for name in ("measured_fourier", "measured_memory", "fourier_whole"))
    return [
        jd.mean_reading(FOURIER, fourier, over="seed"),
        jd.mean_reading(MEMORY, memory, over="seed"),
        jd.mean_reading(RATIO, np.log(memory / fourier), over="seed"),
        jd.Reading(WHOLE, float(whole.mean()), (float(whole.min()), float(whole.max()))),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Energies of all nodes in order, and both printed ones."""
    ax = fig.subplots()
    for name, label, color in (("measured_fourier", "Fourier", "measured"), ("measured_memory", "memorising", "control")):
        e = np.sort(ds[name].values, None)
        ax.plot(e, np.arange(1, e.size + 1) / e.size, color=plotting.COLORS[color], label=label)
    for i, value in enumerate(BOUNDARY_ENERGIES.values()):
        ax.axvline(value, color=plotting.COLORS["theory"], linestyle=":", label="printed" if i == 0 else None)
    ax.set(xlabel="energy on the training pairs at norm 1", ylabel="share of nodes below", xlim=(0, None))


LOW, HIGH = (BOUNDARY_ENERGIES[rate] for rate in (0.002, 0.005))
CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Boundary),
        seeds=12,
        evidence="reduced",
        source="arXiv:2509.21519, figure 7",
        tested="{nodes} Fourier nodes of random frequencies and phases, and {nodes} nodes that start at one of the pairs and climb "
        "for {steps} steps, on {pairs} random pairs of residues modulo {order}; {seeds} seeds.",
    ).claim(
        id="li2.boundary_energies",
        talks=("grokking:li2-boundary-energies",),
        title="Which energies Fourier and memorising nodes have in figure 7",
        statement=rf"Energies of nodes with $\sigma = x^2$ and norm 1, on {PARTIAL} of the $127^2$ pairs, as in figure 7: of "
        "one frequency, and of a node that has climbed from a single pair. On all pairs a frequency has $M/4$; a norm of 1 for "
        rf"each operand multiplies all by 4. Does a normalisation give the {LOW:g} and {HIGH:g} that are printed next to the "
        "networks of rate .002, which generalises, and of rate .005, which memorises, if these are the energies of Fourier and of "
        "memorising nodes? Their ratio does not depend on it.",
        expected="measured",
        judge=judge,
        controls={"energies on all pairs": jd.swap(measured_fourier="fourier_whole", measured_memory="memory_whole")},
        rivals={
            "as printed, at norm 1": {FOURIER: LOW, MEMORY: HIGH},
            "as printed, at norm 1 for each operand": {FOURIER: LOW / 4, MEMORY: HIGH / 4},
            "as printed, on all pairs": {WHOLE: LOW},
            "as printed, in any normalisation": {RATIO: float(np.log(HIGH / LOW))},
        },
        recorded={
            FOURIER: (1.33, 1.362, 1.39),
            MEMORY: (11.4, 11.8, 12.2),
            RATIO: (2.116, 2.158, 2.199),
            WHOLE: (31.7, 31.75, 31.8),
        },
        plot=plot,
        caption="Share of the nodes of all runs below an energy on the training pairs; dotted, the printed energies.",
    ),
)
