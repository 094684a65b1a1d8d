"""Trees and dtypes of optimizers: what passes, and the one sentence for everything else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.trees import check_dtype, check_shape, flat


def refused(call):
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).count("\n") == 0 and "not allowed" in str(caught.value)
    return str(caught.value)


def test_dtypes_are_those_of_floating_point_numbers():
    for name in (None, "float32", "bfloat16", jnp.float16, np.dtype("float64")):
        check_dtype("bases", name)
    for name in ("int32", "complex64", "bool", "floot", "8-bit", 7.5, ",", "f4,"):
        refused(lambda name=name: check_dtype("bases", name))


def test_trees_have_floating_leaves_and_the_structure_of_the_state():
    tree = {"a": jnp.ones(2), "b": [np.ones(3, np.float16), None]}
    leaves, treedef, marks = flat(tree, {"a": (1, 2), "b": ["x", None]})
    assert [x.shape for x in leaves] == [(2,), (3,)] and marks == [(1, 2), "x"]
    assert treedef == jax.tree.structure(tree)
    for leaf, kind in (
        (jnp.arange(3), "int32"),
        (jnp.ones(2, jnp.complex64), "complex64"),
        (1.0, "float"),
        (jnp.ones(2, "float8_e4m3fn"), "float8"),
        (jnp.array(True), "bool"),
    ):
        assert f"['b'][0] is of type {kind}" in refused(lambda leaf=leaf: flat({"a": tree["a"], "b": [leaf]}))
    refused(lambda: flat(tree, {"a": 1}))
    check_shape((2, 3), (2, 3))
    assert "(3, 2)" in refused(lambda: check_shape((2, 3), (3, 2)))
