"""Tangent kernels against Jacobians by hand, the limit of infinite width, and one small step of descent."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import metrics
from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer, empirical_ntk, kernel_alignment, network, target_alignment
from tests.nn.drawn import weights

D, H, OUTPUTS = 4, 5, 3  # inputs, units, outputs of the perceptron
WAYS = ("jacobians", "products")


def perceptron(params, x):
    return params["v"] @ jnp.tanh(params["w"] @ x + params["b"])


def drawn(seed=0, dtype="float64", o=OUTPUTS):
    rng = np.random.default_rng(seed)
    sizes = {"w": (H, D), "b": (H,), "v": (o, H)}
    return {name: rng.normal(size=size).astype(dtype) for name, size in sizes.items()}


def inputs(n, seed=1, dtype="float64"):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(dtype)


def jacobians(params, x):
    """By hand, of every leaf [n, o, ...]: f_i = sum_h v_ih a_h, a = tanh(w x + b)."""
    a = np.tanh(x @ params["w"].T + params["b"])
    shift = params["v"][None] * (1 - a**2)[:, None]  # [n, o, h]
    eye = np.eye(params["v"].shape[0])
    return {"w": np.einsum("nih,nd->nihd", shift, x), "b": shift, "v": np.einsum("ij,nh->nijh", eye, a)}


def by_hand(params, x, other, names=("w", "b", "v")):
    """The full kernel from Jacobians as matrices."""
    pairs = zip(*(jacobians(params, rows).items() for rows in (x, other)), strict=True)
    flat = {name: [j.reshape(*j.shape[:2], -1) for j in (left, right)] for (name, left), (_, right) in pairs}
    return sum(np.einsum("nip,mjp->nmij", *flat[name]) for name in names)


@functools.cache
def jitted(f, **options):
    return jax.jit(lambda params, x, other: empirical_ntk(f, params, x, other, **options))


def diagonal_mean(full):
    return np.einsum("nmii->nm", full) / full.shape[-1]


@pytest.mark.parametrize("batch", [None, 1, 2, 3, 50])
@pytest.mark.parametrize("by", WAYS)
def test_perceptron_by_hand_whatever_the_blocks(x64, by, batch):
    params, x, other = drawn(), inputs(6), inputs(7, seed=2)
    wanted = by_hand(params, x, other)
    np.testing.assert_allclose(jitted(perceptron, by=by, batch=batch)(params, x, other), wanted, rtol=1e-12, atol=1e-12)
    mean = jitted(perceptron, trace=True, batch=batch)(params, x, other)
    np.testing.assert_allclose(mean, diagonal_mean(wanted), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("by", WAYS)
def test_linear_network_by_hand(x64, by):
    """Of f = w x the kernel is (x . x') times the identity: no weight is in it."""
    x, w = inputs(5), np.random.default_rng(0).normal(size=(OUTPUTS, D))
    wanted = np.einsum("nd,md,ij->nmij", x, x, np.eye(OUTPUTS))
    np.testing.assert_allclose(jitted(lambda w, x: w @ x, by=by)(w, x, None), wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(jitted(lambda w, x: w @ x, trace=True)(w, x, None), x @ x.T, rtol=1e-12, atol=1e-13)


SMALL = Transformer(vocabulary=7, width=8, layers=1, heads=2, hidden=5, std=0.5, dtype="float64")


def last_logits(params, row):
    return network(SMALL).apply(params, row[None])[0, -1]


@pytest.mark.parametrize("options", [{"by": "jacobians"}, {"by": "products", "batch": 2}])
def test_transformer_by_finite_differences(x64, options):
    """Central differences of every single weight: their error is of the order of step^2 and rounding / step, 1e-9 here."""
    params, tokens, step = weights(SMALL), np.random.default_rng(0).integers(0, 7, (3, 4)), 1e-5
    flat, back = jax.flatten_util.ravel_pytree(params)
    logits = jax.jit(jax.vmap(lambda flat: network(SMALL).apply(back(flat), tokens)[:, -1]))
    moves = step * jnp.eye(flat.size)
    slopes = (logits(flat + moves) - logits(flat - moves)) / (2 * step)
    found = jitted(last_logits, **options)(params, tokens, None)
    np.testing.assert_allclose(found, np.einsum("pni,pmj->nmij", slopes, slopes), atol=1e-7 * np.abs(found).max())


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**31), by=st.sampled_from([*WAYS, None]))
def test_symmetric_and_positive_semidefinite(seed, by):
    """As a matrix of n o rows; it has a kernel of its own for more rows than parameters, which rounding moves off zero."""
    with jax.enable_x64(True):
        options = {"trace": True} if by is None else {"by": by}
        found = np.asarray(jitted(perceptron, **options)(drawn(seed), inputs(20, seed=seed), None))
    matrix = found if by is None else found.swapaxes(1, 2).reshape(20 * OUTPUTS, 20 * OUTPUTS)
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-13 * scale)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12 * scale
    assert by is None or np.linalg.matrix_rank(matrix, tol=1e-10 * scale) <= H * (D + 1 + OUTPUTS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{"by": "jacobians"}, {"by": "products"}, {"trace": True, "batch": 2}])
