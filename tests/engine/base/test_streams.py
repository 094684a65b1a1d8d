"""The command line where its streams are closed, full or without letters, and where a program does not end."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from jaxdyn.cli.main import main

CLAIM = """
import sys
import jax
import jax.numpy as jnp
import jaxdyn as jd

@jd.setting
class Toy:
    lr: jd.Swept = 0.5
    part: int = 0  # a program of its own for each value

def trial(s, key):
    jax.debug.callback(lambda: print("running", file=sys.stderr, flush=True))
    x = jax.lax.while_loop(lambda c: c[0] < 1.0, lambda c: (c[0] + s.lr, c[1] / 2), (jnp.float64(0), jnp.float64(1)))
    return jd.observables(predicted={"x": x[1]}, measured={"x": x[1]})

def judge(ds):
    return [jd.at_most("error", abs(ds.measured_x - ds.predicted_x), 1e-9)]

CLAIMS = [jd.Claim(
    id="mine.halved", title="Halved λ times", statement="Halved λ times.",
    source="nobody's", evidence="algebra", trial=trial, bounds="derived",
    quick=jd.grid(Toy, lr=[0.25, 0.5]), seeds=2, judge=judge, controls={"off": lambda ds: ds.assign(measured_x=2 * ds.measured_x)},
)]
"""
VERIFY = [sys.executable, "-m", "jaxdyn", "verify", "--load", "claims.py", "mine"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "claims.py").write_text(CLAIM, encoding="utf-8")
    return tmp_path


def shell(folder, command, **variables):
    env = {**os.environ, **variables}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, encoding="utf-8", errors="replace", timeout=120
    )


def ended(group):
    """Whether no process of a group is left within ten seconds; what nobody has waited for is over."""
    for _ in range(100):
        lines = subprocess.run(["ps", "-eo", "pgid,stat"], capture_output=True, encoding="utf-8", check=True).stdout.split("\n")
        if not [line for line in lines if line.split()[:1] == [str(group)] and "Z" not in line]:
            return True
        time.sleep(0.1)
    return False


def without_progress(said):
    """The words of a command, without the lines that end in an ellipsis, which a slow machine adds after two seconds."""
    return "\n".join(line for line in said.splitlines() if not line.endswith("…"))


SHOW = f"{sys.executable} -m jaxdyn show --load claims.py mine.halved"


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("cp1252", marks=pytest.mark.slow)])
def test_letters_that_an_encoding_lacks_are_shown_as_their_codes(folder, encoding):
    done = shell(folder, SHOW, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert r"Halved \u03bb times." in done.stdout


@pytest.mark.thinned
@pytest.mark.parametrize(
    ("redirection", "words"),
    [
        (">&-", "jaxdyn: cannot write to standard output: it is closed"),
        ("> /dev/full", "jaxdyn: cannot write to standard output: No space left on device"),
    ],
)
def test_output_that_cannot_be_written_is_one_sentence(folder, redirection, words):
    done = shell(folder, f"{SHOW} {redirection}")
    assert (done.returncode, without_progress(done.stderr)) == (2, words)


@pytest.mark.slow
def test_a_closed_standard_error_does_not_land_in_the_output(folder):
    done = shell(folder, f"{SHOW} --json 2>&-")
    assert done.returncode == 0 and done.stdout.startswith("{")


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(folder):
    done = shell(folder, f"{sys.executable} -m jaxdyn list | head -1")
    assert not without_progress(done.stderr)


def begun(process, words):
    """Read what a process says until the words come."""
    for line in process.stderr:
        if line.startswith(words):
            return
    pytest.fail("it ended before")


ENDLESS = [*VERIFY, "--set", "lr=0,0.5", "--set", "part=0,1", "--workers"]
INTERRUPTED = "jaxdyn: interrupted; run the same command to resume"


def without_running(said):
    """The words of the command, without those of the run and about it: print writes the end of its line by itself, or no more."""
    lines = said.replace("running", "").strip("\n").split("\n")
    return "\n".join(line for line in lines if "calls back into Python" not in line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "moment"),
    [
        pytest.param(1, "running", marks=pytest.mark.slow),
        (2, "running"),
        pytest.param(2, "1 claim: 2 programs", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_ends_a_program_without_an_end_within_seconds(folder, workers, moment):
    """One sentence, exit code 130, no process left behind, also while workers import; and the folder is free again."""
    unknown = os.environ | {"JAXDYN_CACHE": str(folder / "cache")}  # what is known to be quick is run before it is announced
    options = {"stderr": subprocess.PIPE, "encoding": "utf-8", "start_new_session": True}
    process = subprocess.Popen([*ENDLESS, str(workers)], cwd=folder, env=unknown, **options)
    begun(process, moment)
    time.sleep(0.3)
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    said = process.communicate(timeout=20)[1]
    assert time.monotonic() - start < 5, "a second, and time for a system that does other work"
    assert process.returncode == 130 and without_running(said) == INTERRUPTED, said
    assert ended(process.pid)
    again = subprocess.run([*VERIFY, "--workers", "1"], cwd=folder, capture_output=True, encoding="utf-8", timeout=120)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("pause", [0.0, pytest.param(0.1, marks=pytest.mark.slow)])
def test_ctrl_c_again_changes_nothing(folder, pause):
    process = subprocess.Popen([*ENDLESS, "2"], cwd=folder, stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True)
    begun(process, "running")
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(pause)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    assert process.returncode == 130 and without_running(said) == INTERRUPTED, said


def test_a_request_to_end_is_obeyed_like_ctrl_c(folder):
    process = subprocess.Popen([*ENDLESS, "1"], cwd=folder, stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True)
    begun(process, "running")
    process.terminate()
    said = process.communicate(timeout=20)[1]
    assert process.returncode == 143 and without_running(said) == INTERRUPTED, said


@pytest.mark.slow
def test_an_interruption_shows_the_cursor_again(folder):
    """In a terminal the progress bar hides it."""
    parent, child = pty.openpty()
    process = subprocess.Popen([*ENDLESS, "1"], cwd=folder, stderr=child, start_new_session=True)
    os.close(child)
    said = b""
    while b"running" not in said:
        said += os.read(parent, 1000)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=20) == 130
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(parent, 1000):
            said += more
    os.close(parent)
    assert b"\x1b[?25l" in said and said.rindex(b"\x1b[?25h") > said.rindex(b"\x1b[?25l")


@pytest.mark.parametrize(
    "way", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=["killed", "terminated"]
)
def test_no_worker_outlives_the_command(folder, way):
    """Killed alone, by number: it can stop nobody."""
    process = subprocess.Popen([*ENDLESS, "2"], cwd=folder, stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True)
    begun(process, "running")
    process.send_signal(way)
    process.communicate(timeout=20)  # ends when no process holds the pipe any more
    assert ended(process.pid)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        pytest.param(
            {"JAX_PLATFORMS": "cuda"},
            "jaxdyn: JAX_PLATFORMS=cuda is not allowed: JAX finds no such device",
            marks=pytest.mark.slow,
        ),
        ({"JAX_PLATFORMS": "abacus"}, "jaxdyn: JAX_PLATFORMS=abacus is not allowed: JAX finds no such device"),
    ],
)
@pytest.mark.parametrize(
    "command", [VERIFY, [*VERIFY[:3], "map", "mine.halved", "--load", "claims.py", "--over", "lr=0:1"]], ids=["verify", "map"]
)
def test_a_device_that_is_not_there_is_one_sentence(folder, variables, words, command):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **variables}, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 2 and done.stderr.strip().startswith(words) and done.stderr.count("\n") == 1, done.stderr


LOUD = """
import os, subprocess, sys

