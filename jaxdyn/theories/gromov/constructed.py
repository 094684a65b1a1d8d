"""The constructed network, for several moduli and widths: logits, margins and accuracy, and what is predicted for them.

The widths of a run are the first nodes of one network. Letters as in ``dynamics/``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.gromov import dynamics, model

OFFSETS = (1, 2, 3, 4, 5)  # of the wrong classes whose margins are recorded
NETWORK = (
    r"network constructed for addition modulo $M$, prime to 6, whose nodes $(\cos(\theta a + \varphi) + \cos(\theta b + "
    r"\psi))^2\cos(\theta c + \varphi + \psi)$ for the class $c$ of operands $a$ and $b$ have random phases $\varphi, \psi$ and "
    r"random frequencies $\theta$, multiples of $2\pi/M$"
)
FREE = {"output phases of their own": {"top": "free"}}  # the control of every claim on the construction


@jd.setting
class Constructed:
    """Constructed networks for several moduli, observed after every ``step`` nodes.

    Args:
        frequencies: "random", uniform among 1 ... M-1, or "cycled": 1, 2, ... modulo M.
        top: phases of the output: "matched", the sum of the operands' phases, or "free": random, which breaks the construction.
        moduli: M of each network.
        step: nodes between two records.
        blocks: number of records.
    """

    frequencies: jd.Code = jd.code("random", "cycled")
    top: jd.Code = jd.code("matched", "free")
    moduli: tuple[int, ...] = (11, 23, 59)
    step: int = jd.field(8, at_least=1)
    blocks: int = jd.field(20, at_least=1)

    def __post_init__(self) -> None:
        """Refuse moduli without the recorded offsets or with coinciding waves."""
        least = 2 * max(OFFSETS)
        prime = all(m % 2 and m % 3 for m in self.moduli)
        jd.require(self, bool(self.moduli) and prime, "there is at least one modulus, and all are prime to 6", "moduli")
        jd.require(self, len(set(self.moduli)) == len(self.moduli), "moduli differ", "moduli")
        jd.require(self, min(self.moduli) > least, f"moduli are above {least}", "moduli")


def sample_networks(s: Constructed, key: PRNGKeyArray) -> dict[int, model.Nodes]:
    """The network of each modulus: the same for the same key, whichever other moduli there are."""

    def one(modulus: Int[Array, ""]) -> model.Nodes:
        k_nodes, count = jax.random.fold_in(key, modulus), s.step * s.blocks
        return model.sample_nodes(k_nodes, modulus, count, s.frequencies == "cycled", s.top == "free")

    nodes = jax.vmap(one)(jnp.asarray(s.moduli, jnp.int32))
    return {m: jax.tree.map(lambda x, i=i: x[i], nodes) for i, m in enumerate(s.moduli)}


def observe(s: Constructed, nodes: model.Nodes, modulus: int) -> dict[str, Float[Array, " nodes *offset"]]:
    """Accuracy, and mean and variance of the margins over all pairs, at every width, with the predicted moments."""
    right = model.labels(modulus)
    columns = (right[:, None] + np.asarray((0, *OFFSETS))) % modulus

    def widen(out: Float[Array, "pairs p"], block: model.Weights) -> tuple[Float[Array, "pairs p"], dict[str, Array]]:
        out = out + model.outputs(block)
        chosen = jnp.take_along_axis(out, columns, 1)
        margin = chosen[:, :1] - chosen[:, 1:]
        accuracy = jnp.mean(chosen[:, 0] >= jnp.max(out, 1), dtype=jnp.float64)  # faster than an argmax
        return out, {"accuracy": accuracy, "mean": jnp.mean(margin, 0), "variance": jnp.var(margin, 0)}

    # made before the loop: in it a cosine would be taken for every pair
    weights = model.weights(nodes, modulus)
    blocks = jax.tree.map(lambda x: jnp.moveaxis(x.reshape(modulus, s.blocks, s.step), 1, 0), weights)
    _, measured = jax.lax.scan(widen, jnp.zeros((modulus**2, modulus), jnp.float64), blocks)
    moments = dynamics.margin_moments(nodes.theta, jnp.asarray(OFFSETS, jnp.float64))
    mean, variance = (jnp.cumsum(m, 1)[:, s.step - 1 :: s.step].T for m in moments)
    return measured | {"predicted_mean": mean, "predicted_variance": variance}


def trial(s: Constructed, key: PRNGKeyArray) -> jd.Observables:
    """Accuracy and margins for all moduli, and for the smallest one the logits of its first nodes as sums of waves."""
    # the networks, and their predicted accuracies
    networks = sample_networks(s, key)
    each = [observe(s, nodes, m) for m, nodes in networks.items()]
    margin = {name: jd.named(jnp.stack([x[name] for x in each]), "modulus nodes offset") for name in each[0] if name != "accuracy"}
    widths = s.step * np.arange(1, s.blocks + 1)
    kinds, moduli = jnp.asarray([1.0, 0.0], jnp.float64), jnp.asarray(s.moduli, jnp.float64)
    table = jax.vmap(jax.vmap(dynamics.accuracy, (None, 0, None)), (None, None, 0))
    together, independent = table(jnp.asarray(widths, jnp.float64), moduli, kinds)
    # logits of the smallest as waves
    small = min(s.moduli)
    nodes = jax.tree.map(lambda x: x[: s.step], networks[small])
    return jd.observables(
        predicted={
            "logits": jd.named(dynamics.waves(nodes, small), "pair class"),
            "accuracy": jd.named(together, "modulus nodes"),
            "mean": margin["predicted_mean"],
            "variance": margin["predicted_variance"],
        },
        measured={
            "logits": jd.named(model.logits(nodes, small), "pair class"),
            "accuracy": jd.named(jnp.stack([x["accuracy"] for x in each]), "modulus nodes"),
            "mean": margin["mean"],
            "variance": margin["variance"],
        },
        recorded={
            "coherent": jd.named(dynamics.coherent(nodes, small), "pair class"),
            "independent": jd.named(independent, "modulus nodes"),
        },
        coords={"modulus": s.moduli, "nodes": widths.tolist(), "offset": OFFSETS},
    )


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Constructed),
    paper=jd.grid(Constructed, moduli=(11, 23, 59, 97, 131), step=8, blocks=32),
    seeds=96,
    paper_seeds=96,
    evidence="algebra",
    tested="The construction with random frequencies and phases, for moduli {moduli} and up to 160 nodes, on all pairs of "
    "operands; {seeds} seeds. Nothing is trained.",
    source="derived here for the construction of arXiv:2301.02679, Claim I",
)
