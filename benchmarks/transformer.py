"""A training step of the transformer next to PyTorch's, a sweep of it next to a program written by hand, and how long it compiles.

Step: width 128, 4 layers, 4 heads, MLP of four widths (GPT-2's block, learned positions, 256 tokens, untied), batches of 8 x 128
tokens, Adam, float32. Sides run in turn, each with all threads. Here sequences are spread over the cores, each a device of JAX
(``jax_num_cpu_devices``, a batch with a sharding); and the same on one device, whose products alone use several threads. PyTorch
runs in a process of its own, as its module is written (scaled_dot_product_attention, fused Adam) and, with ``--compile``, through
torch.compile. That both compute the same loss and
gradients from the same weights is checked first. ``of peak``: share of the machine's matrix-product rate as XLA reaches it, by the
products of a step. Sweep: 8 seeds x 4 rates of a width-32 block, 200 steps, in one program under ``vmap``; by hand is the same
network written out in 25 lines of ``jit(vmap(scan))``. Compiling: one training step, from nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from common import Children, alternate, cores, interleaved, matmul_peak, publish, serve

VOCABULARY, WIDTH, LAYERS, HEADS, HIDDEN, BATCH, LENGTH = 256, 128, 4, 4, 512, 8, 128
SMALL = {"width": 32, "layers": 1, "heads": 2, "hidden": 128}
SEEDS, RATES, STEPS, EPSILON = 8, (1e-3, 3e-3, 1e-2, 3e-2), 200, 1e-5


def text(batch: int = BATCH, length: int = LENGTH) -> np.ndarray:
    return np.random.default_rng(0).integers(0, VOCABULARY, (batch, length + 1)).astype(np.int32)


def shape(**change: Any) -> Any:
    """GPT-2's block."""
    from jaxdyn import nn

    sizes = {"width": WIDTH, "layers": LAYERS, "heads": HEADS, "length": LENGTH, "dropout": 0.0, "tied": False}
    return nn.gpt2(VOCABULARY, **sizes | {"hidden": HIDDEN, "scan": False} | change)


def loss_of(shape: Any) -> Callable[..., Any]:
    from jaxdyn import nn
    from jaxdyn.text import language

    net = nn.network(shape)
    return lambda params, tokens: language.loss(net, params, tokens[:, :-1], tokens[:, 1:])


def stepper(shape: Any, rate: Any = 1e-3) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``init(key) -> state`` and ``step(state, tokens) -> state``."""
    import optax

    from jaxdyn import nn, train

    tx = optax.adam(rate)
    return lambda key: train.init(tx, nn.network(shape).init(key)), train.make_step(loss_of(shape), tx)


def jax_seconds(steps: int, spread: bool) -> Callable[[], float]:
    """Seconds of a step, the average over a loop inside one compiled program; ``spread``: a part of the batch on each device."""
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    init, step = stepper(shape())
    mesh = jax.make_mesh((jax.device_count() if spread else 1,), ("batch",), axis_types=(AxisType.Auto,))
    tokens = jax.device_put(text(), NamedSharding(mesh, PartitionSpec("batch")))
    state = jax.device_put(jax.jit(init)(jax.random.key(0)), NamedSharding(mesh, PartitionSpec()))
    run = jax.jit(lambda state, tokens: jax.lax.fori_loop(0, steps, lambda _, s: step(s, tokens), state))
    jax.block_until_ready(run(state, tokens))

    def seconds() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(run(state, tokens))
        return (time.perf_counter() - begin) / steps

    return seconds


def module() -> Any:
    """The same network in PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.one(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(mixed.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.two(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH))
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.norm(self.blocks(self.embed(tokens) + self.position)))

    return Model()


def given(model: Any, params: Any) -> None:
    """Put our weights into the module."""
    import torch

    def put(to: Any, value: Any) -> None:
        to.data.copy_(torch.tensor(np.asarray(value)))

    blocks = params["blocks"]
    for name, to in (("embed", model.embed.weight), ("position", model.position), ("head", model.head.weight)):
        put(to, params[name])
    put(model.norm.weight, params["norm"])
    put(model.norm.bias, params["norm_bias"])
    for i, block in enumerate(model.blocks):
        w = {name: np.asarray(x[i]) for name, x in blocks.items()}
        put(block.qkv.weight, np.concatenate([w[n] for n in "qkv"], 1).T)
        put(block.qkv.bias, np.concatenate([w[f"{n}_bias"] for n in "qkv"]))
        for name, linear in (("o", block.o), ("up", block.up), ("down", block.down)):
            put(linear.weight, w[name].T)
            put(linear.bias, w[f"{name}_bias"])
        for name, norm in (("attention_norm", block.one), ("mlp_norm", block.two)):
            put(norm.weight, w[name])
            put(norm.bias, w[f"{name}_bias"])


