"""Settings of the calibration claims: one class per trial."""

from __future__ import annotations

import jaxdyn as jd

__all__ = ["Deep", "Modes", "Network", "Noise", "Pair", "Shuffled", "Stairs", "Steps", "Symmetric", "TwoLayer"]


def _positive(setting: object, *names: str) -> None:
    for name in names:
        if getattr(setting, name) <= 0:
            raise jd.UsageError(f"{name}={getattr(setting, name)} is not allowed: {name} is > 0")


def _at_least_one(setting: object, *names: str) -> None:
    for name in names:
        if getattr(setting, name) < 1:
            raise jd.UsageError(f"{name}={getattr(setting, name)} is not allowed: {name} is >= 1")


@jd.setting
class Steps:
    """A two-layer linear network trained with a finite step size, against its flows.

    ``clock`` is the time that one step counts for: ``eta``, or ``eta / (1 - beta)``. ``start`` "uv" is the scalar problem
    ``(uv - 1)^2 / 2`` from ``(1.5, 0.2)``, embedded in the same matrices. The last three fields are the theory's: the
    coefficient of the modified loss, and whether it knows of the weight decay.
    """

    eta: jd.Swept = 0.1
    optimizer: jd.Code = jd.code("gd", "heavy_ball", "adam")
    beta: jd.Swept = 0.9
    clock: jd.Code = jd.code("step", "effective")
    decay: jd.Swept = 0.0
    start: jd.Code = jd.code("random", "uv")
    penalty: jd.Swept = 0.25
    decay_known: jd.Swept = 1.0
    inputs: int = 4
    hidden: int = 5
    outputs: int = 3
    horizon: float = 1.0
    samples: int = 5

    def __post_init__(self) -> None:
        _positive(self, "eta", "horizon")
        _at_least_one(self, "inputs", "hidden", "outputs", "samples")
        if not 0 <= self.beta < 1:
            raise jd.UsageError(f"beta={self.beta} is not allowed: 0 <= beta < 1")


@jd.setting
class Shuffled:
    """A two-layer linear network trained by SGD on ``batches`` mini-batches; ``shuffles`` runs over other orders are averaged."""

    eta: jd.Swept = 0.02
    order: jd.Code = jd.code("shuffled", "cyclic")
    batches: int = 4
    batch_size: int = 2
    shuffles: int = 32
    inputs: int = 3
    hidden: int = 3
    outputs: int = 2
    horizon: float = 1.0
    samples: int = 2

    def __post_init__(self) -> None:
        _positive(self, "eta", "horizon")
        _at_least_one(self, "batches", "batch_size", "inputs", "hidden", "outputs", "samples")
        if self.shuffles < 2 or self.shuffles % 2:
            raise jd.UsageError(f"shuffles={self.shuffles} is not allowed: an even number, each order comes with its reverse")


@jd.setting
class Modes:
    """Gradient descent on a random quadratic; ``noise`` on the gradients and ``momentum`` are breaches."""

    eta: jd.Swept = 0.2
    noise: jd.Swept = 0.0
    momentum: jd.Swept = 0.0
    size: int = 6
    steps: int = 32

    def __post_init__(self) -> None:
        _positive(self, "eta")
        _at_least_one(self, "size", "steps")


@jd.setting
class Noise:
    """SGD with gradient noise on a quadratic: ``curvature`` times the identity, or random with correlated noise.

    ``momentum`` is a breach.
    """

    eta: jd.Swept = 0.2
    sigma: jd.Swept = 0.5
    curvature: jd.Swept = 1.3
    momentum: jd.Swept = 0.0
    problem: jd.Code = jd.code("scalar", "matrix")
    size: int = 4
    replicas: int = 32
    burn_in: int = 128
    steps: int = 1024

    def __post_init__(self) -> None:
        _positive(self, "eta", "curvature")
        _at_least_one(self, "size", "burn_in", "steps")
        if self.replicas < 2:
            raise jd.UsageError(f"replicas={self.replicas} is not allowed: at least 2, the standard error comes from them")


