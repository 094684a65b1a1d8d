r"""1024 starts of an ODE with a closed form, at equal achieved error: our flow, scipy (a loop, and one flat system), torchdiffeq.

Three systems of ten components, every start with its own coefficients:

.. math:: \dot v = (\mu - v) e^{v^2/2}, \ \mu \in [.5, 2.5] \text{ (mild)} \text{ or } [1, 4] \text{ (stiff, rates to 3000)};
          \qquad \dot v = \Delta e^{v^2/2} \text{ (erf), to } .8 \text{ of each start's blow-up time.}

Every contestant gets the loosest tolerance (rtol = atol, in quarters of a decade) that keeps its largest error over all starts,
components and save times below 1e-6 (erf, which is smooth: 1e-9). The loop over starts is tuned and timed on a few starts, and
its time multiplied. In each family, the method and number of threads that are fastest in a pilot are timed in full; the pilots are
in the JSON file. Ours runs on all cores (starts are sharded), scipy on one: the last column divides its time by the cores.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from common import interleaved, publish
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from scipy.integrate import solve_ivp

from jaxdyn import flow

D = 10
HALF = math.sqrt(math.pi / 2)
BLOCK = 256  # numbers solved together after sorting: a vmapped solver takes as many steps as its slowest lane
# Coordinates, way to treat many starts, solvers to choose from. "shared step": the starts of a core are one stacked state; "vmap"
# and "map": every start has its own steps; in blocks: starts (or single components) sorted by their largest |a|, a block at a time.
OURS = (
    ("v", "shared step", ("tsit5", "dopri8")),
    ("v", "vmap", ("tsit5",)),
    ("v", "map", ("dopri8",)),
    ("v", "starts in blocks", ("tsit5",)),
    ("v", "components in blocks", ("tsit5", "dopri8")),
    ("better", "shared step", ("tsit5", "dopri8")),
    ("better", "vmap", ("tsit5",)),
    ("better", "starts in blocks", ("tsit5", "dopri8")),
    ("better", "components in blocks", ("tsit5", "dopri8")),
)
BETTER = {"critical": "s", "erf": "u"}  # s = ln(delta_0/delta), delta = 1 - v/mu; u = erf(v/sqrt 2)


@dataclass(frozen=True)
class Problem:
    """Coefficients ``a`` and starts ``v0`` (starts, components), save times, and the exact states at those after the start."""

    name: str
    kind: str
    a: np.ndarray
    v0: np.ndarray
    ts: np.ndarray
    exact: np.ndarray  # (times, starts, components)
    target: float  # of the largest error

    def part(self, n: int) -> Problem:
        """The first n starts."""
        return Problem(self.name, self.kind, self.a[:n], self.v0[:n], self.ts, self.exact[:, :n], self.target)

    def error(self, states: np.ndarray | None) -> float:
        """Largest error; a solve that failed or holds NaN counts as infinite."""
        if states is None or states.shape != self.exact.shape:
            return math.inf
        return float(np.max(np.nan_to_num(np.abs(states - self.exact), nan=np.inf)))


@dataclass
class Contestant:
    """A way to solve ``problem``, ``run(rtol)``; its time stands for ``factor`` times as many starts."""

    family: str
    method: str
    run: Callable[[float], np.ndarray | None]
    problem: Problem
    factor: float = 1
    threads: int = 0  # 0: as many as there are cores, not to be set
    compile_seconds: float = 0.0
    rtol: float = 0.0
    error: float = math.inf
    pilot: float = math.inf

    def __call__(self) -> Any:
        """Solve once at the tuned tolerance."""
        if self.threads:
            use_threads(self.threads)
        return self.run(self.rtol)


def critical(name: str, low: float, high: float, n: int) -> Problem:
    rng = np.random.default_rng(0)
    mu, v0, ts = rng.uniform(low, high, (n, D)), rng.uniform(-0.4, 0.4, (n, D)), np.linspace(0, 1, 5)
    return Problem(name, "critical", mu, v0, ts, np.stack([critical_state(mu, v0, t) for t in ts[1:]]), 1e-6)


def critical_state(mu: np.ndarray, v0: np.ndarray, t: float) -> np.ndarray:
    r"""v(t) from :math:`s + C(s) = t e^{\mu^2/2}`, :math:`C = \int_{\delta}^{\delta_0} (e^{\mu^2(2x - x^2)/2} - 1)/x\,dx`.

    Here :math:`s = \ln(\delta_0/\delta)`, :math:`\delta = 1 - v/\mu`. Newton's rule, kept inside a bracket.
    """
    nodes, weights = np.polynomial.legendre.leggauss(48)
    first, m, goal = 1 - v0 / mu, mu**2 / 2, t * np.exp(mu**2 / 2)
    low, high = np.zeros_like(mu), goal  # since C >= 0
    s = low
    for _ in range(60):
        delta = first * np.exp(-s)
        x = ((first + delta)[..., None] + (first - delta)[..., None] * nodes) / 2
        c = (first - delta) / 2 * ((np.expm1(m[..., None] * (2 * x - x * x)) / x) @ weights)
        excess = s + c - goal
        low, high = np.where(excess < 0, s, low), np.where(excess < 0, high, s)
        newton = s - excess * np.exp(-m * (2 * delta - delta * delta))
        last, s = s, np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        if np.max(np.abs(s - last)) <= 1e-14 * np.max(s):
            break
    return mu * (1 - first * np.exp(-s))


def erf_law(n: int) -> Problem:
    rng = np.random.default_rng(1)
    delta, v0, ts = rng.normal(size=(n, D)), rng.uniform(-0.4, 0.4, (n, D)), np.linspace(0, 0.8, 5)
    u0 = scipy.special.erf(v0 / math.sqrt(2))
    blow_up = HALF * (1 - np.sign(delta) * u0) / np.abs(delta)
    delta *= blow_up.min(-1, keepdims=True)  # every start blows up at time 1
    exact = [math.sqrt(2) * scipy.special.erfinv(u0 + delta * t / HALF) for t in ts[1:]]
    return Problem("erf", "erf", delta, v0, ts, np.stack(exact), 1e-9)


def field(kind: str, lib: Any) -> Callable:
    """The field in v for numpy, jax.numpy or torch."""
    if kind == "critical":
        return lambda t, v, a: (a - v) * lib.exp(v * v / 2)
    return lambda t, v, a: a * lib.exp(v * v / 2)


def coordinates(kind: str, name: str) -> tuple[Callable, Callable, Callable]:
    """Start, field and inverse of a coordinate. In u the field is constant and the solver has nothing left to do."""
    if name == "v":
        f = field(kind, jnp)
        return lambda a, v0: v0, lambda t, v, p: f(t, v, p[0]), lambda v, a, v0: v
    if kind == "erf":
        root = math.sqrt(2)
        start = lambda a, v0: jax.scipy.special.erf(v0 / root)  # noqa: E731
        return start, lambda t, u, p: p[0] / HALF + 0 * u, lambda u, a, v0: root * jax.scipy.special.erfinv(u)

    def back(s: Any, a: Any, v0: Any) -> Any:
        return a - (a - v0) * jnp.exp(-s)

    return lambda a, v0: jnp.zeros_like(v0), lambda t, s, p: jnp.exp(back(s, *p) ** 2 / 2), back


def our_program(kind: str, name: str, way: str, solver: str) -> Callable:
    """Jitted ``(rtol, a, v0, ts) -> (starts, times, components)`` by ``flow.solve``, starts sharded over the devices."""
    begin, slope, back = coordinates(kind, name)

    def one(rtol: Any, a: Any, v0: Any, ts: Any) -> Any:
        options = {"solver": solver, "rtol": rtol, "atol": rtol, "max_steps": 100_000}
        return back(flow.solve(slope, begin(a, v0), ts, (a, v0), **options).ys, a, v0)[1:]

    def run(rtol: Any, a: Any, v0: Any, ts: Any) -> Any:
        if way == "shared step":
            return jnp.swapaxes(one(rtol, a, v0, ts), 0, 1)
        if way == "vmap":
            return jax.vmap(one, (None, 0, 0, None))(rtol, a, v0, ts)
        if way == "map":
            return jax.lax.map(lambda row: one(rtol, *row, ts), (a, v0))
        options = {"solver": solver, "rtol": rtol, "atol": rtol, "max_steps": 100_000}
        if way == "starts in blocks":
            rows, size, block = (a, v0), jnp.max(jnp.abs(a), -1), BLOCK // 8
        else:
            rows, size, block = (a.ravel(), v0.ravel()), jnp.abs(a).ravel(), BLOCK
        ys = flow.solve_many(slope, begin(*rows), ts, rows, stiffness=size, block=block, **options).ys
        states = jax.vmap(back)(ys, *rows)[:, 1:]
        return states if way == "starts in blocks" else jnp.swapaxes(states.reshape(*a.shape, -1), 1, 2)

    mesh = jax.make_mesh((jax.local_device_count(),), ("starts",), axis_types=(AxisType.Auto,))
    specs = {"in_specs": (P(), P("starts"), P("starts"), P()), "out_specs": P("starts")}
    return jax.jit(jax.shard_map(run, mesh=mesh, check_vma=False, **specs))


@functools.cache
def compiled(kind: str, shape: tuple[int, int], times: int, *which: str) -> tuple[Callable, float]:
    """The program and its compile seconds; mild and stiff share it."""
    start = time.perf_counter()
    sizes = (), shape, shape, (times,)
    program = our_program(kind, *which).lower(*(jax.ShapeDtypeStruct(s, jnp.float64) for s in sizes)).compile()
    return program, time.perf_counter() - start


def our_runs(problem: Problem) -> Iterable[list[Contestant]]:
    for name, way, solvers in OURS:
        choices = []
        for solver in solvers:
            program, took = compiled(problem.kind, problem.a.shape, len(problem.ts), name, way, solver)

            def run(rtol: float, program: Callable = program) -> np.ndarray:
                return np.swapaxes(np.asarray(program(np.float64(rtol), problem.a, problem.v0, problem.ts)), 0, 1)

            label = "v" if name == "v" else BETTER[problem.kind]
            choices.append(Contestant(f"ours in {label}: {way}", solver, run, problem, compile_seconds=took))
        yield choices


def scipy_flat(problem: Problem, method: str, rtol: float) -> np.ndarray | None:
    """All starts as one system; for LSODA the Jacobian is declared diagonal."""
    f, a = field(problem.kind, np), problem.a.ravel()
    options = {"method": method, "t_eval": problem.ts[1:], "rtol": rtol, "atol": rtol}
    options |= {"lband": 0, "uband": 0} if method == "LSODA" else {}
    with np.errstate(all="ignore"):
        solution = solve_ivp(lambda t, v: f(t, v, a), (0, problem.ts[-1]), problem.v0.ravel(), **options)
    return solution.y.T.reshape(-1, *problem.a.shape) if solution.success else None


def scipy_loop(problem: Problem, method: str, rtol: float) -> np.ndarray | None:
    """One start after another."""
    f, states = field(problem.kind, np), []
    options = {"method": method, "t_eval": problem.ts[1:], "rtol": rtol, "atol": rtol}
    with np.errstate(all="ignore"):
        for a, v0 in zip(problem.a, problem.v0, strict=True):
            solution = solve_ivp(lambda t, v, a=a: f(t, v, a), (0, problem.ts[-1]), v0, **options)
            if not solution.success:
                return None
            states.append(solution.y.T)
    return np.stack(states, 1)


def torch_batch(problem: Problem, method: str, rtol: float) -> np.ndarray | None:
    """All starts as one tensor; steps end on the save times, where torchdiffeq would otherwise interpolate."""
    import torch
    from torchdiffeq import odeint

    f, a, v0, ts = field(problem.kind, torch), *(torch.from_numpy(x) for x in (problem.a, problem.v0, problem.ts))
    with torch.no_grad():
        try:
            options = {"step_t": ts[1:], "max_num_steps": 100_000}
            return odeint(lambda t, v: f(t, v, a), v0, ts, rtol=rtol, atol=rtol, method=method, options=options)[1:].numpy()
        except AssertionError:  # its step size fell to nothing
            return None


def use_threads(count: int) -> None:
    """Threads of torch, and of numpy's BLAS, which combines the stages in scipy's solvers."""
    import torch

    torch.set_num_threads(count)
    torch.set_flush_denormal(True)
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64*"):
        ctypes.CDLL(str(path)).scipy_openblas_set_num_threads64_(count)


def rival_runs(problem: Problem, sample: int) -> Iterable[list[Contestant]]:
    for family, solve, methods, part in (
        ("scipy loop", scipy_loop, ("RK45", "DOP853", "LSODA"), problem.part(sample)),
        ("scipy flat", scipy_flat, ("RK45", "DOP853", "LSODA"), problem),
        ("torchdiffeq", torch_batch, ("dopri5", "dopri8"), problem),
    ):
        factor = len(problem.a) / len(part.a)
        yield [Contestant(family, m, functools.partial(solve, part, m), part, factor, threads=1) for m in methods]


def tune(run: Callable[[float], np.ndarray | None], problem: Problem, start: int = -26) -> tuple[float, float]:
    """The loosest tolerance, in quarters of a decade, whose error is below the target; and that error."""
    errors: dict[int, float] = {}

    def good(k: int) -> bool:
        if k not in errors:
            errors[k] = problem.error(run(10 ** (k / 4)))
        return errors[k] <= problem.target

    k = start
    while not good(k):
        k -= 4
        assert k > -54, "no tolerance reaches the target"
    while k < -8 and good(k + 4):
        k += 4
    k += 2 * good(k + 2)
    k += good(k + 1)
    return 10 ** (k / 4), errors[k]


def pilot(contestant: Contestant) -> Contestant:
    """Run twice (once if that takes over 5 s) and keep the better time."""
    c = contestant
    for _ in range(2):
        start = time.perf_counter()
        c()
        c.pilot = min(c.pilot, c.factor * (time.perf_counter() - start))
        if c.pilot / c.factor > 5:
            break
    print(f"  pilot {c.family}, {c.method}, threads {c.threads or 'all'}: {c.pilot:.3f} s at {c.rtol:.1e}", file=sys.stderr)
    return c


def best_of(choices: list[Contestant], threads: Iterable[int]) -> tuple[Contestant, list[Contestant]]:
    """Tune every method and take the fastest; a rival's with each number of threads. The best, and all pilots."""
    for c in choices:
        c.rtol, c.error = tune(c.run, c.problem)
    tried = [pilot(c) for c in choices]
    best = min(tried, key=lambda c: c.pilot)
    if best.threads and best.factor == 1:
        tried += [pilot(dataclasses.replace(best, threads=count, pilot=math.inf)) for count in threads if count != best.threads]
    return min(tried, key=lambda c: c.pilot), tried


