r"""How many tokens a person meets in a lifetime, by the talk's own factors.

.. math:: 70\ \text{years} \cdot 300\ \frac{\text{days}}{\text{year}} \cdot 12\ \frac{\text{hours}}{\text{day}}
   \cdot 3600\ \frac{\text{seconds}}{\text{hour}} \cdot 10\ \frac{\text{tokens}}{\text{second}} = 9.072 \cdot 10^9
"""

from __future__ import annotations

import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.scal import published


@jd.setting
class Life:
    """The printed factors, of which none is ours to choose."""


def trial(s: Life, key: PRNGKeyArray) -> jd.Observables:
    """The product, next to the printed number and to those of whole years."""
    del s, key
    years, days, hours, rate = published.LIFE
    number = lambda x: jnp.asarray(x, jnp.float64)  # noqa: E731
    return jd.observables(
        predicted={"tokens": number(years * days * hours * 3600 * rate)},
        measured={"tokens": number(published.HUMAN_TOKENS)},
        recorded={
            "every_day": number(years * 365 * hours * 3600 * rate),
            "sleepless": number(years * 365 * 24 * 3600 * rate),
        },
    )


HALF = 0.05e9  # of a unit of the last printed digit


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The product against the printed number."""
    return [jd.at_most("product minus the printed number, tokens", abs(ds.predicted_tokens - ds.measured_tokens), HALF)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The three numbers."""
    ax = fig.subplots()
    names = {"measured_tokens": "printed", "predicted_tokens": "product", "sleepless": "every hour of every day"}
    ax.barh(list(names.values()), [float(ds[name].mean()) / 1e9 for name in names], color=plotting.COLORS["measured"])
    ax.set(xlabel="tokens in a lifetime, billions")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Life),
        evidence="numbers",
        bounds="derived: half a unit of the last printed digit",
        source="talks grokking and practical, Comparison between Human and SoTA LMs",
        tested="Published figures against each other.",
        plot=plot,
        caption="The printed number of tokens in a lifetime, the product of the printed factors, and that of every hour.",
    ).claim(
        id="scal.human_tokens",
        title="Seventy years of ten tokens a second are 9.1 billion tokens",
        statement="70 years of 300 days of 12 hours, at 10 tokens in a second, make 9.072 billion tokens: 9.1 as it is printed.",
        judge=judge,
        talks=("grokking:scal-human-tokens",),
        controls={"years of 365 days": jd.swap(predicted_tokens="every_day")},
        rivals={"every hour of every day": jd.swap(predicted_tokens="sleepless")},
    ),
)
