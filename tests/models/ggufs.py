"""Small random GGUF files, written by the library gguf, and the tokenizers of ``reference/tokens_make.py``."""

import json
from pathlib import Path

import numpy as np

from jaxdyn.errors import LARGEST
from jaxdyn.models.gguf_tokenizer import gguf_tokenizer
from jaxdyn.models.tokenizer import Tokenizer

TOKENS = [*"abcdefghijklmnopqrstuvwxyz0123456789", "Ġ", "Ċ", "<s>", "</s>", "he", "ll", "Ġa", "hell"]
MERGES = ["h e", "l l", "Ġ a", "he ll"]
VOCABULARY = 64
UNMADE = {"Q4_K": (0, 2), "Q6_K": (208,)}  # quantisations that the library undoes but does not make: where scales stand in a block


def tensors(architecture, width, heads, groups, hidden, layers, head=None):
    """Random weights under GGUF's names."""
    e, rng = head or width // heads, np.random.default_rng(1)
    sizes = {
        "attn_q.weight": (heads * e, width),
        "attn_k.weight": (groups * e, width),
        "attn_v.weight": (groups * e, width),
        "attn_output.weight": (width, heads * e),
        "ffn_gate.weight": (hidden, width),
        "ffn_up.weight": (hidden, width),
        "ffn_down.weight": (width, hidden),
        "attn_norm.weight": (width,),
        "ffn_norm.weight": (width,),
    }
    if architecture == "qwen2":
        sizes |= {f"attn_{name}.bias": ((heads if name == "q" else groups) * e,) for name in "qkv"}
    out = {"token_embd.weight": (VOCABULARY, width), "output_norm.weight": (width,), "output.weight": (VOCABULARY, width)}
    out |= {f"blk.{i}.{name}": size for i in range(layers) for name, size in sizes.items()}
    return {
        name: (1.0 * (len(s) == 1 and "bias" not in name) + rng.normal(size=s) * (2.0 / s[-1]) ** 0.5).astype(np.float32)
        for name, s in out.items()
    }


def raw(gguf, kind, x):
    """The bytes of a matrix in this quantisation; random ones of moderate size where the library makes none."""
    if kind.name not in UNMADE:
        return gguf.quants.quantize(x, kind)
    numbers, width = gguf.GGML_QUANT_SIZES[kind]
    data = np.random.default_rng(2).integers(0, 256, (x.shape[0], x.shape[1] // numbers, width), dtype=np.uint8)
    for at in UNMADE[kind.name]:
        data[..., at : at + 2] = np.frombuffer(np.float16(2e-5).tobytes(), np.uint8)
    return data.reshape(x.shape[0], -1)


def write(file, architecture, kind, *, tied=False, width=64, heads=4, groups=2, layers=2, table=None, fields=None, **more):
    """Write a file; ``skip``, ``nan`` and ``integers`` name a tensor that is missing or damaged.

    ``fields`` are fields of the architecture by their names without its own, None leaves one out; ``general`` are others. With
    ``big`` the most significant byte comes first; ``head`` is the size of heads, if it does not follow from the width.
    """
    import gguf

    hidden, kind = width, gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(file, architecture, endianess=gguf.GGUFEndian(int(more.get("big", False))))
    own = {
        "block_count": layers,
        "context_length": 32,
        "embedding_length": width,
        "feed_forward_length": hidden,
        "attention.head_count": heads,
        "attention.head_count_kv": groups,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 100.0,
        "rope.dimension_count": width // heads,
        "vocab_size": VOCABULARY,
    }
    own = {f"{architecture}.{name}": value for name, value in (own | (fields or {})).items()} | more.get("general", {})
    for name, value in own.items():
        if value is not None:
            add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
            add.get(type(value), writer.add_array)(name, value)
    if more.get("tokenizer", True):
        add_tokenizer(writer, more.get("pre", "gpt-2"), more.get("tokens"))
    values = tensors(architecture, width, heads, groups, hidden, 2, more.get("head"))
    if tied:
        del values["output.weight"]
    for name, x in values.items():
        if name == more.get("skip"):
            continue
        if name == more.get("nan"):
            x[-1] = np.nan
        if name == more.get("integers"):
            writer.add_tensor(name, x.astype(np.int32))
        elif x.ndim == 1 or kind.name == "F32":
            writer.add_tensor(name, x)
        elif kind.name == "F16":
            writer.add_tensor(name, x.astype(np.float16))
        else:
            writer.add_tensor(name, raw(gguf, kind, x), raw_dtype=kind)
    if table is not None:
        writer.add_tensor("rope_freqs.weight", np.asarray(table, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def add_tokenizer(writer, pre, tokens=None):
    """A byte-level tokenizer of a few tokens."""
    tokens = TOKENS if tokens is None else tokens
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in ("<s>", "</s>") else 1 for token in tokens])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(TOKENS.index("<s>"))
    writer.add_eos_token_id(TOKENS.index("</s>"))


REFERENCE = json.loads((Path(__file__).parent / "reference" / "tokens_cases.json").read_text(encoding="utf-8"))
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def metadata(short):
    """A GGUF file's metadata as they were, of their short form."""
    out = dict(short)
    for name in ("tokenizer.ggml.scores", "tokenizer.ggml.token_type"):
        if name in out:
            out[name] = [value for value, count in out[name] for _ in range(count)]
    tokens = out["tokenizer.ggml.tokens"]
    out["tokenizer.ggml.tokens"] = [t for token in tokens for t in (BYTES if token is None else [token])]
    return out


def read(short, **change) -> Tokenizer:
    """The tokenizer of metadata in their short form, with other fields."""
    fields = metadata(short) | {f"tokenizer.ggml.{name}": value for name, value in change.items()}
    return gguf_tokenizer("model.gguf", fields, LARGEST)
