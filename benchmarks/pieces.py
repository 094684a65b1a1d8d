"""The pieces of ``accelerator.py``, as a process of one side runs them: for each line that it reads, one piece.

A piece says what it finds as it finds it, in lines of JSON: ``{"part": NAME, ...}``, at the end ``{"done": true}`` or
``{"failed": REASON}``. So what was found before a process is stopped is not lost. Everything that a library prints goes to standard
error. No module that opens a device is imported before a piece needs it.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
from common import best_seconds, cores, matmul_peak

PRODUCTS = (  # name, dtype, precision; the slowest comes last
    ("float32, full", "float32", "highest"),
    ("float32, TF32", "float32", "tensorfloat32"),
    ("float32, as JAX chooses", "float32", None),
    ("bfloat16", "bfloat16", None),
    ("float64", "float64", "highest"),
)
CLAIMS = ("orth.init", "hyper.spectral", "cal.saxeN", "li2.lemma1", "morwani.margin", "joma.softmax_invariant")
QUICK_CLAIMS = ("scal.parabola_bias",)
LI2, QUICK_LI2 = (71, 2048, 0.4), (23, 256, 0.8)  # M, K, share of the pairs
SMOLLM2 = {"vocabulary": 49_152, "width": 576, "layers": 30, "heads": 9, "groups": 3, "hidden": 1536, "tied": True, "base": 1e5}
SMALL = {"vocabulary": 512, "width": 64, "layers": 2, "heads": 4, "hidden": 128, "tied": True}
INSTRUMENTS = ("sinks", "streaming", "entropy", "orthogonality")
PRIVATE = ("jax", "jaxlib", "libtpu", "nvidia", "cuda")  # beginnings of names of packages that an accelerator needs
NO_TRITON = {"xla_gpu_enable_triton_gemm": False}
DRIVER = Path("/proc/driver/nvidia/version")


@dataclasses.dataclass(frozen=True)
class Task:
    """What a piece is told: whether it is a trial, the model, until when it may measure, and whom it tells what it finds."""

    quick: bool
    model: str | None
    until: float
    tell: Callable[[dict[str, Any]], None]

    def say(self, part: str, **facts: Any) -> None:
        """Facts of a part of the piece, in addition to those that were told before."""
        self.tell({"part": part, **facts})


def measure(
    task: Task, part: str, run: Callable[[], Any], parts: int = 1, found: Callable[[Any], Any] | None = None, **facts: Any
) -> None:
    """Run equal parts of some work, the first of which compiles, and as many of the others as there is time for.

    Told are ``run``, the seconds of all parts, from the median of those that were timed (``timed`` of ``parts``), and ``compile``,
    by how much the first took longer. Work of one part is done twice for that, unless time is short: then both are one number.

    Args:
        task: the piece's.
        part: name.
        run: one part; it waits for what it returns.
        parts: how many the whole work has.
        found: from what the first part returned, the numbers that both sides should have: ``{name: (value, scale)}``.
        facts: what else there is to tell, such as the operations of the whole work.
    """
    begin = time.perf_counter()
    result = run()
    first = time.perf_counter() - begin
    task.say(part, first=first, parts=parts, **facts)
    if found is not None:
        task.say(part, values=found(result))
    del result
    if parts == 1 and time.perf_counter() + first > task.until:
        return task.say(part, timed=0, run=first, notes=["its run includes compilation"])
    spent: list[float] = []
    while not spent or (len(spent) < parts - 1 and time.perf_counter() + max(spent) < task.until):
        begin = time.perf_counter()
        run()
        spent.append(time.perf_counter() - begin)
    each = statistics.median(spent)
    task.say(part, timed=len(spent), run=each * parts, compile=max(0.0, first - each))


def compiled_at_first(run: Any, notes: list[str]) -> Callable[..., Any]:
    """A jitted function, compiled at the first call; without XLA's kernels in Triton where it fails with them, which is noted.

    Their tiles do not suit every product (JAX 0.10: one of 700 x 200 for an H100, compiled without the card).
    """
    import jax

    programs: list[Any] = []

    def call(*args: Any) -> Any:
        if not programs:
            lowered = run.lower(*args)
            try:
                programs.append(lowered.compile())
            except jax.errors.JaxRuntimeError as error:
                if jax.default_backend() != "gpu":
                    raise
                programs.append(lowered.compile(compiler_options=NO_TRITON))
                notes.append(f"compiled without Triton; with it: {reason(error)}")
        return programs[0](*args)

    return call


def size_of(x: Any) -> tuple[float, float]:
    """The mean of an array's finite entries, and their root mean square, in units of which means are compared."""
    finite = np.asarray(x, np.float64)
    finite = finite[np.isfinite(finite)]
    return (float(finite.mean()), float(np.sqrt(np.mean(finite**2)))) if finite.size else (0.0, 0.0)


