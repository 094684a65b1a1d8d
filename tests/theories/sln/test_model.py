"""Shares on a square and a path by hand, and rows as numbers of one program."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.sln import model
from jaxdyn.theories.sln.dynamics import line


def test_square_and_path():
    names = ("sym, 1, all", "rw, 1/lam, all")
    square = np.roll(np.eye(4, dtype=bool), 1, 0) | np.roll(np.eye(4, dtype=bool), -1, 0)
    path = np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    with jax.enable_x64(True):
        rows = model.stack([line.EMBEDDINGS[name] for name in names])
        for graph in (square, path):
            found = jax.jit(model.routed, static_argnums=2)(jnp.asarray(graph), rows, 6)
            pairs, far = model.targets(jnp.asarray(graph))
            shares = np.asarray(model.share(found.success, pairs))
            assert int(pairs.sum()) == 12 and int(far.sum()) == 12 - graph.sum()
            assert shares[1] == 1 and shares[2] == 1 and bool(jnp.all(found.sure[1] == 1))
            assert abs(shares[3] - 0.5) < 1e-12  # from 0 on the path: 1, 1/2, 1/4; from 1: 1/2, 1/2, 1/4


def test_share_without_pairs():
    assert float(model.share(jnp.zeros((3, 3)), jnp.zeros((3, 3), bool))) == 1


def test_rows():
    with jax.enable_x64(True):
        rows = model.stack(list(line.EMBEDDINGS.values()))
    assert rows.walk.shape == (13,) and model.METHODS[:13] == tuple(line.EMBEDDINGS)
    assert float(rows.power[model.METHODS.index("rw, 1/lam^2, all")]) == 2
