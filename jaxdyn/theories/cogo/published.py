"""Numbers to compare with: the published table of factorised networks, and an independent run of the same setting in NumPy.

For claims, experiments and benchmarks. All are percentages: of the (d-1)/2 pairs of frequencies, those that have neither four nor
six nodes; of those with four and of those with six, the ones that do not factorise; the mean error of the ones that do, times 100;
and of the latter, which construction they are, in the order of ``classify.COLUMNS``. Cells are the mean over seeds and its
standard error.
"""

from __future__ import annotations

from typing import NamedTuple

SEEDS = 5
Cell = tuple[float, float]


class Row(NamedTuple):
    """A row of the published table."""

    other_orders: Cell
    not_factorable: tuple[Cell, Cell]  # order 4, order 6
    error: tuple[Cell, Cell]
    columns: tuple[Cell, Cell, Cell, Cell]


# arXiv:2410.01779, table of factorised networks: 512 nodes, decay 5e-5, 5 seeds; by d
TABLE = {
    23: Row(
        (0.0, 0.0),
        ((0.0, 0.0), (5.71, 5.71)),
        ((0.05, 0.01), (4.80, 0.96)),
        ((47.07, 1.88), (11.31, 1.76), (39.80, 2.11), (1.82, 1.82)),
    ),
    71: Row(
        (0.0, 0.0),
        ((0.0, 0.0), (0.0, 0.0)),
        ((0.03, 0.0), (5.02, 0.25)),
        ((72.57, 0.70), (4.00, 1.14), (21.14, 2.14), (2.29, 1.07)),
    ),
    127: Row(
        (0.0, 0.0),
        ((1.50, 0.92), (0.0, 0.0)),
        ((0.26, 0.14), (0.93, 0.18)),
        ((82.96, 0.39), (2.25, 0.64), (14.13, 0.87), (0.66, 0.66)),
    ),
}


class Reproduced(NamedTuple):
    """A row of an independent reproduction: its setting, the orders it ended with, and its columns (no error: one seed)."""

    d: int
    decay: float
    lr: float
    seeds: int
    fours: tuple[int, ...]  # frequencies with four nodes, by seed
    columns: tuple[float, float, float, float] | None  # None: not converged
    error: tuple[float | None, float]  # mean error, order 4 and order 6


# NumPy, float32, 512 nodes, weights at epoch 9900
REPRODUCED = (
    Reproduced(23, 5e-5, 0.01, 5, (5, 5, 4, 5, 4), (41.8, 12.7, 20.0, 25.5), (0.0017, 0.117)),
    Reproduced(23, 5e-5, 0.002, 5, (5, 6, 5, 6, 5), (50.0, 18.6, 16.6, 14.9), (0.0015, 0.061)),
    Reproduced(23, 5e-4, 0.01, 3, (6, 6, 6), (54.5, 9.1, 36.4, 0.0), (0.0026, 0.014)),
    Reproduced(71, 5e-5, 0.01, 1, (25,), (71.4, 5.7, 20.0, 2.9), (0.0003, 0.079)),
    Reproduced(23, 1e-5, 0.01, 2, (1, 0), None, (None, 0.14)),
)


def cells(d: int) -> tuple[float, ...]:
    """The means of the published columns for that d; of the nearest d where there is no such row."""
    row = TABLE[min(TABLE, key=lambda known: abs(known - d))]
    return tuple(mean for mean, _ in row.columns)
