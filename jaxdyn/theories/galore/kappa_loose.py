"""How far the rate kappa of the bound on the projected gradient lies below the true rate of decay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, plotting
from jaxdyn.theories.galore.dynamics import projected, varying
from jaxdyn.theories.galore.projection import positive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Spread", "judge", "trial"]


@jd.setting
class Spread:
    """B and C of ``terms`` terms with eigenvalues from 1 - to 1 + ``spread``; subspaces of ``rank`` of ``size`` dimensions."""

    terms: jd.Swept = jd.field(3.0, at_least=1)
    spread: jd.Swept = jd.field(0.5, at_least=0, below=1)
    size: int = 8
    rank: int = jd.field(3, at_least=1)
    most: int = 10  # terms at most

    def __post_init__(self) -> None:
        """Refuse fractions of a term, and subspaces that are the whole space."""
        whole = self.terms <= self.most and self.terms == round(self.terms)
        jd.require(self, whole, "terms is a whole number from 1 to most", "terms", "most")
        jd.require(self, self.rank < self.size, "rank is below size", "rank", "size")


def trial(s: Spread, key: PRNGKeyArray) -> jd.Observables:
    """The smallest eigenvalue of the projected S, by which R decays at least, and the bound kappa on it."""
    k_b, k_c, k_p, k_q = jax.random.split(key, 4)
    eye = jnp.eye(s.size, dtype=jnp.float64)
    b, c = (eye + 2 * s.spread * (positive(k, s.most, s.size) - eye) for k in (k_b, k_c))
    share = jnp.where(jnp.arange(s.most) < s.terms, s.most / s.terms, 0.0)  # the mean is over those in use
    p, q = (linalg.qr(jax.random.normal(k, (s.size, s.rank), jnp.float64))[0] for k in (k_p, k_q))
    theory = projected.within(share[:, None, None] * b, c, jnp.zeros((s.size, s.size), jnp.float64), p, q)
    mean_b, mean_c = (jnp.mean(share[:, None, None] * x, 0)[None] for x in (b, c))
    return jd.observables(
        predicted={"rate": theory.kappa},
        measured={"rate": theory.slowest},
        recorded={"of_means": varying.kappa(mean_b, mean_c, p, q)},
    )


BOUND, TIGHT = "kappa over the smallest eigenvalue minus 1", "smallest eigenvalue over kappa minus 1, one term"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """How far the rate of decay lies above kappa, by the number of terms."""
    jd.need(ds, terms=[1.0, 3.0, 10.0])
    over = ds.measured_rate / ds.predicted_rate
    return [
        jd.at_most(BOUND, ds.predicted_rate / ds.measured_rate - 1, 1e-12),
        jd.at_most(TIGHT, abs(over.sel(terms=1) - 1), 1e-12),
        *(jd.mean_within(_loose(n), over.sel(terms=n), over="seed", low=1.05) for n in (3, 10)),
    ]


def _loose(terms: int) -> str:
    return f"smallest eigenvalue over kappa, {terms} terms"


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The smallest eigenvalue over kappa, by the number of terms."""
    ax = fig.subplots()
    over = ds.measured_rate / ds.predicted_rate
    for i, terms in enumerate(ds.terms.values):
        values = over.sel(terms=terms).values.ravel()
        ax.plot(np.full(values.size, i), values, "o", color=plotting.COLORS["measured"], alpha=0.2)
    ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--")
    ax.set_xticks(range(ds.sizes["terms"]), [str(n) for n in ds.terms.values])
    ax.set(xlabel="terms N", ylabel=r"$\lambda_{min}(\hat S) / \kappa$")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Spread, terms=[1, 3, 10]),
        paper=jd.grid(Spread, terms=[1, 3, 10], spread=[0.2, 0.5, 0.9]),
        seeds=128,
        paper_seeds=512,
        evidence="algebra",
        source="arXiv:2403.03507, theorem 3.8; the question: ours",
    ).claim(
        id="galore.kappa_loose",
        statement=r"How far does the rate $\kappa = \frac1N\sum_i \lambda_{min}(\hat B_i)\lambda_{min}(\hat C_i)$ of the bound on "
        r"$\|R_t\|$ lie below the true one, $\lambda_{min}(\hat S)$, for matrices with eigenvalues from .5 to 1.5? (Not at all for "
        r"one term; mark: 5%. An algebraic question.)",
        expected="measured",
        judge=judge,
        found={
            BOUND: (-1e-12, 1e-12),
            TIGHT: (0.0, 1e-12),
            _loose(3): (1.15, 1.24),
            _loose(10): (1.29, 1.39),
        },
        controls={"all eigenvalues equal": {"spread": 0.0}, "numbers of terms exchanged": jd.rolled(measured_rate="terms")},
        rivals={"the smallest eigenvalues of the mean matrices": jd.swap(predicted_rate="of_means")},
        plot=plot,
        caption=r"True rate of decay of the projected gradient over the bound's $\kappa$, by the number of "
        "terms; one point per run.",
    ),
)
