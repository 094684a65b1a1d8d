"""The rotary positions in a config.json, of old and new versions of the library transformers, and how they are written there.

The fields are ``rope_scaling`` or the newer ``rope_parameters``, next to a base and a share of each head's entries that may stand
outside of them. What transformers refuses is refused; so are contradictions, which its versions settle in different ways, and
fields that nothing reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxdyn.models.config import Config
from jaxdyn.nn import Transformer
from jaxdyn.nn.rotary import Scaling

__all__ = ["Rope", "read", "written"]

READ = {  # fields of rope_scaling and rope_parameters, by rope_type
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}
EVERYWHERE = ("rope_type", "type", "rope_theta", "partial_rotary_factor")


class Rope(NamedTuple):
    """Rotary positions.

    Args:
        base: of the rates.
        share: of a head's entries that are turned.
        scaling: of the rates.
    """

    base: float
    share: float
    scaling: Scaling | None


def read(
    config: Config, *, context: int, base: str = "rope_theta", share: tuple[str, float] = ("partial_rotary_factor", 1.0)
) -> Rope:
    """The rotary positions of a model.

    Args:
        config: its config.json.
        context: ``max_position_embeddings`` where the file has none.
        base: the family's name of the base.
        share: its name of the share, and the share where there is none.

    Raises:
        UsageError: for what is not supported, incomplete or contradictory.
    """
    if config.get("partial_rotary_factor", 1) is None:  # null counts as missing, of this field alone
        config = Config(config.file, {name: value for name, value in config.values.items() if name != "partial_rotary_factor"})
    parts = {name: config.get(name, None) for name in ("rope_scaling", "rope_parameters")}
    for name, part in parts.items():
        if part is not None and not isinstance(part, Mapping):
            config.refuse(name, part, "it is a JSON object")
    ropes = [(name, _rope(config, name, part, context, base, share)) for name, part in parts.items() if part]
    if len({rope for _, rope in ropes}) > 1:
        config.refuse("rope_parameters", parts["rope_parameters"], "rope_scaling says something else")
    return ropes[0][1] if ropes else _rope(config, "rope_parameters", {}, context, base, share)


def _rope(config: Config, name: str, part: Mapping[str, Any], context: int, base: str, share: tuple[str, float]) -> Rope:
    """The rotary positions by one of the two fields, and by what stands outside of it."""
    kind = part.get("rope_type", part.get("type", "default"))
    if any(isinstance(value, Mapping) for value in part.values()):
        config.refuse(name, part, "all layers have the same rotary positions")
    if not isinstance(kind, str) or kind not in READ:
        config.refuse("rope_type", kind, f"it is one of {', '.join(READ)}")
    if part.get("type", kind) != kind:
        config.refuse("type", part["type"], f"rope_type={kind} says something else")
    for key, value in part.items():
        if key not in (*EVERYWHERE, *READ[kind]):
            config.refuse(key, value, f"nothing reads it with rope_type={kind}")
    inner = Config(config.file, part)
    theta = _number(config, inner, "rope_theta", base, 10_000.0)
    turned = _number(config, inner, "partial_rotary_factor", *share)
    if kind == "default":
        return Rope(theta, turned, None)
    fields: dict[str, Any] = {"kind": kind, "factor": inner.number("factor")}
    if kind == "llama3":
        length = config.whole("max_position_embeddings", context)
        length = inner.whole("original_max_position_embeddings", config.whole("original_max_position_embeddings", length))
        config.fixed(original_max_position_embeddings=length)
        fields |= {"low": inner.number("low_freq_factor"), "high": inner.number("high_freq_factor"), "length": length}
    return Rope(theta, turned, config.checked(lambda: Scaling(**fields)))


def _number(config: Config, inner: Config, name: str, outer: str, default: float) -> float:
    """A number from within, or from outside under its name there; it must be the same if both are given."""
    if name not in inner.values:
        return config.number(outer, default)
    value = inner.number(name, default)
    if config.get(outer, None) is not None:
        config.fixed(**{outer: value})
    return value


def written(shape: Transformer) -> dict[str, Any]:
    """The rotary positions of a decoder in the words of config.json; versions before 5 do not know the first field."""
    fields: dict[str, Any] = {"rope_type": "default"}
    if (s := shape.scaling) is not None:
        fields = {"rope_type": s.kind, "factor": s.factor}
    if s is not None and s.kind == "llama3":
        fields |= {"low_freq_factor": s.low, "high_freq_factor": s.high, "original_max_position_embeddings": s.length}
    old = {} if s is None else {"rope_scaling": fields}
    return {"rope_parameters": fields | {"rope_theta": shape.base}, "rope_theta": shape.base} | old
