"""Needs of a program, by its jaxpr: the memory of a run, the best number of runs at once, and the best executor."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxdyn.engine.programs.tracing import subjaxprs

__all__ = ["needs", "step_bytes"]

DRAW = 500  # multiply-adds in the time of one random number and its use (CPU, one core)
LIGHT = 50_000  # multiply-adds of a matrix product up to which it costs little compared with its surroundings
STEP_BYTES = 24 * 2**20  # of a step's values, fused or not, over the runs at once; with more, intermediate values leave the cache
FEWEST = 8  # least runs at once under ``vmap``, however large they are
SHORT = 64  # iterations below which a loop is over the layers of a network, not over steps of training


def _bytes(variables: Any) -> int:
    return sum(
        v.aval.size * v.aval.dtype.itemsize for v in variables if hasattr(v.aval, "size") and hasattr(v.aval.dtype, "itemsize")
    )


def _matmul_work(eqn: Any) -> int:
    (contract, _), _ = eqn.params["dimension_numbers"]
    depth = np.prod([eqn.invars[0].aval.shape[i] for i in contract], dtype=np.int64)
    return int(depth) * int(eqn.outvars[0].aval.size)


def needs(jaxpr: Any) -> dict[str, Any]:
    """Bytes of a run, the best executor, the best number of runs at once, and whether large products in loops cost most.

    For a CPU; on accelerators all runs are made at once, and only the bytes count
    (:func:`jaxdyn.engine.runs.planning.facts_here`).

    ``group`` is the best number of runs at once under ``vmap``: as many as keep the values of a step in the cache.

    ``map`` for ODE solves (a vmapped adaptive solver steps until its slowest run is done) and for networks whose
    matrix products are above ``LIGHT``. Otherwise ``vmap``, which spreads the cost of many tiny operations; also where data
    sampled in a loop cost as much as the products, since under ``vmap`` the cells of a seed share the draws.

    Args:
        jaxpr: of one run.
    """
    inner = list(subjaxprs(jaxpr))
    largest = max(max((_bytes(e.outvars) for e in j.eqns), default=0) for j in inner)
    adaptive = any(_is_adaptive(e) for j in inner for e in j.eqns)
    products = max(LIGHT, DRAW * _drawn_in_loops(inner))
    return {
        "bytes": 2 * _bytes(jaxpr.outvars) + 4 * largest,
        "executor": "map" if adaptive or _most_work(inner) > products else "vmap",
        "group": max(FEWEST, STEP_BYTES // step) if (step := step_bytes(inner)) else 0,
        "heavy": bool(_most_work(_in_loops(inner)) > products),
    }


def _most_work(jaxprs: list[Any]) -> int:
    """Multiply-adds of the largest matrix product."""
    return max((_matmul_work(e) for j in jaxprs for e in j.eqns if e.primitive.name == "dot_general"), default=0)


def _loops(jaxprs: list[Any]) -> list[list[Any]]:
    """The bodies of every loop except short ones, which run over the layers of a network, say."""
    loops = [e for j in jaxprs for e in j.eqns if e.primitive.name in ("scan", "while") and e.params.get("length", SHORT) >= SHORT]
    return [[s for name, j in e.params.items() if name in ("jaxpr", "body_jaxpr") for s in subjaxprs(j.jaxpr)] for e in loops]


def _in_loops(jaxprs: list[Any]) -> list[Any]:
    """The bodies of all loops."""
    return [body for bodies in _loops(jaxprs) for body in bodies]


def step_bytes(jaxprs: list[Any]) -> int:
    """Bytes of all values that one step of the largest loop computes."""
    return max((sum(_bytes(e.outvars) for body in bodies for e in body.eqns) for bodies in _loops(jaxprs)), default=0)


def _drawn_in_loops(jaxprs: list[Any]) -> int:
    """The most random numbers that one operation in a loop draws, except in short loops, where networks draw their weights."""
    bodies = _in_loops(jaxprs)
    return max((e.outvars[0].aval.size for j in bodies for e in j.eqns if e.primitive.name == "random_bits"), default=0)


def _is_adaptive(eqn: Any) -> bool:
    """Whether this is a while loop that ends by more than a counter: an ODE solve with step control."""
    if eqn.primitive.name != "while":
        return False
    return any(e.primitive.name not in ("lt", "convert_element_type") for e in eqn.params["cond_jaxpr"].jaxpr.eqns)
