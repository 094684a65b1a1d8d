"""All instruments and laws by name: those of the modules that theories' title pages name.

They are collected when they are asked for, not when this is imported: that imports every theory's title page, and the modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from jaxdyn.engine.catalogue import library
from jaxdyn.errors import UsageError, shown
from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.law import Law
from jaxdyn.nn import choices

__all__ = ["choose", "homes", "instruments", "laws", "watched"]

KINDS = (Instrument, Law)
OWN = "or one of your own as 'file.py:NAME'"


def instruments() -> dict[str, Instrument]:
    """All instruments by name, theory by theory.

    Raises:
        UsageError: a module without an ``INSTRUMENTS`` tuple, or two instruments of one name.
    """
    return {one.name: one for one, _ in _declared() if isinstance(one, Instrument)}


def laws() -> dict[str, Law]:
    """All laws by name, theory by theory.

    Raises:
        UsageError: as of :func:`instruments`.
    """
    return {one.name: one for one, _ in _declared() if isinstance(one, Law)}


def watched(name: str) -> Law | Instrument:
    """What is read along training, by its name or as one of your own: a law, or an instrument; of the same name, the law.

    One's own is given by its module or file and its name there: ``"module:NAME"``, ``"file.py:NAME"``.

    Raises:
        UsageError: for an unknown name, a module that cannot be imported, what is neither, and an instrument that reads
            checkpoints only.
    """
    own = ":" in name
    found = _own(name) if own else laws().get(name) or instruments().get(name)
    if isinstance(found, Instrument) and found.read is None:
        raise UsageError(f"watch={shown(name)} is not allowed: {found.unread}")
    if isinstance(found, KINDS):
        return found
    if own:
        module, _, attribute = name.rpartition(":")
        raise UsageError(f"watch={shown(name)} is not allowed: {module} has no law or instrument {attribute!r}")
    read = [one.name for one in instruments().values() if one.read is not None]
    known = f"laws are {', '.join(laws())}, instruments are {', '.join(read)}, {OWN}"
    raise UsageError(f"watch={shown(name)} is not allowed: {known}")


def _own(name: str) -> object:
    """What a module or a file has under a name, ``"module:NAME"``; None: nothing."""
    module, _, attribute = name.rpartition(":")
    return getattr(choices.module_of("watch", name, module), attribute, None)


def homes() -> dict[str, ModuleType]:
    """The modules that declare instruments, by their names."""
    return {one.name: module for one, module in _declared() if isinstance(one, Instrument)}


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


def _declared() -> list[tuple[Instrument | Law, ModuleType]]:
    found, names = [], set[tuple[type, str]]()
    for part in library.instruments():
        declared = getattr(part.module, "INSTRUMENTS", None)
        if not isinstance(declared, tuple) or not all(isinstance(one, KINDS) for one in declared):
            raise UsageError(f"{part.name} has no INSTRUMENTS tuple: put its Instrument and Law objects into a tuple of that name")
        for one in declared:
            if (type(one), one.name) in names:
                raise UsageError(f"two instruments are called {one.name}; the second is in {part.name}")
            names.add((type(one), one.name))
            found.append((one, part.module))
    return found
