r"""One network trained, its key frequencies determined from the *training* pairs at the end, and every record measured with them.

Letters as in ``model.py`` and ``dynamics/progress.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.nanda import model
from jaxdyn.theories.nanda.dynamics import progress
from jaxdyn.theories.nanda.trials.training import Training, train, training_mask

__all__ = ["CURVES", "KEPT", "explained", "measures", "relabelled", "trial"]

KEPT = 0.999  # share of the squared amplitudes that the key frequencies carry
SHOWN = 256  # test pairs whose logits are kept
CURVES = ("train_loss", "test_loss", "restricted_loss", "excluded_loss", "test_accuracy", "gini", "norm")


def mean(values: Float[Array, " n"], only: Bool[Array, " n"]) -> Float[Array, ""]:
    """Mean over the entries in ``only``."""
    return jnp.sum(jnp.where(only, values, 0)) / jnp.sum(only).astype(values.dtype)


def measures(w: model.Params, keys: Bool[Array, " f"], training: Bool[Array, " p*p"]) -> dict[str, Float[Array, ""]]:
    """Losses and accuracies, restricted and trigonometric loss on test pairs, excluded loss on training pairs, Gini, norm.

    Pairs are taken in the order of their sums, of which alone the logits of the algorithm and the restricted ones are functions.
    """
    p = w.unembed.shape[1]
    order = progress.numbers_by_sum(p).ravel()
    training, answers = training[order], jnp.repeat(jnp.arange(p, dtype=jnp.int32), p)
    z = model.logits(w, model.all_pairs(p)[order])
    each, right = model.loss(z, answers), (jnp.argmax(z, 1) == answers).astype(z.dtype)
    cube, known = z.reshape(p, p, p), training.reshape(p, p)
    key = progress.key_part_by_sum(jnp.mean(cube, 1), keys)
    alpha = jnp.where(keys, progress.amplitudes_by_sum(jnp.sum(jnp.where(known[..., None], cube, 0), 1), jnp.sum(training)), 0)
    by_sum = model.loss(jnp.concatenate([key + jnp.mean(z, 0), progress.trig_logits_by_sum(alpha, p)]), jnp.tile(answers[::p], 2))
    restricted, trig = jnp.sum(by_sum.reshape(2, p) * jnp.sum(~known, 1).astype(z.dtype), 1) / jnp.sum(~known).astype(z.dtype)
    return {
        "train_loss": mean(each, training),
        "test_loss": mean(each, ~training),
        "train_accuracy": mean(right, training),
        "test_accuracy": mean(right, ~training),
        "restricted_loss": restricted,
        "trig_loss": trig,
        "excluded_loss": mean(model.loss((cube - key[:, None]).reshape(p * p, p), answers), training),
        "gini": progress.gini(progress.spectrum(w.embed[:-1])),
        "norm": model.norm(w),
    }


def relabelled(
    z: Float[Array, "p*p p"], order: Int[Array, " p"]
) -> tuple[Float[Array, "p*p p"], Int[Array, " p*p"], Int[Array, " p*p"]]:
    """The same network with its residues renamed, residue order[i] to i: its logits, its answers, each pair's new number."""
    p = z.shape[1]
    names = jnp.argsort(order).astype(jnp.int32)
    pairs = model.all_pairs(p)
    cube = z.reshape(p, p, p)[order][:, order][:, :, order].reshape(p * p, p)
    return cube, names[model.answers(order[pairs], p)], names[pairs[:, 0]] * p + names[pairs[:, 1]]


def explained(
    z: Float[Array, "p*p p"], answers: Int[Array, " p*p"], training: Bool[Array, " p*p"], shown: Int[Array, " n"]
) -> tuple[Bool[Array, " f"], dict[str, Float[Array, "*n p"]]]:
    """Key frequencies and amplitudes from the training pairs, and what they predict for some test pairs.

    Kept are the logits without what no softmax depends on (their mean over answers) and without the mean over training pairs,
    those of the algorithm, the restricted test loss, and the excluded training loss.
    """
    pairs = model.all_pairs(z.shape[1])
    alpha = progress.amplitudes(z, pairs, training)
    keys = progress.key_frequencies(alpha, KEPT)
    centred = z - jnp.mean(z, 1, keepdims=True)
    usual = jnp.sum(jnp.where(training[:, None], centred, 0), 0) / jnp.sum(training).astype(z.dtype)
    return keys, {
        "algorithm": progress.trig_logits(jnp.where(keys, alpha, 0), pairs[shown], z.shape[1]),
        "logits": centred[shown] - usual,
        "restricted": mean(model.loss(progress.restricted(z, keys), answers), ~training),
        "excluded": mean(model.loss(progress.excluded(z, keys), answers), training),
    }


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Train a network; take it apart at the end, at the start, and at the end with its residues renamed at random."""
    k_train, k_names = jax.random.split(key)
    run = train(s, k_train)
    training, shown, pairs = training_mask(run, s.p), run.test[:SHOWN], model.all_pairs(s.p)
    answers = model.answers(pairs, s.p)
    ends = jax.tree.map(lambda x: jnp.stack([x[-1], x[0]]), run.weights)
    end, start = jax.lax.map(lambda w: model.logits(w, pairs), ends)
    other, renamed, numbers = relabelled(end, jax.random.permutation(k_names, jnp.arange(s.p, dtype=jnp.int32)))
    cases = (
        jnp.stack([end, start, other]),
        jnp.stack([answers, answers, renamed]),
        jnp.stack([training, training, jnp.zeros_like(training).at[numbers].set(training)]),
        jnp.stack([shown, shown, numbers[shown]]),
    )
    all_keys, parts = jax.lax.map(lambda case: explained(*case), cases)  # one program for the three cases
    keys = all_keys[0]
    curves = jax.lax.map(lambda w: measures(w, keys, training), run.weights)

    def part(name: str, case: int) -> jd.Named:
        return jd.named(parts[name][case], "pair answer" if parts[name].ndim == 3 else "")

    return jd.observables(
        predicted={
            "logits": part("algorithm", 0),
            "chance": jnp.full((), np.log(s.p), s.dtype),
            "restricted": jd.named(curves.pop("trig_loss"), "epoch"),
        },
        measured={
            "logits": part("logits", 0),
            "chance": part("excluded", 0),
            "restricted": jd.named(curves["restricted_loss"], "epoch"),
        },
        recorded={
            "keys": jd.named(keys.astype(s.dtype), "frequency"),
            **{name: jd.named(curve, "epoch") for name, curve in curves.items()},
            **{f"start_{name}": part(name, 1) for name in ("algorithm", "logits")},
            **{f"renamed_{name}": part(name, 2) for name in parts},
        },
        assumed={"test_accuracy": curves["test_accuracy"][-1]},
        coords={"epoch": range(0, s.epochs + 1, s.every), "frequency": range(1, (s.p + 1) // 2)},
    )
