"""GGUF files against llama.cpp (``reference/logits_make.py``) and transformers; quantisations against the library's.

Angles are those of llama.cpp's rules, written here in NumPy (:func:`llama_cpp`).
"""

import itertools
import json
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.models import ggufs
from jaxdyn.nn.transformer import angles, apply
from tests.models.ggufs import VOCABULARY, write
from tests.models.hugging import logits, needs_models, needs_torch

pytestmark = needs_models
TOKENS = np.random.default_rng(0).integers(0, VOCABULARY, (2, 11))


def ours(file, **more):
    model = models.load(file, **more)
    return model, np.asarray(jax.jit(lambda p: apply(model.shape, p, TOKENS))(model.params))


@needs_torch
@pytest.mark.parametrize(
    ("architecture", "kind", "tied"),
    [("llama", "F32", False), ("llama", "Q8_0", True), ("qwen2", "F32", True), ("llama", "Q4_1", False), ("llama", "F16", False)],
)
def test_transformers_reads_the_same_network(architecture, kind, tied, tmp_path):
    pytest.importorskip(
        "accelerate", reason="transformers reads GGUF files with the library accelerate: pip install 'jaxdyn[bench]'"
    )
    file = write(tmp_path / "model.gguf", architecture, kind, tied=tied)
    model, mine = ours(file)
    np.testing.assert_allclose(mine, logits(tmp_path, TOKENS, gguf_file=file.name), atol=1e-5 * max(1, np.max(np.abs(mine))))
    assert model.shape.tied == tied and np.std(mine) > 0.1
    assert model.summary.kinds[kind] >= 14 and model.summary.family == architecture


