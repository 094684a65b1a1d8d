"""``jaxdyn memory`` as a user types it."""

import json

import pytest


def test_the_table_has_all_methods(jaxdyn):
    code, out, err = jaxdyn("memory", "llama-9M", "--rank", "16", "--length", "64")
    lines = out.splitlines()
    assert (code, err) == (0, "") and lines[0] == "GB for llama-9M in bfloat16, rank 16:"
    rows = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in lines[2:20]}
    assert (
        len(rows) == 18 and rows["adam"][1] == rows["adam"][0] and rows["adam"][2] == pytest.approx(2 * rows["adam"][0], abs=1e-3)
    )
    assert rows["galore"][2] < rows["adam"][2] and "work space is not counted" in lines[-1]


def test_a_config_and_a_figure(jaxdyn, tmp_path):
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 50}
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "llama", "rms_norm_eps": 1e-6, "hidden_act": "silu"} | sizes), encoding="utf-8"
    )
    command = ("memory", str(tmp_path), "--method", "galore", "--rank", "4", "--dtype", "f32", "--length", "8", "--json")
    code, out, _ = jaxdyn(*command, "--out", str(tmp_path / "new" / "bytes.svg"))
    facts = json.loads(out)
    assert code == 0 and facts["dtype"] == "float32" and set(facts["bytes"]) == {"adam", "galore"}
    assert facts["bytes"]["adam"]["weights"] == 4 * (2 * 50 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 96 + 2 * 64))
    assert (tmp_path / "new" / "bytes.svg").read_text(encoding="utf-8").count("<svg") == 1 and not (
        tmp_path / "new" / "bytes.png"
    ).exists()


def test_float64_has_eight_bytes(jaxdyn):
    """Also where JAX counts in float32 by default."""
    weights = {}
    for dtype in ("f32", "float64"):
        code, out, err = jaxdyn("memory", "llama-9M", "--method", "adam", "--dtype", dtype, "--length", "8", "--json")
        assert (code, err) == (0, "")
        weights[dtype] = json.loads(out)["bytes"]["adam"]
    assert all(weights["float64"][name] == 2 * size for name, size in weights["f32"].items() if name in ("weights", "gradients"))


def test_sizes_that_jax_cannot_count(jaxdyn, tmp_path):
    sizes = {"hidden_size": 10**12, "intermediate_size": 96, "num_attention_heads": 1, "num_hidden_layers": 2, "vocab_size": 50}
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "llama", "rms_norm_eps": 1e-6, "hidden_act": "silu"} | sizes), encoding="utf-8"
    )
    code, out, err = jaxdyn("memory", str(tmp_path))
    assert (code, out) == (2, "") and "hidden_size=1000000000000 is not allowed" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["llama-8B"], "model llama-8B is not allowed: it is one of llama-9M"),
        (["llama-9M", "--method", "full"], "--method full is not allowed: it is one of sgd, momentum"),
        (["llama-9M", "--out", "bytes.pdf"], "the figure's name ends in .png or .svg"),
        (["llama-9M", "--rank", "0"], "--rank 0 is not allowed"),
        (
            ["llama-9M", "--length", "9999999999"],
            "it is a whole number of at least 2 and at most 2147483647",
        ),
        (["llama-9M", "--stored", "4bit"], "stored='4bit' is not allowed: stored is one of parameter, float32, 8bit"),
        (["llama-9M", "--dtype", "int4"], "dtype='int4' is not allowed"),
        (["llama-9M", "--side", "up"], "side is one of"),
    ],
)
def test_what_is_not_allowed(jaxdyn, words, sentence):
    code, out, err = jaxdyn("memory", *words)
    assert (code, out) == (2, "") and sentence in err and len(err.splitlines()) == 1
