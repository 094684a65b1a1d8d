"""GaLore, its followers and its rivals by one line each, in the manner of ``optax.adamw``: a rate, a rank, and options by name.

``galore(3e-3, rank=128)`` is ``method("galore", 3e-3, Options(rank=128)).tx`` (:mod:`jaxdyn.optim.methods`). It warns when its
state is made for parameters from which nothing is saved. Hyperparameters that change from outside during a run are those of
``optax.inject_hyperparams(galore, static_args=("rank", "dims"))(3e-3, rank=128)``: a rank is a shape, and optax takes every other
function for a schedule.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import optax
from jaxtyping import Array, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError
from jaxdyn.optim.axes import Dims, hidden_matrices
from jaxdyn.optim.memory import MemoryLayout, listing
from jaxdyn.optim.methods import Options, method
from jaxdyn.optim.trees import plain, rank_known

__all__ = ["NothingSaved", "apollo", "apollo_mini", "fira", "galore", "golore", "lora", "q_galore", "relora"]

SHOWN = 4  # names in a warning
FIELDS = [field for field in dataclasses.fields(Options) if field.name not in ("momentum", "orthogonal", "rms")]  # which none has


class NothingSaved(UserWarning):
    """No parameter is projected, or some are in a way that saves nothing."""


def _alias(
    name: str,
    learning_rate: float | Array | optax.Schedule,
    rank: int | Array,
    *,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
    **options: Any,
) -> optax.GradientTransformationExtraArgs:
    """A method of :mod:`jaxdyn.optim.methods` as one optax transformation.

    Args:
        name: the method.
        learning_rate: a number, which may be traced, or a schedule.
        rank: of bases or factors; at most the smaller side of a matrix is used.
        dims: which parameters are matrices, and how: :func:`hidden_matrices`, :func:`jaxdyn.optim.axes.matching`, or a tree.
        key: of random bases and of LoRA's factors.
        **options: further fields of :class:`Options`: ``every``, ``scale``, ``alpha``, ``weight_decay``, ``stored``, ``b1``, …

    Raises:
        UsageError: for an option that is not allowed.
    """
    fields = [field.name for field in FIELDS]
    if unknown := sorted(set(options) - set(fields)):
        raise UsageError(f"{unknown[0]} is not allowed: options of {name} are {', '.join(fields)}, dims and key")
    if name == "apollo_mini" and rank_known(rank) != 1:
        raise UsageError(f"rank={rank} is not allowed: apollo_mini has rank 1; optim.apollo takes others")
    given = Options(rank=rank_known(rank), **options)
    tx = method(name, learning_rate, given, dims=dims, key=key).tx

    def init(params: PyTree) -> Any:
        state = tx.init(params)
        _look(name, given, plain(params), dims)
        return state

    return optax.with_extra_args_support(optax.GradientTransformation(init, tx.update))


def _look(name: str, options: Options, params: PyTree, dims: Dims) -> None:
    """Warn if the method saves nothing."""
    kind = "lora" if name in ("lora", "relora") else "galore"
    rank = 1 if name == "apollo_mini" else options.rank
    table = listing(params, MemoryLayout(method=kind, rank=rank, side=options.side), dims)
    advice = "see jaxdyn.optim.listing, and choose matrices by jaxdyn.optim.matching"
    if not table.chosen:
        warnings.warn(f"{name} projects none of the {len(table)} parameters: {advice}", NothingSaved, stacklevel=4)
    elif table.useless:
        shown = ", ".join(f"{row.name} {list(row.shape)}" for row in table.useless[:SHOWN])
        more = ", …" * (len(table.useless) > SHOWN)
        warnings.warn(f"{name} at rank {rank} saves nothing on {shown}{more}: {advice}", NothingSaved, stacklevel=4)


Alias = Callable[..., optax.GradientTransformationExtraArgs]


def _named(name: str, **fixed: Any) -> Alias:
    """A method under its own name, with a signature that names every option: ``optax.inject_hyperparams`` reads it."""

    def alias(*args: Any, **options: Any) -> optax.GradientTransformationExtraArgs:
        return _alias(name, *args, **{**fixed, **options})

    shared = list(inspect.signature(_alias).parameters.values())[1:-1]
    first = [p.replace(default=fixed[p.name]) if p.name in fixed else p for p in shared]
    more = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in FIELDS
        if field.name != "rank"
    ]
    alias.__name__ = alias.__qualname__ = name
    alias.__doc__ = _alias.__doc__
    alias.__signature__ = inspect.Signature([*first, *more])  # type: ignore[attr-defined]
    return alias


galore = _named("galore")
golore = _named("golore")
q_galore = _named("q_galore")
fira = _named("fira")
apollo = _named("apollo")
apollo_mini = _named("apollo_mini", rank=1)
lora = _named("lora")
relora = _named("relora")
