"""The trained autoencoder of traces: its codes say something about traces that are new, and many of them are in use."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.data.traces import Problem
from jaxdyn.nn import vq
from jaxdyn.theories.assort.coder import BOOKS, Coding, begun, fitted, problems, recode, restored

HELD_OUT = 256  # problems


def watched(s: Coding, coder: vq.Params, held: Problem, key: PRNGKeyArray) -> dict[str, Float[Array, ""]]:
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
    end, start = watched(s, last, held, k_mix), watched(s, first, held, k_mix)
    return jd.observables(
        predicted={},
        measured={name: end[name] for name in ("restored", "perplexity")},
        recorded={"mixed": end["mixed"]} | {f"start_{name}": start[name] for name in ("restored", "perplexity")},
        status=train.finite_status(last),
    )


LEAST = 0.5  # of the tokens
IN_USE = 16.0  # of 32 codes


def judge_autoencoder(ds: xr.Dataset) -> list[jd.Check]:
    """Restored tokens, and codes in use, on average over runs, for both ways to move the codebook."""
    jd.need(ds, book=BOOKS)
    return [
        jd.mean_within("share of restored tokens", ds.measured_restored, over="seed", low=LEAST),
        jd.mean_within("perplexity of the codes", ds.measured_perplexity, over="seed", low=IN_USE),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Restored tokens and codes in use, before and after training, by how the codebook moves."""
    axes = fig.subplots(1, 2)
    for ax, name, label in zip(
        axes, ("restored", "perplexity"), ("share of restored tokens", "perplexity of 32 codes"), strict=True
    ):
        for i, book in enumerate(np.atleast_1d(ds.book.values)):
            one = ds.sel(book=book) if "book" in ds.dims else ds
            for side, color in ((f"start_{name}", "control"), (f"measured_{name}", "measured")):
                ax.plot(np.full(one.sizes["seed"], i), one[side].values.ravel(), "o", ms=4, color=plotting.COLORS[color])
        ax.set_xticks(range(len(BOOKS)), [f"by its {b}" if b == "gradient" else f"as {b}" for b in BOOKS])
        ax.set(ylabel=label, ylim=(0, None))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Coding, book=list(BOOKS)),
    paper=jd.grid(Coding, book=list(BOOKS), height=8, rate=4, codes=128, vq_hidden=256, vq_steps=5000.0),
    seeds=6,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2502.03275, section 3.1 (autoencoder); arXiv:1711.00937, appendix A.1 (averages); sizes ours",
    tested="An autoencoder of chunks of {rate} tokens with {codes} codes, trained by Adam for {vq_steps} steps at rate {vq_lr} "
    "on logs of searches in two chains of {height} edges (90 different chunks), whose codebook starts from the encoder's "
    "vectors of {codes} chunks; {seeds} seeds. The codebook moves by: {book}.",
)

CLAIMS = (
    STUDY.claim(
        id="assort.autoencoder",
        title="A small autoencoder learns codes for pieces of search logs",
        statement="An autoencoder of chunks of two tokens with 32 codes, which start from the encoder's vectors of as many "
        "chunks, is trained by Adam at rate .003 for 300 steps of 128 chunks from logs of searches. On average over runs it then "
        "restores more than half of the tokens of new logs, which have 90 different chunks, from its codes, and its codebook "
        "does not collapse: the perplexity of the codes is above 16, whether the codebook moves by its gradient or as averages.",
        talks=("practical:assort-figure-vqvae",),
        bounds=jd.tuned(on="0:6", confirmed_on="4000:4006"),
        judge=judge_autoencoder,
        controls={
            "codebook starts from random vectors": {"spread": 0.0},
            "codes renamed at random": jd.swap(measured_restored="mixed"),
        },
        rivals={"nothing moves": jd.off({"share of restored tokens": lambda ds: float(ds.start_restored.mean("seed").max())})},
        plot=plot,
        caption="Share of tokens restored from their codes, and perplexity of the codes, on traces that were not trained on: a "
        "point per run, before training (grey) and after.",
    ),
)
