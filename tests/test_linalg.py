"""Batched factorisations: NumPy's numbers, loops instead of waiting threads, and nobody who goes around them."""

import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn
from jaxdyn import linalg

MANY = """
import jax, jax.numpy as jnp
from jaxdyn import linalg
x = jax.random.normal(jax.random.key(0), (12, 4, 40, 40))
many = jax.jit(lambda x: [linalg.solve(a @ jnp.swapaxes(a, 1, 2) + jnp.eye(40), a) for a in x])
for _ in range(10):
    jax.block_until_ready(many(x))
print("done")
"""


@pytest.fixture
def matrices():
    return np.random.default_rng(0).normal(size=(3, 2, 6, 4))


def test_symmetric_functions_are_numpys(matrices, x64):
    a = matrices @ np.swapaxes(matrices, -1, -2) + np.eye(6)
    values, vectors = linalg.eigh(jnp.asarray(a))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=1e-12)
    np.testing.assert_allclose(linalg.eigvalsh(jnp.asarray(a)), values, rtol=1e-12)
    np.testing.assert_allclose(vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2), a, atol=1e-12)
    np.testing.assert_allclose(linalg.inv(jnp.asarray(a)), np.linalg.inv(a), atol=1e-12)
    np.testing.assert_allclose(linalg.solve(jnp.asarray(a), jnp.asarray(matrices)), np.linalg.solve(a, matrices), atol=1e-12)
    vector = linalg.solve(jnp.asarray(a), jnp.asarray(matrices[..., 0]))
    np.testing.assert_allclose(vector, np.linalg.solve(a, matrices[..., :1])[..., 0], atol=1e-12)


def test_decompositions_are_numpys(matrices, x64):
    u, s, vt = linalg.svd(jnp.asarray(matrices))
    np.testing.assert_allclose(u * s[..., None, :] @ vt, matrices, atol=1e-12)
    np.testing.assert_allclose(linalg.singular_values(jnp.asarray(matrices)), np.linalg.svd(matrices)[1], rtol=1e-12)
    q, r = linalg.qr(jnp.asarray(matrices))
    np.testing.assert_allclose(q @ r, matrices, atol=1e-12)
    np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(4), (3, 2, 4, 4)), atol=1e-12)
    solution = linalg.lstsq(jnp.asarray(matrices[0, 0]), jnp.ones((6, 1)), 1e-9)
    np.testing.assert_allclose(solution, np.linalg.lstsq(matrices[0, 0], np.ones((6, 1)), 1e-9)[0], atol=1e-12)


def test_vmap_is_the_loop(matrices, x64):
    x = jnp.asarray(matrices[:, 0])
    together = jax.jit(jax.vmap(linalg.singular_values))(x)
    np.testing.assert_array_equal(together, jnp.stack([linalg.singular_values(a) for a in x]))


def test_a_dozen_batches_in_one_program_come_to_an_end():
    ended = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.strip() == "done"


def test_nothing_else_factorises_matrices_in_a_program():
    fault = re.compile(r"jnp\.linalg\.(eig|svd|qr|solve|inv|lstsq|pinv|cholesky)|jax\.scipy\.linalg|lax\.linalg")
    package = Path(jaxdyn.__file__).parent
    files = [p for p in package.rglob("*.py") if p.name != "linalg.py"]
    assert [str(p.relative_to(package)) for p in files if fault.search(p.read_text())] == []


@pytest.mark.parametrize("shape", [(5,), (7, 5), (2, 3, 5)])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_dense_is_the_product_and_has_its_gradients(x64, shape, dtype):
    x, w, g = (
        jax.random.normal(jax.random.key(i), s, "float64").astype(dtype) for i, s in enumerate((shape, (5, 4), (*shape[:-1], 4)))
    )
    out, back = jax.vjp(linalg.dense, x, w)
    of_x, of_w = back(g)
    assert out.dtype == of_x.dtype == of_w.dtype == dtype
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype == "float64" else {"rtol": 0.02, "atol": 0.05}
    numbers = [np.asarray(a, np.float64) for a in (x, w, g)]
    np.testing.assert_allclose(np.asarray(out, np.float64), numbers[0] @ numbers[1], **close)
    np.testing.assert_allclose(np.asarray(of_x, np.float64), numbers[2] @ numbers[1].T, **close)
    np.testing.assert_allclose(np.asarray(of_w, np.float64), numbers[0].reshape(-1, 5).T @ numbers[2].reshape(-1, 4), **close)


def test_dense_for_many_weights_and_twice_differentiated(x64):
    x, w = jax.random.normal(jax.random.key(0), (3, 6, 5)), jax.random.normal(jax.random.key(1), (3, 5, 4))

    def loss(product, x, w):
        return jnp.sum(jnp.tanh(product(x, w)) ** 3)

    ours, plain = (jax.vmap(jax.grad(lambda x, w, p=p: loss(p, x, w), argnums=(0, 1)))(x, w) for p in (linalg.dense, jnp.matmul))
    for a, b in zip(ours, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    size = lambda p: lambda w: jnp.sum(jax.grad(lambda w: loss(p, x[0], w))(w) ** 2)  # noqa: E731
    np.testing.assert_allclose(jax.grad(size(linalg.dense))(w[0]), jax.grad(size(jnp.matmul))(w[0]), rtol=1e-11, atol=1e-13)
