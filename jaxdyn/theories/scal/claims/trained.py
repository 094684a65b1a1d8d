"""Claim on a ladder of language models trained here: exponents of the best size by three approaches."""

CLAIMS = ()
