"""Fields of config.json, alone and in pairs, and what transformers makes of them: logits, or a refusal.

``python -m tests.models.config_cases`` builds a tiny network for every case with transformers and torch and writes
``reference/config_cases.json``; tests compare with that file, where neither library is installed. Weights are sines of a quadratic
in their index (:func:`weight`), so that both sides can compute them and the file holds none. Outcomes are numbers of a list of
logits; -1 is a refusal: an error of any kind, or logits that are not finite.
"""

import itertools
import json
import warnings
import zlib
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "reference" / "config_cases.json"
REFUSED = -1
TEXT = [(7 * i + 3 * i * i) % 17 for i in range(14)]
SHOWN = 5  # logits of the last token that are kept

ROTARY = {"vocab_size": 17, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12}
GROUPED = ROTARY | {"num_key_value_heads": 1, "max_position_embeddings": 32}
BASES = {
    "llama": GROUPED,
    "mistral": GROUPED | {"sliding_window": None},
    "qwen2": GROUPED,
    "gpt_neox": ROTARY | {"max_position_embeddings": 32},
    "gpt2": {"vocab_size": 17, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16},
    "opt": {"vocab_size": 17, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 12}
    | {"max_position_embeddings": 16, "word_embed_proj_dim": 16},
}

# A case's changes; a name after "-" is a field that is left out.
LLAMA3 = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0, "original_max_position_embeddings": 12}
YARN, LONG = {"factor": 4.0, "original_max_position_embeddings": 12}, {"short_factor": [1.5] * 4, "long_factor": [2.0] * 4}
ROPES = [
    {},
    {"rope_type": "default"},
    {"type": "default"},
    {"rope_type": None},
    {"rope_type": "linear", "factor": 2.0},
    {"type": "linear", "factor": 2.0},
    {"rope_type": "linear", "type": "default", "factor": 2.0},
    {"rope_type": "default", "type": "linear", "factor": 2.0},
    {"rope_type": "linear", "type": "dynamic", "factor": 2.0},
    {"rope_type": "dynamic", "type": "linear", "factor": 2.0},
    {"rope_type": "linear"},
    {"type": "linear"},
    {"rope_type": "linear", "factor": None},
    {"rope_type": "linear", "factor": 0},
    {"rope_type": "linear", "factor": 1},
    {"rope_type": "linear", "factor": 0.5},
    {"rope_type": "linear", "factor": -2.0},
    {"rope_type": "linear", "factor": "2"},
    {"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0},
    {"rope_type": "linear", "factor": 2.0, "rope_theta": None},
    {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5},
    {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 1.0},
    {"rope_type": "default", "rope_theta": 50.0},
    {"rope_type": "default", "rope_theta": None},
    {"rope_theta": 50.0},
    {"factor": 2.0},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
    {"rope_type": "default", "partial_rotary_factor": 1.0},
    {"rope_type": "default", "partial_rotary_factor": None},
    {"rope_type": "llama3", **LLAMA3},
    {"type": "llama3", **LLAMA3},
    {"rope_type": "llama3", **LLAMA3, "rope_theta": 50.0},
    *({"rope_type": "llama3"} | {key: value for key, value in LLAMA3.items() if key != left} for left in LLAMA3),
    {"rope_type": "llama3", **LLAMA3, "low_freq_factor": 3.0},
    {"rope_type": "llama3", **LLAMA3, "partial_rotary_factor": 0.5},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", **YARN},
    {"rope_type": "yarn", "factor": 4.0},
    {"rope_type": "longrope", **LONG, "original_max_position_embeddings": 12},
    {"rope_type": "longrope", **LONG, "factor": 2.0},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5},
    {"rope_type": "ntk", "factor": 2.0},
    {"rope_type": "su", **LONG},
    {"rope_type": "Linear", "factor": 2.0},
    {"rope_type": ["linear"], "factor": 2.0},
    {"full_attention": {"rope_type": "linear", "factor": 2.0}},
    {"full_attention": {"rope_type": "default", "rope_theta": 50.0}, "sliding_attention": {"rope_type": "default"}},
    {"full_attention": {"rope_type": "default"}, "rope_type": "linear", "factor": 2.0},
]
ROPE_FIELDS = [
    *({"rope_scaling": rope} for rope in ROPES),
    *({"rope_parameters": rope} for rope in ROPES),
    {"rope_scaling": None},
    {"rope_parameters": None},
    {"rope_scaling": "linear"},
    {"rope_parameters": "linear"},
    {"rope_theta": 50.0},
    {"rope_theta": 50},
    {"rope_theta": None},
    {"rope_theta": "50"},
    {"partial_rotary_factor": 0.5},
    {"partial_rotary_factor": 1.0},
    {"partial_rotary_factor": None},
    {"original_max_position_embeddings": 6},
    {"-max_position_embeddings": True},
    {"max_position_embeddings": 8},
]
OTHERS = {  # these are tried alone, and with a few of the others
    "llama": [
        {"head_dim": 4},
        {"head_dim": None},
        {"head_dim": 8},
        {"hidden_size": 18},
        {"hidden_size": 18, "head_dim": 8},
        {"num_key_value_heads": None},
        {"-num_key_value_heads": True},
        {"num_key_value_heads": 2},
        {"attention_bias": True},
        {"attention_bias": None},
        {"mlp_bias": True},
        {"mlp_bias": None},
        {"hidden_act": "gelu"},
        {"hidden_act": "gelu_new"},
        {"hidden_act": "gelu_pytorch_tanh"},
        {"hidden_act": "relu"},
        {"hidden_act": "swish"},
        {"hidden_act": "mish"},
        {"hidden_act": None},
        {"rms_norm_eps": 0.5},
        {"rms_norm_eps": None},
        {"rms_norm_eps": "0.5"},
        {"tie_word_embeddings": True},
        {"tie_word_embeddings": None},
        {"tie_word_embeddings": 1},
        {"sliding_window": 4},
        {"layer_types": ["full_attention"] * 2},
        {"layer_types": ["sliding_attention"] * 2, "sliding_window": 4},
        {"layer_types": ["full_attention"]},
        {"layer_types": ["nonsense"] * 2},
        {"is_causal": False},
        {"is_causal": True},
        {"pretraining_tp": 2},
        {"per_layer_config": {"0": {"rms_norm_eps": 0.5}}},
        {"attention_dropout": 0.5},
        {"use_sliding_window": True, "sliding_window": 4},
    ],
    "mistral": [
        {"head_dim": 4},
        {"head_dim": None},
        {"hidden_size": 18},
        {"hidden_size": 18, "head_dim": 8},
        {"num_key_value_heads": None},
        {"-num_key_value_heads": True},
        {"num_key_value_heads": 2},
        {"attention_bias": True},
        {"hidden_act": "gelu"},
        {"rms_norm_eps": 0.5},
        {"rms_norm_eps": None},
        {"tie_word_embeddings": True},
        {"tie_word_embeddings": None},
        {"sliding_window": 4},
        {"sliding_window": 0},
        {"sliding_window": "4"},
        {"-sliding_window": True},
        {"layer_types": ["full_attention"] * 2, "sliding_window": 4},
        {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 4},
        {"layer_types": ["sliding_attention"] * 2},
        {"layer_types": ["full_attention"], "sliding_window": 4},
        {"use_sliding_window": False, "sliding_window": 4},
        {"max_window_layers": 1, "sliding_window": 4},
        {"is_causal": False},
        {"per_layer_config": {"0": {"sliding_window": 4}}},
    ],
    "qwen2": [
        {"head_dim": 4},
        {"head_dim": None},
        {"hidden_size": 18},
        {"hidden_size": 18, "head_dim": 8},
        {"num_key_value_heads": None},
        {"-num_key_value_heads": True},
        {"attention_bias": False},
        {"hidden_act": "gelu"},
        {"rms_norm_eps": 0.5},
        {"tie_word_embeddings": True},
        {"tie_word_embeddings": None},
        {"sliding_window": 4},
        {"use_sliding_window": True},
        {"use_sliding_window": None},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": None},
        {"use_sliding_window": True, "sliding_window": 4},
        {"use_sliding_window": True, "sliding_window": None, "max_window_layers": 0},
        {"use_sliding_window": True, "max_window_layers": 0},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0, "layer_types": ["full_attention"] * 2},
        {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["sliding_attention"] * 2},
        {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"]},
        {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["attention"] * 2},
        {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["sliding_attention"] * 3},
        {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["chunked_attention"] * 2},
        {"use_sliding_window": True, "sliding_window": None, "layer_types": ["sliding_attention"] * 2},
        {"use_sliding_window": False, "sliding_window": 4, "layer_types": ["sliding_attention"] * 2},
        {"layer_types": ["sliding_attention"] * 2},
        {"layer_types": ["full_attention"] * 2},
        {"layer_types": []},
        {"layer_types": "full_attention"},
        {"is_causal": False},
        {"per_layer_config": {"0": {"rms_norm_eps": 0.5}}},
    ],
    "gpt_neox": [
        {"rotary_pct": 0.5},
        {"rotary_pct": 1.0},
        {"rotary_pct": 1},
        {"rotary_pct": 0.0},
        {"rotary_pct": None},
        {"rotary_pct": 0.4},
        {"rotary_emb_base": 50},
        {"rotary_emb_base": None},
        {"head_dim": 4},
        {"head_dim": 8},
        {"hidden_size": 17},
        {"attention_bias": False},
        {"attention_bias": None},
        {"use_parallel_residual": False},
        {"hidden_act": "gelu_new"},
        {"hidden_act": "gelu_fast"},
        {"layer_norm_eps": 0.5},
        {"layer_norm_eps": None},
        {"tie_word_embeddings": True},
        {"num_key_value_heads": 1},
        {"is_decoder": True},
        {"is_causal": False},
        {"layer_types": ["full_attention"] * 2},
        {"per_layer_config": {"0": {"layer_norm_eps": 0.5}}},
    ],
    "gpt2": [
        {"n_inner": 12},
        {"n_inner": None},
        {"activation_function": "relu"},
        {"activation_function": "gelu"},
        {"activation_function": "quick_gelu"},
        {"activation_function": None},
        {"layer_norm_epsilon": 0.5},
        {"layer_norm_epsilon": None},
        {"scale_attn_weights": False},
        {"scale_attn_weights": None},
        {"scale_attn_by_inverse_layer_idx": True},
        {"reorder_and_upcast_attn": True},
        {"add_cross_attention": True},
        {"tie_word_embeddings": False},
        {"tie_word_embeddings": None},
        {"hidden_size": 16},
        {"hidden_size": 32},
        {"num_attention_heads": 4},
        {"num_hidden_layers": 1},
        {"max_position_embeddings": 15},
        {"max_position_embeddings": 4},
        {"n_ctx": 4},
        {"n_head": 3},
        {"is_causal": False},
        {"per_layer_config": {"0": {"layer_norm_epsilon": 0.5}}},
    ],
    "opt": [
        {"activation_function": "gelu"},
        {"activation_function": "quick_gelu"},
        {"do_layer_norm_before": False},
        {"do_layer_norm_before": None},
        {"word_embed_proj_dim": None},
        {"word_embed_proj_dim": 8},
        {"-word_embed_proj_dim": True},
        {"enable_bias": False},
        {"layer_norm_elementwise_affine": False},
        {"_remove_final_layer_norm": True},
        {"tie_word_embeddings": False},
        {"tie_word_embeddings": None},
        {"num_attention_heads": 3},
        {"max_position_embeddings": 4},
        {"layerdrop": 0.5},
        {"is_causal": False},
        {"per_layer_config": {"0": {"ffn_dim": 12}}},
    ],
}
PAIRED = {"llama": ROPE_FIELDS, "mistral": ROPE_FIELDS, "qwen2": ROPE_FIELDS, "gpt_neox": ROPE_FIELDS, "gpt2": [], "opt": []}


