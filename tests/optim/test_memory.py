"""Bytes by formula against the bytes of real states, for every method, side, dtype and shape."""

import functools

import jax
import jax.numpy as jnp
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer, llama
from jaxdyn.nn.transformer import apply, init
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.axes import Matrix, hidden_matrices
from jaxdyn.optim.factors import lora, low_rank
from jaxdyn.optim.memory import MemoryLayout, compiled_bytes, estimate, listing, nbytes
from jaxdyn.optim.projection import galore
from jaxdyn.optim.subspace import SIDES, Subspace

STORED = {None: "parameter", "float32": "float32", "8bit": "8bit"}


def transformation(layout, dims):
    adam = adam_direction(stored=STORED[layout.moments])
    subspace = Subspace(rank=layout.rank, side=layout.side, dtype=layout.bases)
    return {
        "full": adam,
        "galore": galore(adam, subspace, dims=dims),
        "lora": lora(adam, layout.rank, dims=dims),
        "low_rank": low_rank(adam, layout.rank, dims=dims),
    }[layout.method]


def real(params, layout, dims):
    """Bytes of the arrays that training holds; a factorisation has its factors in place of its matrices."""
    state = jax.eval_shape(transformation(layout, dims).init, params)
    held = params
    if layout.method == "low_rank":
        held = [
            x
            for x, f in zip(jax.tree.leaves(params), jax.tree.structure(params).flatten_up_to(state.factors), strict=True)
            if f is None
        ]
    return nbytes((held, state))


def tree(dtype):
    return {
        "embed": jnp.zeros((90, 64), dtype),
        "blocks": {
            "q": jnp.zeros((3, 64, 64), dtype),
            "down": jnp.zeros((3, 100, 64), dtype),
            "up": jnp.zeros((3, 64, 100), dtype),
        },
        "norm": jnp.zeros(64, dtype),
        "split": jnp.zeros((64, 4, 16), dtype),
    }


DIMS = {"embed": None, "blocks": {k: Matrix() for k in ("q", "down", "up")}, "norm": None, "split": Matrix((0,), (1, 2))}


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("moments", STORED)
@pytest.mark.parametrize("rank", [5, 64, 500])
def test_every_layout_has_the_bytes_of_its_real_state(dtype, moments, rank):
    params = tree(dtype)
    for method in ("full", "galore", "lora", "low_rank"):
        for side in SIDES if method == "galore" else ("short",):
            for bases in (None, "float32") if method == "galore" else (None,):
                layout = MemoryLayout(method=method, rank=rank, side=side, moments=moments, bases=bases)
                assert estimate(params, layout, DIMS).total == real(params, layout, DIMS), layout


def test_allocated_arrays_have_these_bytes():
    params, layout = tree("bfloat16"), MemoryLayout(rank=16, moments="8bit")
    state = jax.jit(transformation(layout, DIMS).init)(params)
    assert estimate(params, layout, DIMS).total == sum(x.nbytes for x in jax.tree.leaves((params, state)))


