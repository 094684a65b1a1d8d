r"""How far a block can turn a residual stream, how attention draws tokens together, and zeros of ReLU units.

The angle between a residual stream and itself one block later: how small its cosine can be.

.. math:: \cos(x, x + F) = \frac{1 + \rho c}{\sqrt{1 + 2 \rho c + \rho^2}} \ge \sqrt{1 - \rho^2}, \qquad
   \rho = \|F\| / \|x\| < 1,\ c = \cos(x, F)

with equality at :math:`c = -\rho`. Source: arXiv:2310.17157, section 4.3, for the question; formula and bound: derived.

One step of attention with keys equal to queries, on two clouds of tokens: each is drawn together, by a known factor.

With weights :math:`\propto e^{\beta x \cdot y}` over a Gaussian cloud :math:`y \sim N(\mu, \sigma^2)`, the mean of y is that of the
tilted cloud: attention maps a token to

.. math:: x \mapsto \mu + \beta \sigma^2 x,

so every deviation from the mean shrinks by :math:`\beta\sigma^2`, and the cloud's mean moves to :math:`(1 + \beta\sigma^2) \mu`.
The tilted cloud lies :math:`\beta\sigma|\mu|` standard deviations out, where a sample of n tokens has enough of them as long as
this is well below :math:`\sqrt{2\ln n}`; and the other cloud has a share of the weights of about :math:`e^{-2\beta|\mu|^2}`.
Source: arXiv:2310.17157, section 3.3, for the picture (heads as mean shift); the factor: derived, for clouds far apart.

Zeros of ReLU units can be left out: a two-layer MLP, in full and by the units that are largest for each input.
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


@jd.setting
class Residual:
    """A random stream x and its change F by one block."""

    ratio: jd.Swept = jd.field(0.5, above=0)  # rho, norm of F over that of x
    worst: jd.Swept = 0.0  # 1: F at the angle of the bound, 0: in a random direction
    width: int = jd.field(8, at_least=2)  # entries of x


def cosine(a: Float[Array, " d"], b: Float[Array, " d"]) -> Float[Array, ""]:
    """Cosine of the angle between two vectors."""
    return a @ b / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


def cos_trial(s: Residual, key: PRNGKeyArray) -> jd.Observables:
    """Cosines of the two streams, the formula, and the bound."""
    k_x, k_f = jax.random.split(key)
    x, f = (jax.random.normal(k, (s.width,), jnp.float64) for k in (k_x, k_f))
    unit = x / jnp.linalg.norm(x)
    across = f - unit * (unit @ f)
    side = jnp.sqrt(jnp.maximum(1 - s.ratio**2, 0))
    turned = -s.ratio * unit + side * across / jnp.linalg.norm(across)
    f = jnp.where(s.worst > 0.5, turned, f / jnp.linalg.norm(f)) * s.ratio * jnp.linalg.norm(x)
    c = cosine(x, f)
    formula = (1 + s.ratio * c) / jnp.sqrt(1 + 2 * s.ratio * c + s.ratio**2)
    near = cosine(x, x + f)
    return jd.observables(
        predicted={"cosine": formula, "bound": side},
        measured={"cosine": near, "bound": near},
        recorded={"changed": cosine(f, x + f), "linear": 1 - s.ratio, "parabola": 1 - s.ratio**2 / 4, "start": jnp.ones_like(near)},
    )


def judge_cos(ds: xr.Dataset) -> list[jd.Check]:
    """The formula, the bound, and that it is attained."""
    jd.need(ds, worst=(0.0, 1.0))
    short = ds.predicted_bound - ds.measured_bound
    return [
        jd.at_most("cosine minus the formula", abs(ds.measured_cosine - ds.predicted_cosine), 1e-12),
        jd.at_most("bound minus the cosine", short, 1e-12),
        jd.at_most("cosine minus the bound at its angle", -short.sel(worst=1.0), 1e-12),
    ]


def plot_cos(ds: xr.Dataset, fig: Figure) -> None:
    """Cosines over the ratio, and the bound."""
    ax = fig.subplots()
    for value, label, color in ((0.0, "random change", "measured"), (1.0, r"change at $c = -\rho$", "third")):
        part = (ds.sel(worst=value) if "worst" in ds.dims else ds).transpose("ratio", ...)
        ax.plot(part.ratio, part.measured_cosine.values.reshape(part.sizes["ratio"], -1), ".", color=plotting.COLORS[color])
        ax.plot([], [], ".", color=plotting.COLORS[color], label=label)
    ax.plot(part.ratio, part.predicted_bound.values.reshape(part.sizes["ratio"], -1)[:, 0], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel=r"$\rho = \|F\| / \|x\|$", ylabel=r"$\cos(x, x + F)$")
    ax.legend()


RATIOS = [0.1, 0.3, 0.6, 0.9]


COS_BOUND_CLAIMS = (
    jd.Study(
        trial=cos_trial,
        quick=jd.grid(Residual, ratio=RATIOS, worst=[0.0, 1.0]),
        paper=jd.grid(Residual, ratio=RATIOS, worst=[0.0, 1.0], width=[2, 8, 64]),
        seeds=128,
        paper_seeds=512,
        evidence="algebra",
        bounds="derived: float64 rounding of products of up to 64 terms",
        source="derived; the question: arXiv:2310.17157, section 4.3 (slowly changing embeddings)",
    ).claim(
        id="dejavu.cos_bound",
        title="A stream turns by a bounded angle if the change is smaller than it",
        statement=r"A residual stream $x$ and the next one, $x + F$ with $\rho = \|F\| / \|x\| < 1$, have the cosine $(1 + \rho "
        r"c) / \sqrt{1 + 2\rho c + \rho^2}$, where $c$ is the cosine of $x$ and $F$. It is at least $\sqrt{1 - \rho^2}$, with "
        r"equality at $c = -\rho$. (An identity of vectors.)",
        tested=r"Random vectors of {width} entries with $\rho$ = {ratio}, in random directions and at $c = -\rho$; {seeds} "
        "seeds.",
        judge=judge_cos,
        controls={
            r"$\rho = 1.5$": {"ratio": 1.5},
            "the change in place of the stream": jd.swap(measured_cosine="changed", measured_bound="changed"),
        },
        rivals={
            "the stream does not change": jd.swap(predicted_cosine="start", predicted_bound="start"),
            r"$1 - \rho$": jd.swap(predicted_bound="linear"),
            r"$1 - \rho^2 / 4$": jd.swap(predicted_bound="parabola"),
        },
        plot=plot_cos,
        caption="Cosine between a stream and the next one against the relative size of the change; dashed: bound. "
        "One point per run.",
    ),
)


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


def shift_trial(s: Clouds, key: PRNGKeyArray) -> jd.Observables:
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


def judge_shift(ds: xr.Dataset) -> list[jd.Check]:
    """Mean factors of deviations and of the mean minus their predictions, over the factors."""
    deviation, mean = (1 - ds[f"predicted_{name}"] / ds[f"measured_{name}"] for name in ("deviation", "mean"))
    return [
        jd.mean_within("factor of deviations minus its prediction, relative", deviation, over="seed", low=-0.1, high=0.1),
        jd.mean_within("factor of the cloud's mean minus its prediction, relative", mean, over="seed", low=-0.005, high=0.005),
    ]


def plot_shift(ds: xr.Dataset, fig: Figure) -> None:
    """Tokens before and after one step; factors against their predictions."""
    left, right = fig.subplots(1, 2)
    run = plotting.first_run(ds)
    for name, color in (("before", "third"), ("after", "measured")):
        left.plot(*run[name].transpose("entry", "token").values, ".", markersize=3, color=plotting.COLORS[color], label=name)
    left.set(xlabel="first entry", ylabel="second entry")
    left.legend()
    plotting.scatter(right, ds.predicted_deviation, ds.measured_deviation, label="runs", color="measured")
    right.set(xlabel=r"$\beta\sigma^2$", ylabel="factor of deviations")


MEAN_SHIFT_CLAIMS = (
    jd.Study(
        trial=shift_trial,
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
        judge=judge_shift,
        holds={"beta": (0.7, 1.4), "sigma": (0.125, 0.25), "distance": (2.75, 3.25)},
        controls={"a high temperature: the clouds merge": {"beta": 0.01}, "wide clouds that overlap": {"sigma": 1.5}},
        rivals={
            "nothing moves": jd.swap(predicted_deviation=1.0, predicted_mean=1.0),
            "every token moves to its cloud's mean": jd.swap(predicted_deviation=0.0, predicted_mean=1.0),
        },
        plot=plot_shift,
        caption="Left: tokens of one run before and after one step of attention. Right: factor of the deviations from a cloud's "
        "mean against its prediction, one point per run.",
    ),
)


WIDTH, INPUTS = 16, 4


@jd.setting
class Pruned:
    """An MLP of which the largest units are used; with an offset more of them are active."""

    unit: jd.Code = jd.code("relu", "gelu")  # activation of the units
    offset: jd.Swept = 0.0  # added to all units before the activation
    shuffled: jd.Swept = 0.0  # 1: the units are those of another input
    hidden: int = 64  # units of the MLP
    kept: int = jd.field(48, at_least=1)  # units used per input, the largest ones

    def __post_init__(self) -> None:
        jd.require(self, self.kept <= self.hidden, "kept is at most hidden", "kept", "hidden")


def zeros_trial(s: Pruned, key: PRNGKeyArray) -> jd.Observables:
    """Outputs in full, and by gathering the rows of the largest units of each input."""
    k_x, k_in, k_out = jax.random.split(key, 3)
    x = jax.random.normal(k_x, (INPUTS, WIDTH), jnp.float64)
    w_in = jax.random.normal(k_in, (WIDTH, s.hidden), jnp.float64) / WIDTH**0.5
    w_out = jax.random.normal(k_out, (s.hidden, WIDTH), jnp.float64)
    before = x @ w_in + s.offset
    units = jnp.where(s.unit == "relu", jax.nn.relu(before), jax.nn.gelu(before))
    chosen = jnp.argsort(-jnp.abs(units), -1)[:, : s.kept]
    chosen = jnp.where(s.shuffled > 0.5, jnp.roll(chosen, 1, 0), chosen)

    same = jnp.argsort(-jnp.mean(jnp.abs(units), 0))[: s.kept]  # the largest on average over inputs

    def sparse(units: Float[Array, " hidden"], rows: Array) -> Float[Array, " d"]:
        return units[rows] @ w_out[rows]

    return jd.observables(
        predicted={"output": jd.named(units @ w_out, "input entry")},
        measured={"output": jd.named(jax.vmap(sparse)(units, chosen), "input entry")},
        recorded={
            "spare": jd.named(s.kept - jnp.sum(units != 0, -1), "input"),
            "active": jd.named(jnp.sum(units != 0, -1), "input"),
            "static": jd.named(jax.vmap(lambda row: sparse(row, same))(units), "input entry"),
        },
    )


def judge_zeros(ds: xr.Dataset) -> list[jd.Check]:
    """Outputs by the chosen units against those in full; gate: no input has more active units than are kept."""
    return [
        jd.gate("units that are used minus active ones, every input", ds.spare, at_least=0),
        jd.at_most("output by the chosen units: relative error", jd.relative_error(ds, "output", "entry"), 1e-12),
    ]


def plot_zeros(ds: xr.Dataset, fig: Figure) -> None:
    """Outputs by the chosen units against those in full; how many units are active."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_output, ds.measured_output, label="outputs", color="measured", log=False)
    left.set(xlabel="output by all units", ylabel="output by the chosen units")
    right.hist(ds.active.values.ravel(), bins=20, color=plotting.COLORS["measured"])
    right.set(xlabel="active units of 64", ylabel="inputs")


