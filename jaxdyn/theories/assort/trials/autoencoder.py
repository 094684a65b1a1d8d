"""The autoencoder of traces before and after its training, on traces that it was not trained on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data.traces import Problem
from jaxdyn.nn import vq
from jaxdyn.theories.assort.coder import Coding, begun, fitted, problems, recode, restored

__all__ = ["HELD_OUT", "trial"]

HELD_OUT = 256  # problems


def seen(s: Coding, coder: vq.Params, held: Problem, key: PRNGKeyArray) -> dict[str, Float[Array, ""]]:
    """Share of tokens restored from their codes and from codes renamed at random, and how many codes are in use."""
    codes = recode(s, coder, held.trace)
    other = jax.random.permutation(key, s.codes).astype(jnp.int32)[codes]
    share = {name: jnp.mean(restored(s, coder, held.trace, held.prompt, z)) for name, z in (("own", codes), ("other", other))}
    return {"restored": share["own"], "mixed": share["other"], "perplexity": vq.perplexity(codes, s.codes, s.dtype)}


def trial(s: Coding, key: PRNGKeyArray) -> jd.Observables:
    """Train, and observe before and after."""
    k_fit, k_held, k_mix = jax.random.split(key, 3)
    held = problems(s, k_held, HELD_OUT)
    last, first = fitted(s, k_fit), begun(s, jax.random.split(k_fit)[0])
    end, start = seen(s, last, held, k_mix), seen(s, first, held, k_mix)
    return jd.observables(
        predicted={},
        measured={name: end[name] for name in ("restored", "perplexity")},
        recorded={"mixed": end["mixed"]} | {f"start_{name}": start[name] for name in ("restored", "perplexity")},
        status=train.finite_status(last),
    )
