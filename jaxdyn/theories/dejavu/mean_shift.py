r"""One step of attention with keys equal to queries, on two clouds of tokens: each is drawn together, by a known factor.

With weights :math:`\propto e^{\beta x \cdot y}` over a Gaussian cloud :math:`y \sim N(\mu, \sigma^2)`, the mean of y is that of the
tilted cloud: attention maps a token to

.. math:: x \mapsto \mu + \beta \sigma^2 x,

so every deviation from the mean shrinks by :math:`\beta\sigma^2`, and the cloud's mean moves to :math:`(1 + \beta\sigma^2) \mu`.
The tilted cloud lies :math:`\beta\sigma|\mu|` standard deviations out, where a sample of n tokens has enough of them as long as
this is well below :math:`\sqrt{2\ln n}`; and the other cloud has a share of the weights of about :math:`e^{-2\beta|\mu|^2}`.
Source: arXiv:2310.17157, section 3.3, for the picture (heads as mean shift); the factor: derived, for clouds far apart.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import attention

DRAWN = 4  # one token of so many is in the figure


@jd.setting
class Clouds:
    """Two Gaussian clouds in the plane with centres at +-(distance, 0), and attention on them."""

    beta: jd.Swept = jd.field(1.0, at_least=0)  # inverse temperature of attention
    sigma: jd.Swept = jd.field(0.25, above=0)  # standard deviation of a cloud along each axis
    distance: jd.Swept = 3.0  # distance of each cloud's centre from the origin
    tokens: int = jd.field(512, at_least=8)  # in each cloud


def slope(before: Float[Array, "n d"], after: Float[Array, "n d"]) -> Float[Array, ""]:
    """Factor by which deviations from the mean have grown, by least squares."""
    a, b = (x - jnp.mean(x, 0) for x in (before, after))
    return jnp.sum(a * b) / jnp.sum(jnp.square(a))


def trial(s: Clouds, key: PRNGKeyArray) -> jd.Observables:
    """Growth of deviations and of the mean, of one cloud, by one step of attention."""
    x = s.sigma * jax.random.normal(key, (2 * s.tokens, 2), jnp.float64)
    side = jnp.where(jnp.arange(2 * s.tokens) < s.tokens, 1.0, -1.0)
    x = x.at[:, 0].add(s.distance * side)
    query = x[:, None] * s.beta * 2**0.5  # attention divides by the root of the two entries
    after = attention.attend(query, x[:, None], x[:, None])[0][:, 0]
    here = slice(0, s.tokens)
    mean = jnp.mean(x[here], 0)
    variance = jnp.mean(jnp.square(x[here] - mean))
    factor = s.beta * variance
    return jd.observables(
        predicted={"deviation": factor, "mean": 1 + factor},
        measured={"deviation": slope(x[here], after[here]), "mean": jnp.mean(after[here], 0)[0] / mean[0]},
        recorded={name: jd.named(places[::DRAWN], "token entry") for name, places in (("before", x), ("after", after))},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Mean factors of deviations and of the mean minus their predictions, over the factors."""
    deviation, mean = (1 - ds[f"predicted_{name}"] / ds[f"measured_{name}"] for name in ("deviation", "mean"))
    return [
        jd.mean_within("factor of deviations minus its prediction, relative", deviation, over="seed", low=-0.1, high=0.1),
        jd.mean_within("factor of the cloud's mean minus its prediction, relative", mean, over="seed", low=-0.005, high=0.005),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Tokens before and after one step; factors against their predictions."""
    left, right = fig.subplots(1, 2)
    run = plotting.first_run(ds)
    for name, color in (("before", "third"), ("after", "measured")):
        left.plot(*run[name].transpose("entry", "token").values, ".", markersize=3, color=plotting.COLORS[color], label=name)
    left.set(xlabel="first entry", ylabel="second entry")
    left.legend()
    plotting.scatter(right, ds.predicted_deviation, ds.measured_deviation, label="runs", color="measured")
    right.set(xlabel=r"$\beta\sigma^2$", ylabel="factor of deviations")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Clouds, beta=[0.7, 1.4], sigma=[0.125, 0.25], distance=[2.75, 3.25]),
        paper=jd.grid(Clouds, beta=[0.7, 1.0, 1.4], sigma=[0.15, 0.25], tokens=2048),
        seeds=64,
        paper_seeds=128,
        evidence="algebra",
        source="derived; the picture: arXiv:2310.17157, section 3.3",
    ).claim(
        id="dejavu.mean_shift",
        title="One step of attention contracts each cloud of tokens to its mean",
        statement=r"One step of softmax attention with keys, queries and values equal to the tokens and the inverse temperature "
        r"$\beta$, on two Gaussian clouds of 512 tokens each in the plane, with means $\pm\mu$, multiplies deviations from a "
        r"cloud's mean by $\beta\sigma^2$ and the mean by $1 + \beta\sigma^2$, where $\sigma$ is the clouds' standard deviation: "
        r"to 10% and 0.5%, on average over draws, for $\beta$ of .7 to 1.4, $\sigma$ of .125 to .25 and $|\mu|$ of 2.75 to 3.25. "
        r"(Closer clouds see each other; farther ones have too few tokens where the weights are largest. Attention on random "
        r"tokens, nothing learned.)",
        tested=r"Two clouds of {tokens} tokens in the plane with standard deviation {sigma} and centres at distance {distance} "
        r"from the origin on opposite sides, $\beta$ = {beta}; {seeds} seeds.",
        bounds=jd.tuned(on="0:64", confirmed_on="70000001:70000065"),
        judge=judge,
        holds={"beta": (0.7, 1.4), "sigma": (0.125, 0.25), "distance": (2.75, 3.25)},
        controls={"a high temperature: the clouds merge": {"beta": 0.01}, "wide clouds that overlap": {"sigma": 1.5}},
        rivals={
            "nothing moves": jd.swap(predicted_deviation=1.0, predicted_mean=1.0),
            "every token moves to its cloud's mean": jd.swap(predicted_deviation=0.0, predicted_mean=1.0),
        },
        plot=plot,
        caption="Left: tokens of one run before and after one step of attention. Right: factor of the deviations from a cloud's "
        "mean against its prediction, one point per run.",
    ),
)
