"""How many nodes climb the energy of Li2 to a maximum in a second: all at once, or by a loop over nodes in NumPy or SciPy?

All but SciPy's L-BFGS take the same steps (``dynamics/ascent.py``) from the same starts in float64; L-BFGS climbs by NumPy's energy
and gradient of one node until it stops by itself. "At a maximum" is the share of ends within 1e-9 of a predicted maximum.
"Gathers" is ``ascend``, which serves any activation and any data; "spectra" is ``ascend_spectra``, for x^2 on all pairs.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

import jax
import numpy as np
import scipy.optimize
from common import interleaved, publish

from jaxdyn.data.groups import Group, parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import ascent, energy

STEPS = 300
SIZES = {"23": (4096, 16, 8), "S4": (4096, 16, 8), "71": (1024, 4, 2)}  # nodes at once, in NumPy's loop, in SciPy's
CLOSE = 1e-9


def numpy_gradient(w: np.ndarray, group: Group) -> tuple[np.ndarray, np.ndarray]:
    """Energy and gradient of x^2 for one node (2M,) or many (2M, K)."""
    m, second = group.order, group.table[group.inverse].T
    x = w[None, :m] + w[m:][second]
    z = (x * x).sum(1)
    z -= z.mean(0)
    back = 2 * (w[:m, None] + w[None, m:]) * z[group.table]
    return (z * z).sum(0) / 2, np.concatenate([back.sum(1), back.sum(0)])


def numpy_climb(w: np.ndarray, group: Group) -> np.ndarray:
    """The steps of ``ascend``, for one node or many."""
    for _ in range(STEPS):
        g = numpy_gradient(w, group)[1]
        w = w + g / np.sqrt((g * g).sum(0))
        w = w / np.sqrt((w * w).sum(0))
    return w


def scipy_climb(w: np.ndarray, group: Group) -> np.ndarray:
    """Maximise E(w / |w|) over all w."""

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        size = np.sqrt(w @ w)
        e, g = numpy_gradient(w / size, group)
        return -e, -(g - w * (w @ g) / size**2) / size

    w = scipy.optimize.minimize(loss, w, jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15, "maxiter": 2000}).x
    return w / np.linalg.norm(w)


def contestants(name: str, nodes: tuple[int, int, int]) -> dict[str, tuple[int, Callable[[], np.ndarray]]]:
    """For every way: how many nodes it climbs in a call, and the call."""
    group, irreps = parse(name), decompose(parse(name))
    starts = ascent.directions(jax.random.key(0), group, nodes[0])[0]
    table = np.asarray(starts)
    gathers = jax.jit(functools.partial(ascent.ascend, group=group, steps=STEPS))
    spectra = jax.jit(functools.partial(ascent.ascend_spectra, irreps=irreps, steps=STEPS))
    batch = min(nodes[0], 8 * nodes[1])

    def loop(climb: Callable, count: int) -> np.ndarray:
        return np.stack([climb(table[:, i], group) for i in range(count)], 1)

    return {
        "gathers": (nodes[0], lambda: np.asarray(gathers(starts))),
        "spectra": (nodes[0], lambda: np.asarray(spectra(starts))),
        "NumPy, batch": (batch, lambda: numpy_climb(table[:, :batch], group)),
        "NumPy, loop": (nodes[1], lambda: loop(numpy_climb, nodes[1])),
        "SciPy, loop": (nodes[2], lambda: loop(scipy_climb, nodes[2])),
    }


def at_a_maximum(w: np.ndarray, name: str) -> float:
    """The share of nodes whose energy is that of a predicted maximum."""
    e = numpy_gradient(w, parse(name))[0]
    levels = np.array([p.energy for p in energy.peaks(decompose(parse(name)))])
    return float((np.abs(e[:, None] / levels - 1).min(1) < CLOSE).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="M = 23 with few nodes, once: does it work?")
    options = parser.parse_args()
    rows = []
    with jax.enable_x64(True):
        for name, nodes in {"23": (256, 2, 2)}.items() if options.quick else SIZES.items():
            ways = contestants(name, nodes)
            ends = {way: run() for way, (_, run) in ways.items()}
            shared = nodes[1]
            for way in ("spectra", "NumPy, batch", "NumPy, loop"):
                gap = np.abs(ends[way][:, :shared] - ends["gathers"][:, :shared]).max()
                assert gap < 1e-6, f"{name}: {way} ends {gap:.1g} from gathers"
            times = interleaved({way: run for way, (_, run) in ways.items()}, 1 if options.quick else 5)
            rate = {way: count / times[way]["median"] for way, (count, _) in ways.items()}
            for way, (count, _) in ways.items():
                rows.append(
                    {
                        "group": name,
                        "way": way,
                        "nodes": count,
                        "nodes/s (median)": rate[way],
                        "nodes/s (best)": count / times[way]["min"],
                        "over NumPy, loop": rate[way] / rate["NumPy, loop"],
                        "over SciPy, loop": rate[way] / rate["SciPy, loop"],
                        "at a maximum": at_a_maximum(ends[way], name),
                    }
                )
    publish(
        "li2_ascent",
        f"Nodes that climb to a maximum in a second, {STEPS} steps, float64",
        rows, save=not options.quick, steps=STEPS,
    )  # fmt: skip


if __name__ == "__main__":
    main()
