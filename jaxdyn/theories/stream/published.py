"""Published perplexities of arXiv:2309.17453, by policy: references for the eye, of models whose size is out of reach here."""

from __future__ import annotations

from jaxdyn.nn.cache.published import FIGURE_1, FOUR_HUNDRED_K, PRETRAINED


def columns(network: str) -> dict[str, dict[str, float]]:
    """Perplexities by policy that go with a network, "vanilla" or "sink token", by model."""
    ours = {"160M": PRETRAINED[network]}
    return ours | ({"Llama-2-13B": FIGURE_1, "Llama-2-7B": FOUR_HUNDRED_K["Llama-2-7B"]} if network == "vanilla" else {})