def study(problem: Problem, sample: int, repeats: int, threads: Iterable[int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of one problem, and the pilots."""
    results = [best_of(choices, threads) for choices in (*our_runs(problem), *rival_runs(problem, sample))]
    chosen = [best for best, _ in results]
    short = sum(c.pilot / c.factor for c in chosen) < 1
    times = interleaved({c.family: c for c in chosen}, 3 * repeats if short else repeats)
    seconds = {c.family: {k: c.factor * times[c.family][k] for k in ("min", "median")} for c in chosen}

    def fastest(start: str) -> float:
        return min(s["median"] for family, s in seconds.items() if family.startswith(start))

    rows = []
    for c in chosen:
        median, rival = seconds[c.family]["median"], not c.family.startswith("ours")
        spread = median / os.cpu_count() / fastest("ours") if c.family.startswith("scipy") else ""
        rows.append({
            "system": f"{problem.name} {problem.target:.0e}", "contestant": c.family, "method": c.method,
            "threads": c.threads or os.cpu_count(),
            "rtol": f"{c.rtol:.1e}", "error": f"{c.error:.1e}", "compile s": round(c.compile_seconds, 2) or "",
            "min s": seconds[c.family]["min"], "median s": median,
            "/ ours in v": median / fastest("ours in v") if rival else "", "/ ours": median / fastest("ours") if rival else "",
            "/ ours, all cores": spread,
        })  # fmt: skip
    keep = ("family", "method", "threads", "rtol", "error", "pilot", "compile_seconds")
    return rows, [{"system": problem.name, **{k: getattr(c, k) for k in keep}} for _, tried in results for c in tried]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="64 starts, timed once: does it work?")
    parser.add_argument("--systems", default="mild,stiff,erf", help="which of them, separated by commas")
    options = parser.parse_args()
    n, sample, repeats, threads = (64, 2, 1, (1,)) if options.quick else (1024, 8, 5, (1, 2))
    jax.config.update("jax_num_cpu_devices", os.cpu_count())
    make = {"mild": lambda: critical("mild", 0.5, 2.5, n), "stiff": lambda: critical("stiff", 1, 4, n), "erf": lambda: erf_law(n)}
    rows, pilots = [], []
    with jax.enable_x64(True):
        for name in options.systems.split(","):
            more, tried = study(make[name](), sample, repeats, threads)
            rows, pilots = rows + more, pilots + tried
    question = f"{n} starts at equal error, the loop timed on {sample} (target: loop 100 times ours, flat 3, torchdiffeq 10)"
    publish("ode_batches", question, rows, save=not options.quick, pilots=pilots)


if __name__ == "__main__":
    main()