@pytest.mark.parametrize("name", ["60M", "350M", "7B"])
@pytest.mark.parametrize("method", ["full", "galore", "lora", "low_rank"])
def test_models_too_large_to_allocate(name, method):
    shape = llama(name, dtype="bfloat16")
    params = jax.eval_shape(functools.partial(init, shape), jax.random.key(0))
    layout = MemoryLayout(method=method, rank=shape.width // 4, side="long")
    dims = jax.tree_util.tree_map_with_path(lambda path, x: Matrix() if x.ndim == 3 else None, params)
    assert estimate(params, layout).total == real(params, layout, dims)


@pytest.mark.parametrize(("m", "n"), [(6, 10), (10, 6), (8, 8)])
def test_the_table_of_entries(m, n):
    params, r = {"w": jnp.zeros((m, n))}, 3
    lo, hi = min(m, n), max(m, n)
    entries = {
        MemoryLayout(method="full", rank=r): 3 * m * n,
        MemoryLayout(method="low_rank", rank=r): 3 * (m + n) * r,
        MemoryLayout(method="lora", rank=r): m * n + 3 * (m + n) * r,
        MemoryLayout(rank=r, side="short"): m * n + lo * r + 2 * hi * r,
        MemoryLayout(rank=r, side="long"): m * n + hi * r + 2 * lo * r,
    }
    for layout, count in entries.items():
        found = estimate(params, layout)
        assert found.total - found.counters == 4 * count, layout
        assert found.states == found.moments + found.bases


def test_the_compiler_accounts_for_a_step():
    params = {"w": jnp.zeros((256, 512))}
    tx = galore(optax.scale_by_adam(), Subspace(rank=8))
    state = tx.init(params)

    def step(params, state, x):
        gradient = jax.grad(lambda p: jnp.sum(jnp.square(x @ p["w"])))(params)
        updates, state = tx.update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    args = (params, state, jax.ShapeDtypeStruct((4, 256), jnp.float32))
    found = compiled_bytes(step, *args, donated=(0, 1))
    assert found["arguments"] == nbytes(args)
    assert found["shared"] > 0.9 * nbytes(args[:2])  # weights and states are updated in place
    assert found["peak"] >= nbytes(args) + nbytes(params)  # there is a gradient
    assert found["peak"] < compiled_bytes(step, *args)["peak"]


def test_wrong_layouts_are_refused():
    more = ({"rank": True}, {"rank": 2.0}, {"moments": "8-bit"}, {"moments": "int32"}, {"bases": "floot"})
    for wrong in ({"method": "sgd"}, {"rank": 0}, {"side": "top"}, *more):
        with pytest.raises(UsageError, match="not allowed"):
            MemoryLayout(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("moments", [None, pytest.param("8bit", marks=pytest.mark.slow)])
def test_the_compiled_step_needs_less_by_what_the_states_do(moments):
    """A step of a decoder with full Adam needs more at its peak than with GaLore, by the difference of the counted bytes."""
    shape = Transformer(vocabulary=64, width=128, layers=8, heads=2, hidden=256)
    params, tokens = jax.eval_shape(lambda: init(shape, jax.random.key(0))), jax.ShapeDtypeStruct((1, 8), jnp.int32)
    layouts = {"full": MemoryLayout(method="full"), "less": MemoryLayout(rank=8, moments=moments)}
    peaks, counted = {}, {}
    for name, layout in layouts.items():
        tx = transformation(layout, hidden_matrices)

        def step(params, state, tokens, tx=tx):
            gradient = jax.grad(lambda p: jnp.sum(jnp.square(apply(shape, p, tokens))))(params)
            updates, state = tx.update(gradient, state, params)
            return optax.apply_updates(params, updates), state

        state = jax.eval_shape(tx.init, params)
        peaks[name] = compiled_bytes(step, params, state, tokens, donated=(0, 1))["peak"]
        counted[name] = nbytes((params, state))
    saved = counted["full"] - counted["less"]
    assert peaks["full"] - peaks["less"] > 0.6 * saved > 0


@pytest.mark.parametrize(
    "layout", [MemoryLayout(rank=4), MemoryLayout(method="lora", rank=4), MemoryLayout(method="full"), MemoryLayout(rank=64)]
)
def test_the_listing_adds_up_to_the_estimate(layout):
    params = {"w": jnp.zeros((3, 16, 24)), "head": jnp.zeros((16, 8)), "gain": jnp.zeros(16, jnp.bfloat16)}
    table, whole = listing(params, layout), estimate(params, layout)
    assert sum(row.states for row in table) == whole.weights - nbytes(params) + whole.states
    assert [row.name for row in table.chosen] == ["w"] and table[2].matrices == (3, 16, 24)
    assert [row.name for row in table.useless] == (["w"] if layout.rank == 64 or layout.method == "full" else [])
    lines = str(table).splitlines()
    assert len(lines) == 5 and "3 of 16 x 24" in lines[3] and lines[-1].startswith("1 of 3 chosen")