def torch_loss(model: Any, tokens: Any) -> Any:
    from torch.nn import functional

    return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def check() -> float:
    """Largest difference of gradients of the embedding, the read-out and the MLPs, over the largest entry."""
    import jax
    import torch

    params = jax.jit(stepper(shape())[0])(jax.random.key(0)).params
    params = jax.tree.map(
        lambda x: np.asarray(x + 0.02 * np.random.default_rng(x.size).standard_normal(x.shape), np.float32), params
    )
    value, gradient = jax.jit(jax.value_and_grad(loss_of(shape())))(params, text())
    model = module()
    given(model, params)
    theirs = torch_loss(model, torch.tensor(text()).long())
    theirs.backward()
    pairs = [(gradient["embed"], model.embed.weight.grad), (gradient["head"], model.head.weight.grad)]
    pairs += [(gradient["blocks"]["up"][i], block.up.weight.grad.T) for i, block in enumerate(model.blocks)]
    pairs += [(gradient["blocks"]["q"][i], block.qkv.weight.grad[:WIDTH].T) for i, block in enumerate(model.blocks)]
    differences = [float(np.abs(np.asarray(a) - b.numpy()).max() / np.abs(b.numpy()).max()) for a, b in pairs]
    return max(abs(float(value) - theirs.item()), *differences)


def child(compiled: bool) -> None:
    """A PyTorch process: for each line, which is a number of steps, the seconds per step."""
    import torch

    torch.set_num_threads(cores())
    torch.set_flush_denormal(True)
    model = module()
    adam, tokens = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True), torch.tensor(text()).long()
    run = torch.compile(model) if compiled else model

    def step() -> None:
        adam.zero_grad()
        torch_loss(run, tokens).backward()
        adam.step()

    step()
    serve(lambda _: step())


def flop() -> float:
    """Of a step's products: three times those of the forward pass."""
    token = LAYERS * (2 * (4 * WIDTH**2 + 2 * WIDTH * HIDDEN) + 4 * LENGTH * WIDTH) + 2 * WIDTH * VOCABULARY
    return 3.0 * token * BATCH * LENGTH


