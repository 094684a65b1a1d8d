r"""Random weights in networks for several groups, zero modes included: their transform and back, and the loss in all its forms.

Groups are cyclic and products, even orders among them; arrays of different groups are padded with zeros. Letters as in ``model.py``
and ``dynamics/spectrum.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import gram, model
from jaxdyn.theories.cogo.dynamics import spectrum
from jaxdyn.theories.cogo.trials.padding import padded, parts

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


def trial(s: Weights, key: PRNGKeyArray) -> jd.Observables:
    """Random weights of every group: transform and back, and all forms of the loss."""
    groups = [parse(name) for name in s.groups]
    k_weights, k_split = jax.random.split(key)
    sizes = [9 * group.order * s.hidden for group in groups]
    normal = jax.random.normal(k_weights, (sum(sizes),), jnp.float64)  # one draw for all groups compiles faster
    uniform = jax.random.uniform(k_split, (sum(group.order**2 for group in groups),), jnp.float64)
    draws = jnp.split(normal, np.cumsum(sizes[:-1])), jnp.split(uniform, np.cumsum([group.order**2 for group in groups[:-1]]))
    one = [_one(s, group, *drawn) for group, *drawn in zip(groups, *draws, strict=True)]
    each = {name: [row[name] for row in one] for name in one[0]}

    def stacked(*names: str) -> Float[Array, "form group"]:
        return jnp.stack([jnp.stack(each[name]) for name in names])

    def forms(name: str) -> Float[Array, "form part group entry"]:
        return jnp.stack([parts(each[f"printed_{name}"]), parts(each[name])])

    dims = "form part group entry"
    return jd.observables(
        predicted={
            "weights": jd.named(jnp.stack([padded(each["printed_back"]), padded(each["back"])]), "form group entry"),
            "mirror": jd.named(forms("mirror"), dims),
            "power": jd.named(stacked("printed_power", "power"), "form group"),
            "imaginary": jd.named(jnp.stack(each["imaginary"]), "group"),
            "loss": jd.named(stacked("printed_loss", "loss"), "form group"),
            "centred": jd.named(jnp.stack(each["centred"]), "group"),
            "gram": jd.named(jnp.stack(each["gram"]), "group"),
        },
        measured={
            "weights": jd.named(padded(each["w"]), "group entry"),
            "mirror": jd.named(forms("z"), dims),
            "power": jd.named(jnp.stack(each["square"]), "group"),
            "imaginary": jd.named(jnp.stack(each["synthesised"]), "group"),
            "loss": jd.named(jnp.stack(each["direct"]), "group"),
            "centred": jd.named(jnp.stack(each["direct_centred"]), "group"),
            "gram": jd.named(jnp.stack(each["direct"]), "group"),
        },
        recorded={
            "talks_weights": jd.named(padded(each["printed_back"]), "group entry"),
            "talks_mirror": jd.named(parts(each["printed_mirror"]), "part group entry"),
            "talks_spectrum": jd.named(parts(each["printed_z"]), "part group entry"),
            "talks_power": jd.named(jnp.stack(each["printed_power"]), "group"),
            "without_zero_modes": jd.named(jnp.stack(each["printed_loss"]), "group"),
        },
        coords={"form": ("printed", "derived"), "part": ("re", "im"), "group": s.groups},
    )


def _one(s: Weights, group: Abelian, normal: Float[Array, " n"], uniform: Float[Array, " p"]) -> dict[str, Array]:
    """All sides of all identities for one group; the printed decomposition is the one of spectra whose zero modes are dropped."""
    d = group.order
    w, *free = normal.reshape(3, 3, d, s.hidden)
    w, free, only = s.std * w, jax.lax.complex(*free), uniform.reshape(d, d) >= s.held_out
    z, talks = spectrum.transform(w, group), printed_transform(w)
    centred = w - jnp.mean(w, 1, keepdims=True)

    def direct(w: Float[Array, "3 d q"]) -> Float[Array, ""]:
        square, relu = (model.loss(w, group, "paper", only, kind) for kind in ("quadratic", "relu"))
        return jnp.where(s.activation == "quadratic", square, relu)

    whole, around = jax.vmap(direct)(jnp.stack([w, centred]))
    shown = jnp.stack([z, z.at[:2, 0].set(0), spectrum.transform(centred, group)])
    decomposed = jax.vmap(lambda z: spectrum.loss(z, group))(shown)

    def mirror(z: Complex[Array, "3 d q"]) -> Complex[Array, "3 d q"]:
        return spectrum.negated(z, group)

    return {
        "w": w,
        "back": spectrum.inverse(z, group),
        "printed_back": spectrum.inverse(talks, group),
        "z": z,
        "mirror": mirror(z),
        "printed_z": talks,
        "printed_mirror": mirror(talks),
        "square": jnp.sum(jnp.square(w)),
        "power": d * jnp.sum(jnp.square(jnp.abs(z))),
        "printed_power": d * jnp.sum(jnp.square(jnp.abs(talks))),
        "imaginary": d * jnp.sum(jnp.square(jnp.abs(free - mirror(free)))) / 4,
        "synthesised": jnp.sum(jnp.square(spectrum.inverse(-1j * free, group))),  # the real part of -iw is the imaginary one of w
        "loss": decomposed[0],
        "printed_loss": decomposed[1],
        "centred": decomposed[2],
        "direct": whole,
        "direct_centred": around,
        "gram": gram.loss(model.to_scale(w, group, "code"), group, "code"),
    }
