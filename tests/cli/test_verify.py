"""The command in processes of its own: workers, interrupts, death."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn import theories
from jaxdyn.cli import verify
from jaxdyn.cli.main import main as cli
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.judging.decision import Terms
from jaxdyn.engine.runs import costs
from jaxdyn.report.results import read_results

from ..engine.conftest import TOYS

ONLY = "import sys, jaxdyn.theories\njaxdyn.theories.__path__ = []\nfrom jaxdyn.cli.main import run\nrun()\n"
CLAIMS = {"toy.decay", "solver.decay"}
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}


@pytest.fixture(autouse=True)
def away_from_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def toys_with(old, new):
    """A file of the toys with one line changed."""
    text = TOYS.read_text(encoding="utf-8")
    assert old in text
    Path("mine.py").write_text(text.replace(old, new), encoding="utf-8")
    return "mine.py"


@pytest.mark.slow
def test_two_workers():
    """As typed in a shell, with all theories there are; a talkative file of the user's whose trial raises reaches the workers.

    JAX's tracer errors do not travel between processes; their text does, and the other claims go on.
    """
    load = toys_with("    TRACES.append(s)\n", "    TRACES.append(s)\n    print('hello')\n    if s.rate > 0:\n        pass\n")
    Path(load).write_text("print('hello')\n" + Path(load).read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "jaxdyn", "verify", "toy.decay", "solver.decay", "--load", load]
    done = subprocess.run([*command, "--workers", "2", "--json"], **PIPES, timeout=300)
    assert done.returncode == 2, done.stderr
    assert done.stdout.count("\n") == 1, "one JSON object, nothing else"
    claims = {c["id"]: c for c in json.loads(done.stdout)["claims"]}
    assert {name: c["verdict"] for name, c in claims.items()} == {"toy.decay": "error", "solver.decay": "upheld"}
    assert claims["toy.decay"]["error"]["type"] == "TracerBoolConversionError"
    place = claims["toy.decay"]["error"]["place"]
    assert place.startswith("mine.py:") and place.endswith(" in decay")
    assert claims["toy.decay"]["message"] in done.stderr and "memory" not in done.stderr


DAWDLE = """
import time

def dawdling(chunk):
    result = run_chunk(chunk)
    print("chunk", file=sys.stderr, flush=True)
    time.sleep(60)
    return result

from jaxdyn.engine.runs import sweep
run_chunk, sweep.run_chunk = sweep.run_chunk, dawdling
"""


@pytest.mark.slow
def test_interrupted_and_resumed(monkeypatch, capsys):
    """Ctrl-C after the first of two chunks: exit 130, one sentence; the same command goes on with the second."""
    code = ONLY.replace("from jaxdyn.cli.main", DAWDLE + "from jaxdyn.cli.main")
    words = ["verify", "toy.decay", "solver.decay", "--load", str(TOYS), "--workers", "1", "--json"]
    with subprocess.Popen([sys.executable, "-c", code, *words], **PIPES) as process:
        while process.stderr.readline() not in ("chunk\n", ""):
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == ""
    assert err.strip() == "jaxdyn: interrupted; run the same command to resume"
    assert len(list(Path("report").glob("shards/*/*.nc"))) == 1 and not Path("report/result.json").exists()
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    assert cli(words) == 0
    out, err = capsys.readouterr()
    assert " of them stored" in err and {c["verdict"] for c in json.loads(out)["claims"]} == {"upheld"}
    assert len(list(Path("report").glob("shards/*/*.nc"))) == 2


IN_WORKERS = "    TRACES.append(s)\n    import multiprocessing, os, signal, sys, time\n    if multiprocessing.parent_process():\n"


@pytest.mark.slow
def test_a_worker_that_dies_is_told_in_one_sentence():
    """A trial that kills its worker, as the system does when memory runs out."""
    load = toys_with("    TRACES.append(s)\n", IN_WORKERS + "        os.kill(os.getpid(), signal.SIGKILL)\n")
    words = [sys.executable, "-c", ONLY, "verify", "toy.decay", "solver.decay", "--load", load, "--workers", "2"]
    done = subprocess.run(words, **PIPES, timeout=300)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr
    assert "worker" in done.stderr


@pytest.mark.slow
def test_interrupted_with_workers_nobody_is_left_behind():
    """Ctrl-C reaches the whole group of processes, as in a shell."""
    sleep = "        print('traced', file=sys.stderr, flush=True)\n        time.sleep(60)\n"
    load = toys_with("    TRACES.append(s)\n", IN_WORKERS + sleep)
    words = [sys.executable, "-c", ONLY, "verify", "toy.decay", "solver.decay", "--load", load, "--workers", "2"]
    with subprocess.Popen(words, **PIPES, start_new_session=True) as process:
        while process.stderr.readline() not in ("traced\n", ""):
            pass
        os.killpg(process.pid, signal.SIGINT)
        try:
            out, err = process.communicate(timeout=30)  # ends when no process holds the pipes any more
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130 and "jaxdyn: interrupted" in err and "Traceback" not in err, err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_on_a_dask_cluster(monkeypatch, capsys):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        url = cluster.scheduler_address.replace("tcp://", "dask://")
        code = cli(["verify", "toy.decay", "solver.decay", "--load", str(TOYS), "--cluster", url, "--json"])
        out, err = capsys.readouterr()
        with pytest.raises(ValueError, match="No clients found"):
            distributed.default_client()
    assert code == 0, err
    assert {c["verdict"] for c in json.loads(out)["claims"]} == {"upheld"}


@pytest.mark.slow
def test_an_accelerator_that_is_not_used_is_named_before_anything_runs(monkeypatch, capsys):
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    monkeypatch.setattr(verify, "unused", lambda: "a card is there")
    assert cli(["verify", "toy.decay", "--load", str(TOYS), "--workers", "1"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == "a card is there"


def test_a_closed_pipe_is_no_crash():
    words = [sys.executable, "-c", ONLY, "list", "--load", str(TOYS)]
    with subprocess.Popen(words, **PIPES, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


OWN = """
import asyncio
import threading
import jax.numpy as jnp
import jaxdyn as jd

