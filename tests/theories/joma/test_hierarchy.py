"""JoMA's chapter on hierarchies of latents."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr
from scipy.special import erf, logsumexp

import jaxdyn as jd
from jaxdyn.data import trees
from jaxdyn.theories.joma.dynamics import hblt as theory
from jaxdyn.theories.joma.hierarchy import blocks, hier_order, stack
from jaxdyn.theories.joma.hierarchy import hblt as claims
from jaxdyn.theories.joma.hierarchy import model as net
from jaxdyn.theories.joma.hierarchy.hblt import Limit, Tokens, limit_trial, tokens_trial
from jaxdyn.theories.joma.hierarchy.hier_order import GELU
from tests.theories.joma.helpers import inside, panels, refutes, upheld

# The network that learns a latent tree: its forward pass, and its gradient at the start.

pytestmark = pytest.mark.usefixtures("x64")


def network(seed: int = 0, tokens: int = 8, hidden: int = 6, outputs: int = 5, dtype: str = "float64"):
    rng = np.random.default_rng(seed)
    shapes = {"z": (tokens, tokens), "v": (tokens, hidden), "xi": (tokens, hidden)}
    params = net.Params(**{name: jnp.asarray(0.5 * rng.normal(size=shape), dtype) for name, shape in shapes.items()})
    return params, jnp.asarray(rng.normal(size=(hidden, outputs)), dtype)


def sequences(count: int, dtype: str = "float64", depth: int = 3, subtrees: int = 2, rho: float = 0.7):
    tree = trees.Tree(
        jnp.full(subtrees, 1 / subtrees, dtype), 1 - 2 * jnp.eye(subtrees, dtype=dtype), trees.symmetric(rho, depth - 1, dtype)
    )
    tokens = subtrees * tree.leaves

    @jax.jit
    def draw(tree, key):
        u = jax.random.uniform(key, (count, tokens + trees.draws(tree)), jnp.float32)
        label, leaves = trees.grow(tree, u[:, tokens:])
        present = leaves.reshape(count, tokens)
        mean_count = tree.leaves * jnp.sum(trees.leaf_rate(tree) @ tree.prior)
        return present, net.pick_queries(u[:, :tokens], label, present, mean_count)

    return tree, *draw(tree, jax.random.key(5))


def test_loss_is_that_of_numpy():
    params, upper = network()
    _, _, batch = sequences(40)
    allowed = np.array([True, True, True, False, True])
    z, v, xi, a = (np.asarray(p) for p in (*params, upper))
    losses = []
    for label, query, x, weight in zip(*(np.asarray(b) for b in batch), strict=True):
        pre = (x * np.exp(z[query]) / 8) @ v + xi[query]
        logits = (0.5 * pre * (1 + erf(pre / np.sqrt(2)))) @ a
        losses.append(weight * (logsumexp(logits[allowed]) - logits[label]))
    assert jax.jit(net.loss, static_argnums=4)(params, batch, upper, allowed, GELU) == pytest.approx(np.mean(losses), rel=1e-12)


def test_queries_are_present_and_leave_their_own_context():
    _, present, batch = sequences(300)
    rows, count = np.arange(300), np.asarray(present).sum(1)
    some = count > 0
    assert np.all(np.asarray(present)[rows, batch.query][some])
    assert np.all(np.asarray(batch.x)[rows, batch.query] == 0)
    assert np.array_equal(np.asarray(batch.x).sum(1)[some], count[some] - 1)
    assert np.all(np.asarray(batch.weight)[~some] == 0)
    assert np.mean(batch.weight) == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
def test_gradient_at_the_start_is_the_saliency_of_the_theory():
    """What the stationary theory rests on: -dL/dv = slope/A * sum_m P(m) Delta_lm A^T, and the same for z at given v."""
    tree, _, batch = sequences(2**17)
    tokens, outputs = 8, 5
    params, upper = net.init(jax.random.key(0), tokens, 16, outputs, 0.0, "float64")
    allowed = jnp.ones(outputs, bool)
    v = 1e-6 * jax.random.normal(jax.random.key(1), params.v.shape)
    g = jax.jit(jax.grad(net.loss), static_argnums=4)(params._replace(v=v), batch, upper, allowed, GELU)
    saliency = jax.jit(theory.start_saliencies, static_argnums=3)(tree.prior, tree.polarity, 0.7, 3, allowed, jnp.bool_(False))
    height = trees.cla_heights(2)
    near = np.where(height[..., None] > 0, np.moveaxis(np.asarray(saliency.near[0]), 0, -1)[np.maximum(height - 1, 0)], 0.0)
    swap = np.array([1, 0, 2, 3, 4])  # the other subtree is the same with the classes exchanged
    far = np.broadcast_to(np.asarray(saliency.far[0, 1]), near.shape)
    delta = np.stack([np.concatenate([near, far], 1), np.concatenate([far[..., swap], near[..., swap]], 1)]).reshape(8, 8, 5)
    expected_v = 0.5 / tokens * np.mean(delta, 0) @ np.asarray(upper).T
    np.testing.assert_allclose(-g.v, expected_v, atol=0.02 * np.abs(expected_v).max())
    expected_z = 0.5 / tokens**2 * np.einsum("mlo,ko,lk->ml", delta, np.asarray(upper), np.asarray(v))
    np.testing.assert_allclose(-g.z, expected_z, atol=0.08 * np.abs(expected_z).max())


def test_precision_of_a_step_is_the_settings():
    params, upper = network(dtype="float32")
    _, _, batch = sequences(16, "float32")
    allowed = jnp.ones(5, bool)
    jaxpr = jax.make_jaxpr(jax.grad(net.loss))(params, batch, upper, allowed, GELU)
    wide = [v for e in jaxpr.eqns for v in e.outvars if v.aval.dtype == jnp.float64 and v.aval.ndim]
    assert not wide
    assert all(leaf.dtype == jnp.float32 for leaf in (*batch[2:], *params))


def test_blocks_means_and_first_arrivals():
    pairs = jnp.arange(64.0).reshape(8, 8)
    blocks = net.same_subtree(pairs, 2)
    np.testing.assert_array_equal(blocks, np.stack([pairs[:4, :4], pairs[4:, 4:]]))
    height = trees.cla_heights(2)
    means = net.height_means(blocks, jnp.asarray(height), 2)
    np.testing.assert_allclose(means, [np.mean(np.asarray(blocks)[:, height == h]) for h in (1, 2)])
    time = net.track(jnp.array([[[jnp.inf, 3.0, jnp.inf]]]), jnp.array([[[1.0, 1.0, 0.2]]]), jnp.int32(7), jnp.float64(0.5))
    np.testing.assert_array_equal(time, [[[7.0, 3.0, np.inf]]])


def test_descent_moves_logits_faster():
    params, _ = network()
    updates, _ = net.descent(jnp.float64(0.1), jnp.float64(5.0)).update(params, None, params)
    np.testing.assert_allclose(updates.z, -0.5 * params.z)
    np.testing.assert_allclose(updates.v, -0.1 * params.v)


# The judges of the hierarchical latent tree: they uphold the formulas and reject everything else.


@pytest.mark.parametrize(("kind", "field"), [(Tokens, {"depth": 7.0}), (Tokens, {"samples": 100}), (Limit, {"depth": 12.0})])
def test_settings_refuse_what_makes_no_sense(kind, field):
    with pytest.raises(jd.UsageError):
        kind(**field)


CLAIMS = {c.id: c for c in claims.CLAIMS}


@pytest.fixture(scope="module")
def tokens():
    grid = jd.grid(Tokens, rho=[0.8], bias=[0.4], skew=[0.0, 0.3], depth=[3, 4], levels=3, samples=16384)
    return jd.sweep(tokens_trial, grid, seeds=range(24))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param("joma.hblt", marks=pytest.mark.slow), "joma.hblt_saliency", "joma.hblt_cancellation"]
)
def test_judges_uphold_the_formula_and_nothing_else(tokens, name):
    claim = CLAIMS[name]
    symmetric = tokens.sel(skew=[0.0])
    assert upheld(claim.judge, symmetric)
    assert not upheld(claim.judge, tokens.sel(skew=[0.3]))
    judged = {"joma.hblt": "conditional", "joma.hblt_saliency": "saliency", "joma.hblt_cancellation": "saliency_at_posterior"}[name]
    assert not upheld(claim.judge, symmetric.assign({f"predicted_{judged}": 1.1 * symmetric[f"predicted_{judged}"]}))
    for rival in claim.rivals.values():
        assert refutes(claim.judge, rival, symmetric)


@pytest.mark.slow
def test_a_formula_with_the_depth_of_another_tree_is_noticed(tokens):
    symmetric = tokens.sel(skew=[0.0])
    deep = symmetric.sel(depth=4).predicted_conditional
    assert not upheld(claims.judge_conditional, symmetric.assign(predicted_conditional=deep + 0 * symmetric.predicted_conditional))


def test_sampler_alone_rejects_a_tenth_and_the_misread_constant(tokens):
    ds = tokens.sel(skew=[0.0])
    sampled = lambda d: {c.name: c.passed for c in claims.judge_conditional(d)}["sampled minus formula, root mean square"]  # noqa: E731
    assert sampled(ds) is True
    assert sampled(ds.assign(predicted_sampled=1.1 * ds.predicted_sampled)) is False
    assert sampled(ds.assign(predicted_sampled=ds.misread_sampled)) is False


@pytest.mark.slow
def test_limit_judge():
    grid = jd.grid(Limit, eps=[0.03, 0.01, 0.003], depth=[4, 7, 10], root=["sparse", "half"])
    ds = jd.sweep(limit_trial, grid, seeds=range(1))
    assert upheld(claims.judge_limit, ds.sel(root=["sparse"]))
    assert [c.passed for c in claims.judge_limit(ds.sel(root=["half"]))] == [False, False]
    assert not upheld(claims.judge_limit, ds.sel(root=["sparse"]).assign(predicted_limit=1.1 * ds.predicted_limit))
    with pytest.raises(jd.Inconclusive, match="at least 3"):
        claims.judge_limit(ds.isel(eps=[0, 1]))
    one = ds.sel(root="sparse", eps=0.01, depth=7.0).measured_limit.values.squeeze()
    np.testing.assert_allclose(one[:6], theory.conditional(0.99, 0.99, 7, jnp.arange(1.0, 7.0)), rtol=1e-13)
    assert np.all(one[6:] == one[5])


@pytest.mark.parametrize("name", ["joma.hblt", "joma.hblt_saliency", "joma.hblt_cancellation"])
def test_figures_draw(tokens, name):
    assert len(panels(CLAIMS[name], tokens)) == (1 if name == "joma.hblt_cancellation" else 2)


# A short run of the network that learns a latent tree; the judges of the order of learning on made-up arrivals.


@pytest.fixture(scope="module")
def trained():
    grid = jd.grid(
        hier_order.Hierarchy, latents=["deep", "shallow"], spacing=8.0, depth=3, subtrees=2, vocabulary=6, hidden=8, lr=0.5
    )
    return jd.sweep(hier_order.trial, grid.replace(threshold=0.05, batch=64), seeds=range(2))


@pytest.mark.slow
def test_a_short_run(trained):
    never = float(trained.step.max()) + 1
    assert trained.sizes["height"] == 2
    assert bool((trained.status == 0).all())
    arrival = trained.measured_arrival
    assert float(arrival.min()) >= 1
    assert float(arrival.max()) == never  # a token never attends to itself
    assert np.all(np.diff(trained.mean_time.sel(latents="deep").isel(seed=0)) > 0)
    np.testing.assert_allclose(trained.mean_time.std("seed"), 0, atol=1e-9)  # the same for all upper layers
    assert bool((trained.predicted_time.std("seed") > 0.1).all())
    np.testing.assert_allclose(np.ptp(trained.predicted_time.sel(latents="shallow").values, axis=-1), 0, atol=1e-9)
    reached = (arrival < never).mean(("subtree", "query", "token")) * 4 / 3  # three of four tokens are others
    counts = xr.DataArray([1 / 3, 2 / 3], dims="height")
    np.testing.assert_allclose((trained.reached * counts).sum("height"), reached, rtol=1e-6)


def test_the_vocabulary_holds_all_classes():
    with pytest.raises(jd.UsageError, match="vocabulary=2, subtrees=4 are not allowed"):
        hier_order.Hierarchy(vocabulary=2)


@pytest.mark.parametrize(
    ("field", "steps"), [({}, 4), ({"lr": 1 / 64}, 16), ({"spacing": 3 / 16, "lr": 1 / 256}, 3), ({"lr": 9.0}, 1)]
)
def test_a_run_lasts_equally_long_in_time_at_every_rate(field, steps):
    assert int(hier_order.steps_between(hier_order.Hierarchy(**field))) == steps


HIER_ORDER_CLAIMS = {c.id: c for c in hier_order.CLAIMS}


def runs(slope: float, seeds: int = 6, edges: int = 3) -> xr.Dataset:
    """Arrivals that depend on H with a slope (with latents), and do not (without), with noise and pairs that never arrive."""
    rng, height = np.random.default_rng(0), trees.cla_heights(edges)
    n = len(height)
    noise = rng.normal(size=(2, seeds, 3, n, n))
    arrival = 100 + np.array([slope, 0.0])[:, None, None, None, None] * height + noise
    arrival = np.where(arrival > 103, 201, arrival)
    arrival[..., np.arange(n), np.arange(n)] = 201  # a token is no context of its own
    dims = ("latents", "seed", "subtree", "query", "token")
    ancestor = np.broadcast_to(height, (2, seeds, n, n))
    data = {"measured_arrival": (dims, arrival), "ancestor": (("latents", "seed", "query", "token"), ancestor)}
    return xr.Dataset(data, {"latents": ["deep", "shallow"], "seed": np.arange(seeds)})


def test_rank_correlation_is_spearmans():
    ds = runs(0.7)
    off = ~np.eye(8, dtype=bool)
    values = hier_order.rank_correlation(ds)
    for i in range(2):
        for j in range(6):
            arrival = ds.measured_arrival.values[i, j][:, off].ravel()
            expected = scipy.stats.spearmanr(np.tile(trees.cla_heights(3)[off], 3), arrival).statistic
            assert values.values[i, j] == pytest.approx(expected, rel=1e-12)


def test_rank_correlation_is_nan_for_a_run_that_is_not_ok():
    ds = runs(0.7)
    values = hier_order.rank_correlation(ds.where(ds.seed != 2))
    assert np.all(np.isnan(values.sel(seed=2)))
    assert np.all(np.isfinite(values.drop_sel(seed=2)))


def test_judges_of_order():
    forward, backward, none = runs(0.7, 100), runs(-0.7, 100), runs(0.0, 100)
    assert upheld(hier_order.judge_order, forward)
    assert upheld(hier_order.judge_reverse, backward)
    for judge, other in ((hier_order.judge_order, backward), (hier_order.judge_reverse, forward)):
        assert not upheld(judge, other)
        assert not upheld(judge, none)
    for name, ds in (("joma.hier_order", forward), ("joma.hier_order_balanced", backward)):
        others = [c.breach for c in HIER_ORDER_CLAIMS[name].controls.values() if callable(c.breach)]
        for other in (*others, *HIER_ORDER_CLAIMS[name].rivals.values()):
            assert refutes(HIER_ORDER_CLAIMS[name].judge, other, ds)
    with pytest.raises(jd.Inconclusive, match="latents = shallow is needed"):
        hier_order.judge_order(forward.isel(latents=[0]))


def times(seeds: int = 8) -> xr.Dataset:
    """Arrivals as predicted, with a little noise, in trees of two depths, so that one lacks the last height."""
    dims, rng = ("latents", "depth", "rho", "seed", "height"), np.random.default_rng(0)
    mean = np.broadcast_to(np.array([90.0, 95.0, 100.0]), (2, 2, 2, seeds, 3)) * np.array([1.0, 0.8])[:, None, None]
    mean = np.where(np.arange(2)[:, None, None, None, None] == 0, mean, mean[..., :1])  # no order without latents
    own = mean * (1 + 0.06 * rng.normal(size=(seeds, 1)))
    own[:, 0, ..., 2] = np.nan
    measured = own * (1 + 0.002 * rng.normal(size=own.shape))
    data = {"predicted_time": own, "mean_time": mean + 0 * own, "measured_time": measured, "reached": 1 + 0 * own}
    ds = xr.Dataset({name: (dims, values) for name, values in data.items()})
    return ds.assign_coords(latents=["deep", "shallow"], depth=[3, 4], rho=[0.7, 0.9], seed=np.arange(seeds))


def test_judge_of_time():
    ds = times()
    assert upheld(hier_order.judge_time, ds)
    assert not upheld(hier_order.judge_time, ds.assign(predicted_time=1.07 * ds.predicted_time))
    one = ds.measured_time.copy(deep=True)
    one[0, 1, 0, :, 2] *= 1.04  # one tree, one height: more than .02 of the arrival at H = 1
    assert not upheld(hier_order.judge_time, ds.assign(measured_time=one))
    claim = HIER_ORDER_CLAIMS["joma.hier_time"]
    changes = [c.breach for c in claim.controls.values() if callable(c.breach)]
    rivals = [rival for name, rival in claim.rivals.items() if "exchanged" not in name]
    assert len(changes) == 1 and len(rivals) == 4
    for change in (*changes, *rivals):
        assert refutes(hier_order.judge_time, change, ds)
    assert panels(claim, ds)
    gate = next(c for c in hier_order.judge_time(ds.assign(reached=0.97 * ds.reached)) if c.gate)
    assert not gate.passed
    with pytest.raises(jd.Inconclusive):
        hier_order.judge_time(ds.isel(seed=slice(4)))


def test_padding_is_left_out_and_a_tree_without_runs_is_not():
    ds = times()
    cells = hier_order.unpadded((ds.measured_time / ds.predicted_time).assign_coords(height=[1, 2, 3]))
    assert cells.sizes == {"seed": 8, "cell": 2 * 2 * (2 + 3)} and bool(cells.notnull().all())
    with pytest.raises(jd.Inconclusive):
        hier_order.judge_time(ds.where((ds.depth == 4) | (ds.rho > 0.8)))


# Networks of several blocks: their data, their forward pass, and what is read off them.

TREES = [(kind, leaves) for kind in stack.KINDS for leaves in (8, 16)]


def ancestors(tree: stack.Tree, node: int) -> list[int]:
    """Node, its parent, and so on up to the top, which is 0."""
    chain = [node]
    while chain[-1]:
        chain.append(tree.parents[chain[-1] - 1])
    return chain


@pytest.mark.parametrize(("kind", "n"), TREES)
def test_leaves_are_correlated_by_the_edges_between_them(kind, n):
    """Of symmetric edges the signs of two leaves have the mean product rho^d, whatever the top."""
    tree = stack.TREES[n][kind]
    lines = [set(ancestors(tree, n - 1 + leaf)) for leaf in range(n)]
    apart = np.array([[len(a ^ b) for b in lines] for a in lines])
    np.testing.assert_array_equal(stack.distances(tree), apart)
    s = inside(stack.Blocks(tree=kind, rho=0.7, leaves=n))
    data = jax.jit(lambda key: stack.grow(key, s, 8192))(jax.random.key(1))
    sign = 2.0 * np.asarray(data.present).reshape(8192, 2, n) - 1
    np.testing.assert_allclose(np.einsum("bsl,bsm->lm", sign, sign) / 16384, 0.7**apart, atol=0.04)
    top = 2.0 * (np.asarray(data.batch.label)[:, None] == np.arange(2)) - 1
    depth = np.array([len(line) - 1 for line in lines])
    np.testing.assert_allclose(np.einsum("bs,bsl->l", top, sign) / 16384, 0.7**depth, atol=0.04)
    latent = 2.0 * np.asarray(data.latents).reshape(8192, 2, n - 2) - 1
    heights = np.array([len(ancestors(tree, 1 + node)) - 1 for node in range(n - 2)])
    np.testing.assert_allclose(np.einsum("bs,bsl->l", top, latent) / 16384, 0.7**heights, atol=0.04)


@pytest.mark.parametrize(("kind", "n"), TREES)
def test_low_latents_are_farther_from_the_top_than_high_ones_and_have_leaves(kind, n):
    tree = stack.TREES[n][kind]
    depths = {level: [len(ancestors(tree, 1 + at)) for at in range(n - 2) if tree.levels[at] == level] for level in (1, 2)}
    assert len(tree.parents) == 2 * n - 2 and len(tree.levels) == n - 2 and max(depths[2]) < min(depths[1])
    above = set().union(*(ancestors(tree, n - 1 + leaf) for leaf in range(n)))
    assert {1 + at for at in range(n - 2) if tree.levels[at]} <= above


def softmaxed(z, present, m):
    """Attention of query m to the other present tokens."""
    keys = np.flatnonzero(present & (np.arange(len(present)) != m))
    p = np.zeros(len(present))
    p[keys] = np.exp(z[m, keys]) / np.sum(np.exp(z[m, keys]))
    return p


def test_blocks_and_their_entropy_are_those_of_numpy():
    rng = np.random.default_rng(0)
    z, v, xi, w, r, upper = (rng.normal(size=shape) for shape in ((3, 16, 16), (16, 4), (16, 4), (2, 4, 4), (2, 4, 4), (4, 2)))
    data = stack.grow(jax.random.key(0), inside(stack.Blocks(dtype="float64")), 6)
    params = stack.Params(*map(jnp.asarray, (z, v, xi, w, r)))
    nodes, present = np.asarray(stack.apply(params, data.present)), np.asarray(data.present)
    entropies, losses = np.zeros((3, 6, 16)), []
    for i in range(6):
        below = np.eye(16)
        for s in range(3):
            p = np.stack([softmaxed(z[s], present[i], m) for m in range(16)])
            entropies[s, i] = -np.sum(p * np.log(np.where(p > 0, p, 1)), 1)
            pre = p @ v + xi if s == 0 else p @ below @ w[s - 1] + below @ r[s - 1]
            below = np.maximum(pre, 0)
            np.testing.assert_allclose(nodes[s, :, i], below, atol=1e-12)
            if s == 1:
                logits = below[int(data.batch.query[i])] @ upper
                losses.append(float(data.batch.weight[i]) * (logsumexp(logits) - logits[int(data.batch.label[i])]))
    np.testing.assert_allclose(stack.entropy(params.z, data.present), entropies[:, present].mean(1), rtol=1e-12)
    assert stack.loss(params, data, jnp.asarray(upper), 2.0) == pytest.approx(np.mean(losses), rel=1e-12)


def test_scores_are_best_correlations_of_the_levels():
    data = stack.grow(jax.random.key(3), inside(stack.Blocks(dtype="float64")), 40)
    latents, present = (np.asarray(a) for a in (data.latents, data.present))
    h = np.random.default_rng(1).normal(size=(1, 16, 40, 3))
    level = jnp.array([2, 2, 1, 1, 1, 0] * 2)
    scores = blocks.latent_scores(jnp.asarray(h), data, level, jnp.int32(2))
    best = np.where(present.any(1)[:, None], np.where(present.T[..., None], h[0], -np.inf).max(0), 0)
    for i, which in enumerate((1, 2)):
        own = np.roll(latents, 2, 0)[:, np.asarray(level) == which].astype(float)
        expected = np.mean(np.corrcoef(own.T, best.T)[: own.shape[1], own.shape[1] :].max(1))
        assert scores[0, i] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_held_attention_stays_at_its_sparsest_and_slow_logits_stay_uniform():
    grid = jd.grid(stack.Blocks, attention=["free", "held"], blocks=1.0, ratio=[0.0, 10.0])
    ds = jd.sweep(blocks.trial, grid, seeds=range(2)).sel(block=1)
    curve = ds.measured_entropy
    still = curve.sel(ratio=0.0)
    np.testing.assert_allclose(still, still.isel(record=[0] * still.sizes["record"]).values, rtol=1e-6)
    free, held = (curve.sel(ratio=10.0, attention=name) for name in ("free", "held"))
    assert np.all(free.isel(record=-1) > free.min("record") + 0.1)
    np.testing.assert_allclose(held.isel(record=-1), held.min("record"), atol=1e-5)
    np.testing.assert_allclose(held.isel(record=slice(0, 5)), free.isel(record=slice(0, 5)), rtol=1e-4)


def test_judges_of_several_blocks_read_what_they_say():
    gain = np.array([[0.1, 0.2], [0.2, 0.3], [0.3, 0.6]])  # block, level
    rng = np.random.default_rng(0)
    noise = 1e-3 * rng.normal(size=(3, 6, 3, 2))
    dims = ("tree", "seed", "block", "level")
    coords = {"tree": list(stack.KINDS), "seed": range(6), "block": [1, 2, 3], "level": ["low", "high"]}
    zero = xr.DataArray(np.zeros_like(noise), dims=dims, coords=coords)
    near = xr.DataArray(0.5 + noise[..., 0], dims=dims[:3])
    ds = xr.Dataset(
        {"measured_score": zero + gain + noise, "untrained": zero, "shuffled": zero + 0.1, "untrained_shuffled": zero}
    ).assign(measured_near=near)
    values = [reading.value for reading in blocks.judge_layers(ds)]
    np.testing.assert_allclose(values, [0.1, 0.6, 0.0, 0.5, *[0.2] * 3, 0.5, 0.5], atol=3e-3)

    dims = ("attention", "blocks", "seed", "record", "block")
    coords = {"attention": ["free", "held"], "blocks": [1.0, 3.0], "block": [1, 2, 3], "seed": range(6)}
    curve = xr.DataArray(1e-3 * rng.normal(size=(2, 2, 6, 4, 3)), dims=dims, coords=coords)
    curve = curve + xr.DataArray([2.0, 1.0, 1.2, 1.5], dims="record")
    final = xr.DataArray([[0.2, 0.1], [0.3, 0.05]], dims=dims[:2])
    loss = curve.isel(block=0, drop=True) - 1.5 + final
    values = [reading.value for reading in blocks.judge_return(xr.Dataset({"measured_entropy": curve, "measured_loss": loss}))]
    np.testing.assert_allclose(values, [0.5, 0.5, 0.1, -0.05, -0.15], atol=5e-3)
