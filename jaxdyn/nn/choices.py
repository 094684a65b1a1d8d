"""Kinds that are fields: one name, a switch between several, or a function of one's own.

A switch is what a field declared by :func:`jaxdyn.code` holds: its ``names``, and the ``index`` of one, which may be traced.
All its branches are in the program. A function of one's own is ``"module:function"``, of a module that can be imported, or
``"file.py:function"``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn.engine.base.reference import load_file
from jaxdyn.errors import UsageError

__all__ = ["applied", "check", "is_kind", "module_of", "names", "own", "shape_keeping"]


def names(kind: Any) -> tuple[Any, ...]:
    """The names between which a switch chooses, or the only one."""
    return tuple(kind.names) if hasattr(kind, "names") and hasattr(kind, "index") else (kind,)


def is_kind(kind: Any, name: str) -> Any:
    """Whether a name, or a switch, is of this kind; not all switches have it among their names. Traced if the switch is."""
    return name in names(kind) and kind == name


def check(field: str, kind: Any, allowed: Iterable[str]) -> None:
    """Refuse what is none of the known names, no function that can be imported, and no switch between such.

    Raises:
        UsageError: naming what is allowed.
    """
    for name in names(kind):
        if isinstance(name, str) and name in tuple(allowed):
            continue
        if not isinstance(name, str) or ":" not in name:
            known = f"it is one of {', '.join(allowed)}, or a function of your own as 'module:function'"
            raise UsageError(f"{field}={name!r} is not allowed: {known}")
        own(field, name)


def own(field: str, name: str) -> Callable[..., Any]:
    """The function of a name ``"module:function"`` or ``"file.py:function"``.

    Raises:
        UsageError: if the module cannot be imported or has no such function.
    """
    module, _, attribute = name.rpartition(":")
    found = getattr(module_of(field, name, module), attribute, None)
    if not callable(found):
        raise UsageError(f"{field}={name!r} is not allowed: {module} has no function {attribute!r}")
    return found


def module_of(field: str, name: str, module: str) -> ModuleType:
    """A module by its name, or by the path of its file.

    Raises:
        UsageError: if it cannot be imported.
    """
    if module.endswith(".py") and not Path(module).expanduser().is_file():
        raise UsageError(f"{field}={name!r} is not allowed: there is no file {module}")
    try:
        return load_file(module) if module.endswith(".py") else importlib.import_module(module)
    except (ImportError, TypeError, ValueError) as error:  # a relative name is a TypeError
        raise UsageError(f"{field}={name!r} is not allowed: {module!r} cannot be imported ({error})") from None


def shape_keeping(field: str, name: str) -> Callable[..., Any]:
    """A function of one's own, whose result must have the shape of its first argument."""
    function = own(field, name)

    def checked(first: Any, *others: Any) -> Any:
        value = function(first, *others)
        if jnp.shape(value) != jnp.shape(first):
            shapes = f"of the shape {jnp.shape(first)} it makes {jnp.shape(value)}"
            raise UsageError(f"{field}={name!r} is not allowed: {shapes}, and the shape stays")
        return value

    return checked


def applied(field: str, kind: Any, forms: Mapping[str, Callable[..., Any]], *args: Any) -> Any:
    """The value of the form that is chosen; only the forms among a switch's names are traced.

    Args:
        field: for messages.
        kind: a name, or a switch.
        forms: a function for every known name.
        *args: of the functions.
    """
    branches = [forms[name] if name in forms else shape_keeping(field, name) for name in names(kind)]
    index = getattr(kind, "index", 0) if len(branches) > 1 else 0
    return branches[index](*args) if isinstance(index, int) else jax.lax.switch(index, branches, *args)
