"""Composed networks, potentials and the loss in plain NumPy: loops over nodes, pairs and outputs.

The loss of a network from its definition, and random weights for it.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from hypothesis import strategies as st

from jaxdyn.data.abelian import Abelian
from jaxdyn.engine.claims.edits import Off
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.trained.decomposed import DECAYS

W = np.exp(2j * np.pi / 3)
angles = st.floats(-3.1, 3.1)


def turn(angle):
    return np.exp(1j * angle)


def numbers(seed, group):
    """Free numbers from NumPy."""
    rng = np.random.default_rng(seed)
    n = len(group.pairs)
    unit = turn(rng.uniform(-np.pi, np.pi, (4, n)))
    return solutions.Numbers(*map(jnp.asarray, unit), jnp.asarray(rng.uniform(-np.pi, np.pi, (n, 2))))


def weights(nodes, group):
    """Real weights (3, d, q) of nodes, each a dict from frequency to its three values, by the sums of the definition."""
    w = np.zeros((3, group.order, len(nodes)))
    for j, node in enumerate(nodes):
        for k, values in node.items():
            for layer, value in enumerate(values):
                chi = group.characters[k] if layer < 2 else group.characters[k].conj()
                twice = 1 if group.negative[k] == k else 2  # k and -k together
                w[layer, :, j] += twice * (value * chi).real
    return w


def loss(w, group):
    """L in the paper's scale, one pair after the other."""
    d = group.order
    total = 0.0
    for g1, g2 in itertools.product(range(d), repeat=2):
        out = w[2] @ (w[0, g1] + w[1, g2]) ** 2 / (2 * d)
        out[group.add[g1, g2]] -= 1
        total += np.sum((out - out.mean()) ** 2)
    return total / d**2


def products(*factors):
    """Nodes of a product at one frequency."""
    return [np.prod(np.array(nodes), 0) for nodes in itertools.product(*factors)]


def syn():
    return [np.full(3, W**j) for j in range(3)]


def nu(v):
    return [np.ones(3), np.array([v, -v, -(np.conj(v) ** 2)])]


def xi(x):
    return [np.ones(3), np.array([x, -1j * np.conj(x), 1j])]


def real_nodes(group):
    return [{k: np.array([1, s, s]) / 2 ** (1 / 3)} for k in group.real for s in (1, -1)]


def brute(z, signs, layers):
    total = 0j
    for j in range(z.shape[1]):
        total += np.prod([z[layer, j] if sign > 0 else np.conj(z[layer, j]) for layer, sign in zip(layers, signs, strict=True)])
    return total


PLACES = [
    ((1, 1, 1), (0, 1, 2)),
    ((-1, 1, 1), (0, 1, 2)),
    ((1, -1, 1), (0, 1, 2)),
    ((1, 1, -1), (0, 1, 2)),
    ((1, -1, 1), (0, 0, 2)),
    ((1, -1, 1), (1, 1, 2)),
    ((1, 1, 1), (0, 0, 2)),
    ((1, 1, 1), (1, 1, 2)),
    ((-1, -1, 1), (0, 0, 2)),
    ((-1, -1, 1), (1, 1, 2)),
]


def live(x, group):
    w = np.asarray(jax.jit(lambda x: semiring.weights(x, group))(x))
    return w[..., np.asarray(x.nodes)]


def composed(group, sixes, seed=0):
    """Weights (code scale) of the composed solution with that many order-6 groups."""

    @jax.jit
    def make(key):
        n = solutions.sample(key, group)
        x = solutions.f46(group, solutions.first(group, sixes), n.nu, n.xi, n.phases)
        return model.to_scale(semiring.weights(x, group), group, "code")

    w = np.asarray(make(jax.random.key(seed)))
    return jnp.asarray(w[..., np.abs(w).max((0, 1)) > 0])


def passes(judge, ds):
    return all(check.passed for check in judge(ds))


def rejects(judge, ds, rival):
    """Whether a rival is rejected: by the judge on its predictions, or by the bounds of what it says of the checks."""
    theory = rival.rival if isinstance(rival, Off) else rival
    if callable(theory):
        return any(check.passed is False for check in judge(theory(ds)))
    said = {name: value(ds) if callable(value) else value for name, value in theory.items()}
    bounds = {check.name: check.bound for check in judge(ds)}
    return any(not bounds[name][0] <= value <= bounds[name][1] for name, value in said.items())


def runs(seeds=5, **values):
    """A Dataset of runs that differ in decay and seed; a value may depend on the decay."""
    decays = [0.0, *DECAYS]
    arrays = {}
    for name, v in values.items():
        arrays[name] = (("decay", "seed"), np.repeat(np.broadcast_to(np.asarray(v, float), len(decays))[:, None], seeds, 1))
    return xr.Dataset(arrays, coords={"decay": decays, "seed": np.arange(seeds)})


def distorted(claim, ds, **changes):
    return not all(c.passed for c in claim.judge(ds.assign({k: f(ds[k]) for k, f in changes.items()})))


GROUPS = ("2", "5", "8", "2x3", "2x2", "3x3")


def weights_of_loops(group: Abelian, q: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, group.order, q)) + 0.3  # zero modes are not zero


def by_loops(w: np.ndarray, group: Abelian, factor: float, pairs=None, activation=np.square) -> float:
    """The mean over pairs, from the definition: one pair, one class, one node at a time."""
    d, q = w.shape[1:]
    total, count = 0.0, 0
    for g1, g2 in itertools.product(range(d), repeat=2) if pairs is None else pairs:
        o = [sum(activation(w[0, g1, j] + w[1, g2, j]) * w[2, c, j] for j in range(q)) for c in range(d)]
        coordinates = tuple((a + b) % n for a, b, n in zip(group.elements[g1], group.elements[g2], group.sizes, strict=True))
        target = np.ravel_multi_index(coordinates, group.sizes)
        error = np.array([factor * x - (c == target) for c, x in enumerate(o)])
        total += np.sum((error - error.mean()) ** 2)
        count += 1
    return total / count
