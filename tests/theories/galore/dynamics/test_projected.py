"""Descent within fixed subspaces: rates, their order, and the end, against iteration by hand."""

import numpy as np

from jaxdyn.theories.galore.dynamics.projected import within


def test_rates_and_end(x64):
    rng = np.random.default_rng(0)
    b, c = (np.stack([m @ m.T / 6 + 0.3 * np.eye(6) for m in rng.normal(size=(3, 6, 6))]) for _ in range(2))
    g = rng.normal(size=(6, 6))
    p, q = (np.linalg.qr(rng.normal(size=(6, r)))[0] for r in (2, 3))
    theory = within(b, c, g, p, q)
    small = np.mean([np.kron(q.T @ c[i] @ q, p.T @ b[i] @ p) for i in range(3)], 0)
    values = np.linalg.eigvalsh(small)
    np.testing.assert_allclose([theory.slowest, theory.fastest], values[[0, -1]], rtol=1e-10)
    kappa = np.mean([np.linalg.eigvalsh(p.T @ b[i] @ p)[0] * np.linalg.eigvalsh(q.T @ c[i] @ q)[0] for i in range(3)])
    np.testing.assert_allclose(theory.kappa, kappa, rtol=1e-10)
    assert kappa <= values[0]
    w = np.zeros((6, 6))
    for _ in range(4000):
        now = g - np.mean([b[i] @ w @ c[i] for i in range(3)], 0)
        w = w + p @ (p.T @ now @ q) @ q.T / values[-1]
    np.testing.assert_allclose(theory.rest, now, atol=1e-9)
    np.testing.assert_allclose(p.T @ theory.rest @ q, 0, atol=1e-12)
