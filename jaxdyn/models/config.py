"""A model's config.json: its fields with their types, and refusals that name the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxdyn import errors
from jaxdyn.engine.base.parsing import parse_json, plain_file
from jaxdyn.errors import UsageError, shown

__all__ = ["Config", "read_json"]

MISSING = object()


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        UsageError: if there is none.
    """
    try:
        values = parse_json(plain_file(file).read_text(encoding="utf-8"))
    except UsageError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise UsageError(f"{file} cannot be read: {reason}") from None
    if not isinstance(values, dict):
        raise UsageError(f"{file} cannot be read: it holds no JSON object")
    return values


@dataclasses.dataclass(frozen=True)
class Config:
    """The fields of a model as its authors wrote them, and the file that they come from."""

    file: Path
    values: Mapping[str, Any]

    def get(self, name: str, default: Any = MISSING) -> Any:
        """A field; null is None, and no value of a field without default.

        Raises:
            UsageError: if it is missing and has no default.
        """
        value = self.values.get(name, default)
        if value is MISSING or (value is None and default is MISSING):
            raise UsageError(f"{self.file} has no field {name}")
        return value

    def whole(self, name: str, default: Any = MISSING, *, least: int = 1) -> int | None:
        """A whole number that JAX can count; null is None where that is the default."""
        value = self.get(name, default)
        if value is None and default is None:
            return None
        return int(self.checked(lambda: errors.whole(name, value, least=least, most=errors.LARGEST)))

    def number(self, name: str, default: Any = MISSING) -> float:
        """A positive number."""
        return float(self.checked(lambda: errors.number(name, self.get(name, default), above=0)))

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        return bool(self.checked(lambda: errors.flag(name, self.get(name, default))))

    def choice(self, name: str, allowed: Mapping[str, str], default: Any = MISSING) -> str:
        """One of a few words, in our words."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in allowed:
            self.refuse(name, value, f"it is one of {', '.join(allowed)}")
        return allowed[value]

    def fixed(self, **wanted: Any) -> None:
        """Refuse fields that differ from the only value that is supported; a missing one has it."""
        for name, value in wanted.items():
            if (given := self.get(name, value)) != value:
                self.refuse(name, given, f"only {name}={value} is supported")

    def refuse(self, name: str, value: Any, allowed: str) -> Any:
        """Raise UsageError for a field's value."""
        raise UsageError(f"{self.file}: {name}={shown(value)} is not allowed: {allowed}")

    def checked(self, value: Callable[[], Any]) -> Any:
        """The value, or a refusal that names the file."""
        try:
            return value()
        except UsageError as error:
            raise UsageError(f"{self.file}: {error}") from None
