"""``jaxdyn memory MODEL``: the memory that training a model takes with each method, counted without training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.errors import UsageError, shown
from jaxdyn.wording import plural

if TYPE_CHECKING:
    from jaxdyn.nn import Transformer
    from jaxdyn.optim.footprint import Footprint

__all__ = ["memory_command"]

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32"}
COLUMNS = {
    "weights": "weights",
    "gradients": "gradients",
    "states": "states",
    "activations": "activations",
    "total": "total",
    "checkpointed": "checkpoints",
    "layerwise": "layerwise",
    "least": "least",
}
NOTE = (
    "activations: stored by automatic differentiation for {batch} x {length} tokens; checkpoints: with one at every layer;\n"
    "layerwise: gradients if one layer is updated at a time; least: with both. States of lora, relora and low_rank hold their\n"
    "factors, next to full weights and gradients, as jaxdyn runs them. 1 GB is 10^9 bytes; a compiler's work space is not counted."
)


def memory_command(
    model: str,
    *,
    only: str | None,
    rank: int,
    dtype: str,
    batch: int,
    length: int,
    stored: str,
    side: str,
    out: Path | None,
) -> tuple[dict[str, Any], list[str]]:
    """Count the bytes of training a model; returns facts for JSON, and lines for the terminal."""
    if out is not None and out.suffix not in (".png", ".svg"):
        raise UsageError(f"--out {shown(out)} is not allowed: the figure's name ends in .png or .svg")
    import jax

    from jaxdyn.optim.footprint import footprints
    from jaxdyn.optim.methods import METHODS, Options

    if only is not None and only not in METHODS:
        raise UsageError(f"--method {shown(only)} is not allowed: it is one of {', '.join(METHODS)}")
    options, shape = Options(rank=rank, stored=stored, side=side), _shape(model, DTYPES.get(dtype, dtype))
    sizes = {"batch": batch, "length": length}
    with jax.enable_x64(shape.dtype == "float64"):  # otherwise JAX would count four bytes per number
        by_method = footprints(shape, options, METHODS if only is None else ("adam", only), **sizes)
    if out is not None:
        _draw(by_method, f"{model}, rank {rank}, {shape.dtype}, {batch} x {plural(length, 'token')}", out)
    numbers = {name: {column: getattr(one, column) for column in COLUMNS} for name, one in by_method.items()}
    facts = {"model": model, "rank": rank, "dtype": shape.dtype, **sizes, "stored": stored, "side": side, "bytes": numbers}
    heading = f"GB for {model} in {shape.dtype}, rank {rank}:"
    return facts, [heading, *_table(by_method), NOTE.format(**sizes), *([str(out)] if out is not None else [])]


def _shape(model: str, dtype: str) -> Transformer:
    """The decoder of a name such as ``llama-7B``, or of a config.json or its folder."""
    from jaxdyn.nn import LLAMA, llama
    from jaxdyn.optim.trees import check_dtype

    check_dtype("dtype", dtype)
    family, _, size = model.partition("-")
    if family.lower() == "llama" and size.upper() in LLAMA:
        return llama(size.upper(), dtype=dtype)
    path = from_home(model)
    if not path.exists():
        names = ", ".join(f"llama-{name}" for name in LLAMA)
        raise UsageError(f"model {shown(model)} is not allowed: it is one of {names}, or the path of a config.json")
    from jaxdyn.models.config import Config, read_json
    from jaxdyn.models.families import family_of

    file = path / "config.json" if path.is_dir() else path
    config = Config(file, read_json(file))
    return family_of(config).shape(config, dtype)


def _table(by_method: Mapping[str, Footprint]) -> list[str]:
    rows = [("method", *COLUMNS.values())]
    rows += [(name, *(f"{getattr(one, column) / 1e9:.3f}" for column in COLUMNS)) for name, one in by_method.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]) for row in rows]


def _draw(by_method: Mapping[str, Footprint], title: str, out: Path) -> None:
    """Stacked bars, two per method: as it is, and with checkpoints and layerwise updates."""
    from jaxdyn.experiment import figure

    parts = {
        "weights": ("weights", "weights"),
        "optimizer states": ("states", "states"),
        "gradients": ("gradients", "layerwise"),
        "activations": ("activations", "checkpointed"),
    }

    def draw(fig: Any) -> None:
        ax = fig.subplots()
        names = list(by_method)
        for shift, which in ((0.2, 0), (-0.2, 1)):
            left = [0.0] * len(names)
            for i, (label, columns) in enumerate(parts.items()):
                width = [getattr(by_method[name], columns[which]) / 1e9 for name in names]
                place = [len(names) - 1 - k + shift for k in range(len(names))]
                ax.barh(place, width, 0.36, left, color=f"C{i}", alpha=1 - 0.4 * which, label=None if which else label)
                left = [a + b for a, b in zip(left, width, strict=True)]
        ax.set(yticks=range(len(names)), yticklabels=names[::-1], title=title)
        ax.set_xlabel("GB; pale bars: a checkpoint at every layer, gradients of one layer at a time")

    figure(out.parent, out.stem, draw, size=(8.0, 1.5 + 0.4 * len(by_method)), kinds=(out.suffix[1:],))
