"""Figures of trained encoders of the hypercube."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy against loss along training."""
    ax = fig.subplots()
    axis = next((a for a in ("encoder", "decoupled") if a in ds.dims), None)
    parts = {str(v): ds.sel({axis: v}) for v in ds[axis].values} if axis else {"runs": ds}
    for (name, part), color in zip(parts.items(), ("measured", "theory", "third"), strict=False):
        over = list(part.status.dims)
        loss, right = (part[n].isel(step=slice(1, None)).mean(over) for n in ("measured_loss", "measured_accuracy"))
        ax.plot(loss, right, "-o", color=plotting.COLORS[color], label=name if axis != "decoupled" else f"decay {name}")
    ax.axvline(float(ds.predicted_final.mean()), linestyle=":", color=plotting.COLORS["control"], label="relevant bits")
    ax.axvline(float(ds.predicted_least.mean()), linestyle="--", color=plotting.COLORS["control"], label="bound of the sphere")
    ax.invert_xaxis()
    ax.set(xlabel="contrastive loss on new batches", ylabel="downstream accuracy")
