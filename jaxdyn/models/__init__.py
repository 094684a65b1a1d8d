"""Published language models: checkpoints read into :mod:`jaxdyn.nn`'s transformer, and networks of ours written in their layouts.

Libraries of the extra ``models`` are imported when they are first used: ``pip install 'jaxdyn[models]'``.
"""

from jaxdyn.models.families import FAMILIES
from jaxdyn.models.loading import Model, load
from jaxdyn.models.sharding import mesh
from jaxdyn.models.summary import Summary, describe
from jaxdyn.models.tokenizer import Tokenizer
from jaxdyn.models.writing import save

__all__ = ["FAMILIES", "Model", "Summary", "Tokenizer", "describe", "load", "mesh", "save"]
