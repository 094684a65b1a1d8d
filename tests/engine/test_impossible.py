"""What a platform's compiler is known not to compile is skipped there before it is asked."""

import pytest

import jaxdyn as jd
from jaxdyn.engine import impossible, program
from jaxdyn.engine.devices import Devices, elsewhere
from jaxdyn.engine.runs import Request
from jaxdyn.engine.timings import program_name
from jaxdyn.engine.verify import make_plan


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
    assert verified.conclusion.decision.message.endswith(
        "toys:decay needs complex128, which this platform has not: a CPU or another accelerator is needed"
    )


def test_each_platform_is_written_on_its_own(file):
    impossible.write("gpu", {"b": "a bug", "a": "the compiler ended its process (-6)"})
    impossible.write("tpu", {})
    impossible.write("gpu", {"a": "the compiler ended its process (-6)"})
    assert impossible.known() == {"gpu": {"a": "ends the compiler itself"}, "tpu": {}}


@pytest.mark.parametrize("content", ["", "[]", '{"tpu": 3}', "null"])
def test_a_file_that_is_not_ours_stops_nothing(toys, file, content):
    file.write_text(content)
    (job,) = make_plan([toys.CLAIMS[0]]).jobs
    assert impossible.obstacle(job.program, "tpu") is None


def test_other_messages_are_quoted():
    assert impossible.in_words("INTERNAL: a bug") == "does not compile there (INTERNAL: a bug)"


def test_it_is_not_compiled_ahead_either(toys, file, monkeypatch):
    """In the thread, where a compiler that ends the process would end it as well."""
    grid, compiled, built = jd.grid(toys.Toy, size=[3, 5, 7]), [], program.compile_block
    hardly = [program_name(one) for one, _ in Request(toys.decay, grid, (0,)).cells][1]
    impossible.write("cpu", {hardly: "the compiler ended its process (-6)"})
    monkeypatch.setattr(program, "compile_block", lambda one, *args: (compiled.append(one), built(one, *args))[1])
    program.compiled_list.cache_clear()
    with elsewhere(Devices("gpu")), pytest.raises(jd.UsageError, match="toys:decay ends the compiler itself"):
        jd.sweep(toys.decay, grid)
    assert len(compiled) == 2 and hardly not in map(program_name, compiled)
