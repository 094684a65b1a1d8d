r"""One network, trained and taken apart: the runs of all topics on trained networks."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Complex, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import classify, model, published
from jaxdyn.theories.cogo.classify import COLUMNS, Classes, Nodes
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.training import Training, train

SEEDS = 10  # twice as many as published: means are judged by their intervals
DECAYS = (1e-5, 5e-5, 1e-4, 2e-4, 5e-4)  # of the published sweep
CONVERGED = DECAYS[1:]  # for which 9900 epochs are enough
SMALL_DECAYS = CONVERGED[:3]  # decays that shrink a network by less than 1%
LARGEST = max(published.TABLE)  # d up to which the published threshold of activity holds
QUICK = jd.grid(Training)  # d = 23, 512 nodes, 9900 epochs
TESTED = (
    "A two-layer network with quadratic activation and {hidden} nodes learns addition modulo {group} from 90% of the pairs "
    "by Adam at rate {lr} with weight decay {decay}, {epochs} epochs; {seeds} seeds. It is then taken apart: a frequency's "
    "order is the number of its nodes."
)
PAPER = jd.grid(Training, group=["23", "71", "127"], lr=[0.002, 0.01])
PAPER_23 = PAPER.replace(group="23")  # larger groups shrink more under the same decay, and at d = 71 one of 5e-4 leaves no nodes


def shares(column: Int[Array, " k"], count: int) -> Float[Array, " count"]:
    """Percentage of each column among the frequencies that are counted; zeros if there are none."""
    hits = jnp.sum(column[:, None] == jnp.arange(count), 0, dtype=jnp.float64)
    return 100 * hits / jnp.maximum(jnp.sum(hits), 1)


def with_chance(key: PRNGKeyArray, nodes: Nodes, group: Abelian) -> tuple[Classes, Classes]:
    """The network's groups of nodes, and groups of the same sizes with Gaussian numbers for their spectrum."""
    parts = classify.groups(nodes, group)
    numbers = jax.random.normal(key, (2, *parts.shape), jnp.float64)
    both = jax.vmap(classify.named, (None, 0))(nodes.order, jnp.stack([parts, numbers[0] + 1j * numbers[1]]))
    return jax.tree.map(lambda x: x[0], both), jax.tree.map(lambda x: x[1], both)


def means(nodes: Nodes, group: Abelian) -> dict[str, dict[str, jd.Named]]:
    """The mean that each order-4 frequency leaves, and what others add to it; zero at frequencies of other orders."""
    four = nodes.order == 4
    parts = jnp.where(four, classify.means(nodes, group), 0)
    split = jnp.stack([parts.real, parts.imag], -1)
    own = jnp.where(four, solutions.OWN, 0.0)
    return {
        "predicted": {"bias": jd.named(-split[0], "frequency part"), "own": jd.named(own, "frequency")},
        "measured": {"bias": jd.named(split[1], "frequency part"), "own": jd.named(jnp.abs(parts[0]), "frequency")},
        "recorded": {f"from_{name}": jd.named(split[i], "frequency part") for i, name in ((2, "four"), (3, "rest"))},
    }


def ablation(w: Float[Array, "3 d q"], nodes: Nodes, group: Abelian) -> dict[str, Float[Array, ""]]:
    """The loss over all pairs, and its rise without the c-entries at order-4 frequencies of order-6 nodes, of order-4 nodes."""
    order = classify.node_orders(nodes)
    cut = [classify.ablated(nodes, group, order == o) for o in (6, 4)]
    before, six, four = jax.lax.map(lambda x: model.loss_by_gram(x, group, "code"), jnp.stack([w, *cut]))
    return {"loss": before, "six": six - before, "four": four - before}


def others(z: Complex[Array, "3 d q"]) -> dict[str, Float[Array, ""]]:
    r"""Of all :math:`2d\,r_{k_1k_2k}` without zero modes but the diagonal: the sum of squares, and the largest modulus."""
    d = z.shape[1]
    row = jnp.arange(d - 1)
    size = 2 * d * jnp.abs(semiring.potentials(z[:, 1:])).at[row, row, row].set(0)
    return {"square": jnp.sum(jnp.square(size)), "largest": jnp.max(size)}


def anatomy(c: Classes) -> dict[str, jd.Named]:
    """The whole classification, one value for each frequency, for records."""
    flat = {n: getattr(c, n) for n in ("order", "factorable", "err", "least")} | {"construction": c.column}
    for name, factor in (("first", c.first), ("second", c.second)):
        flat |= {f"{name}_{k}": v for k, v in factor._asdict().items()}
    return {name: jd.named(value.astype(jnp.float64), "frequency") for name, value in flat.items()}


