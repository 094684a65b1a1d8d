"""Traces whose first tokens are replaced by codes, and opened again: lengths, numbers of codes, and the traces themselves.

Each problem has a table of texts of its own: its chunks under random codes, random tokens under the others.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import traces
from jaxdyn.theories.assort import model


@jd.setting
class Hybrid:
    """Traces, and how many of their tokens are replaced."""

    replaced: jd.Swept = jd.field(8.0, at_least=0, whole=True)  # m, tokens of the trace to replace
    children: int = 2  # children of every inner vertex of a searched tree
    height: int = 3  # edges from the root of a tree to a leaf
    rate: int = jd.field(4, at_least=1, role="none")  # r, tokens that a code replaces
    codes: int = 32  # codes that can stand for a chunk
    problems: int = jd.field(16, at_least=1)  # searches per run, each with a trace of its own
    dtype: str = "float64"

    def __post_init__(self) -> None:
        jd.require(self, self.rate <= self.forest().trace, "rate is at most the length of the trace", "rate")
        jd.require(self, self.codes >= self.chunks(), f"codes is at least the {self.chunks()} chunks of a trace", "codes")

    def forest(self) -> traces.Forest:
        """The task."""
        return traces.Forest(children=self.children, height=self.height)

    def chunks(self) -> int:
        """Whole chunks of a trace."""
        return self.forest().trace // self.rate


def trial(s: Hybrid, key: PRNGKeyArray) -> jd.Observables:
    """Replace, measure, open."""
    f, m = s.forest(), jnp.round(s.replaced).astype(jnp.int32)

    def one(key: PRNGKeyArray) -> dict[str, Array]:
        # a trace, and what its codes stand for
        k_draw, k_code, k_text, k_other = jax.random.split(key, 4)
        trace = traces.draw(k_draw, f).trace
        codes = jax.random.permutation(k_code, s.codes)[: s.chunks()].astype(jnp.int32)
        texts = jax.random.randint(k_text, (s.codes, s.rate), 0, f.names, jnp.int32)
        texts = texts.at[codes].set(trace[: s.chunks() * s.rate].reshape(-1, s.rate))
        # replaced, and opened again
        row, length = model.replaced(f, trace, codes, m, s.rate)
        opened, size = model.opened(f, row, length, texts)
        other = model.opened(f, row, length, texts[jax.random.permutation(k_other, s.codes)])[0]
        used = jnp.sum(row >= f.text)
        arrays = {"trace": trace, "opened": opened, "other": other, "length": length, "size": size, "used": used}
        return {name: value.astype(s.dtype) for name, value in arrays.items()}

    arrays = jax.vmap(one)(jax.random.split(key, s.problems))
    k = jnp.floor(jnp.minimum(s.replaced, f.trace) / s.rate)
    each = lambda v: jd.named(jnp.broadcast_to(v, (s.problems,)).astype(s.dtype), "problem")  # noqa: E731
    tokens = lambda name: jd.named(arrays[name], "problem place")  # noqa: E731
    return jd.observables(
        predicted={"length": each(2 + k + f.trace - s.rate * k), "used": each(k), "trace": tokens("trace"), "size": each(f.trace)},
        measured={
            "length": each(arrays["length"]),
            "used": each(arrays["used"]),
            "trace": tokens("opened"),
            "size": each(arrays["size"]),
        },
        recorded={
            "other": tokens("other"),
            "fraction_length": each(2 + s.replaced / s.rate + f.trace - s.replaced),
            "fraction_used": each(s.replaced / s.rate),
            "plain_length": each(f.trace),
        },
    )


REPLACED = [0.0, 3.0, 4.0, 10.0, 16.0, 20.0, 21.0, 40.0]


def judge_hybrid(ds: xr.Dataset) -> list[jd.Check]:
    """Lengths, numbers of codes, and traces that were opened again."""
    jd.need(ds, replaced=(0.0, 3.0, 4.0, 40.0))
    wrong = (ds.measured_trace != ds.predicted_trace).sum("place") + abs(ds.measured_size - ds.predicted_size)
    return [
        jd.at_most("tokens of a sequence: absolute error", abs(ds.measured_length - ds.predicted_length), 0),
        jd.at_most("codes in a sequence: absolute error", abs(ds.measured_used - ds.predicted_used), 0),
        jd.at_most("tokens of an opened trace that are wrong, missing or too many", wrong, 0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Lengths over the number of tokens to replace."""
    ax = fig.subplots()
    over = [d for d in ds.measured_length.dims if d != "replaced"]
    ax.plot(ds.replaced, ds.measured_length.mean(over), "o", color=plotting.COLORS["measured"], label="sequences")
    ax.plot(ds.replaced, ds.predicted_length.mean(over), "--", color=plotting.COLORS["theory"], label="formula")
    ax.plot(ds.replaced, ds.fraction_length.mean(over), ":", color=plotting.COLORS["control"], label="$m/r$ codes")
    ax.set(xlabel="tokens to replace $m$", ylabel="tokens before the solution")
    ax.legend()


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Hybrid, replaced=REPLACED),
    paper=jd.grid(Hybrid, replaced=REPLACED, problems=256),
    seeds=4,
    paper_seeds=16,
    evidence="algebra",
    bounds="derived: counts of whole numbers",
    source="arXiv:2502.03275, section 3.2; the numbers of codes and tokens are derived",
    tested="No training: {problems} logs of searches in binary trees of height {height} ($t = 21$ tokens) per run, codes of "
    "{rate} tokens, $m$ from 0 to 40 including values that are no multiple of $r$ or above $t$; {seeds} runs.",
)

CLAIMS = (
    STUDY.claim(
        id="assort.hybrid",
        title="A trace that mixes codes and text can be opened token by token",
        statement="If the first $m$ of the $t$ tokens of a trace give way to codes of $r$ tokens each, written between two "
        r"delimiters, there are $k = \lfloor\min(m, t)/r\rfloor$ codes and $2 + k + t - rk$ tokens, and whoever has the text "
        "of each code restores the trace token by token.",
        talks=("practical:assort-figure-mixing",),
        judge=judge_hybrid,
        controls={
            "texts of other codes": jd.swap(measured_trace="other"),
            "the two delimiters stay in the opened trace": jd.swap(measured_size=lambda ds: ds.measured_size + 2),
        },
        rivals={
            "nothing is replaced": jd.swap(predicted_length="plain_length", predicted_used=0.0),
            "$m/r$ codes for any $m$": jd.swap(predicted_length="fraction_length", predicted_used="fraction_used"),
        },
        plot=plot,
        caption="Tokens between prompt and solution over the number of trace tokens to replace: sequences, the formula, and "
        "$m/r$ codes for any $m$.",
    ),
)
