"""The families of published models that the decoder describes, by the ``model_type`` of their config.json."""

from __future__ import annotations

from jaxdyn.errors import UsageError, shown
from jaxdyn.models.config import Config
from jaxdyn.models.families import gpt2, llama, neox, opt
from jaxdyn.models.families.family import Family

__all__ = ["FAMILIES", "Family", "family_of"]

FAMILIES: dict[str, Family] = {
    "llama": llama.LLAMA,
    "mobilellm": llama.MOBILELLM,
    "mistral": llama.MISTRAL,
    "qwen2": llama.QWEN2,
    "gpt_neox": neox.NEOX,
    "gpt2": gpt2.GPT2,
    "opt": opt.OPT,
}


def family_of(config: Config) -> Family:
    """The family of a model.

    Raises:
        UsageError: for one that is not among :data:`FAMILIES`, for weights quantised in a way that the file does not explain, for
            attention that is not causal, and for layers of different configurations.
    """
    name = config.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        raise UsageError(f"{config.file}: model_type={shown(name)} is not allowed: it is one of {', '.join(FAMILIES)}")
    if (quantised := config.get("quantization_config", None)) is not None:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else quantised
        raise UsageError(
            f"{config.file}: quantization_config ({shown(method)}) is not allowed: "
            "use the model's float weights, or a GGUF file, whose quantisation is known"
        )
    config.fixed(is_causal=True, per_layer_config=None)
    return FAMILIES[name]