LOOP = {}
LOOP["itself"] = LOOP

class Mute:
    def __str__(self):
        raise RuntimeError("no words")
    __repr__ = __str__

class Odd(BaseException):
    __str__ = Mute.__str__

@jd.setting
class Toy:
    lr: jd.Swept = 0.5

def trial(s, key):
    return jd.observables(predicted={"x": s.lr}, measured={"x": s.lr})

def judge(ds):
    return [jd.at_most("error", abs(ds.measured_x - ds.predicted_x), 1e-9)]

def bad_trial(s, key):
    exit(0)

def bad_judge(ds):
    RESULT

def off(ds):
    return ds.assign(measured_x=2 * ds.measured_x)

def ends(*args):
    raise SystemExit(0)

def odd(*args):
    raise Odd

def odd_trial(s, key):
    raise Odd

def cancelled(ds):
    raise asyncio.CancelledError

def writes(ds):
    ds["measured_x"] -= 1
    return judge(ds)

COMMON = {"source": "nobody's", "evidence": "algebra", "bounds": "derived", "seeds": 2, "quick": jd.grid(Toy, lr=[0.25, 0.5])}
GOOD = {"title": "Equal", "statement": "Equal.", "trial": trial, "judge": judge, "controls": {"off": off}}
CLAIMS = [jd.Claim(id="mine.good", **GOOD, **COMMON), jd.Claim(id="mine.bad", **{**GOOD, CHANGED}, **COMMON)]
"""
ENDED, ODD = "SystemExit: 0", "Odd: its message cannot be read (RuntimeError)"
WRITTEN = {  # what a user's claim does, or gives -> its verdict, and how its message begins
    "ends in the trial": ('"trial": bad_trial', "", "error", ENDED),
    "ends in the judge": ('"judge": ends', "", "error", ENDED),
    "ends in a control": ('"controls": {"off": ends}', "", "error", ENDED),
    "ends in a rival": ('"rivals": {"ended": ends}', "", "error", ENDED),
    "ends in the figure": ('"plot": ends', "", "upheld", None),
    "raises something odd in the trial": ('"trial": odd_trial', "", "error", ODD),
    "raises something odd in the judge": ('"judge": odd', "", "error", ODD),
    "raises something odd in a control": ('"controls": {"off": odd}', "", "error", ODD),
    "raises something odd in a rival": ('"rivals": {"ended": odd}', "", "error", ODD),
    "raises something odd in the figure": ('"plot": odd', "", "upheld", None),
    "is cancelled": ('"judge": cancelled', "", "error", "CancelledError: no message"),
    "writes into the data": ('"judge": writes', "", "error", "ValueError: output array is read-only"),
    "half a pair of surrogates": ('"statement": chr(0xd800)', "", "upheld", None),
    "an object as a coordinate": ('"judge": bad_judge', 'jd.Check("x", 1.0, (0.0, 0.5), False, {"at": Mute()})', "refuted", None),
    "a lock as a coordinate": (
        '"judge": bad_judge',
        'jd.Check("x", 1.0, (0.0, 0.5), False, {1: threading.Lock()})',
        "refuted",
        None,
    ),
    "a circle as a coordinate": ('"judge": bad_judge', 'jd.Check("x", 1.0, (0.0, 0.5), False, {"at": LOOP})', "refuted", None),
    "a word as a value": (
        '"judge": bad_judge',
        'jd.Check("x", "1.0", (0.0, 2.0), False)',
        "error",
        "UsageError: check 'x': value=1.0 is not",
    ),
    "a number beyond all floats": (
        '"judge": bad_judge',
        'jd.Check("x", 10**400, (0.0, 2.0), True)',
        "error",
        "UsageError: check 'x': value=1",
    ),
    "an array as a value": (
        '"judge": bad_judge',
        'jd.Check("x", ds.measured_x, (0.0, 2.0), False)',
        "error",
        "UsageError: check 'x': value=",
    ),
    "a truth value of an array": (
        '"judge": bad_judge',
        'jd.Check("x", jnp.ones(1), (2.0, 3.0), jnp.zeros(1) > 1)',
        "refuted",
        None,
    ),
    "a verdict in words": (
        '"judge": bad_judge',
        'jd.Check("x", 1.0, (0.0, 0.5), "no")',
        "error",
        "UsageError: check 'x': passed='no'",
    ),
    "a number as a name": ('"judge": bad_judge', "jd.Check(1, 1.0, (0.0, 2.0), False)", "error", "UsageError: a check is called 1"),
    "a bound of one number": (
        '"judge": bad_judge',
        'jd.Check("x", 1.0, 2.0, False)',
        "error",
        "UsageError: check 'x': bound=2.0 is not",
    ),
    "a rival that measures": (
        '"rivals": {"half": lambda ds: off(ds)}',
        "",
        "error",
        "UsageError: rival 'half' returned another measured_x; a rival",
    ),
}


RARE = ("raises something odd in", "a lock", "a circle", "a number beyond", "a number as", "a truth value")  # others are alike


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow if k.startswith(RARE) else ()) for k in WRITTEN])
def test_whatever_a_claim_does_the_others_and_the_page_are_written(jaxdyn, kind):
    changed, result, verdict, words = WRITTEN[kind]
    Path("mine.py").write_text(
        OWN.replace("CHANGED", changed).replace("RESULT", f"return [{result}]" if result else "pass"), encoding="utf-8"
    )
    code, out, err = jaxdyn("verify", "mine", "--load", "mine.py", "--json", "--workers", "1")
    good, bad = json.loads(out)["claims"]
    assert (good["verdict"], bad["verdict"], code) == ("upheld", verdict, {"upheld": 0, "error": 2}.get(verdict, 1))
    assert words is None or bad["message"].startswith(words), bad["message"]
    assert "Traceback" not in err and "mine.bad" in Path("report/index.html").read_text(encoding="utf-8")
    assert jaxdyn("report", "report")[0] == 0


@pytest.mark.slow
def test_minutes_choose_what_fits_and_the_others_are_named(tmp_path, capsys, monkeypatch):
    """Costs that were never measured are guessed at 4 s a program: in so short a time nothing fits but one claim."""
    monkeypatch.setattr(verify, "LAST", -1e6)  # only what is planned counts, however slow this machine is now
    monkeypatch.setattr(verify, "_more", lambda *_: [])
    command = ["verify", "toy.decay", "solver.decay", "--load", str(TOYS), "--workers", "1", "--out", "out", "--json"]
    assert cli([*command, "--minutes", "0.01"]) == 0
    said = capsys.readouterr()
    whole = json.loads(said.out)
    assert len(whole["claims"]) == len(whole["not_run"]) == 1
    (other,) = whole["not_run"]
    assert other["command"] == f"jaxdyn verify {other['id']} --load {TOYS}"
    assert other["verdict"] == "not run" and other["last_verdict"] is None and {other["id"], whole["claims"][0]["id"]} == CLAIMS
    assert "1 of 2 claims: " in said.err
    assert "1 of 1 verdict as expected, 1 claim not run in the minutes given (the same command resumes with them)" in said.err
    page = Path("out/index.html").read_text(encoding="utf-8")
    assert "1 of 2" in page and "Not run here, and never recorded." in page and "Still running" not in page
    assert cli([*command, "--minutes", "5"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert len(again["claims"]) == 2 and again["not_run"] == []
    # a later call for which there is no time shows what this one found, and counts it nowhere
    assert cli([*command, "--minutes", "0.001"]) == 0
    last = json.loads(capsys.readouterr().out)
    (kept,) = last["not_run"]
    judged = next(c for c in again["claims"] if c["id"] == kept["id"])
    assert kept["earlier"]["date"] == again["environment"]["date"] and kept["earlier"]["checks"] == judged["checks"] != []
    assert len(last["claims"]) == sum(last["counts"].values()) == 1 and "checks" not in kept
    page = Path("out/index.html").read_text(encoding="utf-8")
    assert page.count("<figure class=past>") == 1 and "Drawn by an earlier call with this folder" in page
    assert "An earlier call with this folder judged it on" in page and "1 upheld, 1 not run here" in page


@pytest.mark.slow
def test_a_call_for_fewer_claims_says_which_page_it_replaces(tmp_path, capsys):
    words = ["--load", str(TOYS), "--workers", "1", "--out", "out"]
    whole = f"jaxdyn verify toy.decay solver.decay --load {TOYS} --out out"
    said = f"this report replaces the last call's, of 2 claims; their runs are kept, and `{whole}` shows it again"
    for claims, replaces in ((["toy.decay", "solver.decay"], False), (["toy.decay"], True), (["solver.decay"], False)):
        assert cli(["verify", *claims, *words]) == 0
        assert (said in capsys.readouterr().err) is replaces


def test_minutes_are_filled_with_what_turns_out_to_be_stored(tmp_path, capsys, monkeypatch):
    """Before anything is traced, a program seems to take 60 s, and two do not fit into two minutes; but their runs are there."""
    command = ["verify", "toy.decay", "solver.decay", "--load", str(TOYS), "--workers", "1", "--out", "out", "--json"]
    assert cli(command) == 0
    monkeypatch.setattr(costs, "program_times", lambda program: (60.0, 0.0))
    monkeypatch.setattr(costs, "_met", dict)  # nothing was compiled here
    monkeypatch.setattr(verify, "is_concluded", lambda folder, claim: False)
    capsys.readouterr()
    assert cli([*command, "--minutes", "2"]) == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)["claims"]) == 2 and "2 claims: 2 programs" in said.err
    shutil.rmtree("out")
    assert cli([*command, "--minutes", "2"]) == 0
    assert "1 of 2 claims: 1 program" in capsys.readouterr().err


def test_many_programs_are_not_traced_without_a_word(tmp_path, capsys, monkeypatch):
    """With a file of one's own in the process everything is traced, also the second time."""
    monkeypatch.setattr(verify, "MANY", 1)
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    command = ["verify", "toy.decay", "--load", str(TOYS), "--workers", "1", "--out"]
    assert cli([*command, "out"]) == cli([*command, "again"]) == 0
    assert capsys.readouterr().err.count("tracing 1 program once, to plan the runs") == 2


