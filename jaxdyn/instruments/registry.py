"""All instruments by name: those of the modules that theories' title pages name.

They are collected when they are asked for, not when this is imported: that imports every theory's title page, and the modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from jaxdyn.engine.catalogue import library
from jaxdyn.errors import UsageError, shown
from jaxdyn.instruments.instrument import Instrument

__all__ = ["choose", "homes", "instruments"]


def instruments() -> dict[str, Instrument]:
    """All instruments by name, theory by theory.

    Raises:
        UsageError: a module without an ``INSTRUMENTS`` tuple, or two instruments of one name.
    """
    return {name: one for name, (one, _) in _declared().items()}


def homes() -> dict[str, ModuleType]:
    """The modules that declare them, by the name of the instrument."""
    return {name: module for name, (_, module) in _declared().items()}


def choose(only: Sequence[str] | str | None) -> tuple[Instrument, ...]:
    """Instruments by name, in their own order.

    Raises:
        UsageError: for an unknown name, or none.
    """
    known = instruments()
    if only is None:
        return tuple(known.values())
    given = only.split(",") if isinstance(only, str) else only if isinstance(only, list | tuple) else [only]
    names = [str(name).strip() for name in given]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise UsageError(f"only={shown(unknown[0] if unknown else only)} is not allowed: instruments are {', '.join(known)}")
    return tuple(one for name, one in known.items() if name in names)


def _declared() -> dict[str, tuple[Instrument, ModuleType]]:
    found: dict[str, tuple[Instrument, ModuleType]] = {}
    for part in library.instruments():
        declared = getattr(part.module, "INSTRUMENTS", None)
        if not isinstance(declared, tuple) or not all(isinstance(one, Instrument) for one in declared):
            raise UsageError(f"{part.name} has no INSTRUMENTS tuple: put its Instrument objects into a tuple of that name")
        for one in declared:
            if one.name in found:
                raise UsageError(f"two instruments are called {one.name}; the second is in {part.name}")
            found[one.name] = (one, part.module)
    return found