# the pieces


def devices(task: Task) -> None:
    """What JAX finds here, and the versions of all that takes part."""
    import jax

    begin = time.perf_counter()
    found = jax.devices()
    opened = time.perf_counter() - begin
    memory = (found[0].memory_stats() or {}).get("bytes_limit", 0)
    packages = {d.name: d.version for d in distributions() if (d.name or "").lower().startswith(PRIVATE)}
    facts = {"platform": found[0].platform, "kind": found[0].device_kind, "count": len(found), "memory": memory}
    driver = DRIVER.read_text(encoding="utf-8").splitlines()[0] if DRIVER.exists() else ""
    runtime = str(getattr(found[0].client, "platform_version", ""))
    facts |= {"runtime": runtime, "driver": driver, "python": platform.python_version(), "packages": dict(sorted(packages.items()))}
    task.say("devices", opened=opened, cores=cores(), flags=os.environ.get("XLA_FLAGS", ""), **facts)


def calibration(task: Task) -> None:
    """Rates of matrix products and of memory, and the time of the smallest call."""
    import jax
    import jax.numpy as jnp

    on_cpu = jax.default_backend() == "cpu"
    side, numbers = (512, 1 << 20) if task.quick else (2048, 1 << 26) if on_cpu else (8192, 1 << 27)
    repeats, calls = (3, 1) if on_cpu else (5, 10)
    x = jnp.ones(numbers, jnp.float32)
    seconds = best_seconds(functools.partial(jax.jit(lambda x: x + 1), x), repeats, calls)
    task.say("memory, read and written", rate=2 * x.nbytes / seconds / 1e9, unit="GB/s", size=x.nbytes)
    small = jnp.ones(8, jnp.float32)
    call = jax.jit(lambda x: x + 1)
    task.say("smallest call, waited for", rate=1e6 * best_seconds(lambda: call(small), 200), unit="µs", size=8)
    task.say("smallest call, queued", rate=1e6 * best_seconds(lambda: call(small), 5, 200), unit="µs", size=8)
    for name, dtype, precision in PRODUCTS:
        size = side // 2 if dtype == "float64" and not on_cpu else side  # many cards have little of it
        try:
            rate = matmul_peak(size, repeats, dtype, precision, calls)
            task.say(f"product, {name}", rate=rate / 1e12, unit="TFlop/s", size=size)
        except Exception as error:
            task.say(f"product, {name}", failed=reason(error))