def test_claims_whose_tracing_would_take_too_long_are_left_for_the_next_call(tmp_path, capsys, monkeypatch):
    """Tracing has half of the time; here none of it is left, so that nothing is traced, run or judged."""
    monkeypatch.setattr(verify, "TRACED", 0.0)
    command = ["verify", "toy.decay", "solver.decay", "--load", str(TOYS), "--workers", "1", "--out", "out", "--json"]
    assert cli([*command, "--minutes", "5"]) == 0
    said = capsys.readouterr()
    assert "2 claims were left for the next call: tracing, without which no runs are planned, took 0 s" in said.err
    assert "0 of 2 claims: 0 programs, 0 runs" in said.err and "nothing judged, 2 claims not run" in said.err
    whole = json.loads(said.out)
    assert whole["claims"] == [] and {entry["id"] for entry in whole["not_run"]} == CLAIMS


@pytest.mark.parametrize("minutes", ["0", "-1", "soon", "nan", "inf", ""])
def test_minutes_that_are_none_are_refused(minutes, capsys):
    assert cli(["verify", "toy.decay", "--load", str(TOYS), f"--minutes={minutes}"]) == 2
    assert "is not allowed: it is a number of minutes above 0" in capsys.readouterr().err


def test_minutes_are_for_the_quick_scale(capsys):
    assert cli(["verify", "toy.decay", "--load", str(TOYS), "--minutes", "1", "--scale", "paper"]) == 2
    assert "--minutes is not allowed with --scale" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_is_written_while_claims_are_judged(monkeypatch):
    monkeypatch.setattr(verify, "OFTEN", 0.0)
    monkeypatch.setattr(verify, "SELDOM", 0.0)
    pages = []

    def noted(folder, target):
        rebuild(folder, target)
        pages.append(target.read_text(encoding="utf-8"))

    rebuild = verify.rebuild
    monkeypatch.setattr(verify, "rebuild", noted)
    assert cli(["verify", "toy.decay", "solver.decay", "--load", str(TOYS), "--workers", "1", "--out", "out"]) == 0
    first, last = pages[0], pages[-1]
    assert (
        "Still running when this page was written: 1 of 2 claims judged" in first
        and 'http-equiv="refresh"' in first
        and "Not judged yet when this page was written" in first
        and "Not run here" not in first
    )
    assert "Still running" not in last and 'http-equiv="refresh"' not in last and "Not run here" not in last