CLAIMS = (
    *COS_BOUND_CLAIMS,
    *MEAN_SHIFT_CLAIMS,
    jd.Study(
        trial=zeros_trial,
        quick=jd.grid(Pruned),
        paper=jd.grid(Pruned, hidden=64),
        seeds=64,
        paper_seeds=128,
        evidence="algebra",
        bounds="derived: float64 rounding of sums of 64 terms",
        source="arXiv:2310.17157, section 3.1 (contextual sparsity of ReLU MLPs)",
    ).claim(
        id="dejavu.relu_zeros",
        title="ReLU units that are zero can be left out, for each input its own",
        statement=r"Let $a(x) = \mathrm{relu}(xU)$ be the units of a ReLU layer and $a(x) W$ its output. If no more than $k$ "
        r"entries of $a(x)$ are positive, the output is the sum of $a_j(x) W_j$ over the $k$ largest entries alone, $W_j$ being "
        "the rows of $W$. (An identity at random weights.)",
        tested="Layers of {hidden} units with Gaussian weights, of which the {kept} largest of each of 4 inputs are used; "
        "{seeds} seeds.",
        judge=judge_zeros,
        controls={
            "GELU units": {"unit": "gelu"},
            "the units of another input": {"shuffled": 1.0},
            "more units are active than are kept": {"offset": 1.5},
        },
        rivals={"one set of units serves all inputs, the largest on average": jd.swap(predicted_output="static")},
        plot=plot_zeros,
        caption="Left: outputs by the 48 largest units against those by all 64. Right: active units by input, all runs.",
    ),
)
