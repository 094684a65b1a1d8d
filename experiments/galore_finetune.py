"""GaLore on a real model: SmolLM2-135M-Instruct fine-tuned on a text by Adam, GaLore, LoRA and GaLore with 8-bit moments.

Steps of one sequence of 256 tokens of Python's own manual (`--text PATH`: another text), each method at one rate; losses are of
sequences that were not trained on. Memory is that of the arrays of the training state, of the compiled step and of the process,
next to the calculator's. `--scale paper` has 400 steps. Each run lies in a file of its own: stop at any time, the same command
resumes it to the same bits. Needs the model: `jaxdyn models get smollm2`. Paper: arXiv 2403.03507.
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from jaxdyn import experiment, models, nn, plotting, train
from jaxdyn.engine.base.progress import Progress
from jaxdyn.models.probe_text import numbered, open_text
from jaxdyn.optim import memory
from jaxdyn.optim.methods import Options, method
from jaxdyn.text import longrun, pretraining

STEPS = {"quick": 24, "paper": 400}
RECORDS = 8  # losses along a run, besides the start
LENGTH, RANK, EVERY = 256, 128, 200  # inputs of a sequence; of bases and factors; steps between two bases
WINDOWS = 4  # sequences that losses are means of
TOKENS = 2**20  # of the text, at most
HELD = 10  # one in so many tokens, the last ones, is not trained on
METHODS = {  # name: method, rate, how moments are stored
    "Adam": ("adam", 1e-5, "parameter"),
    "GaLore": ("galore", 4e-5, "parameter"),  # its updates have the factor 1/4
    "LoRA": ("lora", 1e-4, "parameter"),
    "8-bit GaLore": ("galore", 4e-5, "8bit"),
}
COLORS = dict(zip(METHODS, ("theory", "measured", "third", "fourth"), strict=True))
OPTIONS = {
    "--model": {"default": "smollm2", "metavar": "MODEL", "help": "a folder, a GGUF file or a name (default: smollm2)"},
    "--text": {"default": "topics", "metavar": "PATH", "help": "a plain file (default: Python's own manual)"},
    "--methods": {"nargs": "+", "choices": tuple(METHODS), "help": "methods to train (default: all)"},
    "--steps": {"type": int, "metavar": "N", "help": "steps of training (default: 24; 400 at --scale paper)"},
}
GIB = 2.0**30


def peak_of_process(reset: bool = False) -> float | None:
    """GiB that the process has held at most since the last reset; None where the system does not tell."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        line = next(row for row in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if row.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None
    return int(line.split()[1]) / 2**20


def built(model: models.Model, name: str, steps: int, stream: np.ndarray, held: np.ndarray) -> tuple:
    """The step, the start and the losses of a method."""
    net, (kind, rate, stored) = nn.network(model.shape), METHODS[name]
    shape = pretraining.schedule(steps)
    options = Options(rank=RANK, every=EVERY, stored=stored, finder="randomized")
    made = method(kind, lambda count: rate * shape(count), options, key=jax.random.key(1))

    def batch(i: jax.Array, stream: jax.Array) -> jax.Array:
        return pretraining.sample(jax.random.fold_in(jax.random.key(0), i), stream, 1, LENGTH)

    step = train.make_step(lambda params, tokens: pretraining.loss(net, params, tokens), made.tx, batch)
    losses = jax.jit(lambda params: pretraining.mean_losses(lambda t: pretraining.loss(net, params, t), held))

    def start() -> train.State:
        return train.init(made.tx, jax.tree.map(jnp.array, model.params))

    return step, start, lambda state: {"loss": losses(state.params)[0], "time": np.float64(time.time())}


def bytes_of(name: str, step: object, state: train.State, stream: np.ndarray) -> dict[str, float | None]:
    """GiB of the training state by the calculator and in its arrays, and the peak of the compiled step."""
    kind, _, stored = METHODS[name]
    layout = memory.MemoryLayout(method="full" if kind == "adam" else kind, rank=RANK, moments="8bit" if stored == "8bit" else None)
    compiled = memory.compiled_bytes(step, state, stream, donated=(0,))
    arrays = memory.nbytes((state.params, state.opt))
    return {
        "calculator, GiB": memory.estimate(state.params, layout).total / GIB,
        "arrays, GiB": arrays / GIB,
        "compiled step, GiB": compiled["peak"] / GIB,
    }


def draw(runs: dict[str, longrun.Run], rows: list[dict], fig: Figure) -> None:
    """Loss by step, and memory by method."""
    left, right = fig.subplots(1, 2)
    for name, run in runs.items():
        left.plot(run.steps, run.records["loss"], "o-", color=plotting.COLORS[COLORS[name]], label=name)
    left.set(xlabel="step", ylabel="loss on held-out sequences, nats a token")
    for i, (column, color) in enumerate(
        (("calculator, GiB", "theory"), ("arrays, GiB", "measured"), ("compiled step, GiB", "third"))
    ):
        places = np.arange(len(rows)) + 0.27 * (i - 1)
        right.bar(places, [row[column] for row in rows], 0.25, color=plotting.COLORS[color], label=column.removesuffix(", GiB"))
    right.set_xticks(range(len(rows)), [row["method"].replace(" ", "\n") for row in rows])
    right.set(ylabel="GiB")


def run(
    scale: str, out: Path, model: str = "smollm2", text: str = "topics", methods: list[str] | None = None, steps: int | None = None
) -> None:
    """Train by every method; loss by step, and memory."""
    steps = STEPS[scale] if steps is None else steps
    source, loaded = open_text(text), models.load(model)
    tokens = numbered(source, loaded, TOKENS)
    cut = tokens.size - tokens.size // HELD
    stream, held = jnp.asarray(tokens[:cut]), pretraining.held_out((tokens[cut:],), WINDOWS, 1, LENGTH)
    runs, rows = {}, []
    for name in methods or METHODS:
        peak_of_process(reset=True)
        step, start, observe = built(loaded, name, steps, stream, held)
        about = {"model": model, "text": source.digest, "method": name, "settings": METHODS[name], "steps": steps}
        about |= {"length": LENGTH, "rank": RANK, "every": EVERY, "windows": WINDOWS}
        with Progress(name) as progress:
            path, each = out / f"{name.replace(' ', '_')}.run", max(1, steps // RECORDS)
            done = longrun.run(
                path, about, step, start, observe, until=steps, every=each, data=(stream,), save_seconds=600, progress=progress
            )
        loss, clock = done.records["loss"], done.records["time"]
        seconds = float(np.median(np.diff(clock)) / each) if len(clock) > 1 else None
        row = {
            "method": name,
            "steps": int(done.steps[-1]),
            "start": float(loss[0]),
            "end": float(loss[-1]),
            "seconds a step": seconds,
        }
        rows.append(row | bytes_of(name, step, done.state, stream) | {"process, GiB": peak_of_process()})
        runs[name] = done._replace(state=None)  # gigabytes each
    experiment.table(out, "finetune", rows, f"{model}, fine-tuned: loss in nats a token on held-out sequences, and memory")
    experiment.figure(out, "galore_finetune", lambda fig: draw(runs, rows, fig))
    curves = {name: {"step": r.steps.tolist(), "loss": r.records["loss"].tolist()} for name, r in runs.items()}
    experiment.record(out, "galore_finetune", "What does fine-tuning a real model cost and reach?", rows=rows, curves=curves)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
