"""Synthetic data: pure functions of a key, one module a kind; imported when they are first used (``jd.data.prosqa``)."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

__all__ = sorted(module.name for module in iter_modules(__path__))


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'jaxdyn.data' has no attribute {name!r}")
    return import_module(f"jaxdyn.data.{name}")


def __dir__() -> list[str]:
    return __all__
