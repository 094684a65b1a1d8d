"""The type checker of the tests: what jaxdyn's functions take and return is what their annotations say.

jaxtyping's hook on imports (``conftest.py``) hands it every function twice, as stubs with the function's annotations: one is called
with the arguments before the function runs, the other with them and with what the function returned. Only the second is checked, by
beartype: so what a function refuses in words of its own is refused in them, and what it takes in silence must be of the types.

Numbers of NumPy count as Python's, and its arrays as JAX's, whose functions take both; dtypes and shapes are checked all the same.
"""

import dataclasses
import inspect
import types
import typing

import jax
import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype
from jaxtyping import AbstractArray

RETURNED = "ret0"  # what jaxtyping calls the parameter of a stub for the returned value
CONF = BeartypeConf(
    hint_overrides=FrozenDict(
        {
            int: int | np.integer,
            float: float | int | np.floating | np.integer,
            jax.Array: jax.Array | np.ndarray | np.generic,
        }
    )
)


class _OfEither(type):
    def __instancecheck__(cls, value):
        return isinstance(value, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


class EitherArray(metaclass=_OfEither):
    """An array of JAX or of NumPy, or the shape that stands for one while a program is planned."""


def widened(hint):
    """A type that has arrays of both libraries where it has JAX's."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return hint.dtype[EitherArray, hint.dim_str] if hint.array_type is jax.Array else hint
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(map(widened, parts))]  # noqa: UP007
    return origin[tuple(map(widened, parts))] if origin in (tuple, list, dict) else hint


def checked(stub):
    """The stub with its checks, which are made when it is first called."""
    signature, check = inspect.signature(stub), None
    if RETURNED not in signature.parameters:
        return stub

    def called(*args, **kwargs):
        nonlocal check
        if check is None:
            read = {name: hint for name, hint in stub.__annotations__.items() if name != "_"}
            stub.__annotations__ = {name: widened(hint) for name, hint in read.items()}
            check = beartype(conf=CONF)(stub)
        if stub.__name__ == "__init__" and dataclasses.is_dataclass(args[0]):  # it converts what it is given: its fields count
            if not vars(type(args[0])).get("__annotations__"):  # it has none of its own, and those of a library are not ours
                return None
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            args, kwargs = args[:1], {name: vars(args[0]).get(name, value) for name, value in list(given.arguments.items())[1:]}
        return check(*args, **kwargs)

    return called
