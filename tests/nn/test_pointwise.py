"""Activations by name: NumPy's formulas, switches, functions of one's own."""

import jax
import numpy as np
import pytest

from jaxdyn import Code
from jaxdyn.errors import UsageError
from jaxdyn.nn import ACTIVATIONS
from jaxdyn.nn.pointwise import activated
from tests.nn import plain_transformer

X = np.linspace(-3, 3, 13)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_is_its_formula(name, x64):
    np.testing.assert_allclose(activated(X, name), plain_transformer.ACTIVATIONS[name](X), rtol=1e-12, atol=1e-15)


def test_a_switch_and_a_function_of_ones_own(x64):
    kinds = ("relu", "tests.nn.test_transformer:cubic")
    both = jax.jit(jax.vmap(lambda i: activated(X, Code(i, kinds))))(np.arange(2))
    np.testing.assert_allclose(both, [np.maximum(X, 0), X**3], rtol=1e-12)
    with pytest.raises(UsageError, match="test_transformer:quartic' is not allowed: .* has no function 'quartic'"):
        activated(X, "tests.nn.test_transformer:quartic")
