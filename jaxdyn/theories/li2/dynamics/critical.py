r"""Number of pairs that Li2 needs: a share :math:`p_c = c \ln M / M` of all M^2, c = 2.7482.

Source: arXiv:2509.21519, Theorem 4 (n of the order of :math:`d^2 M \ln M` keeps the maxima of irreps of degree d) and the constant
of its code's sweeps, where non-Abelian groups have the factor d / 2 with the largest degree d: linear, and one at d = 2.
"""

from __future__ import annotations

import math

from jaxdyn.data.cayley import Group
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.published import CRITICAL


def order_share(order: int) -> float:
    """p_c of an Abelian group of that order, which is at least 2."""
    return CRITICAL * math.log(order) / order


def critical_share(group: Group) -> float:
    """p_c of a group, with the authors' factor for irreps of degree above 2."""
    return order_share(group.order) * (1.0 if group.abelian else max(1.0, int(decompose(group).degrees.max()) / 2))