def test_vmap_over_seeds_is_the_loop_and_jit_changes_nothing(x64, options, dtype):
    x, seeds = inputs(3, dtype=dtype), [drawn(seed, dtype) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *seeds)
    found = jax.jit(jax.vmap(lambda params: empirical_ntk(perceptron, params, x, **options)))(stacked)
    assert found.dtype == dtype
    tolerance = 100 * np.finfo(dtype).eps
    for one, params in zip(found, seeds, strict=True):
        plain = empirical_ntk(perceptron, params, x, **options)
        np.testing.assert_allclose(one, plain, rtol=tolerance, atol=tolerance * float(abs(plain).max()))
        np.testing.assert_allclose(
            jitted(perceptron, **options)(params, x, None), plain, rtol=tolerance, atol=tolerance * float(abs(plain).max())
        )


PARTS = [
    (("v",), lambda name: name == "layer/v"),
    (("w", "b"), {"layer": {"w": True, "b": True, "v": False}, "step": False}),
    (("w", "b", "v"), {"layer": True, "step": False}),
]


@pytest.mark.parametrize(("names", "part"), PARTS)
def test_a_part_of_the_parameters_has_its_share(x64, names, part):
    """Named by a function, by a mask, or by the top of one; whole numbers and functions among the parameters stay fixed."""
    params, x = {"layer": drawn(), "step": np.arange(2), "activation": jnp.tanh}, inputs(4)
    part = part if callable(part) else part | {"activation": False}
    wanted = by_hand(params["layer"], x, x, names)
    for by in WAYS:
        found = empirical_ntk(lambda p, x: perceptron(p["layer"], x), params, x, part=part, by=by)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_outputs_of_any_shape_and_inputs_of_any_structure(x64):
    params, x, scale = drawn(o=4), inputs(3), np.array([1.0, 2.0, 3.0])
    found = empirical_ntk(lambda p, x: x["scale"] * perceptron(p, x["at"]).reshape(2, 2), params, {"at": x, "scale": scale})
    wanted = by_hand(params, x, x) * np.multiply.outer(scale, scale)[..., None, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    single = empirical_ntk(lambda p, x: perceptron(p, x)[0], params, x)
    np.testing.assert_allclose(single, by_hand(params, x, x)[..., :1, :1], rtol=1e-12)


def equations(f, params, x, **options):
    """The largest array of a program, and its text."""
    program = jax.make_jaxpr(lambda params, x: empirical_ntk(f, params, x, **options))(params, x)
    sizes = [v.aval.size for e in walked(program.jaxpr) for v in e.outvars]
    return max(sizes), str(program)


def walked(program):
    for equation in program.eqns:
        yield equation
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from walked(inner)


def test_the_cheaper_way_is_chosen(x64):
    """Products where there are more outputs than uses of a weight; no way is chosen by what it returns."""
    x = inputs(6, dtype="float32")
    for o, way in ((1, "jacobians"), (2, "products")):  # o P > F, P = F of a bias-free linear layer
        w = np.ones((o, D), np.float32)
        assert equations(lambda w, x: w @ x, w, x)[1] == equations(lambda w, x: w @ x, w, x, by=way)[1]
    tokens, params = np.zeros((3, 4), np.int32), weights(SMALL)
    for entries, way in ((2, "jacobians"), (7, "products")):  # four tokens use each weight of the block
        f = lambda p, row, entries=entries: last_logits(p, row)[:entries]  # noqa: E731
        assert equations(f, params, tokens)[1] == equations(f, params, tokens, by=way)[1]
    narrow = jax.tree.map(lambda v: jnp.asarray(v, jnp.bfloat16), drawn(o=50))
    assert equations(perceptron, narrow, x)[1] == equations(perceptron, narrow, x, by="jacobians")[1]
    assert empirical_ntk(perceptron, narrow, x).dtype == jnp.float32


def test_blocks_bound_the_memory():
    """No array has the Jacobian of all inputs: the largest one is that of a block, or the kernel."""
    params, x = drawn(o=8, dtype="float32"), inputs(40, dtype="float32")
    params["w"], x = np.ones((H, 200), np.float32), np.ones((40, 200), np.float32)
    jacobian, kernel = 8 * H * 200, 40 * 40 * 8 * 8  # of one input by w, and of all pairs
    assert equations(perceptron, params, x, by="jacobians")[0] == 40 * jacobian
    assert equations(perceptron, params, x, by="jacobians", batch=2)[0] <= max(2 * jacobian, kernel)
    assert equations(perceptron, params, x, by="products")[0] == kernel
    assert equations(perceptron, params, x, trace=True, batch=2)[0] <= 40 * 200


def limit(x):
    """The kernel of an infinitely wide ReLU layer, f = sum_h v_h relu(w_h . x) sqrt(2 / H): arc-cosine kernels of order 1 and 0."""
    norms = np.linalg.norm(x, axis=1)
    outer = np.multiply.outer(norms, norms)
    angle = np.arccos(np.clip(x @ x.T / outer, -1, 1))
    last = outer * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
    return last + x @ x.T * (np.pi - angle) / np.pi


def test_the_kernel_of_a_wide_perceptron_converges_like_one_over_the_root_of_its_width(x64):
    """arXiv:1806.07572 in normalisation sqrt(2/H); the root mean square over 50 seeds has a relative error of 1/10 per width."""
    x, widths = inputs(5), np.array([64, 256, 1024])

    def wide(params, x):
        w, v = params
        return v @ jax.nn.relu(w @ x) * (2 / v.shape[-1]) ** 0.5

    def error(width, seed):
        k_w, k_v = jax.random.split(jax.random.key(seed))
        params = jax.random.normal(k_w, (width, D)), jax.random.normal(k_v, (2, width))
        return jnp.mean(jnp.square(empirical_ntk(wide, params, x, trace=True, batch=5) - limit(x)))

    sizes = [np.sqrt(np.mean(jax.jit(jax.vmap(functools.partial(error, int(h))))(jnp.arange(50)))) for h in widths]
    slope = np.polyfit(np.log(widths), np.log(sizes), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)
    assert sizes[-1] < 0.1 * np.abs(limit(x)).max()


def test_a_small_step_of_descent_moves_the_outputs_by_the_kernel(x64):
    """The change of f is -lr K (f - y) up to lr^2: the rest over lr^2 does not depend on lr."""
    params, x, z = drawn(), inputs(4), inputs(3, seed=5)
    y = np.random.default_rng(9).normal(size=(4, OUTPUTS))
    apply = jax.vmap(perceptron, (None, 0))
    slope = jax.grad(lambda p: 0.5 * jnp.sum((apply(p, x) - y) ** 2))(params)
    first = -np.einsum("nmij,mj->ni", empirical_ntk(perceptron, params, z, x), apply(params, x) - y)
    rest = []
    for lr in (1e-3, 5e-4):
        moved = apply(jax.tree.map(lambda p, g, lr=lr: p - lr * g, params, slope), z) - apply(params, z)
        rest.append(np.linalg.norm(moved - lr * first) / lr**2)
        assert np.linalg.norm(moved - lr * first) < 0.1 * np.linalg.norm(moved)
    assert rest[1] == pytest.approx(rest[0], rel=0.05)


def test_change_of_the_kernel(x64):
    """A kernel that grows keeps its direction; another network's has another; the relative distance counts both."""
    x = inputs(6)
    kernels = [np.asarray(empirical_ntk(perceptron, drawn(seed), x)) for seed in (0, 1)]
    assert float(kernel_alignment(3 * kernels[0], kernels[0])) == pytest.approx(1, abs=1e-14)
    assert float(metrics.relative_norm_error(3 * kernels[0], kernels[0])) == pytest.approx(2)
    flat = [k.reshape(-1) for k in kernels]
    wanted = flat[0] @ flat[1] / np.linalg.norm(flat[0]) / np.linalg.norm(flat[1])
    assert float(kernel_alignment(*kernels)) == pytest.approx(wanted, rel=1e-12) and wanted < 0.99
    assert np.isnan(kernel_alignment(np.zeros((2, 2)), np.eye(2)))
    assert np.isnan(kernel_alignment(np.array([[np.nan, 1], [1, 1]]), np.eye(2)))


def test_alignments_of_large_numbers_do_not_overflow():
    big = np.full((3, 3), 1e30, np.float32)
    assert float(kernel_alignment(big, big)) == pytest.approx(1, abs=1e-6)
    assert float(target_alignment(big, np.full(3, 1e30, np.float32))) == pytest.approx(1, abs=1e-6)
    assert float(target_alignment(np.eye(4, dtype=int), np.ones(4, int))) == pytest.approx(0.5, abs=1e-6)


def test_alignment_with_targets(x64):
    """Against <K, y y'> written out; full kernels have targets of several outputs."""
    x, y = inputs(6), np.random.default_rng(2).normal(size=(6, OUTPUTS))
    full = np.asarray(empirical_ntk(perceptron, drawn(), x))
    matrix, long = full.swapaxes(1, 2).reshape(6 * OUTPUTS, 6 * OUTPUTS), y.reshape(-1)
    wanted = long @ matrix @ long / np.linalg.norm(matrix) / (long @ long)
    assert float(target_alignment(full, y)) == pytest.approx(wanted, rel=1e-12)
    mean = diagonal_mean(full)
    gram = y @ y.T
    wanted = np.sum(mean * gram) / np.linalg.norm(mean) / np.linalg.norm(gram)
    assert float(target_alignment(mean, y)) == pytest.approx(wanted, rel=1e-12)
    assert float(target_alignment(np.outer(y[:, 0], y[:, 0]), y[:, 0])) == pytest.approx(1, abs=1e-14)


REFUSED = [
    ({"f": 3}, "f=3 is not allowed: it is a function of the parameters and one input"),
    ({"f": lambda p, x: (x, x)}, "f= is not allowed: for one input it gives one array of real floats"),
    ({"f": lambda p, x: jnp.argmax(x)}, "f= is not allowed: for one input it gives one array of real floats"),
    ({"f": lambda p, x: x[:0]}, "f= is not allowed: for one input it gives one array of real floats"),
    ({"params": {"v": np.arange(3)}}, "params= is not allowed: it leaves no parameters that are floats"),
    ({"params": {"v": np.ones(2, complex)}}, "params= is not allowed: the parameters are real"),
    ({"x": np.float32(1)}, "x=1.0 is not allowed: it is an array of one input or more"),
    ({"x": np.ones((0, D))}, "x=float64.0,4. is not allowed: it is an array of one input or more"),
    ({"x": (np.ones((2, D)), np.ones(3))}, "x=.* is not allowed: it is an array of one input or more"),
    ({"x": "words"}, "x= is not allowed: its leaves are arrays of numbers"),
    (
        {"f": lambda p, x: x, "x": np.ones((2, D)), "other": np.ones((2, 3))},
        "other= is not allowed: f has 3 outputs of it, and 4 of",
    ),
    ({"trace": 1}, "trace=1 is not allowed: trace is True or False"),
    ({"batch": 0}, "batch=0 is not allowed: batch is at least 1"),
    ({"batch": 2.5}, "batch=2.5 is not allowed: batch is a whole number, at least 1"),
    ({"by": "magic"}, "by=magic is not allowed: it is jacobians or products for the full kernel, or None"),
    ({"by": "products", "trace": True}, "by=products is not allowed: it is jacobians or products for the full kernel"),
    ({"part": lambda name: False}, "part= is not allowed: it leaves no parameters that are floats"),
    ({"part": lambda name: "yes"}, "part=yes is not allowed: part is True or False"),
    ({"part": {"w": True}}, "part= is not allowed: it is a function of names, or a tree of True and False like the parameters"),
    ({"part": {"w": 1, "b": 0, "v": 0}}, "part=[01] is not allowed: part is True or False"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_bad_inputs_are_refused_in_one_sentence(change, message):
    fine = {"f": perceptron, "params": drawn(dtype="float32"), "x": inputs(3, dtype="float32")}
    with pytest.raises(UsageError, match=message) as refused:
        empirical_ntk(**(fine | change))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernel_alignment(np.eye(2), np.eye(3)), r"a=.*, b=.* are not allowed: they are kernels of one shape"),
        (
            lambda: kernel_alignment(np.ones((0, 0)), np.ones((0, 0))),
            "are not allowed: they are kernels of one shape, with entries",
        ),
        (lambda: kernel_alignment(np.eye(2) * 1j, np.eye(2)), "a=.* is not allowed: it is an array of real numbers"),
        (lambda: kernel_alignment("a", np.eye(2)), "a= is not allowed: its leaves are arrays of numbers"),
        (lambda: target_alignment(np.eye(2), np.ones(3)), r"kernel=.*, y=.* are not allowed: a kernel is \[n, n\]"),
        (lambda: target_alignment(np.ones((2, 2, 3, 3)), np.ones((2, 2))), r"are not allowed: a kernel is \[n, n\] or"),
    ],
)
def test_bad_kernels_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()