def fig6(task: Task) -> None:
    """Figure 6 of Scan & Snap: an accelerator makes all runs at once, twice; a CPU those of two seeds while there is time."""
    import jax
    from fig6_torch import CELLS, QUERIES, STEPS, our_study, product_flops

    each, seeds, queries = (2, 2, QUERIES[:1]) if task.quick else (2, 10, QUERIES)
    parts = seeds // each if jax.default_backend() == "cpu" else 1
    runs = len(CELLS) * len(queries) * seeds

    def found(entropies: np.ndarray) -> dict[str, tuple[float, float]]:
        return {f"entropy, {q} queries": size_of(x[:, :each]) for q, x in zip(queries, entropies, strict=True)}

    run = functools.partial(our_study, seeds // parts, "auto", queries)
    measure(task, f"Figure 6, {runs} runs of {STEPS} steps", run, parts, found, flops=product_flops(seeds, queries))


def li2(task: Task) -> None:
    """A training of Li2's network, in float32."""
    import jax
    from li2_torch import our_trainer

    from jaxdyn.theories.li2 import training

    (order, hidden, share), epochs, parts = (QUICK_LI2, 50, 2) if task.quick else (LI2, 50, 40)
    s = training.Training(group=str(order), hidden=hidden, share=share)
    with jax.default_matmul_precision("highest"):
        run, start = our_trainer(order, hidden, share, epochs)
        data, state = start(0)
        held, notes = [state], list[str]()
        program = compiled_at_first(run, notes)

        def further() -> Any:
            held[0] = jax.block_until_ready(program(data, held[0]))
            return held[0].params

        def found(params: Any) -> dict[str, tuple[float, float]]:
            task.say(name, notes=notes)
            return {n: size_of(x) for n, x in jax.jit(training.observe, static_argnums=2)(params, data, s).items()}

        flops = 6 * round(share * order**2) * hidden * order * epochs * parts
        name = f"Li2, M = {order}, K = {hidden}, {epochs * parts} epochs"
        measure(task, name, further, parts, found, flops=flops)


def language(task: Task) -> None:
    """Steps of the word language model; on accelerators in the precision that JAX chooses as well."""
    import jax

    ways = {"full float32": "highest"} | ({} if jax.default_backend() == "cpu" else {"float32 as JAX chooses": None})
    for name, precision in ways.items():
        with jax.default_matmul_precision(precision):
            _language(task, name)


def _language(task: Task, precision: str) -> None:
    import jax
    from lm_torch import DROPOUT, LENGTH, WORDS, our_steps, products, words

    from jaxdyn import nn
    from jaxdyn.text import language as model

    layers, steps, parts, count = (1, 1, 2, 1000) if task.quick else (5, 5, 40, WORDS)
    run, start = our_steps(layers, DROPOUT, words(20, count), count)
    state, *data = start(0)
    held, notes = [state], list[str]()
    program = compiled_at_first(run, notes)
    net = nn.network(nn.encoder_lm(count, layers=layers, dropout=DROPOUT))

    def further() -> Any:
        held[0] = jax.block_until_ready(program(held[0], *data, steps))
        return held[0].params

    def found(params: Any) -> dict[str, tuple[float, float]]:
        task.say(title, notes=notes)
        columns = data[0][:, : LENGTH + 1]
        loss = jax.jit(lambda p: model.loss(net, p, columns[:, :-1], columns[:, 1:]))(params)
        return {"loss": size_of(loss), "read-out": size_of(params["head"])}

    title = f"language model, {layers} layers, {steps * parts} steps, {precision}"
    measure(task, title, further, parts, found, flops=products(layers, count) * steps * parts)


def a_map(task: Task) -> None:
    """A map of thousands of networks, drawn twice."""
    from map_torch import CLAIM, OVER

    import jaxdyn as jd

    cells, seeds = (25, 4) if task.quick else (85, None)
    run = functools.partial(jd.map, CLAIM, over=OVER, cells=cells, seeds=seeds)
    name = f"map, at most {cells} cells"

    def found(drawn: Any) -> dict[str, tuple[float, float]]:
        first = drawn.cells[:25]  # of the others it depends on verdicts near the border where they are
        verdicts = {json.dumps(cell["at"]): cell["verdict"] for cell in first}
        task.say(name, verdicts=verdicts, runs=drawn.runs, cells=len(drawn.cells))
        return {c["name"]: size_of(v) for c, v in zip(drawn.cells[0]["checks"], drawn.data["value"].values[:, :25], strict=True)}

    measure(task, name, run, found=found)


def laboratory(task: Task) -> None:
    """A LLaMA network of the laboratory, width 512 and depth 8, in training and read by the laws that any network has."""
    import jax

    from jaxdyn.instruments.registry import laws
    from jaxdyn.laboratory import course, setting
    from jaxdyn.laboratory.variants import RECIPES

    width, layers, steps, parts = (32, 2, 2, 2) if task.quick else (512, 8, 10, 10)
    fields = RECIPES["LLaMA"] | {"width": width, "layers": layers, "data": "recall", "steps": steps, "every": steps}
    s = setting.Bench(**fields | {"heads": max(width // 64, 1)})
    watched = [law for law in laws().values() if not law.why_not(setting.asked(s)) and law.cost <= 1]
    training = setting.training_of(s)
    program, shape = jax.jit(lambda key: course.run(training, watched, key)), training.shape
    keys = iter(jax.random.split(jax.random.key(0), parts + 2))
    tokens = s.batch * training.task.length * steps * parts
    flops = 6.0 * (sum(x * y for x, y in shape.weights.values()) * layers + shape.width * shape.vocabulary) * tokens
    title = f"laboratory, width {width}, depth {layers}, {steps * parts} steps, {len(watched)} laws"
    further = lambda: jax.block_until_ready(program(next(keys)))  # noqa: E731
    measure(task, title, further, parts, lambda result: {"loss": size_of(result.loss)}, flops=flops)


def probe(task: Task) -> None:
    """A published model reads texts, and instruments are applied to it."""
    import jax
    from real_model import our_whole, tokens

    import jaxdyn as jd
    from jaxdyn.instruments.pieces import forward

    model, name = _model(task)
    texts, length, parts = (1, 64, 2) if task.quick else (4, 512, 10)
    with jax.default_matmul_precision("highest"):
        run = functools.partial(our_whole(model, texts, length), 1)
        flops = forward(model.shape, length) * texts * length * parts
        title = f"{name} reads {texts * parts} texts of {length} tokens"
        now = time.perf_counter()
        half = dataclasses.replace(task, until=now + (task.until - now) / 2)
        measure(half, title, run, parts, lambda logits: {"logits": size_of(logits)}, flops=flops)
        count, piece = (256, 64) if task.quick else (512, 256)
        text = None if model.tokenizer is not None else tokens(1, count, model.shape.vocabulary)[0]
        only = INSTRUMENTS[-1:] if task.quick else INSTRUMENTS
        probed = functools.partial(jd.probe, model, text, count, only, length=piece)

        def found(result: Any) -> dict[str, tuple[float, float]]:
            outcomes = result.checkpoints[0].outcomes
            task.say(f"{name}, probe", instruments={one.instrument.name: one.seconds for one in outcomes})
            return {f"{one.instrument.name}: {n.name}": size_of(n.value) for one in outcomes for n in one.numbers()}

        measure(task, f"{name}, probe", probed, found=found, tokens=count)


def _model(task: Task) -> tuple[Any, str]:
    """The model that was asked for, or SmolLM2 if it is here, or random weights of its shape; and its name."""
    import jax

    from jaxdyn import models
    from jaxdyn.nn import Transformer
    from jaxdyn.nn.transformer import init

    if task.model is not None:
        return models.load(task.model), Path(task.model).name
    reason_for_none = "in a trial"
    if not task.quick:
        try:
            return models.load("smollm2"), "SmolLM2"
        except Exception as error:
            reason_for_none = reason(error)
    shape = Transformer(**(SMALL if task.quick else SMOLLM2))
    name = f"random weights ({'a small shape' if task.quick else 'the shape of SmolLM2'})"
    task.say(name, without=reason_for_none)
    return models.Model(shape, jax.jit(init, static_argnums=0)(shape, jax.random.key(0)), None, None), name


def verdicts(task: Task) -> None:
    """Claims by the command line, in a process of its own, and then the means of what it stored."""
    claims = QUICK_CLAIMS if task.quick else CLAIMS
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        words = [sys.executable, "-m", "jaxdyn", "verify", *claims, "--json", "--out", folder]
        done = subprocess.run(words, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
        whole = time.perf_counter() - begin
        if done.returncode not in (0, 1):
            raise RuntimeError(f"verify ended with {done.returncode}: {last_line(done.stderr)}")
        result = json.loads(done.stdout)
        found = {claim["id"]: claim["verdict"] for claim in result["claims"]}
        name = f"verify, {len(claims)} claims, the whole call"
        costs = [{k: c[k] for k in ("program", "compile_seconds", "run_seconds", "runs")} for c in result["costs"]]
        compiling, running = (sum(c[f"{kind}_seconds"] for c in costs) for kind in ("compile", "run"))
        task.say(name, run=whole, compile=compiling, of_runs=running, runs=result["runs"], costs=costs, verdicts=found)
        values = check_values(result["claims"])
        task.say(name, values=values)
        task.say(name, values=values | _stored_means(claims, folder))


def check_values(claims: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The values of all checks, each on the scale of itself or its bound."""
    checks = {f"{claim['id']}: {check['name']}": check for claim in claims for check in claim["checks"]}
    numbers = {name: [x for x in (check["value"], *check["bound"]) if x is not None] for name, check in checks.items()}
    return {name: (check["value"], max(map(abs, numbers[name]))) for name, check in checks.items() if check["value"] is not None}


def _stored_means(claims: tuple[str, ...], folder: str) -> dict[str, tuple[float, float]]:
    """Means of all predicted and measured variables of the claims' stored runs."""
    from jaxdyn.engine.catalogue import registry
    from jaxdyn.engine.verification.verify import make_plan

    found, plan = {}, make_plan(registry.select(list(claims)), store=Path(folder))
    for job in plan.jobs:
        if len(job.done) < len(job.chunks):
            raise RuntimeError(f"runs of {job.program.trial.title} are not stored where this process looks for them")
    for task in (task for task in plan.tasks if task.missing is None):
        variables = plan.stored.dataset(task.main).data_vars
        names = [n for n, x in variables.items() if str(n).startswith(("predicted_", "measured_")) and x.dtype.kind in "fiub"]
        found |= {f"{task.claim.id} {n}": size_of(variables[n]) for n in names}
    return found


PIECES: dict[str, Callable[[Task], None]] = {
    "devices": devices,
    "calibration": calibration,
    "li2": li2,
    "language": language,
    "fig6": fig6,
    "laboratory": laboratory,
    "verdicts": verdicts,
    "probe": probe,
    "map": a_map,
}
ALONE = ("verdicts",)  # they start a process that wants the device for itself


def last_line(text: str) -> str:
    """The last line of what a process has said that is not empty."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing said")[:300]


def reason(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"[:300]


@functools.cache
def use_all_cores() -> None:
    """A sweep is sharded over the devices: on a processor they are its cores. Accelerators are as many as there are."""
    import jax

    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):  # JAX refuses both
        jax.config.update("jax_num_cpu_devices", cores())


def serve(orders: Any, tell: Callable[[dict[str, Any]], None]) -> None:
    """Do what each line asks for: ``{"piece", "seconds", "quick", "model"}``."""
    for line in orders:
        order = json.loads(line)
        until = time.perf_counter() + order["seconds"]
        if order["piece"] not in ALONE:
            use_all_cores()
        try:
            PIECES[order["piece"]](Task(order["quick"], order["model"], until, tell))
            tell({"done": True})
        except Exception as error:
            tell({"failed": reason(error)})
        gc.collect()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # for the lines alone: what else is printed goes to standard error
    os.dup2(2, 1)

    def tell(facts: dict[str, Any]) -> None:
        """One line."""
        print(json.dumps(facts), file=answers, flush=True)

    serve(sys.stdin, tell)