def late(curves: dict[str, Float[Array, " t"]], s: Training) -> dict[str, Float[Array, ""]]:
    """Means over the last tenth of the records, since Adam's steps keep moving both: the diagonal sum, and L over all pairs."""
    pairs = parse(s.group).order ** 2
    test = math.ceil(s.held_out * pairs) / pairs
    loss = (1 - test) * curves["train_loss"] + test * curves["test_loss"] if test else curves["train_loss"]
    count = max(1, loss.size // 10)
    return {name: jnp.mean(x[-count:].astype(jnp.float64)) for name, x in (("diagonal", curves["diagonal"]), ("loss", loss))}


def watch(w: Float[Array, "3 d q"], group: Abelian, active: float) -> dict[str, Array]:
    """Records along training: numbers of frequencies of order 4 and 6, and every frequency's order and squared norm."""
    now = classify.nodes(w, group, active)
    fours, sixes = (jnp.sum(now.order == o) for o in (4, 6))
    each = {"order": now.order.astype(jnp.float32), "energy": classify.energies(now).astype(jnp.float32)}
    return {"fours": fours, "sixes": sixes, **each}


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Train a network and take it apart."""
    group, (k_train, k_random) = parse(s.group), jax.random.split(key)
    active = classify.ACTIVE if group.order <= LARGEST else classify.active_threshold(group)

    # the trained network, and the construction at every frequency
    run = train(s, k_train, lambda w: watch(w, group, active))
    w, decay = run.w.astype(jnp.float64), jnp.asarray(s.decay, jnp.float64)
    nodes = classify.nodes(w, group, active)
    c, random = with_chance(k_random, nodes, group)
    # carriers, means, norms and potentials
    n, best = len(group.pairs), solutions.best_carriers(len(group.pairs))
    fours, sixes = (jnp.sum(c.order == o).astype(jnp.float64) for o in (4, 6))
    norm = solutions.trained_norm(group, solutions.energy(n, jnp.maximum(sixes, 1), len(group.real)))
    mean, rise, curves = means(nodes, group), ablation(w, nodes, group), run.curves
    z, end = nodes.spectrum, late(curves, s)
    rest, shuffled = others(z), others(z.at[2].set(jnp.roll(z[2], 1, -1)))
    # the published table, and all that is compared
    columns = jnp.asarray(published.cells(group.order), jnp.float64)
    return jd.observables(
        predicted={
            "orders": jnp.ones((), jnp.float64),
            "column": jd.named(columns, "column"),
            "share": jnp.float64(1 - best / n),
            "n6": jnp.float64(best),
            "norm": norm,
            "rise": solutions.rise(group, mean["measured"]["own"].value),
            "diagonal": jnp.float64(group.order - 1),
            "shortfall": group.order - 1 - solutions.diagonal_under_decay(group, decay, norm, end["loss"]),
            **mean["predicted"],
        },
        measured={
            "orders": (fours + sixes) / n,
            "column": jd.named(shares(c.column, len(COLUMNS)), "column"),
            "share": fours / n,
            "n6": sixes,
            "norm": jnp.sum(jnp.square(w)),
            "rise": rise["six"],
            "diagonal": curves["diagonal"][-1].astype(jnp.float64),
            "shortfall": group.order - 1 - end["diagonal"],
            **mean["measured"],
        },
        recorded={
            "fours": fours,
            "rise_four": rise["four"],
            "loss": rise["loss"],
            "memory_norm": solutions.trained_norm(group, solutions.memory_energy(group)),
            "sixes_norm": solutions.trained_norm(group, solutions.energy(n, n, len(group.real))),
            **{f"others_{name}": value for name, value in rest.items()},
            **{f"shuffled_{name}": value for name, value in shuffled.items()},
            "random_column": jd.named(shares(random.column, len(COLUMNS)), "column"),
            **{f"random_{name}": value for name, value in anatomy(random).items() if name in ("factorable", "err")},
            **mean["recorded"],
            **anatomy(c),
            **{f"curve_{name}": jd.named(x, "epoch frequency" if x.ndim == 2 else "epoch") for name, x in curves.items()},
        },
        coords={"column": COLUMNS, "part": ("re", "im"), "epoch": range(0, s.epochs + 1, s.every)},
    )


def early(ds: xr.Dataset) -> xr.Dataset:
    """A control: the orders after a tenth of the epochs, when decay has not done its work."""
    fours, sixes = (ds[f"curve_{name}"].isel(epoch=ds.sizes["epoch"] // 10, drop=True) for name in ("fours", "sixes"))
    return ds.assign(measured_orders=(fours + sixes) / (ds.predicted_diagonal / 2), measured_n6=sixes)
