"""A hundred thousand small symmetric matrices: seconds of eigenvalues, singular values, inverses, solutions, by three libraries.

``jaxdyn.linalg`` (ours), ``jnp.linalg`` and NumPy have the same matrices, positive definite with eigenvalues of order 1, as one
batch; JAX has them on its device and leaves its results there. On CPUs ours factorises one matrix after another (its docstring says
why), NumPy as well, and ``jnp.linalg`` on all threads; LAPACK itself has one, as where the engine runs programs. That all agree is
checked first. On CPUs larger matrices are fewer; times are for each matrix, the best of some rounds.

``of peak``: share of the device's rate in products of that dtype, by the textbook's operations: 9 n³ for eigenvalues with vectors,
8/3 n³ for singular values alone, 2 n³ for an inverse, 2/3 n³ + 2 n² for a solution.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from common import interleaved, matmul_peak, publish
from threadpoolctl import ThreadpoolController

SIZES, DTYPES = (8, 16, 32), ("float64", "float32")
COUNT, FEWER = 100_000, {16: 4, 32: 16}  # by how many fewer on CPUs: about as much work for each size
KINDS = ("eigh", "singular values", "inv", "solve")
OPERATIONS: dict[str, Callable[[int], float]] = {
    KINDS[0]: lambda n: 9 * n**3,
    KINDS[1]: lambda n: 8 / 3 * n**3,
    KINDS[2]: lambda n: 2 * n**3,
    KINDS[3]: lambda n: 2 / 3 * n**3 + 2 * n**2,
}
TOLERANCE = {"float64": 1e-11, "float32": 1e-3}  # relative to the largest entry


def matrices(count: int, size: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric matrices and a right-hand side for each."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((count, size, size), np.float32)
    return (a @ a.swapaxes(1, 2) / size + np.eye(size, dtype=np.float32)).astype(dtype), a[:, 0].astype(dtype)


def functions(library: Any) -> dict[str, Callable[..., Any]]:
    """The four kinds of NumPy, ``jnp.linalg`` or ``jaxdyn.linalg``, of matrices and right-hand sides."""
    values = getattr(library, "singular_values", None) or functools.partial(library.svd, compute_uv=False)
    return {
        KINDS[0]: lambda a, b: tuple(library.eigh(a)),
        KINDS[1]: lambda a, b: values(a),
        KINDS[2]: lambda a, b: library.inv(a),
        KINDS[3]: lambda a, b: library.solve(a, b[..., None]),
    }


def contestants(kind: str, a: np.ndarray, b: np.ndarray) -> dict[str, Callable[[], Any]]:
    """The same calculation by each library; the functions wait for the result."""
    import jax
    import jax.numpy as jnp

    from jaxdyn import linalg

    given = jax.device_put((a, b))
    ours, theirs = (jax.jit(functions(library)[kind]) for library in (linalg, jnp.linalg))
    return {
        "jaxdyn.linalg": lambda: jax.block_until_ready(ours(*given)),
        "jnp.linalg": lambda: jax.block_until_ready(theirs(*given)),
        "numpy.linalg": lambda: functions(np.linalg)[kind](a, b),
    }


def comparable(kind: str, found: Any) -> np.ndarray:
    """What does not depend on the algorithm: eigenvalues, of vectors that belong to them only the matrix that they make."""
    if kind != KINDS[0]:
        return np.asarray(found)
    values, vectors = map(np.asarray, found)
    return (vectors * values[:, None]) @ vectors.swapaxes(1, 2)


def difference(kind: str, runs: dict[str, Callable[[], Any]], dtype: str) -> float:
    """The largest difference from NumPy's result, over its largest entry.

    Raises:
        SystemExit: where the libraries disagree.
    """
    found = {name: comparable(kind, run()) for name, run in runs.items()}
    right = found.pop("numpy.linalg")
    worst = max(float(np.max(np.abs(one - right)) / np.max(np.abs(right))) for one in found.values())
    if not worst < TOLERANCE[dtype]:
        raise SystemExit(f"{kind}, {dtype}: results differ by {worst}")
    return worst


def measure(kind: str, size: int, dtype: str, count: int, rounds: int, peak: float) -> dict[str, Any]:
    """A row of the table."""
    import jax

    with jax.enable_x64(True):
        runs = contestants(kind, *matrices(count, size, dtype))
        worst = difference(kind, runs, dtype)
        times = {name: found["min"] / count for name, found in interleaved(runs, rounds, warmup=0).items()}
    ours = times["jaxdyn.linalg"]
    return {
        "what": kind,
        "n": size,
        "dtype": dtype,
        "matrices": count,
        **{f"{name} (µs)": 1e6 * seconds for name, seconds in times.items()},
        "jnp / ours": times["jnp.linalg"] / ours,
        "numpy / ours": times["numpy.linalg"] / ours,
        "of peak": OPERATIONS[kind](size) / ours / peak,
        "difference": worst,
    }


def main() -> None:
    """All kinds, sizes and dtypes, on the platform at hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 matrices of each size, once: does it work?")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--note", default="", help="what to know of the machine while it ran, kept with the result")
    options = parser.parse_args()
    import jax
    import scipy.linalg  # noqa: F401  # whose LAPACK is JAX's: what is loaded later is not limited

    device, rows = jax.devices()[0], []
    on_cpu = device.platform == "cpu"
    side, rounds, most = (512, 1, 1000) if options.quick else (2048 if on_cpu else 8192, options.rounds, options.count)
    peaks = {dtype: matmul_peak(side, dtype=dtype, precision="highest") for dtype in DTYPES}
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        for dtype in DTYPES:
            for size in SIZES:
                count = most // FEWER.get(size, 1) if on_cpu else most
                rows += [measure(kind, size, dtype, count, rounds, peaks[dtype]) for kind in KINDS]
    question = f"Small symmetric matrices on {device.device_kind}, microseconds for each (jaxdyn.linalg: ours)"
    publish("factorisations", question, rows, save=not options.quick, peaks=peaks, note=options.note)


if __name__ == "__main__":
    main()
