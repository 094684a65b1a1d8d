"""Losses of four predictors as an earlier, independent program sampled them: 4000 sequences of 100 tokens; in no paper."""

from __future__ import annotations

PREDICTORS = ("uniform", "tokens", "pairs", "chain")
# Means over the tokens 2 to 100, in nats, by the number of states.
LOSSES = {2: (0.6931, 0.5745, 0.5090, 0.479), 3: (1.0986, 1.0048, 0.8850, 0.8175)}
