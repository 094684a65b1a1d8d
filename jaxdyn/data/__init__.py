"""Synthetic data: pure functions of a key."""

from jaxdyn.data.trees import (
    Tree,
    cla_heights,
    draws,
    grow,
    grow_shallow,
    leaf_joint,
    leaf_rate,
    sample,
    sample_shallow,
    symmetric,
)

__all__ = [
    "Tree",
    "cla_heights",
    "draws",
    "grow",
    "grow_shallow",
    "leaf_joint",
    "leaf_rate",
    "sample",
    "sample_shallow",
    "symmetric",
]
