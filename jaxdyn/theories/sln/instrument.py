r"""Number tokens as points on circles: the Fourier spectrum of the embeddings of 0, 1, 2, ...

.. math:: S(f) = \frac{1}{d} \sum_j \Bigl| \sum_{a < m} (E_{aj} - \bar E_j)\, e^{-2\pi i f a} \Bigr|^2 \Big/ \text{mean over } f

Peaks at the periods 2, 2.5, 5 and 10 say that embeddings have sines and cosines of the last digit, as in networks that learn to
add. The height of a peak is S over the median of its neighbourhood; the null shuffles which number has which embedding. A period is
looked at where it is one of the spectrum's, so that a wave of it falls on one frequency: the numbers are whole periods.

Source: arXiv:2406.03445, section 4 (outliers in the spectra of GPT-2-XL and others). Letters: m numbers, d width, f frequency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from jaxdyn.instruments.drawing import expected
from jaxdyn.instruments.instrument import Cost, Instrument, NotApplicable, Number, Tick
from jaxdyn.nn import Transformer
from jaxdyn.plotting import COLORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model
    from jaxdyn.models.tokenizer import Tokenizer

__all__ = ["INSTRUMENTS", "NAVIGATORS", "heights", "measure", "number_tokens", "periods", "predict", "spectrum"]

MOST, LEAST = 1000, 100
NUMBER_PERIODS = (2.0, 2.5, 5.0, 10.0)  # of the published outliers
PERIODS = (*NUMBER_PERIODS, 100.0)
AROUND = 12  # frequencies on either side whose median is a peak's surroundings
SHUFFLES = 199


def number_tokens(tokenizer: Tokenizer) -> Int[np.ndarray, " m"]:
    """Token numbers of 0, 1, 2, ... up to 999 while each is one token, with a space before or without, whichever goes further.

    Their count is a multiple of 10, so that the periods 2, 2.5, 5 and 10 are frequencies of the spectrum.
    """
    best: list[int] = []
    for before in (" ", ""):
        run: list[int] = []
        for value in range(MOST):
            if (token := tokenizer.single(f"{before}{value}")) is None:
                break
            run.append(token)
        best = max(best, run, key=len)
    return np.asarray(best[: len(best) // 10 * 10], np.int32)


def spectrum(embeddings: Float[np.ndarray, "m d"]) -> Float[np.ndarray, " f"]:
    """Power at the frequencies 1/m, 2/m, ... up to a half, mean over entries, over its mean over frequencies."""
    centred = np.asarray(embeddings, float) - np.mean(embeddings, 0, dtype=float)
    power = np.mean(np.abs(np.fft.rfft(centred, axis=0)[1:]) ** 2, 1)
    return power / power.mean()


def periods(count: int) -> list[float]:
    """Those of :data:`PERIODS` of which so many numbers are a multiple."""
    return [period for period in PERIODS if count % period == 0]


def heights(power: Float[np.ndarray, " f"], count: int) -> Float[np.ndarray, " period"]:
    """Power at each of :func:`periods` over the median of the frequencies around it."""
    found = []
    for period in periods(count):
        at = round(count / period) - 1
        around = np.r_[max(at - AROUND, 0) : at, at + 1 : min(at + AROUND + 1, power.size)]
        found.append(power[at] / np.median(power[around]))
    return np.asarray(found)


def measure(model: Model, tokens: Int[np.ndarray, "piece n"] | None, tick: Tick) -> xr.Dataset:
    """Spectrum and heights of its peaks, and the heights when numbers are shuffled.

    Raises:
        NotApplicable: where fewer than 100 numbers are tokens of their own, and where their embeddings have no spectrum.
    """
    del tokens  # this is about the vocabulary
    if model.tokenizer is None:
        raise NotApplicable("This model has no tokenizer, so that nobody knows which tokens are numbers.")
    known = number_tokens(model.tokenizer)
    if known.size < LEAST:
        raise NotApplicable(
            f"This model's tokenizer has no single tokens for the numbers from 0 to {LEAST - 1}, only for the first {known.size}: "
            "it splits numbers into digits, so that their embeddings have no spectrum."
        )
    table = np.asarray(model.params["embed"][known], np.float64)
    with np.errstate(invalid="ignore"):
        power = spectrum(table)
    if not np.isfinite(power).all():
        raise NotApplicable("The embeddings of the numbers are not finite, or all the same, so that they have no spectrum.")
    rng = np.random.default_rng(0)
    null = [heights(spectrum(rng.permutation(table)), known.size) for _ in range(SHUFFLES)]
    tick(1.0)
    data = {
        "power": (("frequency",), power),
        "height": (("period",), heights(power, known.size)),
        "shuffled": (("draw", "period"), np.stack(null)),
    }
    return xr.Dataset(
        data, {"frequency": np.arange(1, power.size + 1) / known.size, "period": periods(known.size)}, {"numbers": known.size}
    )


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Shuffled numbers: the median height, and the one that 1% exceed."""
    return xr.Dataset({"usual": ds.shuffled.median("draw"), "high": ds.shuffled.quantile(0.99, "draw").drop_vars("quantile")})


def numbers(ds: xr.Dataset) -> list[Number]:
    """Heights of the peaks; they are no means over pieces, and have no interval."""
    law = predict(ds)
    return [
        Number(
            f"power at period {period:g} over its surroundings",
            float(ds.height.sel(period=period)),
            expected=float(law.high.sel(period=period)),
            says="99% of shuffles are below",
        )
        for period in ds.period.values
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The spectrum, with the published periods."""
    ax = fig.subplots()
    ax.plot(ds.frequency, ds.power, color=COLORS["measured"], linewidth=1, label=f"numbers 0 to {ds.attrs['numbers'] - 1}")
    for i, period in enumerate(NUMBER_PERIODS):
        label = "periods 2, 2.5, 5, 10" if i == 0 else None
        ax.axvline(1 / period, color=COLORS["control"], linestyle=":", linewidth=1, label=label, zorder=0)
    expected(ax, None, 1.0, "shuffled numbers, mean")
    ax.set(xlabel="frequency, cycles per number", ylabel="power over its mean", yscale="log")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training: the heights of the peaks."""
    return {"power over its surroundings": ds.height}


def cost(shape: Transformer, tokens: Int[np.ndarray, "piece n"]) -> Cost:
    """A few hundred Fourier transforms."""
    del tokens
    return Cost(5.0 * SHUFFLES * MOST * 10 * shape.width, 8.0 * 4 * MOST * shape.width)


NAVIGATORS = Instrument(
    name="numbers",
    title="Navigators of number tokens",
    theory=(
        "Networks that learn modular addition represent numbers by waves; embeddings of numbers in pretrained models have such "
        "waves, too: outliers at the periods 2, 2.5, 5 and 10 (arXiv:2406.03445)."
    ),
    caption=(
        "Power spectrum of the embeddings of 0, 1, 2, ..., mean over their entries; dotted, the published periods; dashed, the "
        "mean of a spectrum of shuffled numbers. The power at period 100 is given where the count of numbers is a multiple of 100."
    ),
    source="arXiv:2406.03445, section 4",
    pieces=0,
    cost=cost,
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
    unread="it looks for numbers in a tokenizer, and the laboratory has none; jaxdyn probe measures it in checkpoints",
)

INSTRUMENTS = (NAVIGATORS,)
