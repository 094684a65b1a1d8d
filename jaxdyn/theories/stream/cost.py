"""Memory of a streaming cache: bytes counted from the arrays that decoding carries from token to token."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import cache
from jaxdyn.nn.decoder import Decoder, init

__all__ = ["CLAIMS", "Cost", "LENGTHS", "NETWORKS", "judge", "trial"]


LENGTHS = (64, 256, 4096)  # of texts
NETWORKS = {  # layers, heads, groups, entries, bytes of a number
    "8 heads, float32": (2, 8, 8, 16, "float32"),
    "8 heads share 2, bfloat16": (4, 8, 2, 64, "bfloat16"),
    "9 heads share 3, float32": (30, 9, 3, 64, "float32"),
}


@jd.setting
class Cost:
    """A cache of ``size`` keys; a dense one has a place for every token."""

    kind: str = "streaming"
    size: int = jd.field(32, at_least=2)

    def __post_init__(self) -> None:
        jd.require(self, self.kind in cache.KINDS, f"kind is one of {', '.join(cache.KINDS)}", "kind")


def bytes_of(s: Cost, name: str, length: int) -> int:
    """Bytes of the keys and values after a text, from the shapes of what the scan carries; nothing is allocated."""
    layers, heads, groups, entries, dtype = NETWORKS[name]
    shape = Decoder(vocabulary=8, width=heads * entries, layers=layers, heads=heads, groups=groups, hidden=8, dtype=dtype)
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


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Cost),
        paper=jd.grid(Cost, size=[32, 1024]),
        evidence="algebra",
        bounds="derived",
        source="arXiv:2309.17453, figure 1; arXiv:2305.13245 (grouped queries)",
    ).claim(
        id="stream.cost",
        title="A streaming cache takes the same memory after any number of tokens",
        statement=r"A streaming cache of $L$ keys holds $2 N g\, e\, L$ numbers for the keys and values of $N$ layers with $g$ "
        r"heads of $e$ entries, exactly, however many tokens were read. (A count of arrays.)",
        slides=("practical:stream-constant-memory",),
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
)
