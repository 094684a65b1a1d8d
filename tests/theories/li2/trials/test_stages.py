"""What is watched along training, against plain NumPy and autodiff; and when each layer moves most, from planted curves."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials import stages, training
from jaxdyn.theories.li2.trials.training import Run, Training

S = Training(group="5", hidden=6, share=0.6, epochs=4, every=1, dtype="float64")


WATCH = jax.jit(lambda now, before, d: stages.watch(S, now, before, d))


@jax.jit
def drawn(key):
    """Data, weights now and at the record before."""
    k_data, k_now, k_before = jax.random.split(key, 3)
    return training.data(S, k_data), *(model.init(k, 5, S.hidden, S.dtype) for k in (k_now, k_before))


def watched():
    d, now, before = drawn(jax.random.key(3))
    return d, now, before, WATCH(now, before, d)


def test_norms_and_overlaps_are_those_of_dense_matrices(x64):
    d, now, before, seen = watched()
    known = np.asarray(d.number).ravel() < int(d.count)
    samples, labels = np.asarray(d.samples).reshape(-1, 2)[known], np.asarray(d.labels).ravel()[known]
    w, v = map(np.asarray, now)
    f = (w[samples[:, 0]] + w[5 + samples[:, 1]]) ** 2
    tilde, y = f - f.mean(0), np.eye(5)[labels] - np.eye(5)[labels].mean(0)
    slope = jax.jit(jax.grad(model.loss))(now, samples, labels)
    expected = {
        "sent": np.linalg.norm((y - tilde @ v) @ v.T),
        "pull_v": np.linalg.norm(slope.v),
        "pull_w": np.linalg.norm(slope.w),
        "change_v": np.linalg.norm(v - np.asarray(before.v)),
        "change_w": np.linalg.norm(w - np.asarray(before.w)),
    }
    for name, gram in (("nodes", tilde.T @ tilde), ("samples", tilde @ f.T)):
        off = ~np.eye(len(gram), dtype=bool)
        expected[name] = np.abs(gram[off]).mean() / np.abs(np.diag(gram)).mean()
    for name, value in expected.items():
        np.testing.assert_allclose(seen[name], value, rtol=1e-9, err_msg=name)
    gram = tilde.T @ tilde
    above = np.abs(gram[np.triu_indices(len(gram), 1)])
    np.testing.assert_allclose(seen["high"], np.quantile(above, stages.HIGH) / np.diag(gram).mean(), rtol=1e-9)


def test_held_out_pairs_do_not_show(x64):
    """With all labels but those trained on changed, nothing that is watched changes."""
    d, now, before, seen = watched()
    other = d._replace(labels=jnp.where(d.number < d.count, d.labels, (d.labels + 1) % 5))
    again = WATCH(now, before, other)
    for name, value in seen.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-12, err_msg=name)
    assert parse(S.group).order ** 2 > int(d.count), "there are such pairs"


def test_the_trial_tells_when_layers_move_most(monkeypatch, x64):
    curves = {name: jnp.asarray(values) for name, values in {
        "change_v": [0.0, 3, 1], "change_w": [0.0, 1, 2], "pull_v": [5.0, 4, 3], "pull_w": [2.0, 6, 1],
        "nodes": [0.1, 0.3, 0.2], "samples": [0.5, 0.4, 0.1],
    }.items()}  # fmt: skip
    monkeypatch.setattr(stages, "train", lambda s, key, watch: Run(None, curves))
    seen = stages.trial(dataclasses.replace(S, every=2), jax.random.key(0))
    found = {name: float(seen.recorded[name].value) for name in ("peak_v", "peak_w", "rise")}
    assert found == {"peak_v": 2, "peak_w": 4, "rise": 3}
    assert [float(seen.measured[name].value) for name in ("nodes", "samples")] == [0.3, 0.5]
