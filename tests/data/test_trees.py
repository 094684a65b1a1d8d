"""Latent trees against enumeration of all their nodes, and their samplers against the exact marginals."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import trees
from jaxdyn.errors import UsageError
from tests.data.limits import within

pytestmark = pytest.mark.usefixtures("x64")
leaf_joint = jax.jit(trees.leaf_joint)  # op by op each of them compiles for seconds
leaf_rate = jax.jit(trees.leaf_rate)
sample = jax.jit(trees.sample, static_argnums=2)
sample_shallow = jax.jit(trees.sample_shallow, static_argnums=2)


def random_tree(seed: int, classes: int = 3, subtrees: int = 2, edges: int = 2) -> trees.Tree:
    rng = np.random.default_rng(seed)
    prior, polarity = rng.dirichlet(np.ones(classes)), rng.uniform(-1, 1, (subtrees, classes))
    return trees.Tree(jnp.asarray(prior), jnp.asarray(polarity), jnp.asarray(rng.uniform(0.02, 0.45, (edges, 2))))


def enumerate_leaves(polarity: float, flip: np.ndarray) -> dict[tuple, float]:
    """P(leaves) of one subtree given the class, by summing over every value of every node."""
    edges = len(flip)
    probabilities: dict[tuple, float] = {}
    for nodes in itertools.product((0, 1), repeat=2 ** (edges + 1) - 1):
        p = (1 + polarity) / 2 if nodes[0] == 0 else (1 - polarity) / 2
        for child in range(1, len(nodes)):
            parent, level = nodes[(child - 1) // 2], (child + 1).bit_length() - 2
            p *= flip[level, parent] if nodes[child] != parent else 1 - flip[level, parent]
        leaves = nodes[-(2**edges) :]
        probabilities[leaves] = probabilities.get(leaves, 0.0) + p
    return probabilities


def enumerated_joint(tree: trees.Tree, subtree: int, leaf: int) -> tuple[float, np.ndarray]:
    prior, polarity, flip = (np.asarray(a) for a in tree)
    subtrees, classes = polarity.shape
    joint, evidence = np.zeros((classes, subtrees, tree.leaves)), 0.0
    for k in range(classes):
        parts = [enumerate_leaves(polarity[s, k], flip) for s in range(subtrees)]
        for choice in itertools.product(*(p.items() for p in parts)):
            leaves = np.array([c[0] for c in choice])
            if leaves[subtree, leaf]:
                p = prior[k] * np.prod([c[1] for c in choice])
                evidence += p
                joint[k] += p * leaves
    return evidence, joint / evidence


@pytest.mark.slow
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(2, 1, 1), (3, 2, 2), (2, 1, 3)]), data=st.data())
def test_sum_product_is_enumeration(seed, shape, data):
    classes, subtrees, edges = shape
    tree = random_tree(seed, classes, subtrees, edges)
    query = data.draw(st.integers(0, subtrees - 1)), data.draw(st.integers(0, tree.leaves - 1))
    with jax.enable_x64(True):
        evidence, joint = leaf_joint(tree, *query)
        expected_evidence, expected = enumerated_joint(tree, *query)
        assert evidence == pytest.approx(expected_evidence, rel=1e-13)
        np.testing.assert_allclose(joint, expected, rtol=1e-12, atol=1e-15)
        marginal = np.sum(np.asarray(tree.prior) * np.asarray(leaf_rate(tree)), -1)
        assert marginal[query[0]] == pytest.approx(expected_evidence, rel=1e-13)


@pytest.mark.parametrize("edges", [1, 2, 4])
def test_heights_count_edges_to_the_common_ancestor(edges):
    heights = trees.cla_heights(edges)
    for a, b in itertools.product(range(2**edges), repeat=2):
        steps, x, y = 0, a, b
        while x != y:
            steps, x, y = steps + 1, x // 2, y // 2
        assert heights[a, b] == steps


def test_sampler_has_the_marginals_of_the_tree():
    tree, count = random_tree(1), 100_000
    label, leaves = (np.asarray(a) for a in sample(tree, jax.random.key(0), count))
    _, joint = leaf_joint(tree, 1, 2)
    kept = leaves[:, 1, 2]
    for k in range(3):
        share = (leaves[kept] & (label[kept] == k)[:, None, None]).mean(0)
        error = np.sqrt(np.asarray(joint[k]) * (1 - np.asarray(joint[k])) / kept.sum())
        assert np.all(np.abs(share - np.asarray(joint[k])) < 5 * error + 1e-12)


def test_shallow_sampler_keeps_rates_and_drops_latents():
    tree, count = random_tree(2), 100_000
    label, leaves = (np.asarray(a) for a in sample_shallow(tree, jax.random.key(0), count))
    rate = np.asarray(leaf_rate(tree))
    for k in range(3):
        of_class = leaves[label == k]
        bound = 5 / np.sqrt(len(of_class))
        assert np.all(np.abs(of_class.mean(0) - rate[:, k, None]) < bound)
        covariance = np.cov(of_class[:, 0].T.astype(float))
        assert np.all(np.abs(covariance[~np.eye(tree.leaves, dtype=bool)]) < bound)


def test_faithful_edges_copy_the_top_latent():
    tree = trees.Tree(jnp.array([0.5, 0.5]), jnp.array([[1.0, -1.0]]), trees.symmetric(1.0, 3))
    label, leaves = sample(tree, jax.random.key(3), 200)
    assert np.array_equal(np.asarray(leaves[:, 0]), np.repeat(np.asarray(label == 1)[:, None], 8, 1))


def test_runs_that_differ_in_rho_share_their_noise():
    a, b = (
        sample(trees.Tree(jnp.array([0.5, 0.5]), jnp.array([[0.6, -0.6]]), trees.symmetric(rho, 3)), jax.random.key(0), 1000)
        for rho in (0.9, 0.901)
    )
    assert np.array_equal(a[0], b[0])
    assert np.mean(np.asarray(a[1]) != np.asarray(b[1])) < 0.02


@pytest.mark.slow
def test_growing_is_the_same_with_and_without_jit_and_vmap():
    tree = random_tree(4)
    u = jax.random.uniform(jax.random.key(1), (3, 20, trees.draws(tree)), jnp.float32)
    batched = jax.jit(jax.vmap(lambda u: trees.grow(tree, u)))(u)
    with jax.disable_jit():
        alone = trees.grow(tree, u[1])
    assert np.array_equal(batched[0][1], alone[0])
    assert np.array_equal(batched[1][1], alone[1])


@pytest.mark.slow
@settings(deadline=None, max_examples=8, derandomize=True)
@given(
    classes=st.integers(1, 5),
    subtrees=st.integers(1, 5),
    edges=st.integers(0, 5),
    rho=st.floats(-1, 1),
    seed=st.integers(0, 2**31 - 1),
)
def test_draws_over_the_whole_range(classes, subtrees, edges, rho, seed):
    tree = trees.Tree(jnp.full(classes, 1 / classes), jnp.full((subtrees, classes), 0.3), trees.symmetric(rho, edges, "float32"))
    with within(60):
        label, leaves = sample(tree, jax.random.key(seed), 7)
    assert label.shape == (7,) and leaves.shape == (7, subtrees, 2**edges) and 0 <= label.min() and label.max() < classes


@pytest.mark.thinned
@pytest.mark.parametrize("wrong", [-1, 13, 10**20, True, 2.0, "2", None])
def test_numbers_of_edges_that_are_refused(wrong):
    for call in (lambda: trees.cla_heights(wrong), lambda: trees.symmetric(0.5, wrong)):
        with pytest.raises(UsageError, match="edges=.* is not allowed: edges is"):
            call()
    assert trees.cla_heights(np.int64(0)).tolist() == [[0]] and len(trees.cla_heights(trees.DEEPEST)) == 4096


@pytest.mark.parametrize("rho", [1.5, -2, True, "1", float("nan")])
def test_polarities_that_are_refused(rho):
    with pytest.raises(UsageError, match="rho=.* is not allowed: rho is"):
        trees.symmetric(rho, 2)


def test_counts_leaves_and_noise_that_do_not_fit_are_refused():
    tree = trees.Tree(jnp.ones(1), jnp.ones((2, 1)), trees.symmetric(0.5, 1, "float32"))
    for wrong in (0, -1, True, 2.0):
        for draw in (trees.sample, trees.sample_shallow):
            with pytest.raises(UsageError, match="count=.* is not allowed: count is"):
                draw(tree, jax.random.key(0), wrong)
    for columns in (6, 8, 9):
        with pytest.raises(UsageError, match="there are 7 uniforms for each sequence"):
            trees.grow(tree, jnp.zeros((3, columns)))
    for name, places in (("subtree", (2, 0)), ("leaf", (0, 2)), ("leaf", (0, -1)), ("leaf", (0, True))):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
            trees.leaf_joint(tree, *places)
    last, beyond = jax.jit(trees.leaf_joint)(tree, 1, 1), jax.jit(trees.leaf_joint)(tree, 9, 9)
    assert jax.tree.all(jax.tree.map(np.array_equal, last, beyond))