def by_hand(rate: Any, key: Any, tokens: Any) -> Any:
    """The sweep's training, written out: one block in plain JAX, Adam, a scan."""
    import jax
    import jax.numpy as jnp

    init, _ = stepper(shape(**SMALL, length=tokens.shape[1] - 1, scan=True))
    params, (d, h) = init(key).params, (SMALL["width"], SMALL["heads"])

    def norm(x: Any, gain: Any, bias: Any) -> Any:
        x = x - jnp.mean(x, -1, keepdims=True)
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON) * gain + bias

    def loss(p: Any) -> Any:
        w, (b, n) = {name: x[0] for name, x in p["blocks"].items()}, (tokens.shape[0], tokens.shape[1] - 1)
        x = p["embed"][tokens[:, :-1]] + p["position"][:n]
        z = norm(x, w["attention_norm"], w["attention_norm_bias"])
        q, k, v = ((z @ w[name] + w[f"{name}_bias"]).reshape(b, n, h, d // h) for name in "qkv")
        scores = jnp.einsum("bnhe,bmhe->bhnm", q, k) * (d // h) ** -0.5
        a = jax.nn.softmax(jnp.where(jnp.tri(n, dtype=bool), scores, -jnp.inf), -1)
        x = x + jnp.einsum("bhnm,bmhe->bnhe", a, v).reshape(b, n, d) @ w["o"] + w["o_bias"]
        z = norm(x, w["mlp_norm"], w["mlp_norm_bias"])
        x = x + jax.nn.gelu(z @ w["up"] + w["up_bias"]) @ w["down"] + w["down_bias"]
        logits = norm(x, p["norm"], p["norm_bias"]) @ p["head"].T
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits, -1), tokens[:, 1:, None], -1))

    def step(carry: Any, i: Any) -> tuple[Any, None]:
        p, m, v = carry
        g = jax.grad(loss)(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        size = rate * jnp.sqrt(1 - 0.999 ** (i + 1)) / (1 - 0.9 ** (i + 1))
        return (jax.tree.map(lambda p, m, v: p - size * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v), None

    zero = jax.tree.map(jnp.zeros_like, params)
    (params, _, _), _ = jax.lax.scan(step, (params, zero, zero), jnp.arange(STEPS, dtype=jnp.float32))
    return loss(params)


def ours(rate: Any, key: Any, tokens: Any) -> Any:
    """The same by the transformer and the training loop of this package."""
    from jaxdyn import train

    small = shape(**SMALL, length=tokens.shape[1] - 1, scan=True)
    init, step = stepper(small, rate)
    state = init(key)
    end, _ = train.record(lambda s: step(s, tokens), state, lambda s: s.step, samples=1, every=STEPS)
    return loss_of(small)(end.params, tokens)


def swept(run: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    return jax.jit(jax.vmap(jax.vmap(run, (0, None, None)), (None, 0, None)))


def compile_seconds(**change: Any) -> float:
    """Of a training step, traced and compiled from nothing."""
    import jax

    jax.clear_caches()
    init, step = stepper(shape(**change))
    begin = time.perf_counter()
    jax.jit(step).lower(jax.eval_shape(init, jax.random.key(0)), text()).compile()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps, once: does it work?")
    parser.add_argument("--compile", action="store_true", help="PyTorch through torch.compile, too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child == "compiled")
        return
    import jax

    jax.config.update("jax_num_cpu_devices", cores())
    rounds, steps = (1, 3) if options.quick else (7, 25)
    difference = check()
    assert difference < 1e-3, f"not the same network: {difference}"

    # a step
    with ExitStack() as stack:
        forms = ("eager", "compiled") if options.compile else ("eager",)
        torch = {f"PyTorch, {form}": Children(stack, __file__, [form], 1) for form in forms}
        here = {"here": jax_seconds(steps, spread=True), "here, on one device": jax_seconds(steps, spread=False)}
        contestants = here | {name: (lambda c=c: c.seconds(steps)) for name, c in torch.items()}
        peaks = [matmul_peak()]
        times = alternate(contestants, rounds)
        peaks.append(matmul_peak())
    best = {name: float(np.median(samples)) for name, samples in times.items()}
    rows = [
        {"step": name, "ms": 1e3 * s, "times PyTorch's best": min(v for n, v in best.items() if n in torch) / s,
         "of peak": flop() / s / max(peaks)}
        for name, s in best.items()
    ]  # fmt: skip

    # a sweep
    keys, rates, tokens = jax.random.split(jax.random.key(0), SEEDS), np.asarray(RATES, np.float32), text(4, 32)
    programs = {"here": swept(ours), "by hand": swept(by_hand)}
    losses = {name: np.asarray(run(rates, keys, tokens)) for name, run in programs.items()}
    apart = float(np.abs(losses["here"] - losses["by hand"]).max())
    assert apart < 0.05, f"not the same training: {apart}"
    sweeps = interleaved({n: lambda r=r: jax.block_until_ready(r(rates, keys, tokens)) for n, r in programs.items()}, rounds)
    facts = {
        "agreement": difference,
        "sweep": {name: t["median"] for name, t in sweeps.items()} | {"losses_apart": apart},
        "sweep_over_by_hand": sweeps["here"]["median"] / sweeps["by hand"]["median"],
        "compile_seconds": {"layers in a loop": compile_seconds(scan=True), "written out": compile_seconds()},
    }
    facts["compile_seconds"]["one block"] = compile_seconds(layers=1, scan=True)
    print(facts)
    publish(
        "transformer",
        f"A training step of {BATCH} x {LENGTH} tokens at width {WIDTH} and depth {LAYERS}",
        rows,
        save=not options.quick,
        samples=times,
        peak_gflops=max(peaks) / 1e9,
        **facts,
    )


if __name__ == "__main__":
    main()