def name_of(key):
    """The field that a change is about."""
    return key.removeprefix("-")


def changes_of(family):
    """All changes that are tried alone."""
    return [*PAIRED[family], *OTHERS[family]]


def cases(family):
    """All changes of a family: none, one field, and two fields that differ; rope fields with all, others only with one another."""
    ropes, others = PAIRED[family], OTHERS[family]
    pairs = [*itertools.combinations(ropes, 2), *itertools.combinations(others, 2)]
    pairs += [(rope, other) for rope, other in itertools.product(ropes, others) if other_matters(rope, other)]
    for group in [(), *((each,) for each in changes_of(family)), *pairs]:
        names = [name_of(key) for change in group for key in change]
        if len(set(names)) == len(names):
            yield group


def other_matters(rope, other):
    """Whether a pair is tried: rope fields with sizes of heads, with kinds of layers, and with NeoX's own rope fields."""
    named = {"head_dim", "layer_types", "rotary_pct", "rotary_emb_base"} & set(other)
    return bool(named) and not rope.keys() & {"rope_scaling"}


def config_of(family, changes):
    """A case's config.json."""
    fields = BASES[family] | {"model_type": family}
    for key, value in ((key, value) for change in changes for key, value in change.items()):
        if key.startswith("-"):
            fields.pop(name_of(key), None)
        else:
            fields[key] = value
    return fields