@pytest.mark.parametrize("kind", ["BF16", "Q4_0", "Q5_1", "Q4_K", "Q6_K"])
def test_other_quantisations_are_undone_by_the_library(kind, tmp_path):
    import gguf

    file = write(tmp_path / "model.gguf", "llama", kind, width=256 if kind.endswith("K") else 64)
    (tensor,) = (t for t in gguf.GGUFReader(file).tensors if t.name == "blk.1.ffn_up.weight")
    assert tensor.tensor_type.name == kind
    model, mine = ours(file)
    np.testing.assert_array_equal(model.params["blocks"]["up"][1].T, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    assert np.isfinite(mine).all()


STORED = Path(__file__).parent / "reference" / "logits_cases.json"
CASES = json.loads(STORED.read_text(encoding="utf-8"))
LOGITS = np.load(STORED.with_suffix(".npy"))


def of_llama_cpp(case):
    """Its logits, or None for a file that it refuses."""
    return None if case["logits"] is None else LOGITS[case["logits"]]


@pytest.mark.parametrize("architecture", ggufs.ARCHITECTURES)
def test_every_accepted_field_means_what_it_means_to_llama_cpp(architecture, tmp_path):
    """Alone and with a window, on a text that is longer than the window and than the context that some files name."""
    text, places, programs = np.array([CASES["text"]]), list(CASES["places"]), {}
    read, refused = 0, []
    for case in (each for each in CASES["cases"] if each["architecture"] == architecture):
        file = write(tmp_path / "model.gguf", architecture, "F32", fields=case["fields"], tokenizer=False, **case["more"])
        theirs = of_llama_cpp(case)
        try:
            model = models.load(file)
        except UsageError as error:
            refused.append((theirs is None, str(error)))
            continue
        assert theirs is not None, case
        program = programs.setdefault(model.shape, jax.jit(lambda p, s=model.shape: apply(s, p, text)))
        mine = np.asarray(program(model.params))[0, places]
        np.testing.assert_allclose(mine, theirs, atol=1e-5 * np.abs(theirs).max(), err_msg=str(case))
        read += 1
    ours_alone = [words for by_both, words in refused if not by_both]
    assert read > 70 and not ours_alone, ours_alone


def test_every_accepted_field_is_among_the_reference_logits():
    accepted = {*ggufs.FIELDS, *ggufs.HEADS, *ggufs.SCALING, *ggufs.UNREAD, *ggufs.NEUTRAL}
    known = {"attention.head_count", "rope.freq_base"}  # in all files
    assert accepted <= known | {name for case in CASES["cases"] for name in case["fields"]}
    with_window = [case for case in CASES["cases"] if case["fields"].get("attention.sliding_window") == 8]
    assert len(with_window) == len(CASES["cases"]) // 2 and len(LOGITS) > 15


ENTRIES = 16  # numbers in a head of the written files
SMALL = {"width": 16, "heads": 1, "groups": 1, "tokenizer": False}
POSITIONS = np.arange(9)
TABLE = np.array([1, 1, 1.25, 2, 3, 4, 8, 8], np.float32)
ROPE = [  # fields of the architecture; "table" is a tensor
    *({"rope.scaling.type": kind} for kind in ("none", "linear", "yarn", "longrope", "dynamic", "Linear")),
    *({"rope.scaling.factor": factor} for factor in (0.0, 1.0, 4.0, 0.5, -2.0, float("nan"))),
    *({"rope.scale_linear": factor} for factor in (0.0, 1.0, 8.0, 0.5, -2.0)),
    *({"rope.freq_base": base} for base in (None, 500_000.0, 0.0)),
    *({"rope.dimension_count": count} for count in (None, ENTRIES // 2, 0)),
    *({"rope.scaling.attn_factor": factor} for factor in (1.0, 1.19, 0.0)),
    *({"rope.scaling.original_context_length": length} for length in (8, 0)),
    *({"rope.scaling.finetuned": tuned} for tuned in (True, False)),
    {"rope.scaling.yarn_ext_factor": 1.0},
    {"rope.scaling.yarn_attn_factor": 1.0},
    {"rope.scaling.yarn_beta_fast": 32.0},
    {"rope.scaling.yarn_beta_slow": 1.0},
    {"rope.scaling.yarn_log_multiplier": 0.1},
    {"rope.scaling.alpha": 1000.0},
    {"rope.dimension_sections": [2, 2, 2, 2]},
    {"rope.freq_base_swa": 500.0},
    {"table": TABLE},
]


def llama_cpp(fields, table):
    """Angles [positions, pairs] by llama.cpp's rules; None: it or we refuse the file.

    Types other than none and linear, factors below 0, and fields of other networks are refused.
    """
    kind = fields.get("rope.scaling.type", "linear")
    factor = fields.get("rope.scaling.factor", fields.get("rope.scale_linear", 0.0))  # the older name only without the newer
    base, scale = fields.get("rope.freq_base", 10_000.0), 1.0 if factor == 0 or kind == "none" else 1 / factor
    known = {"rope.scaling.type", "rope.scaling.factor", "rope.scale_linear", "rope.freq_base", "rope.dimension_count"}
    known |= {"rope.scaling.attn_factor", "rope.scaling.original_context_length", "rope.scaling.finetuned"}
    odd = [factor < 0 or factor != factor, base <= 0, fields.get("rope.dimension_count", ENTRIES) != ENTRIES]
    if any(odd) or kind not in ("none", "linear") or set(fields) - known or fields.get("rope.scaling.attn_factor", 1) != 1:
        return None
    out = []
    for position in POSITIONS:
        theta, row = float(position), []
        for pair in range(ENTRIES // 2):
            row.append(scale * (theta / (1 if table is None else float(table[pair]))))
            theta *= base ** (-2 / ENTRIES)
        out.append(row)
    return np.array(out)


ALONE = [(each,) for each in ({}, *ROPE)]
PAIRS = [pair for pair in itertools.combinations(ROPE, 2) if not set(pair[0]) & set(pair[1])]


def opened(file, architecture, group):
    """The decoder of a file with these fields, or None if it is refused; and what the rules say."""
    fields = {"rope.freq_base": 100.0, "rope.dimension_count": ENTRIES} | {k: v for each in group for k, v in each.items()}
    table = fields.pop("table", None)
    rules = llama_cpp({name: value for name, value in fields.items() if value is not None}, table)
    try:
        gguf = ggufs.open_gguf(write(file, architecture, "F32", fields=fields, table=table, **SMALL))
        shape = gguf.family.shape(gguf.config, "float64")
    except UsageError as error:
        assert str(error).startswith(f"{file}: ") and " not allowed: " in str(error)
        return None, rules
    return shape, rules


@pytest.mark.parametrize("groups", [ALONE, pytest.param(PAIRS, marks=pytest.mark.slow)], ids=["alone", "pairs"])
def test_rotary_angles_are_those_of_llama_cpp_or_the_file_is_refused(groups, tmp_path, x64):
    refused, table = 0, {}
    for group in groups:
        shape, rules = opened(tmp_path / "model.gguf", "llama", group)
        assert (shape is None) == (rules is None), group
        if shape is None:
            refused += 1
            continue
        if shape not in table:
            table[shape] = angles(shape, POSITIONS, np.float64)
        for mine, theirs in zip(table[shape], (np.cos(rules), np.sin(rules)), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-6, err_msg=str(group))  # factors of the file are float32
    assert refused >= 20 and len(table) >= 7


FACTOR, OLD = "rope.scaling.factor", "rope.scale_linear"


@pytest.mark.parametrize(
    ("group", "divisors"),
    [
        ([{OLD: 4.0}], 4.0),
        ([{FACTOR: 4.0}], 4.0),
        ([{FACTOR: 0.0}, {OLD: 4.0}], 1.0),
        ([{FACTOR: 2.0}, {OLD: 4.0}], 2.0),
        ([{FACTOR: 2.0}, {"rope.scaling.type": "none"}], 1.0),
        ([{"table": TABLE}], TABLE),
        ([{OLD: 4.0}, {"table": TABLE}], 4 * TABLE),
        ([{FACTOR: 4.0}, {"table": TABLE}, {"rope.scaling.type": "none"}], TABLE),
    ],
    ids=["old name", "new name", "0 means 1", "the new name wins", "none", "a table", "a factor and a table", "none and a table"],
)
def test_factors_and_a_table_divide_the_rates(group, divisors, tmp_path):
    fields = {key: value for each in group for key, value in each.items()}
    table = fields.pop("table", None)
    gguf = ggufs.open_gguf(write(tmp_path / "model.gguf", "llama", "F32", fields=fields, table=table))
    s = gguf.family.shape(gguf.config, "float32").scaling
    own = np.ones(8) if s is None else np.full(8, s.factor) if s.kind == "linear" else np.array(s.table)
    np.testing.assert_allclose(own, np.broadcast_to(divisors, 8))


def test_a_factor_and_a_table_reach_the_logits(tmp_path):
    plain = ours(write(tmp_path / "plain.gguf", "llama", "F32"))[1]
    factor = ours(write(tmp_path / "factor.gguf", "llama", "F32", fields={OLD: 4.0}))[1]
    model, table = ours(write(tmp_path / "table.gguf", "llama", "F32", table=TABLE))
    assert model.shape.scaling.kind == "table" and model.shape.scaling.table[-1] == 8
    assert min(np.max(np.abs(a - b)) for a, b in itertools.combinations((plain, factor, table), 2)) > 0.01


def test_a_table_in_another_architecture_is_refused(tmp_path):
    """Llama.cpp has no place for it there."""
    with pytest.raises(UsageError, match="no place for the tensor rope_freqs.weight"):
        models.load(write(tmp_path / "model.gguf", "qwen2", "F32", table=TABLE))


COUNTS = {"feed_forward_length": 64, "attention.head_count": 4, "attention.head_count_kv": 2}


@pytest.mark.parametrize("name", COUNTS)
def test_a_number_for_each_layer_is_read_if_all_are_equal(name, tmp_path):
    count = COUNTS[name]
    plain = ours(write(tmp_path / "plain.gguf", "llama", "F32"))[1]
    model, mine = ours(write(tmp_path / "model.gguf", "llama", "F32", fields={name: [count, count]}))
    np.testing.assert_array_equal(mine, plain)
    for other in ([count, 2 * count], [count], [count] * 3):
        file = write(tmp_path / "model.gguf", "llama", "F32", fields={name: other})
        with pytest.raises(UsageError) as caught:
            models.load(file)
        assert str(caught.value) == f"{file}: llama.{name}={other} is not allowed: all layers have the same"


def fields_of_the_format():
    """Names of all fields of an architecture that the library knows."""
    import gguf

    texts = [value for each in vars(gguf.Keys).values() for value in getattr(each, "__dict__", {}).values()]
    return sorted(
        {t.removeprefix("{arch}.") for t in texts if isinstance(t, str) and t.startswith("{arch}.") and t.count("{") == 1}
    )


@pytest.mark.thinned
@pytest.mark.parametrize("value", [3, 3.5, True, "linear"])
def test_every_field_of_the_format_is_used_or_refused_unless_it_is_of_training_and_texts(value, tmp_path):
    def read(fields):
        gguf = ggufs.open_gguf(write(tmp_path / "model.gguf", "llama", "F32", fields=fields, **SMALL))
        return gguf.family.shape(gguf.config, "float32")

    plain, ignored = read({}), set()
    for name in [*fields_of_the_format(), "a_field_of_tomorrow"]:
        try:
            if read({name: value}) == plain:
                ignored.add(name)
        except UsageError as error:
            assert " not allowed: " in str(error)
    usual = {"rope.scaling.type": "linear", "rope.scaling.attn_factor": True, "attention.causal": True}
    assert len(fields_of_the_format()) > 90
    assert ignored <= {*ggufs.UNREAD, "context_length", *(name for name, each in usual.items() if each == value)}


@pytest.mark.parametrize(
    ("architecture", "name", "value", "words"),
    [
        ("llama", "attention.scale", 0.5, "llama.attention.scale=0.5 is not allowed: this field is not supported"),
        ("qwen2", "logit_scale", 2.0, "qwen2.logit_scale=2.0 is not allowed: this field is not supported"),
        ("llama", "expert_count", 8, "llama.expert_count=8 is not allowed: only llama.expert_count=0 is supported"),
        ("llama", "attention.causal", False, "only llama.attention.causal=True is supported"),
        ("llama", "attention.value_length", 8, "llama.attention.value_length=8 is not allowed: a head has 16 entries"),
        ("llama", "attention.layer_norm_rms_epsilon", None, "has no field llama.attention.layer_norm_rms_epsilon"),
        ("llama", "rope.scaling.type", "yarn", "llama.rope.scaling.type=yarn is not allowed: it is one of linear, none"),
        ("llama", "rope.scaling.factor", -1.0, "llama.rope.scaling.factor=-1.0 is not allowed: .* is at least 0"),
        (
            "qwen2",
            "attention.key_length",
            8,
            "qwen2.attention.key_length=8 is not allowed: in this architecture a head has 16 entr",
        ),
        ("llama", "attention.key_length", 8, "=8 is not allowed: without llama.attention.value_length a head has 16 entries"),
    ],
)
def test_fields_of_other_networks_are_refused(architecture, name, value, words, tmp_path):
    with pytest.raises(UsageError, match=words):
        ggufs.open_gguf(write(tmp_path / "model.gguf", architecture, "F32", fields={name: value}))


@pytest.mark.parametrize("architecture", ggufs.ARCHITECTURES)
def test_no_layer_has_a_window(architecture, tmp_path):
    """Whatever the file says: llama.cpp reads none in these architectures (its logits are those of the reference)."""
    for size in (0, 8, 4096):
        gguf = ggufs.open_gguf(write(tmp_path / "model.gguf", architecture, "F32", fields={"attention.sliding_window": size}))
        assert gguf.family.shape(gguf.config, "float32").window is None and gguf.family.name == architecture


@pytest.mark.parametrize("count", [30, VOCABULARY + 9])
def test_a_file_without_a_vocabulary_has_as_many_tokens_as_its_embedding(count, tmp_path):
    """The tokenizer may have spare tokens, or too few."""
    tokens = [f"w{i}" for i in range(count)]
    gguf = ggufs.open_gguf(write(tmp_path / "model.gguf", "llama", "F32", fields={"vocab_size": None}, tokens=tokens))
    assert gguf.family.shape(gguf.config, "float32").vocabulary == VOCABULARY


def test_bfloat16_and_float64(tmp_path, x64):
    file = write(tmp_path / "model.gguf", "llama", "Q8_0")
    low, high = ours(file, dtype="bfloat16"), ours(file, dtype="float64")
    assert low[1].dtype.name == "bfloat16" and high[1].dtype == np.float64
    assert np.sqrt(np.mean((low[1].astype(float) - high[1]) ** 2)) < 0.05 * np.std(high[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architecture": "mamba"}, "general.architecture=mamba is not allowed: it is one of llama, qwen2"),
        ({"fields": {"rope.dimension_count": 4}}, "rope.dimension_count=4 is not allowed: a head has 16 entries"),
        ({"table": np.ones(3)}, "rope_freqs.weight: scaling=.*its table has 8 divisors"),
        ({"skip": "blk.1.ffn_norm.weight"}, "has no tensor blk.1.ffn_norm.weight"),
        ({"layers": 3}, "has no tensor blk.2"),
        ({"nan": "blk.0.attn_norm.weight"}, "tensor blk.0.attn_norm.weight has numbers that are not finite"),
    ],
)
def test_other_files_are_refused(change, words, tmp_path):
    architecture = change.pop("architecture", "llama")
    file = write(tmp_path / "model.gguf", architecture, "F32", **change)
    with pytest.raises(UsageError, match=words) as caught:
        models.load(file)
    assert str(file) in str(caught.value)


def test_damaged_files_are_refused(tmp_path):
    whole = write(tmp_path / "model.gguf", "llama", "F32").read_bytes()
    for number, damaged in enumerate((whole[: len(whole) // 2], whole[:3], b"", b"PK" + whole[2:], whole[:60])):
        file = tmp_path / f"{number}.gguf"
        file.write_bytes(damaged)
        with pytest.raises(UsageError, match=f"{number}.gguf is not a whole GGUF file"):
            ggufs.open_gguf(file)


@pytest.mark.parametrize("shift", [-32, 32, 4, 2**64 - 32])
def test_tensors_that_do_not_lie_one_after_another_are_refused(shift, tmp_path):
    import gguf

    file = write(tmp_path / "model.gguf", "llama", "F32")
    reader = gguf.GGUFReader(file)
    tensor = reader.tensors[2]
    place = tensor.field.offset + sum(part.nbytes for part in tensor.field.parts[:-1])
    moved = (int(tensor.field.parts[-1][0]) + shift) % 2**64
    content = bytearray(file.read_bytes())
    content[place : place + 8] = moved.to_bytes(8, "little")
    file.write_bytes(content)
    with pytest.raises(UsageError, match=f"tensor {tensor.name} is said to begin at byte {moved} of the data|is not a whole GGUF"):
        ggufs.open_gguf(file)


@pytest.mark.parametrize("alignment", [48, 0])
def test_an_alignment_that_is_no_power_of_two_is_refused(alignment, tmp_path):
    file = write(tmp_path / "model.gguf", "llama", "F32", general={"general.alignment": alignment})
    with pytest.raises(UsageError, match=f"general.alignment is {alignment}; a power of two|is not a whole GGUF file"):
        ggufs.open_gguf(file)


def test_an_unknown_quantisation_is_refused(tmp_path):
    file = write(tmp_path / "model.gguf", "llama", "F32", integers="blk.0.attn_norm.weight")
    with pytest.raises(UsageError, match="tensor blk.0.attn_norm.weight is quantised as I32; supported are F32, F16, .*Q4_K"):
        models.load(file)


@pytest.mark.parametrize("kind", ["F32", "F16"])
def test_bytes_in_the_order_of_another_machine(kind, tmp_path):
    """The same numbers, in weights and in the table of divisors."""
    files = [write(tmp_path / f"{big}.gguf", "llama", kind, table=TABLE, big=big, **SMALL) for big in (False, True)]
    (one, mine), (other, again) = map(ours, files)
    assert files[0].read_bytes() != files[1].read_bytes()
    jax.tree.map(np.testing.assert_array_equal, other.params, one.params)
    assert one.shape == other.shape and one.shape.scaling.table == tuple(TABLE.tolist())
    np.testing.assert_array_equal(mine, again)


@pytest.mark.parametrize("kind", ["BF16", "Q8_0", "Q4_0"])
def test_quantised_bytes_in_the_order_of_another_machine_are_refused(kind, tmp_path):
    file = write(tmp_path / "model.gguf", "llama", kind, big=True)
    with pytest.raises(UsageError, match=rf"^{file}: its bytes are in the order of another machine, .*tensor token_embd.*{kind}$"):
        models.load(file)


def test_a_part_of_a_model_is_refused(tmp_path):
    whole = write(tmp_path / "whole.gguf", "llama", "F32", general={"split.count": 1, "split.no": 0, "general.type": "model"})
    assert ours(whole)[0].shape.layers == 2
    for fields, words in (
        ({"split.count": 2, "split.no": 0}, "split.count=2 is not allowed: it is one part of a model; merge the parts"),
        ({"general.type": "adapter"}, "general.type=adapter is not allowed"),
    ):
        part = write(tmp_path / "part.gguf", "llama", "F32", skip="output.weight", general=fields)
        with pytest.raises(UsageError, match=words):
            models.load(part)