@pytest.mark.slow
def test_a_cheap_claim_is_judged_before_the_workers_have_started(monkeypatch):
    """In this process, from its own plan; its verdict is said once."""
    said, planned = [], []
    monkeypatch.setattr(verify.Progress, "say", lambda self, text: said.append(text))
    plan = verify.plan_tasks
    monkeypatch.setattr(verify, "plan_tasks", lambda tasks, **more: planned.append(len(tasks)) or plan(tasks, **more))
    monkeypatch.setattr(verify, "SOON", 1e9)
    monkeypatch.setattr(verify, "task_costs", lambda tasks: {"all": 1e10})
    assert cli(["verify", "toy.decay", "solver.decay", "--load", str(TOYS), "--workers", "2", "--out", "out"]) == 0
    assert planned == [1, 2]
    verdicts = [line for line in said if "upheld" in line]
    assert len(verdicts) == 2 and said.index(verdicts[0]) < next(i for i, line in enumerate(said) if line.startswith("2 claims"))


@pytest.mark.slow
def test_of_everything_the_first_verdict_falls_before_the_other_theories_are_imported(tmp_path):
    """In a new process without any cache: within ten seconds of one core."""
    code = """
import sys
from jaxdyn.cli import verify
from jaxdyn.cli.main import main
class Enough(BaseException):
    pass
def said(self, text):
    theories = {name.split(".")[2] for name in sys.modules if name.startswith("jaxdyn.theories.")}
    print("said:", text, *theories, file=sys.stderr, flush=True)
    raise Enough
verify.Progress.say = said
main(["verify", "--out", "out", "--minutes", "10"])
"""
    environment = {**os.environ, "JAXDYN_CACHE": str(tmp_path / "cache")}
    before = os.times()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
    after = os.times()
    assert "Enough" in done.stderr, done.stderr
    said = next(
        line for line in done.stderr.splitlines() if line.startswith("said:  ✓")
    )  # a slow machine says before that it works
    _, sign, claim, verdict, *theories = said.split()
    assert (sign, verdict, theories) == ("✓", "upheld", [claim.split(".")[0]])
    assert after.children_user + after.children_system - before.children_user - before.children_system < 10


