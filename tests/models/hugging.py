"""Small random models that transformers itself builds, writes and runs; tests that need it skip where it is missing.

``python -m tests.models.hugging`` writes one of each family into ``reference/``, with its logits in float64: by these, parity is
tested where transformers is not installed, too.
"""

import contextlib
import importlib.util
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from jaxdyn.models.fetching import fetched

NEEDED = ("torch", "transformers", "safetensors", "tokenizers", "gguf", "huggingface_hub")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
needs_models = pytest.mark.skipif(
    bool(set(MISSING) - {"torch", "transformers"}), reason="needs the extra models: pip install 'jaxdyn[models]'"
)
needs_torch = pytest.mark.skipif(bool(MISSING), reason="needs the extras models and bench: pip install 'jaxdyn[models,bench]'")

REAL = fetched("smollm2")  # in the user's cache folder, which tests do not see
needs_smollm2 = pytest.mark.skipif(bool(MISSING) or not REAL.is_file(), reason="needs the real model: jaxdyn models get smollm2")

ROTARY = {"vocab_size": 29, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 20}
GROUPED = ROTARY | {"num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0}
FAMILIES = {  # class of the configuration, its fields
    "llama": ("LlamaConfig", GROUPED),
    "llama, linear": ("LlamaConfig", GROUPED | {"rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 500.0}}),
    "llama 3": (
        "LlamaConfig",
        GROUPED
        | {"rope_parameters": LLAMA3 | {"original_max_position_embeddings": 24, "rope_theta": 30.0}, "tie_word_embeddings": True},
    ),
    "llama, biases": ("LlamaConfig", GROUPED | {"attention_bias": True, "mlp_bias": True}),
    "mistral": ("MistralConfig", GROUPED | {"sliding_window": 4, "head_dim": 6}),
    "qwen2": ("Qwen2Config", GROUPED | {"tie_word_embeddings": True}),
    "qwen2, window": ("Qwen2Config", GROUPED | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}),
    "neox": ("GPTNeoXConfig", ROTARY | {"rotary_pct": 0.5, "bos_token_id": 1, "eos_token_id": 2}),
    "neox, serial": (
        "GPTNeoXConfig",
        ROTARY | {"rotary_pct": 1.0, "use_parallel_residual": False, "attention_bias": False, "hidden_act": "gelu_new"},
    ),
    "gpt2": (
        "GPT2Config",
        {"vocab_size": 29, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 24} | {"bos_token_id": 1, "eos_token_id": 2},
    ),
    "opt": (
        "OPTConfig",
        {"vocab_size": 29, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 20}
        | {"max_position_embeddings": 24, "word_embed_proj_dim": 16},
    ),
}


REFERENCE = Path(__file__).parent / "reference"
TEXT = np.random.default_rng(0).integers(0, 29, (2, 20))


def stored(name):
    """Where the stored model of a family is."""
    return REFERENCE / name.replace(", ", "-").replace(" ", "")


@contextlib.contextmanager
def quiet():
    """Warnings of other libraries are theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def written(folder, config, fields, *, seed=0, **more):
    """A random model of this configuration, written by ``save_pretrained``; biases and gains are random, too."""
    with quiet():
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, config)(**fields))
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.normal_(1.0 if p.ndim == 1 and "bias" not in name else 0.0, 0.3)
        model.save_pretrained(folder, **more)
    return folder


def logits(folder, tokens, dtype="float32", **more):
    """What transformers makes of the tokens.

    It computes norms, softmax and angles of a float64 network in float32; for float64, its own code runs with float32 replaced.
    """
    with quiet(), pytest.MonkeyPatch.context() as patch:
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", **more).eval()
        if dtype == "float64":
            for name in ("float", "float32"):
                patch.setattr(torch, name, torch.float64)
            patch.setattr(torch.Tensor, "float", torch.Tensor.double)
            model = model.double()
            for module in [m for m in model.modules() if hasattr(m, "rotary_emb")]:
                module.rotary_emb = type(module.rotary_emb)(model.config)
        with torch.no_grad():
            return model(torch.tensor(np.asarray(tokens), dtype=torch.int64)).logits.numpy()


def edit_config(folder, **changes):
    """Change fields of a config.json; None removes one."""
    file = folder / "config.json"
    fields = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}), encoding="utf-8")


if __name__ == "__main__":
    for name, (config, fields) in FAMILIES.items():
        folder = written(stored(name), config, fields)
        (folder / "generation_config.json").unlink(missing_ok=True)
        np.save(folder / "logits.npy", logits(folder, TEXT, "float64"))
