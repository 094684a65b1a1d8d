"""What a platform's compiler is known not to compile is skipped there before it is asked."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.programs import impossible, program, tracing
from jaxdyn.engine.programs.chunk import program_name
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.verification.verify import make_plan


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(impossible, "SHIPPED", tmp_path / "impossible.json")
    impossible.known.cache_clear()
    yield tmp_path / "impossible.json"
    impossible.known.cache_clear()


def test_a_claim_is_skipped_where_its_program_does_not_compile(toys, file, monkeypatch):
    (job,) = make_plan([toys.CLAIMS[0]]).jobs
    impossible.write("tpu", {program_name(job.program): "INVALID_ARGUMENT: Unexpected operand type for FFT: c128[16]{0}"})
    assert jd.verify(toys.CLAIMS[0]).verdict == "upheld", "it does compile for a CPU"
    monkeypatch.setattr(program.jax, "default_backend", lambda: "tpu")
    monkeypatch.setattr(program, "compile_block", None)
    verified = jd.verify(toys.CLAIMS[0])
    assert verified.verdict == "skipped"
    assert verified.message.endswith(
        "toys:decay needs complex128, which this platform lacks: a CPU or another accelerator is needed, or --set dtype=float32 "
        "where the claim's bounds allow it"
    )
    (job,) = make_plan([toys.CLAIMS[0]], overrides={"dtype": "float32"}).jobs
    impossible.write("tpu", {program_name(job.program): "Unexpected operand type for FFT: c128[16]{0}"})
    narrow = jd.verify(toys.CLAIMS[0], dtype="float32").message
    assert narrow.endswith("which this platform lacks: a CPU or another accelerator is needed"), "it is in float32 already"


def test_each_platform_is_written_on_its_own(file):
    impossible.write("gpu", {"b": "a bug", "a": "the compiler ended its process (-6)"})
    impossible.write("tpu", {})
    impossible.write("gpu", {"a": "the compiler ended its process (-6)"})
    assert impossible.known() == {"gpu": {"a": "makes the compiler crash"}, "tpu": {}}


@pytest.mark.parametrize(
    ("operation", "dtype", "words"),
    [
        (
            lambda x: jnp.linalg.solve(jnp.outer(x, x), x),
            "float64",
            "needs LU factorisations in float64, which this platform lacks",
        ),
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.nextafter(y, 9.0), x), "float64", "neighbours of float64"),
        (lambda x: jax.lax.reduce_precision(x, 8, 7), "float64", "rounding of float64"),
        (lambda x: jnp.fft.rfft(x).real, "float64", "needs complex128, which"),
        (lambda x: jnp.linalg.svd(jnp.outer(x, x))[1], "float32", "singular values in float32"),
        (lambda x: jnp.linalg.solve(jnp.outer(x, x), x), "float32", None),
        (lambda x: jnp.linalg.eigh(jnp.outer(x, x))[0], "float64", None),
        (lambda x: jax.random.normal(jax.random.key(0), x.shape) + jnp.fft.rfft(x).real.sum(), "float32", None),
    ],
)
def test_what_a_platform_has_not_is_told_by_the_operations(operation, dtype, words):
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(operation)(jnp.arange(4, dtype=dtype)).jaxpr
    found = impossible.lacking(tracing.subjaxprs(jaxpr), "tpu")
    assert found is None if words is None else words in found
    assert impossible.lacking(tracing.subjaxprs(jaxpr), "gpu") is None


def test_a_newer_compiler_has_more(monkeypatch):
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(lambda x: jnp.linalg.solve(jnp.outer(x, x), jnp.nextafter(x, 9.0)))(jnp.ones(4, "float64")).jaxpr
    for there, words in (((0, 0, 42, 1), "LU"), ((0, 0, 50, 1), "needs neighbours of float64 numbers, which"), ((0, 0, 52), None)):
        monkeypatch.setattr(impossible, "compiler_version", lambda there=there: there)
        found = impossible.lacking(tracing.subjaxprs(jaxpr), "tpu")
        assert found is None if words is None else words in found


def test_a_claim_is_skipped_whose_operations_a_platform_has_not(toys, file, monkeypatch):
    monkeypatch.setitem(impossible.LACKS, "tpu", {("mul", "float64"): ("products", (1,))})
    program.compiled_list.cache_clear()
    with elsewhere(Devices("gpu")):
        monkeypatch.setattr(program.jax, "default_backend", lambda: "tpu")
        verified = jd.verify(toys.CLAIMS[0])
    assert verified.verdict == "skipped" and "toys:decay needs products, which this" in verified.message


@pytest.mark.parametrize("content", ["", "[]", '{"tpu": 3}', "null"])
def test_a_file_that_is_not_ours_stops_nothing(toys, file, content):
    file.write_text(content, encoding="utf-8")
    (job,) = make_plan([toys.CLAIMS[0]]).jobs
    assert impossible.why_impossible(job.program, "tpu") is None


def test_other_messages_are_quoted():
    assert impossible.in_words("INTERNAL: a bug") == "does not compile there (INTERNAL: a bug)"


def test_it_is_not_compiled_ahead_either(toys, file, monkeypatch):
    """In the thread, where a compiler that ends the process would end it as well."""
    grid, compiled, built = jd.grid(toys.Toy, size=[3, 5, 7]), [], program.compile_block
    hardly = [program_name(one) for one, _ in Request(toys.decay, grid, (0,)).cells][1]
    impossible.write("cpu", {hardly: "the compiler ended its process (-6)"})
    monkeypatch.setattr(program, "compile_block", lambda one, *args: (compiled.append(one), built(one, *args))[1])
    program.compiled_list.cache_clear()
    with elsewhere(Devices("gpu")), pytest.raises(jd.UsageError, match="toys:decay makes the compiler crash"):
        jd.sweep(toys.decay, grid)
    assert len(compiled) == 2 and hardly not in map(program_name, compiled)