def loud(ds):
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"])
    print("printed")
    print("printed past the stand-in", file=sys.__stdout__)
    return judge(ds)

CLAIMS = [jd.Claim(id="mine.loud", title="Loud", statement="Loud.", source="nobody's", evidence="algebra", trial=trial, judge=loud,
    bounds="derived", quick=jd.grid(Toy), seeds=1, controls={"off": lambda ds: ds.assign(measured_x=2 * ds.measured_x)})]
os.write(1, b"written at import\\n")
"""


@pytest.mark.slow
def test_json_stands_alone_whatever_a_judge_writes_to_standard_output(folder):
    (folder / "claims.py").write_text(CLAIM.replace("    jax.debug.callback", "    #") + LOUD, encoding="utf-8")
    for words in (" ".join(VERIFY), f"{sys.executable} -m jaxdyn show --load claims.py mine.loud"):
        done = shell(folder, f"{words} --json")
        assert "mine.loud" in str(json.loads(done.stdout)) and "written at import" in done.stderr
    said = shell(folder, f"{' '.join(VERIFY)} --out again --json").stderr
    assert all(word in said for word in ("written\n", "echoed", "printed\n", "printed past"))
    assert shell(folder, f"{' '.join(VERIFY)} --json >&-").returncode == 2, "a closed stream is still told"


@pytest.mark.parametrize("seeds", [f"--seeds {10**20}", f"--seeds 0:{10**20}", f"--fresh {10**20}"])
def test_seeds_beyond_all_numbers_are_one_sentence(folder, seeds, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main([*VERIFY[3:], *seeds.split()]) == 2
    said = capsys.readouterr().err
    assert "is not allowed" in said and said.count("\n") == 1, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("MPLBACKEND", "nonsense", "matplotlib cannot be imported (Key backend: 'nonsense'"),
        ("JAX_TRANSFER_GUARD", "nonsense", "jax cannot be imported (Invalid value"),
        ("JAX_DISABLE_JIT", "maybe", "jax cannot be imported (invalid truth value 'maybe'"),
        ("JAX_DISABLE_JIT", "1", "trials are compiled"),
        ("JAX_TRANSFER_GUARD", "disallow", "settings go to the device, and results come back"),
    ],
)
def test_a_variable_that_stands_in_the_way_is_named(folder, variable, value, words):
    done = shell(folder, " ".join(VERIFY), **{variable: value})
    shown = "True" if (variable, value) == ("JAX_DISABLE_JIT", "1") else value
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"jaxdyn: {variable}={shown} is not allowed: {words}")
    assert "Traceback" not in done.stderr
