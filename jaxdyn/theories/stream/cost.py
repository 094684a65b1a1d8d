r"""Memory and operations of a streaming cache, counted from the arrays and the program of decoding.

Bytes are those of the arrays that decoding carries from token to token. Operations are the multiplications of all matrix products
in the program, loops as often as they run, over the tokens read. With P weights of a block, N blocks, h heads of e entries, width d
and V tokens, by the policy:

.. math:: \text{streaming, window: } NP + 2NheL + dV, \qquad \text{dense: } NP + 2NheT + dV, \qquad
   \text{recomputed: } L\,(NP + 2NheL) + dV

for a cache or window of L keys and a text of T tokens, which is at least as long.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.linalg import multiplications
from jaxdyn.nn import Transformer, cache
from jaxdyn.nn.transformer import init

LENGTHS = (64, 256, 4096)  # of texts
NETWORKS = {  # layers, heads, groups, entries, bytes of a number
    "8 heads, float32": (2, 8, 8, 16, "float32"),
    "8 heads share 2, bfloat16": (4, 8, 2, 64, "bfloat16"),
    "9 heads share 3, float32": (30, 9, 3, 64, "float32"),
}
POLICIES = ("streaming", "window", "dense", "recomputed")
WORDS, UNITS = 8, 8  # of the vocabulary, and of the MLP
SINKS = 1  # first tokens that a streaming cache keeps


@jd.setting
class Cost:
    """A cache of ``size`` keys; a dense one has a place for every token."""

    kind: str = "streaming"  # policy: streaming keeps first and last keys, window the last, dense all
    size: int = jd.field(32, at_least=2)  # L, keys of a cache that is not dense

    def __post_init__(self) -> None:
        jd.require(self, self.kind in cache.KINDS, f"kind is one of {', '.join(cache.KINDS)}", "kind")


def shape_of(name: str) -> Transformer:
    """One of the networks."""
    layers, heads, groups, entries, dtype = NETWORKS[name]
    sizes: dict[str, Any] = {"layers": layers, "heads": heads, "groups": groups, "dtype": dtype}
    return Transformer(vocabulary=WORDS, width=heads * entries, hidden=UNITS, **sizes)


def bytes_of(s: Cost, name: str, length: int) -> int:
    """Bytes of the keys and values after a text, from the shapes of what the scan carries; nothing is allocated."""
    shape = shape_of(name)
    policy = cache.Policy(kind=s.kind, size=length if s.kind == "dense" else s.size)
    tokens = jax.ShapeDtypeStruct((length,), jnp.int32)

    def decoded(tokens: jax.Array) -> cache.State:
        return cache.decode(shape, init(shape, jax.random.key(0)), policy, tokens)[0]

    after = jax.eval_shape(decoded, tokens).layers
    return sum(x.size * x.dtype.itemsize for x in (after.key, after.value))


def trial(s: Cost, key: PRNGKeyArray) -> jd.Observables:
    """Bytes by network and length of the text, counted and by the formula."""
    del key

    def table(rows: list[list[int]]) -> Any:
        return jd.named(jnp.asarray(rows, jnp.float64), "network length")

    sizes = [(2 * n * g * e * s.size * jnp.dtype(t).itemsize, 2 * n * h * e * s.size * 4) for n, h, g, e, t in NETWORKS.values()]
    return jd.observables(
        predicted={"bytes": table([[exact] * len(LENGTHS) for exact, _ in sizes])},
        measured={"bytes": table([[bytes_of(s, name, length) for length in LENGTHS] for name in NETWORKS])},
        recorded={
            "keys_alone": table([[exact // 2] * len(LENGTHS) for exact, _ in sizes]),
            "every_head": table([[wide] * len(LENGTHS) for _, wide in sizes]),
        },
        coords={"network": tuple(NETWORKS), "length": LENGTHS},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Bytes of keys and values, exactly, for texts of all lengths."""
    return [jd.at_most("bytes minus the formula", abs(ds.measured_bytes - ds.predicted_bytes), 0)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Bytes over the length of the text."""
    ax = fig.subplots()
    run = plotting.first_run(ds)
    for name in run.network.values:
        ax.plot(run.length, run.measured_bytes.sel(network=name), "o", label=str(name))
        ax.plot(run.length, run.predicted_bytes.sel(network=name), "--", color=plotting.COLORS["theory"])
    ax.set(xscale="log", yscale="log", xlabel="tokens read", ylabel="bytes of keys and values")
    ax.legend()


@functools.cache
def counted(policy: str, size: int, shape: Transformer, length: int) -> float:
    """Multiplications for each token of a text, from the program that reads it; nothing is computed."""
    params = jax.eval_shape(lambda: init(shape, jax.random.key(0)))

    def read(params: PyTree, tokens: jax.Array) -> jax.Array:
        if policy == "recomputed":
            return cache.recompute(shape, params, size, tokens)
        sinks = SINKS if policy == "streaming" else 0
        kept = cache.Policy(kind=policy, size=length if policy == "dense" else size, sinks=sinks)
        return cache.decode(shape, params, kept, tokens)[1]

    return multiplications(jax.make_jaxpr(read)(params, jax.ShapeDtypeStruct((length,), jnp.int32)).jaxpr) / length


def operations(s: Cost, key: PRNGKeyArray) -> jd.Observables:
    """Multiplications for each token by policy, network and length of the text: counted, and by the formula."""
    del key

    def formula(policy: str, shape: Transformer, length: int) -> tuple[int, int]:
        """All of them, and those that do not depend on the keys: of the weights."""
        weights = shape.layers * sum(rows * columns for rows, columns in shape.weights.values())
        keys, times = {"dense": (length, 1), "recomputed": (s.size, s.size)}.get(policy, (s.size, 1))
        read = shape.width * shape.vocabulary
        return times * (weights + 2 * shape.layers * shape.heads * shape.entries * keys) + read, weights + read

    shapes = [shape_of(name) for name in NETWORKS]
    read_as = [s.kind if policy == "streaming" else policy for policy in POLICIES]
    by_formula = np.asarray([[[formula(p, shape, n) for n in LENGTHS] for shape in shapes] for p in POLICIES], float)
    by_count = [[[counted(p, s.size, shape, n) for n in LENGTHS] for shape in shapes] for p in read_as]
    axes = "policy network length"
    return jd.observables(
        predicted={"products": jd.named(jnp.asarray(by_formula[..., 0]), axes)},
        measured={"products": jd.named(jnp.asarray(by_count, jnp.float64), axes)},
        recorded={"weights": jd.named(jnp.asarray(by_formula[..., 1]), axes)},
        coords={"policy": POLICIES, "network": tuple(NETWORKS), "length": LENGTHS},
    )


def judge_operations(ds: xr.Dataset) -> list[jd.Check]:
    """Multiplications for each token, exactly, by policy."""
    away = abs(ds.measured_products - ds.predicted_products)
    return [jd.at_most("multiplications for each token minus the formula", away, 0)]


def as_streaming(ds: xr.Dataset) -> xr.DataArray:
    """A window that is encoded anew takes what a streaming cache takes."""
    return xr.where(ds.policy == "recomputed", ds.predicted_products.sel(policy="streaming", drop=True), ds.predicted_products)


def plot_operations(ds: xr.Dataset, fig: Figure) -> None:
    """Multiplications for each token over the length of the text, by policy."""
    axes = fig.subplots(1, ds.sizes["network"], sharey=True)
    run = plotting.first_run(ds)
    for ax, name in zip(axes, run.network.values, strict=True):
        for policy, mark in zip(POLICIES, "o+sD", strict=True):
            one = run.sel(network=name, policy=policy)
            ax.plot(run.length, one.measured_products, mark, label=policy)
            ax.plot(run.length, one.predicted_products, "--", color=plotting.COLORS["theory"])
        ax.set(xscale="log", yscale="log", xlabel="tokens read", title=str(name))
    axes[0].set(ylabel="multiplications for each token")
    axes[0].legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Cost),
        paper=jd.grid(Cost, size=[32, 1024]),
        evidence="algebra",
        bounds="derived: counts of whole numbers",
        source="arXiv:2309.17453, figure 1; arXiv:2305.13245 (grouped queries)",
    ).claim(
        id="stream.cost",
        title="The memory of a streaming cache does not grow with the text",
        statement=r"A streaming cache of $L$ keys holds $2 N g\, e\, L$ numbers for the keys and values of $N$ layers with $g$ "
        r"heads of $e$ entries, exactly, however many tokens were read. (A count of arrays.)",
        decides={"exactly": ("bytes minus the formula", "keys alone")},
        talks=("practical:stream-constant-memory",),
        tested="Caches of {size} keys in three decoders, after 64, 256 and 4096 tokens; bytes are counted from the arrays that "
        "decoding carries from token to token.",
        judge=judge,
        controls={"dense: a place for every token": {"kind": "dense"}},
        rivals={
            "keys alone": jd.swap(predicted_bytes="keys_alone"),
            "a key for each head of queries, in four bytes": jd.swap(predicted_bytes="every_head"),
        },
        plot=plot,
        caption="Bytes of keys and values after texts of several lengths (points) and the formula (dashed), three networks.",
    ),
    jd.Study(
        trial=operations,
        quick=jd.grid(Cost),
        paper=jd.grid(Cost, size=[8, 64]),
        evidence="algebra",
        bounds="derived: counts of whole numbers",
        source="arXiv:2309.17453, figure 1 (orders in T and L); arXiv:2305.13245 (grouped queries)",
    ).claim(
        id="stream.operations",
        title="Encoding a window anew takes L times the work of a streaming cache",
        statement=r"For each token, the matrix products of a program that reads a text of $T \ge L$ tokens take $NP + 2NheL + dV$ "
        r"multiplications with a streaming cache or a window of $L$ keys, however long the text ($N$ blocks of $P$ weights, $h$ "
        r"heads of $e$ entries, width $d$, $V$ words); $NP + 2NheT + dV$ with a dense cache for $T$ tokens; and $L (NP + 2NheL) + "
        r"dV$ if the last $L$ tokens are encoded anew: $L$ times as many, but for the read-out. (A count of arrays with a place "
        "for each key, filled or not.)",
        talks=("practical:stream-recompute-cost", "practical:stream-figure-policies"),
        tested="Caches and windows of {size} keys in three decoders, texts of 64, 256 and 4096 tokens; the matrix products are "
        "counted in the program that reads the text, loops as often as they run.",
        judge=judge_operations,
        controls={"dense: a place for every token": {"kind": "dense"}},
        rivals={
            "encoding a window anew takes no more": jd.swap(predicted_products=as_streaming),
            "only the weights count, not the keys": jd.swap(predicted_products="weights"),
        },
        plot=plot_operations,
        caption="Multiplications for each token over the length of the text by policy (points), and the formula (dashed), in "
        "three networks.",
    ),
)