@jd.setting
class TwoLayer:
    """Gradient flow of a two-layer linear network from a start with a known solution.

    ``imbalance`` is the conserved ``a^2 - b^2`` of every mode that the theory knows of, ``unknown`` a further one that it does
    not. The start "frames" is balanced but not aligned with the singular vectors of the target.
    """

    start: jd.Code = jd.code("aligned", "unbalanced", "frames")
    imbalance: jd.Swept = 0.0
    unknown: jd.Swept = 0.0
    strength: jd.Swept = 0.05
    solver: str = "tsit5"
    rtol: float = 1e-10
    inputs: int = 4
    hidden: int = 3
    outputs: int = 2
    horizon: float = 4.0
    samples: int = 32

    def __post_init__(self) -> None:
        _positive(self, "strength", "horizon", "rtol")
        _at_least_one(self, "inputs", "hidden", "outputs", "samples")


@jd.setting
class Deep:
    """Gradient flow of a deep linear network with ``depth`` weight matrices (further ones stay at the identity).

    ``miscount`` is added to the number of matrices that the theory assumes; ``unknown`` is added to the squared singular
    values of the first matrix, the others shrink so that the product starts where the theory thinks.
    """

    depth: jd.Swept = 3.0
    strength: jd.Swept = 0.05
    miscount: jd.Swept = 0.0
    unknown: jd.Swept = 0.0
    solver: str = "tsit5"
    rtol: float = 1e-10
    width: int = 3
    max_depth: int = 4
    horizon: float = 6.0
    samples: int = 32

    def __post_init__(self) -> None:
        _positive(self, "strength", "horizon", "rtol")
        _at_least_one(self, "width", "max_depth", "samples")
        if not 1 <= self.depth <= self.max_depth or self.depth != int(self.depth):
            raise jd.UsageError(f"depth={self.depth} is not allowed: a whole number from 1 to max_depth={self.max_depth}")


@jd.setting
class Symmetric:
    """Gradient flow of ``||M - U U^T||^2 / 4``; ``split`` > 0 holds the two factors that far apart (a breach)."""

    init: jd.Swept = 0.3
    split: jd.Swept = 0.0
    solver: str = "tsit5"
    rtol: float = 1e-10
    size: int = 6
    rank: int = 4
    horizon: float = 4.0
    samples: int = 32

    def __post_init__(self) -> None:
        _positive(self, "init", "horizon", "rtol")
        _at_least_one(self, "size", "rank", "samples")


@jd.setting
class Stairs:
    """Incremental learning of the singular values of a target from a balanced start of size ``eps``."""

    eps: jd.Swept = 1e-6
    start: jd.Code = jd.code("aligned", "frames")
    size: int = 6
    modes: int = 3
    samples: int = 400

    def __post_init__(self) -> None:
        _positive(self, "eps")
        _at_least_one(self, "size", "modes", "samples")
        if self.modes > self.size:
            raise jd.UsageError(f"modes={self.modes} is not allowed: at most size={self.size}")


@jd.setting
class Pair:
    """Two scalars with loss ``(uv - 1)^2 / 2``: from ``(3, 0.2)`` or from a random start of that kind."""

    eta: jd.Swept = 0.1
    optimizer: jd.Code = jd.code("gd", "adam")
    start: jd.Code = jd.code("reference", "random")
    steps: int = 3000

    def __post_init__(self) -> None:
        _positive(self, "eta")
        _at_least_one(self, "steps")


@jd.setting
class Network:
    """A tanh network trained by full-batch gradient descent; ``reference`` is a step size that stands for the flow."""

    eta: jd.Swept = 0.2
    inputs: int = 5
    hidden: int = 24
    points: int = 40
    steps: int = 2000
    samples: int = 40
    iterations: int = 20
    reference: float = 0.02

    def __post_init__(self) -> None:
        _positive(self, "eta", "reference")
        _at_least_one(self, "inputs", "hidden", "points", "iterations")
        if self.samples % 4 or self.samples < 4 or self.steps % self.samples:
            raise jd.UsageError(f"samples={self.samples} is not allowed: a multiple of 4 that divides steps={self.steps}")