def test_a_worker_does_not_judge_by_another_version_of_the_file(tmp_path):
    """The file was edited after this process had imported it, and before a worker did."""
    file = tmp_path / "mine.py"
    file.write_text(TOYS.read_text(encoding="utf-8"), encoding="utf-8")
    claim = load_file(file).CLAIMS[0]
    data = jd.verify(claim, seeds=2).data
    rest = (claim.id, (str(file),), data, {}, (), Terms(), False)
    assert verify.conclude_by_id(tmp_path, None, verify.version_of_claim(claim), *rest).verdict
    file.write_text(file.read_text(encoding="utf-8").replace("CLAIMS = [", "CLAIMS = [  # edited"), encoding="utf-8")
    verify.claims_here.cache_clear()
    assert verify.conclude_by_id(tmp_path, None, verify.version_of_claim(claim), *rest).verdict, "a remark changes nothing"
    edit = "\nimport dataclasses\nCLAIMS[0] = dataclasses.replace(CLAIMS[0], statement='Another.')\n"
    file.write_text(file.read_text(encoding="utf-8") + edit, encoding="utf-8")
    verify.claims_here.cache_clear()
    assert verify.conclude_by_id(tmp_path, None, verify.version_of_claim(claim), *rest) is None


FORMS = """
import jax
import jax.numpy as jnp
import jaxdyn as jd

@jd.setting
class Toy:
    shift: jd.Swept = 0.0

def trial(s, key):
    forms = jd.named(jnp.array([0.0, 0.75]), "form")
    x = s.shift + jax.random.normal(key, (), jnp.float64)
    return jd.observables(predicted={"x": forms}, measured={"x": x}, coords={"form": ("right", "printed")})

def judge(ds):
    return [jd.mean_within("mean", ds.measured_x - ds.predicted_x, over="seed", low=-1.0, high=1.0)]

def plot(ds, fig):
    fig.subplots().set(xlabel="runs", ylabel=f"{ds.sizes['seed']} seeds")

COMMON = {"trial": trial, "judge": judge, "plot": plot, "source": "nobody's", "evidence": "numbers", "bounds": "derived"}
LAW = jd.Claim(id="two.law", title="Law", statement="Law.", form="right", quick=jd.grid(Toy), seeds=8, max_seeds=128,
    controls={"far": {"shift": 5.0}}, **COMMON)
OTHER = LAW.as_printed(id="two.law_as_printed", title="Other", statement="Other.", form="printed", printed="x")
CLAIMS = [LAW, OTHER]
"""


