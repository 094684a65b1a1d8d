"""Token numbers: what is refused, and how."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.nn.tokens import checked

DTYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64")
SOME = settings(deadline=None, max_examples=60, derandomize=True)


@SOME
@given(st.lists(st.integers(-3, 130), min_size=1, max_size=5), st.sampled_from(DTYPES), st.booleans())
def test_numbers_of_any_dtype_are_those_of_the_list_or_refused(numbers, dtype, ours):
    """NumPy's array, JAX's, and the list itself: the same answer, and 130, which no int8 holds, can be written next to them."""
    info = np.iinfo(dtype)
    numbers = [min(max(n, info.min), info.max) for n in numbers]
    given_ = np.asarray(numbers, dtype)
    given_ = jnp.asarray(given_, "int32" if dtype == "int64" else dtype) if ours else given_
    outside = [n for n in numbers if not 0 <= n < 128]
    for tokens in (given_, numbers):
        if outside:
            with pytest.raises(UsageError) as error:
                checked(tokens, 128)
            assert str(error.value) == f"{outside[0]} in tokens is not allowed: it is a number from 0 to 127 (vocabulary=128)"
        else:
            out = checked(tokens, 128)
            np.testing.assert_array_equal(out, numbers)
            assert out.dtype == np.int32


@pytest.mark.parametrize(
    ("tokens", "more", "words"),
    [
        ([1.0], {}, r"tokens=float64\[1\] is not allowed: it is an array of whole numbers"),
        ([True], {}, r"tokens=bool\[1\] is not allowed: it is an array of whole numbers"),
        (["a"], {}, r"tokens=<U1\[1\] is not allowed: it is an array of whole numbers"),
        (None, {}, "tokens=None is not allowed: it is an array of whole numbers"),
        ([[1], [1, 2]], {}, r"tokens=\[\[1\], \[1, 2\]\] is not allowed: its lists have equal lengths"),
        (
            np.ma.masked_equal([0, 3], 0),
            {},
            r"tokens=int64\[2\] is not allowed with a mask: there is no padding, all its numbers are read",
        ),
        (3, {}, "tokens=3 is not allowed: it has one axis or more"),
        ([[3]], {"axes": 1}, r"tokens=int64\[1,1\] is not allowed: it has one axis, and jax.vmap adds others"),
        ([3], {"axes": 0, "name": "token"}, r"token=int64\[1\] is not allowed: it has no axis, and jax.vmap adds others"),
        ([3], {"least": 2}, r"tokens=int64\[1\] is not allowed: its last axis has a length of 2 or more"),
    ],
)
def test_what_is_no_array_of_token_numbers_is_refused_in_one_sentence(tokens, more, words):
    with pytest.raises(UsageError, match=f"^{words}$"):
        checked(tokens, 9, **more)


def test_dtypes_and_shapes_of_traced_numbers_are_checked_too():
    seen = []

    @jax.jit
    def trace(tokens, floats):
        seen.append(checked(tokens, 4).dtype)
        for wrong, more in ((floats, {}), (tokens, {"axes": 0}), (tokens, {"least": 3})):
            with pytest.raises(UsageError, match="not allowed"):
                checked(wrong, 4, **more)
        return tokens

    trace(jnp.asarray([9, 9], jnp.uint8), jnp.zeros(2))
    assert seen == [np.int32]
