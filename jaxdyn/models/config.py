"""A model's config.json: its fields with their types, and refusals that name the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxdyn import errors
from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.errors import UsageError, shown
from jaxdyn.nn.rotary import Scaling

__all__ = ["Config", "read_json"]

MISSING = object()


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        UsageError: if there is none.
    """
    if file.exists() and not file.is_file():  # a device may have no end, a pipe no beginning
        raise UsageError(f"{file} cannot be read: it is no plain file")
    try:
        values = parse_json(file.read_text(encoding="utf-8"))
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
        """A field; null counts as missing.

        Raises:
            UsageError: if it is missing and has no default.
        """
        value = self.values.get(name)
        if value is None and default is MISSING:
            raise UsageError(f"{self.file} has no field {name}")
        return default if value is None else value

    def whole(self, name: str, default: Any = MISSING) -> int | None:
        """A whole number, at least 1, that JAX can count."""
        value = self.get(name, default)
        return None if value is None else self._checked(lambda: errors.whole(name, value, least=1, most=errors.LARGEST))

    def number(self, name: str, default: float) -> float:
        """A positive number."""
        return float(self._checked(lambda: errors.number(name, self.get(name, default), above=0)))

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        return bool(self._checked(lambda: errors.flag(name, self.get(name, default))))

    def choice(self, name: str, allowed: Mapping[str, str], default: Any = MISSING) -> str:
        """One of a few words, in our words."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in allowed:
            self.refuse(name, value, f"it is one of {', '.join(allowed)}")
        return allowed[value]

    def fixed(self, **wanted: Any) -> None:
        """Refuse fields that differ from the only value that is supported; a missing one has it."""
        for name, value in wanted.items():
            if self.get(name, value) != value:
                self.refuse(name, self.get(name), f"only {name}={value} is supported")

    def rope(self, *, base: float = 10_000.0) -> tuple[float, Scaling | None]:
        """Base and scaling of the rotary positions, from ``rope_parameters`` or the older ``rope_theta`` and ``rope_scaling``."""
        fields: dict[str, Any] = {}
        for name in ("rope_scaling", "rope_parameters"):
            part = self.get(name, {})
            if not isinstance(part, Mapping):
                self.refuse(name, part, "it is a JSON object")
            fields |= {key: value for key, value in part.items() if value is not None}
        inner = Config(self.file, fields)
        base = inner.number("rope_theta", self.number("rope_theta", base))
        kind = inner.get("rope_type", fields.get("type", "default"))
        if kind == "default":
            return base, None
        factor = inner.number("factor", 1.0)
        if kind == "linear":
            return base, Scaling(kind="linear", factor=factor)
        if kind == "llama3":
            low, high = inner.number("low_freq_factor", 1.0), inner.number("high_freq_factor", 4.0)
            length = inner.whole("original_max_position_embeddings", 8192)
            return base, self._checked(lambda: Scaling(kind="llama3", factor=factor, low=low, high=high, length=length or 0))
        return self.refuse("rope_type", kind, "it is one of default, linear, llama3")

    def refuse(self, name: str, value: Any, allowed: str) -> Any:
        """Raise UsageError for a field's value."""
        raise UsageError(f"{self.file}: {name}={shown(value)} is not allowed: {allowed}")

    def _checked(self, value: Callable[[], Any]) -> Any:
        """The value, or a refusal that names the file."""
        try:
            return value()
        except UsageError as error:
            raise UsageError(f"{self.file}: {error}") from None