def test_claims_share_a_figure_only_of_the_same_runs(monkeypatch):
    """One of two claims on the same data may need more seeds than the other; each is shown with the runs that judged it."""
    monkeypatch.setattr(theories, "__path__", [])
    Path("forms.py").write_text(FORMS, encoding="utf-8")
    cli(["verify", "two", "--load", "forms.py", "--workers", "1"])
    whole, figures = read_results(Path("report"))
    seeds = {entry["id"]: entry["seeds"] for entry in whole["claims"]}
    assert seeds["two.law"] < seeds["two.law_as_printed"]
    assert all(f"{count} seeds against runs" in figures[name] for name, count in seeds.items())
    cli(["verify", "two", "--load", "forms.py", "--workers", "1", "--seeds", "8"])
    _, figures = read_results(Path("report"))
    assert figures["two.law"] == figures["two.law_as_printed"], "drawn once"


SHIFTED = """
import dataclasses
import jaxdyn as jd
import jax.numpy as jnp

SHIFT = 0.0

@jd.setting
class One:
    a: jd.Swept = 1.0

def trial(s, key):
    x = jnp.asarray(s.a, jnp.float64)
    return jd.observables(predicted={"x": x}, measured={"x": x + SHIFT}, recorded={"zero": 0 * x})

def judge(ds):
    return [jd.at_most("error", jd.relative_error(ds, "x"), 0.1)]

study = jd.Study(trial=trial, quick=jd.grid(One), seeds=2, source="nobody", evidence="algebra", bounds="derived")
CLAIMS = [study.claim(id=f"two.{n}", title="Nothing shifts x", statement="$x = a$ to 10%.", judge=judge,
    controls={"twice": lambda ds: ds.assign(measured_x=2 * ds.measured_x)}, rivals={"none": jd.off(predicted_x="zero")})
    for n in ("one", "two")]
"""


def test_what_an_earlier_call_found_is_stale_once_the_trial_has_changed(away_from_home, jaxdyn):
    words = ["verify", "--load", "two.py", "two", "--out", "o", "--workers", "1"]
    Path("two.py").write_text(SHIFTED, encoding="utf-8")
    assert jaxdyn(*words)[0] == 0
    for code, stale in ((SHIFTED.replace("to 10%", "to a tenth"), False), (SHIFTED.replace("SHIFT = 0.0", "SHIFT = 0.5"), True)):
        Path("two.py").write_text(code.replace(".1)]", ".1)]").replace('statement="', 'statement="Say: '), encoding="utf-8")
        code, out, _ = jaxdyn(*words, "--json", *(["--fail-fast"] if stale else ["--minutes", "0.001"]))
        entry = next(one for one in json.loads(out)["not_run"] if one["id"] == "two.two")
        assert (entry["earlier"]["verdict"], entry["earlier"]["stale"]) == ("upheld", stale)
