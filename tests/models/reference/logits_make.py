"""Reference logits: networks of GGUF files with every field that is accepted, alone and with a window, by llama.cpp.

``python -m tests.models.reference.logits_make`` writes ``logits_cases.json`` and ``logits_cases.npy``; it needs what
``tokens_make.py`` needs. The text is longer than the window, and longer than the context that some of the files name.
"""

import ctypes
import importlib.metadata
import json
import tempfile
from pathlib import Path

import numpy as np

from tests.models.ggufs import TOKENS, VOCABULARY, write
from tests.models.reference.tokens_make import LLAMA, Params

FILE = Path(__file__).with_name("logits_cases.json")
TEXT = np.random.default_rng(3).integers(0, VOCABULARY, 40).tolist()
PLACES = (7, 8, 20, 39)  # after which the logits are stored: within the window, and beyond it
WINDOW = {"attention.sliding_window": 8}
TABLE = [1.0, 1.0, 1.25, 2.0, 3.0, 4.0, 8.0, 8.0]
WIDE = {"attention.key_length": 32, "attention.value_length": 32, "rope.dimension_count": 32}
EACH = {"attention.head_count": [4, 4], "attention.head_count_kv": [2, 2], "feed_forward_length": [64, 64]}
SCALED = {"rope.scaling.factor": 4.0}
FIELDS = [  # fields of the architecture, None for one that is left out; and how else the file differs
    ({}, {}),
    ({}, {"tied": True}),
    *(({"attention.sliding_window": size}, {}) for size in (0, 1, 32, 4096)),
    *(({"context_length": length}, {}) for length in (8, 4096)),
    ({"vocab_size": None}, {}),
    ({"block_count": 2, "embedding_length": 64, "feed_forward_length": 64}, {}),
    (EACH, {}),
    ({"attention.head_count_kv": None}, {"groups": 4}),
    ({"attention.head_count_kv": 1}, {"groups": 1}),
    ({"attention.key_length": 16}, {}),
    ({"attention.value_length": 16}, {}),
    ({"attention.key_length": 16, "attention.value_length": 16}, {}),
    (WIDE, {"head": 32}),
    (WIDE | {"rope.dimension_count": None}, {"head": 32}),
    (WIDE | {"attention.value_length": None}, {"head": 32}),
    (WIDE | {"attention.key_length": None}, {"head": 32}),
    ({"attention.layer_norm_rms_epsilon": 0.5}, {}),
    ({"rope.dimension_count": None}, {}),
    *(({"rope.freq_base": base}, {}) for base in (None, 5000.0)),
    *(({"rope.scaling.type": kind}, {}) for kind in ("none", "linear")),
    *((SCALED | {"rope.scaling.type": kind}, {}) for kind in ("none", "linear")),
    *(({"rope.scaling.factor": factor}, {}) for factor in (0.0, 0.5, 4.0)),
    *(({"rope.scale_linear": factor}, {}) for factor in (0.0, 4.0)),
    ({"rope.scale_linear": 2.0, "rope.scaling.factor": 4.0}, {}),
    ({"rope.scale_linear": 2.0, "rope.scaling.factor": 0.0}, {}),
    ({}, {"table": TABLE}),
    (SCALED, {"table": TABLE}),
    (SCALED | {"rope.scaling.original_context_length": 8}, {}),
    ({"rope.scaling.finetuned": True}, {}),
    ({"rope.scaling.attn_factor": 1.0}, {}),
    ({"attention.causal": True}, {}),
    ({"expert_count": 0, "expert_used_count": 0}, {}),
    ({"tensor_data_layout": "reference"}, {}),
    *(({"pooling_type": kind}, {}) for kind in (0, 1, 3)),
]


class Context(ctypes.Structure):
    """llama_context_params, as far as this script sets it."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("context", "batch", "part", "sequences", "states", "outputs", "each")),
        *((name, ctypes.c_int32) for name in ("threads", "threads_batch", "kind", "rope", "pooling", "attention", "flash")),
        *((name, ctypes.c_float) for name in ("base", "scale", "ext", "attn", "fast", "slow")),
        *((name, ctypes.c_int32) for name in ("original", "defrag")),
        *((name, ctypes.c_void_p) for name in ("callback", "data")),
        *((name, ctypes.c_int32) for name in ("keys", "values")),
        ("rest", ctypes.c_char * 256),
    ]


class Batch(ctypes.Structure):
    """llama_batch."""

    _fields_ = [("count", ctypes.c_int32), *((name, ctypes.c_void_p) for name in ("token", "embd", "at", "n", "seq", "logits"))]


def declared():
    """Result and arguments of the functions that read a text."""
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    for name, result, arguments in (
        ("llama_context_default_params", Context, []),
        ("llama_init_from_model", pointer, [pointer, Context]),
        ("llama_batch_get_one", Batch, [pointer, number]),
        ("llama_decode", number, [pointer, Batch]),
        ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, number]),
        ("llama_free", None, [pointer]),
        ("llama_model_free", None, [pointer]),
    ):
        function = getattr(LLAMA, name)
        function.restype, function.argtypes = result, arguments


def read(file):
    """Logits after some tokens of the text [place, token], in float32 throughout; None for a file that llama.cpp refuses."""
    params: Params = LLAMA.llama_model_default_params()
    params.layers, params.extra = 0, False
    model = LLAMA.llama_model_load_from_file(str(file).encode(), params)
    if not model:
        return None
    found = []
    for place in PLACES:
        settings = LLAMA.llama_context_default_params()
        settings.context, settings.threads, settings.threads_batch, settings.flash, settings.keys, settings.values = (
            64,
            1,
            1,
            0,
            0,
            0,
        )
        context = LLAMA.llama_init_from_model(model, settings)
        tokens = (ctypes.c_int32 * (place + 1))(*TEXT[: place + 1])
        assert LLAMA.llama_decode(context, LLAMA.llama_batch_get_one(tokens, place + 1)) == 0
        found.append(np.ctypeslib.as_array(LLAMA.llama_get_logits_ith(context, -1), (VOCABULARY,)).copy())
        LLAMA.llama_free(context)
    LLAMA.llama_model_free(model)
    return np.stack(found)


def collected():
    """Cases, and the logits of all that differ."""
    cases, seen = [], []
    tokens = [*TOKENS, *(f"more{i}" for i in range(VOCABULARY - len(TOKENS)))]
    for architecture in ("llama", "qwen2"):
        for fields, more in (pair for own in FIELDS for pair in (own, (own[0] | WINDOW, own[1]))):
            with tempfile.TemporaryDirectory() as folder:
                logits = read(write(Path(folder, "model.gguf"), architecture, "F32", fields=fields, tokens=tokens, **more))
            equal = [i for i, other in enumerate(seen) if logits is not None and np.array_equal(other, logits)]
            number = None if logits is None else equal[0] if equal else len(seen)
            seen += [logits] if number == len(seen) else []
            cases.append({"architecture": architecture, "fields": fields, "more": more, "logits": number})
    return cases, np.stack(seen)


if __name__ == "__main__":
    declared()
    found, logits = collected()
    versions = {name: importlib.metadata.version(name) for name in ("gguf", "xllamacpp")}
    made = {"versions": versions, "text": TEXT, "places": PLACES, "cases": found}
    FILE.write_text(json.dumps(made) + "\n", encoding="utf-8")
    np.save(FILE.with_suffix(".npy"), logits)
    print(len(found), "cases,", sum(case["logits"] is None for case in found), "refused,", logits.shape, logits.std(), versions)
