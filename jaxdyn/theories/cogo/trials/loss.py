r"""Random weights in networks for several groups, zero modes included: their transform and back, and the loss in all its forms.

Groups are cyclic and products, even orders among them; arrays of different groups are padded with zeros. Letters as in ``model.py``
and ``dynamics/spectrum.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, PRNGKeyArray, Shaped

import jaxdyn as jd
from jaxdyn import sampling
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import gram, model
from jaxdyn.theories.cogo.dynamics import spectrum

__all__ = ["Weights", "printed_transform", "trial"]


@jd.setting
class Weights:
    """Gaussian weights in networks for several groups; ``held_out`` and ``activation`` break assumptions."""

    std: jd.Swept = 1.0
    held_out: jd.Swept = 0.0  # share of the pairs that the network's loss leaves out
    activation: jd.Code = jd.code("quadratic", "relu")
    groups: tuple[str, ...] = ("5", "8", "2x4", "3x3")
    hidden: int = 8

    def __post_init__(self) -> None:
        """Refuse groups without a name, empty networks, weights that are all zero, and losses over no pair."""
        for name in self.groups:
            parse(name)
        jd.require(self, len(self.groups) > 0, "there is at least one group", "groups")
        jd.require(self, self.hidden > 0, "there is at least one hidden node", "hidden")
        jd.require(self, self.std > 0, "std is positive", "std")
        jd.require(self, 0 <= self.held_out < 0.9, "0 <= held_out < 0.9", "held_out")


def printed_transform(w: Float[Array, "3 d q"]) -> Complex[Array, "3 d q"]:
    r"""The talks' :math:`Z_k = \sum_m w_m e^{imk/d}`: without the full turn, without 1/d, and the same for all layers."""
    d = w.shape[1]
    turns = np.outer(np.arange(d), np.arange(d)) / d
    return jnp.einsum("km,pmj->pkj", jnp.asarray(np.exp(1j * turns)), w.astype(jnp.complex128))


class Sides(NamedTuple):
    """Both sides of all identities for one group, in few arrays: a program's compilation takes as long as it has operations."""

    weights: Float[Array, "3 n"]  # back from the talks' spectrum, back from the spectrum, the weights themselves
    spectra: Complex[Array, "2 n"]  # of the talks, ours
    mirrors: Complex[Array, "2 n"]
    power: Float[Array, "3"]  # Parseval's sum of the talks' spectrum, of ours; the squared norm of the weights
    imaginary: Float[Array, "2"]  # squared norm of the imaginary part of weights: from their spectrum, and synthesised
    decomposed: Float[Array, "3"]  # zero modes dropped, as printed; kept; of centred weights
    direct: Float[Array, "2"]  # of the weights, of centred weights
    gram: Float[Array, ""]


def trial(s: Weights, key: PRNGKeyArray) -> jd.Observables:
    """Random weights of every group: transform and back, and all forms of the loss."""
    groups = [parse(name) for name in s.groups]
    k_weights, k_split = jax.random.split(key)
    sizes, pairs = (np.cumsum(each) for each in ([9 * g.order * s.hidden for g in groups], [g.order**2 for g in groups]))
    normal = jnp.split(sampling.normal(k_weights, (sizes[-1],)), sizes[:-1])  # one draw compiles faster than many
    uniform = jnp.split(jax.random.uniform(k_split, (pairs[-1],), jnp.float64), pairs[:-1])
    each = [_sides(s, *drawn) for drawn in zip(groups, normal, uniform, strict=True)]
    longest = max(x.weights.shape[-1] for x in each)
    each = [jax.tree.map(lambda x, n=e.weights.shape[-1]: _widened(x, n, longest), e) for e in each]
    x = jax.tree.map(lambda *rows: jnp.stack(rows, -1 if rows[0].ndim < 2 else 1), *each)
    mirrors, spectra = (jnp.stack([v.real, v.imag], 1) for v in (x.mirrors, x.spectra))
    dims = "form part group entry"
    return jd.observables(
        predicted={
            "weights": jd.named(x.weights[:2], "form group entry"),
            "mirror": jd.named(mirrors, dims),
            "power": jd.named(x.power[:2], "form group"),
            "imaginary": jd.named(x.imaginary[0], "group"),
            "loss": jd.named(x.decomposed[:2], "form group"),
            "centred": jd.named(x.decomposed[2], "group"),
            "gram": jd.named(x.gram, "group"),
        },
        measured={
            "weights": jd.named(x.weights[2], "group entry"),
            "mirror": jd.named(spectra, dims),
            "power": jd.named(x.power[2], "group"),
            "imaginary": jd.named(x.imaginary[1], "group"),
            "loss": jd.named(x.direct[0], "group"),
            "centred": jd.named(x.direct[1], "group"),
            "gram": jd.named(x.direct[0], "group"),
        },
        recorded={
            "talks_weights": jd.named(x.weights[0], "group entry"),
            "talks_mirror": jd.named(mirrors[0], "part group entry"),
            "talks_spectrum": jd.named(spectra[0], "part group entry"),
            "talks_power": jd.named(x.power[0], "group"),
            "without_zero_modes": jd.named(x.decomposed[0], "group"),
        },
        coords={"form": ("printed", "derived"), "part": ("re", "im"), "group": s.groups},
    )


def _widened(x: Shaped[Array, "*k n"], entries: int, longest: int) -> Shaped[Array, "*k m"]:
    """Rows of that many entries with zeros at their ends; other arrays as they are."""
    return jnp.pad(x, ((0, 0), (0, longest - entries))) if x.ndim == 2 else x


def _sides(s: Weights, group: Abelian, normal: Float[Array, " n"], uniform: Float[Array, " p"]) -> Sides:
    """Both sides for one group; the printed decomposition is that of spectra whose zero modes are dropped."""
    d = group.order
    w, *free = normal.reshape(3, 3, d, s.hidden)
    w, free, only = s.std * w, jax.lax.complex(*free), uniform.reshape(d, d) >= s.held_out
    both = jnp.stack([w, w - jnp.mean(w, 1, keepdims=True)])
    z, centred = jax.vmap(lambda w: spectrum.transform(w, group))(both)
    spectra = jnp.stack([printed_transform(w), z, -1j * free])  # the real part of -iw is the imaginary one of w
    back = jax.vmap(lambda z: spectrum.inverse(z, group))(spectra)
    mirrors = jax.vmap(lambda z: spectrum.negated(z, group))(spectra)
    power = d * jnp.sum(jnp.square(jnp.abs(spectra[:2])), (1, 2, 3))
    imaginary = d * jnp.sum(jnp.square(jnp.abs(spectra[2] + mirrors[2]))) / 4
    decomposed = jax.vmap(lambda z: spectrum.loss(z, group))(jnp.stack([z.at[:2, 0].set(0), z, centred]))
    return Sides(
        weights=jnp.concatenate([back[:2], w[None]]).reshape(3, -1),
        spectra=spectra[:2].reshape(2, -1),
        mirrors=mirrors[:2].reshape(2, -1),
        power=jnp.append(power, jnp.sum(jnp.square(w))),
        imaginary=jnp.stack([imaginary, jnp.sum(jnp.square(back[2]))]),
        decomposed=decomposed,
        direct=jax.vmap(lambda w: model.loss(w, group, "paper", only, s.activation))(both),
        gram=gram.loss(model.to_scale(w, group, "code"), group, "code"),
    )
