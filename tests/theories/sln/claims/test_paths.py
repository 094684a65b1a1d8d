"""Judges on embeddings made of the spectrum, and on networks that solve everything or nothing."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.theories.sln.claims import paths


def data(weights, noise=0.0):
    """Two runs on four graphs, embedded by their modes with weights of the eigenvalues."""
    rng = np.random.default_rng(0)
    table = [a for a in graphs.connected(5) if a.sum() // 2 == 7][:4]
    each = {"embedding": [], "vectors": [], "values": [], "squared": []}
    for a in table:
        ends = np.argwhere(np.triu(a))
        share = (ends[:, None, :, None] == ends[None, :, None, :]).any((2, 3)) & ~np.eye(7, dtype=bool)
        root = share.sum(1) ** -0.5
        values, vectors = np.linalg.eigh(np.eye(7) - root[:, None] * share * root)
        h = vectors[:, 1:] * weights(values[1:])
        each["embedding"].append(h + noise * rng.normal(size=h.shape))
        each["vectors"].append(vectors)
        each["values"].append(values)
        each["squared"].append(((h[:, None] - h) ** 2).sum(-1)[None])
    axes = {
        "embedding": "graph edge unit",
        "vectors": "graph edge mode",
        "values": "graph mode",
        "squared": "graph metric edge other",
    }
    both = {name: (("seed", *axes[name].split()), np.stack([np.stack(x)] * 2)) for name, x in each.items()}
    ds = xr.Dataset(both).assign_coords(seed=[0, 1])
    return ds.assign(real=xr.ones_like(ds.embedding.isel(unit=0)), unlearned=ds.embedding * 0 + rng.normal(size=ds.embedding.shape))


def test_an_embedding_by_the_spectrum_is_matched():
    ds = data(lambda v: 1 / v)
    assert float(paths.distance_correlations(ds).min()) > 0.999
    rho, limit, share = (paths.each_graph(ds, ds.embedding).isel(quantity=i) for i in range(3))
    assert float(rho.mean()) > 0.9 and float(share.min()) > 0.6
    names = [c.name for c in paths.judge_embedding(ds)]
    assert len(set(names)) == 4
    moved = paths.each_graph(ds, paths.permuted(ds).embedding).isel(quantity=0)
    assert float(moved.mean()) < float(rho.mean()) - 0.1 and float(limit.max()) <= 1


def test_accuracy_apart_by_distance():
    right = xr.DataArray(np.ones((2, 400)), dims=("seed", "problem"), coords={"seed": [0, 1]})
    distance = xr.DataArray(np.tile([1.0, 2.0], (2, 200)), dims=("seed", "problem"))
    ds = xr.Dataset({"measured_right": right, "distance": distance})
    assert [c.value for c in paths.judge_accuracy(ds.assign(measured_right=right.where(distance == 1, 0)))] == [1, 0]
    assert [c.value for c in paths.judge_accuracy(ds)] == [1, 1]


def test_claims_are_measured_and_have_opponents():
    assert all(c.expected == "measured" and c.controls and c.rivals and c.found for c in paths.CLAIMS)
    assert all(isinstance(c, jd.Claim) for c in paths.CLAIMS)