def weight(name, size):
    """The numbers of a tensor: sines of a quadratic in the index, gains about 1."""
    name = {"embed_out.weight": "lm_head.weight"}.get(name, name)  # GPT-NeoX's in files and in memory
    index = np.arange(int(np.prod(size)), dtype=np.float64)
    waves = np.sin(0.618 * index**2 + 0.3 * index + zlib.crc32(name.encode()) % 1000)
    gain = len(size) == 1 and name.endswith(("norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"))
    return ((1 + waves / 4) if gain else waves / (2 if len(size) == 1 else np.sqrt(size[-1]) / 2)).reshape(size)


def stored():
    """What the file holds, by family: base, changes, logits and, in the order of :func:`cases`, each case's outcome."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def outcome(family, changes, folder):
    """What transformers makes of a case: logits, or None for a refusal."""
    import torch
    import transformers

    (folder / "config.json").write_text(json.dumps(config_of(family, changes)), encoding="utf-8")
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(torch.from_numpy(weight(name, tuple(p.shape))))
            logits = model(torch.tensor([TEXT])).logits[0, -1, :SHOWN].double().numpy()
    except Exception:  # any error is a refusal
        return None
    return [round(float(x), 4) for x in logits] if np.isfinite(logits).all() else None


def write():
    """Make the file."""
    import tempfile

    import torch
    import transformers

    transformers.logging.set_verbosity(100)
    torch.set_num_threads(1)
    out = {"versions": {"transformers": transformers.__version__, "torch": torch.__version__}}
    for family in BASES:
        logits, numbers = [], []
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for changes in cases(family):
                found = outcome(family, changes, Path(folder))
                if found is not None and found not in logits:
                    logits.append(found)
                numbers.append(REFUSED if found is None else logits.index(found))
        out[family] = {"base": BASES[family], "changes": changes_of(family), "logits": logits, "outcomes": numbers}
        print(family, len(numbers), "cases,", len(logits), "logits,", numbers.count(REFUSED), "refusals", flush=True)
    FILE.write_text(json.dumps(out, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
