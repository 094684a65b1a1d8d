"""A network of Pythia's form is trained on text; its checkpoints, in Hugging Face's layout, are probed as a series.

GPT-NeoX's blocks (parallel residual, LayerNorms, a quarter of each head rotary), on byte pairs learned from the first nine tenths
of the text. A checkpoint is written at steps 0, 1, 2, 4, ... as Pythia's were (arXiv 2304.01373), so that `transformers` and
`jaxdyn probe 'out/probe_series/step*'` can read it; the probe reads the last tenth. An interrupted run resumes.
"""

import hashlib
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxdyn as jd
from jaxdyn import experiment, models, train
from jaxdyn.engine.base.progress import Progress
from jaxdyn.errors import StoreError
from jaxdyn.models.extras import library
from jaxdyn.models.probe_text import open_text
from jaxdyn.models.tokenizer import Tokenizer, read_tokenizer
from jaxdyn.nn import Transformer, network
from jaxdyn.text import longrun, pretraining

SCALES = {  # width, layers, steps
    "quick": (64, 3, 256),
    "paper": (256, 6, 16_384),
}
BATCH, LENGTH, LR, HEADS = 8, 128, 1e-3, 4
OPTIONS = {
    "--text": {"metavar": "FILE", "help": "the text (default: the interpreter's manual)"},
    "--vocabulary": {"type": int, "default": 1024, "metavar": "N", "help": "byte pairs, bytes among them (default: 1024)"},
    "--steps": {"type": int, "metavar": "N", "help": "steps of training (default: 256; 16384 at --scale paper)"},
    "--width": {"type": int, "metavar": "N", "help": "width of the network (default: 64; 256 at --scale paper)"},
    "--layers": {"type": int, "metavar": "N", "help": "layers of the network (default: 3; 6 at --scale paper)"},
}


def pairs(out: Path, letters: str, vocabulary: int) -> Tokenizer:
    """Byte pairs of a text, learned once."""
    file = out / f"tokenizer-{hashlib.sha256(f'{vocabulary} {letters}'.encode()).hexdigest()[:16]}.json"
    if not file.is_file():
        parts = library("tokenizers.pre_tokenizers")
        inner = library("tokenizers").Tokenizer(library("tokenizers.models").BPE())
        inner.pre_tokenizer, inner.decoder = parts.ByteLevel(add_prefix_space=False), library("tokenizers.decoders").ByteLevel()
        trainer = library("tokenizers.trainers").BpeTrainer(
            vocab_size=vocabulary, initial_alphabet=parts.ByteLevel.alphabet(), show_progress=False
        )
        inner.train_from_iterator([letters], trainer)
        Tokenizer(inner).save(file)
    return read_tokenizer(file, vocabulary)


def shape(width: int, layers: int, vocabulary: int) -> Transformer:
    """GPT-NeoX's decoder."""
    entries = width // HEADS
    biases = ("q", "k", "v", "o", "up", "down")
    form = {
        "norm": "layer",
        "mlp": "plain",
        "activation": "gelu",
        "biases": biases,
        "parallel": True,
        "rotary": 2 * max(1, entries // 8),
    }
    return Transformer(vocabulary=vocabulary, width=width, layers=layers, heads=HEADS, hidden=4 * width, epsilon=1e-5, **form)


def steps_of(last: int) -> list[int]:
    """Steps of the checkpoints: 0, powers of two, and the last one."""
    return sorted({0, last, *(2**i for i in range(last.bit_length()))})


def trained(out: Path, shaped: Transformer, tokenizer: Tokenizer, stream: np.ndarray, last: int) -> None:
    """Train, and write each checkpoint that is not there yet."""
    net, keys = network(shaped), jax.random.split(jax.random.key(0))
    rate = pretraining.schedule(last)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(lambda count: LR * rate(count)))

    def batch(i: jax.Array, stream: jax.Array) -> jax.Array:
        return pretraining.sample(jax.random.fold_in(keys[1], i), stream, BATCH, LENGTH)

    step = train.make_step(lambda params, tokens: pretraining.loss(net, params, tokens), tx, batch)
    measure = jax.jit(lambda params: pretraining.loss(net, params, jnp.asarray(pretraining.spaced(stream, BATCH, LENGTH))))
    about, every, data = {"shape": repr(shaped), "steps": last}, max(last // 64, 1), (jnp.asarray(stream),)
    begin = lambda: train.init(tx, net.init(keys[0]))  # noqa: E731
    if not longrun.check(out / "training.run", about, step, begin, every=every, data=data) and any(out.glob("step*")):
        raise StoreError(f"{out} holds checkpoints and no training.run, by which they could be told from others; choose another")
    with Progress("training") as progress:
        for at in steps_of(last):
            if (out / f"step{at}").exists():
                continue
            run = longrun.run(
                out / "training.run",
                about,
                step,
                begin,
                lambda state: {"loss": measure(state.params)},
                until=at,
                every=every,
                data=data,
                progress=progress,
            )
            if run.state is None:
                raise StoreError(
                    f"{out / f'step{at}'} is missing, and {out / 'training.run'} has gone further; choose another folder"
                )
            models.save(out / f"step{at}", shaped, run.state.params, family="gpt_neox", tokenizer=tokenizer, context=LENGTH)


def run(scale: str, out: Path, text: str | None, vocabulary: int, steps: int | None, width: int | None, layers: int | None) -> None:
    """Train, probe, and tabulate what the instruments show at the first and the last step."""
    out.mkdir(parents=True, exist_ok=True)
    standard = SCALES[scale]
    letters = open_text(text).letters or ""
    seen, unseen = letters[: 9 * len(letters) // 10], letters[9 * len(letters) // 10 :]
    tokenizer = pairs(out, seen, vocabulary)
    shaped = shape(width or standard[0], layers or standard[1], vocabulary)
    trained(out, shaped, tokenizer, tokenizer.encode(seen), steps or standard[2])
    (out / "unseen.txt").write_text(unseen, encoding="utf-8")
    found = jd.probe(str(out / "step*"), out / "unseen.txt", out=out / "probe", length=LENGTH, say=lambda line: None)
    first, last = found.checkpoints[0], found.checkpoints[-1]
    rows = [
        {"instrument": a.instrument.name, "number": x.name, f"step {first.step}": x.value, f"step {last.step}": y.value}
        for a, b in zip(first.outcomes, last.outcomes, strict=True)
        for x, y in zip(a.numbers(), b.numbers(), strict=True)
        if x.name == y.name
    ]
    experiment.table(out, "table", rows, "A network in training")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
