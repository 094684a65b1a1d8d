"""Neighbours of Li2 in the literature on grokking, a small package each: the network, the theory, the claims."""

from jaxdyn.theories.neighbours.gromov import claims as gromov
from jaxdyn.theories.neighbours.lyu import claims as lyu
from jaxdyn.theories.neighbours.nanda import claims as nanda
from jaxdyn.theories.neighbours.omnigrok import claims as omnigrok

__all__ = ["CLAIMS"]

CLAIMS = (*gromov.CLAIMS, *lyu.CLAIMS, *nanda.CLAIMS, *omnigrok.CLAIMS)
