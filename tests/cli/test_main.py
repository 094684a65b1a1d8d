"""The command line as a user types it; in this process where nothing else is said."""

import contextlib
import gzip
import io
import json
import re
import shlex
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from jaxdyn import theories
from jaxdyn.cli.main import main as cli
from jaxdyn.report.figures import inflate

TOYS = Path(__file__).parents[1] / "engine" / "toys.py"
BROKEN = TOYS.with_name("broken_toys.py")
pytestmark = pytest.mark.usefixtures("away_from_home")


@pytest.fixture
def refused(jaxdyn):
    """Run ``jaxdyn``, expect exit code 2, nothing on standard output and one sentence with these words, and return the sentence."""

    def run(words, *parts):
        code, out, err = jaxdyn(*words)
        assert code == 2 and out == "", (code, out, err)
        assert err.startswith("jaxdyn: ") and err.count("\n") == 1 and "Traceback" not in err
        for part in parts:
            assert part in err, err
        return err

    return run


def verify(*words, workers=1):
    """Words of a verification of the toys in this process."""
    return ["verify", *words, "--load", TOYS, "--workers", workers]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """All toy claims verified: exit code, both streams, the output folder."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(tmp_path_factory.mktemp("finished"))
        patch.setattr(theories, "__path__", [])
        patch.setenv("EQX_ON_ERROR", "nan")
        code = cli(["verify", "--load", str(TOYS), "--workers", "1", "--json"])
        return code, out.getvalue(), err.getvalue(), Path("report").resolve()


# verify ---------------------------------------------------------------------------------------------------------------


def test_verify_prints_one_json_object(finished):
    code, out, err, _ = finished
    assert code == 2, "toy.wrong and toy.toothless differ, and toy.raises is a mistake"
    whole = json.loads(out)
    assert out.count("\n") == 1 and out.startswith("{"), "nothing else is on standard output"
    assert whole.keys() >= {"claims", "programs", "seconds", "environment"} and whole["programs"] == 2
    for claim in whole["claims"]:
        required = "id expected verdict resolution programs runs diverged compile_seconds run_seconds checks controls"
        assert claim.keys() >= set(required.split())
        assert claim["resolution"].keys() == {"scale", "mix"}
    verdicts = {c["id"]: c["verdict"] for c in whole["claims"]}
    assert verdicts["toy.decay"] == "upheld" and verdicts["toy.decay_as_printed"] == "refuted" and verdicts["toy.raises"] == "error"


def test_verify_says_what_it_will_do_and_what_it_found(finished):
    lines = finished[2].splitlines()
    assert lines[0].startswith("9 claims: 2 programs, 38 runs;") and "expected" in lines[0]
    assert any("✓ toy.decay " in line and "upheld" in line for line in lines)
    assert any("✗ toy.raises" in line and "error" in line for line in lines)
    assert "RuntimeError: the judge stumbled" in finished[2]
    assert "control '10% off' is not rejected" in finished[2]
    assert "6 of 9 verdicts as expected" in lines[-1] and lines[-1].endswith("report/index.html")


def test_verify_shows_the_failing_check_its_worst_run_and_a_command_that_repeats_it(finished, jaxdyn):
    lines = finished[2].splitlines()
    at = next(i for i, line in enumerate(lines) if "✗ toy.wrong" in line)
    assert "failed: relative error:" in lines[at + 1] and "worst at rate = " in lines[at + 1] and "seed " in lines[at + 1]
    repeat = next(line for line in lines[at:] if "repeat: " in line).split("repeat: ")[1]
    words = shlex.split(repeat)
    assert words[:3] == ["jaxdyn", "verify", "toy.wrong"]
    code, _, err = jaxdyn(*words[1:], "--workers", 1)
    assert code == 1 and "✗ toy.wrong" in err, err


def test_the_report_is_one_page_with_every_claim(finished):
    page = (finished[3] / "index.html").read_text(encoding="utf-8")
    assert all(f"{i}" in page for i in ("toy.decay", "toy.raises", "solver.decay"))
    drawn = [inflate(packed) for packed in re.findall(r'data-figure="([^"]+)"', page)]
    assert drawn and all(svg.startswith("<svg") for svg in drawn)


def test_verify_without_json_prints_nothing_to_standard_output_but_tells(jaxdyn):
    code, out, err = jaxdyn(*verify("toy.decay"))
    assert code == 0 and out == "" and "1 claim upheld" in err and Path("report/index.html").is_file()


def test_a_second_run_uses_what_is_stored(jaxdyn):
    code, _, err = jaxdyn(*verify("toy.decay"))
    assert code == 0 and "stored" not in err
    code, out, err = jaxdyn(*verify("toy.decay", "toy.decay_as_printed", "--json"))
    assert code == 0 and "32 runs, 32 of them stored" in err
    assert all(c["compile_seconds"] == 0 for c in json.loads(out)["claims"])


def test_where_results_and_report_go(jaxdyn):
    code, _, err = jaxdyn(*verify("toy.decay", "--out", "a/b", "--report", "page.html"))
    assert code == 0 and "page.html" in err
    assert Path("page.html").is_file() and Path("a/b/result.json").is_file() and not Path("report").exists()


def test_verdicts_are_printed_as_they_fall(jaxdyn, monkeypatch):
    """The fast claim's verdict is there before the slow program is run."""
    import jaxdyn.engine.runs.sweep as sweep

    seen, run_chunk = [], sweep.run_chunk

    def spying(chunk):
        seen.append(list(said))
        return run_chunk(chunk)

    said = []
    monkeypatch.setattr(sweep, "run_chunk", spying)
    monkeypatch.setattr("jaxdyn.engine.base.progress.Progress.say", lambda self, text: said.append(text))
    assert jaxdyn(*verify("toy.decay", "solver.decay"))[0] == 0
    verdicts = [[line for line in lines if "✓" in line] for lines in (seen[0], seen[-1], said)]
    assert list(map(len, verdicts)) == [0, 1, 2]


def test_fail_fast_stops_at_the_first_difference(jaxdyn):
    code, out, err = jaxdyn(*verify("--fail-fast", "--json"))
    claims, others = json.loads(out)["claims"], json.loads(out)["not_run"]
    assert code == 1 and 0 < len(claims) < 9
    page = Path("report/index.html").read_text(encoding="utf-8")
    assert others and all(other["verdict"] == "not run" and f'id="{other["id"]}"' in page for other in others)
    assert err.count("✗") == 1 and "not judged" in err.splitlines()[-1]
    assert Path("report/index.html").is_file()
    assert jaxdyn(*verify("toy.decay", "--fail-fast"))[0] == 0


def test_a_map_shows_the_checks_of_each_cell(jaxdyn):
    """To look where a claim stops holding is no failure, whatever is found."""
    code, _, err = jaxdyn(*verify("toy.wrong", "--by", "lr"))
    lines = err.splitlines()
    assert code == 0 and "✗" not in err and "repeat:" not in err
    assert any(line.strip().startswith("lr=0.01: refuted  relative error: ") and "bound at most 1e-09" in line for line in lines)
    assert lines[-1].startswith("2 cells: 2 refuted;")
    assert jaxdyn(*verify("toy.raises", "--by", "lr"))[0] == 2, "a claim that errs is no map"


def test_a_map_of_a_measured_claim_shows_its_readings(jaxdyn):
    code, _, err = jaxdyn(*verify("toy.open", "--by", "lr"))
    assert code == 0 and "lr=0.01: measured  measured over predicted: 1 [1, 1]" in err and "2 cells: 2 measured;" in err


def test_costs_runs_and_homes_in_json(finished):
    whole = json.loads(finished[1])
    assert whole["runs"] == 38, "all different runs, those of controls included"
    costs = {c["program"]: c for c in whole["costs"]}
    assert costs.keys() == {"toys:decay", "toys:solved"} and costs["toys:decay"]["static"]["weights"] == [1, 2]
    assert (
        costs["toys:decay"]["compile_seconds"] > 0 and costs["toys:decay"]["runs"] == 32 and len(costs["toys:decay"]["claims"]) == 8
    )
    assert {c["home"] for c in whole["claims"]} == {str(TOYS)}
    assert sum(c["programs"] for c in whole["claims"]) == 9


def test_words_agree_in_number(jaxdyn):
    assert "1 claim: 1 program, 32 runs;" in jaxdyn(*verify("toy.decay"))[2]
    assert " 1 run, 1 of them stored" in jaxdyn(*verify("toy.open", "--seeds", "1", "--set", "lr=0.01", "--set", "rate=1"))[2]


def test_fresh_seeds(jaxdyn):
    code, out, err = jaxdyn(*verify("toy.decay", "toy.seeds", "--fresh", "40", "--json"))
    assert code == 0 and "on seeds from 40 on; " in err.splitlines()[0]
    for claim in json.loads(out)["claims"]:
        assert claim["seed_range"] == "40:44" and claim["command"].startswith(f"jaxdyn verify {claim['id']} --fresh 40")
    assert "seeds from" not in jaxdyn(*verify("toy.decay", "--seeds", "2"))[2]


def test_overrides_seeds_and_maps(jaxdyn):
    code, out, err = jaxdyn(
        *verify("toy.decay", "--set", "lr=0.01,1e30", "--set", "rate=0.5", "--seeds", "3:5", "--by", "lr", "--json")
    )
    (claim,) = json.loads(out)["claims"]
    assert (
        code == 0 and claim["verdict"] == "inconclusive" and claim["diverged"] == 2 and claim["runs"] == 4 and claim["seeds"] == 2
    )
    assert [c["verdict"] for c in claim["by"]["cells"]] == ["upheld", "inconclusive"]
    assert "lr=0.01: upheld" in err and "lr=1e+30: inconclusive" in err
    assert "--set lr=0.01,1e30 --set rate=0.5" in claim["command"] and "--seeds 3:5" in claim["command"]


def test_a_sweep_that_removes_what_a_judge_needs_is_inconclusive(jaxdyn):
    code, out, _ = jaxdyn(*verify("toy.halves", "--set", "lr=0.01", "--json"))
    assert code == 1 and json.loads(out)["claims"][0]["verdict"] == "inconclusive"


def test_other_types_of_fields(jaxdyn):
    words = ["--set", "size=2,3", "--set", "noisy=true", "--set", "weights=1:2:3", "--set", "depth=none", "--set", "kind=fancy"]
    code, out, _ = jaxdyn(*verify("toy.decay", *words, "--json"))
    (claim,) = json.loads(out)["claims"]
    assert code == 0 and claim["programs"] == 2
    settings = claim["settings"]
    assert (settings["size"], settings["noisy"], settings["weights"], settings["depth"]) == ([2, 3], True, [1, 2, 3], None)


def test_scale_paper(jaxdyn):
    code, out, _ = jaxdyn(*verify("toy.decay", "--scale", "paper", "--json"))
    (claim,) = json.loads(out)["claims"]
    assert code == 0 and claim["scale"] == "paper" and claim["runs"] == 6 * 8


def test_a_broken_trial_leaves_the_others_alone(jaxdyn):
    code, out, err = jaxdyn("verify", "--load", BROKEN, "--workers", 1, "--json")
    verdicts = {c["id"]: c["verdict"] for c in json.loads(out)["claims"]}
    assert code == 2 and verdicts == {
        "toy.good": "upheld",
        "toy.broken": "error",
        "toy.no_observables": "error",
        "toy.clashing": "error",
    }
    assert "this trial is broken" in err and "Traceback" not in err


OWN = """
import jax.numpy as jnp
import jaxdyn as jd

@jd.setting
class S:
    a: jd.Swept = 1.0

def tracer(s, key):
    if s.a > 0:
        return jd.observables(measured={"z": s.a})

def unnamed(s, key):
    z = s.a * jnp.ones((3, 4))
    return jd.observables(predicted={"z": z}, measured={"z": z})

def nothing(s, key):
    pass

def fine(s, key):
    return jd.observables(predicted={"z": s.a}, measured={"z": 1.0001 * s.a})

def judge(ds):
    return [jd.at_most("error", jd.relative_error(ds, "z"), 0.01)]

def bare(ds):
    return judge(ds)[0]

def lost(ds):
    return [jd.at_most("error", ds.z, 0.01)]

def claim(trial=fine, judge=judge, off=1.1):
    controls = {"off": lambda ds: ds.assign(predicted_z=off * ds.predicted_z)}
    name = trial.__name__ if trial is not fine else judge.__name__ if off > 1.01 else "weak"
    common = {"title": "My own", "statement": "", "source": "", "controls": controls, "quick": jd.grid(S), "evidence": "algebra"}
    common["bounds"] = "derived"
    return jd.Claim(id=f"own.{name}", trial=trial, judge=judge, **common)

CLAIMS = [claim(tracer), claim(unnamed), claim(nothing), claim(), claim(judge=bare), claim(judge=lost), claim(off=1.001)]
"""


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory):
    """A file with every mistake that people make, verified: both streams."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(tmp_path_factory.mktemp("mistakes"))
        patch.setattr(theories, "__path__", [])
        patch.setenv("EQX_ON_ERROR", "nan")
        Path("own.py").write_text(OWN, encoding="utf-8")
        cli(["verify", "own", "--load", "own.py", "--workers", "1", "--json"])
    return {c["id"]: c for c in json.loads(out.getvalue())["claims"]}, err.getvalue()


@pytest.mark.parametrize(
    ("name", "words", "place"),
    [
        ("tracer", "TracerBoolConversionError: a traced number", "own.py:10 in tracer"),
        ("unnamed", "predicted 'z' has shape (3, 4): name its axes, jd.named(z, \"axis axis\")", "own.py:15 in unnamed"),
        ("nothing", "own:nothing must return jd.observables(...), it returned NoneType", "own.py:17 in nothing"),
        ("bare", "the judge returned one Check; it must return a list", "own.py:26 in bare"),
        ("lost", "AttributeError: the runs have no variable 'z' (there are", "own.py:30 in lost"),
    ],
)
def test_mistakes_in_a_claim_are_named_with_their_place(mistakes, name, words, place):
    claims, err = mistakes
    claim = claims[f"own.{name}"]
    assert claim["verdict"] == "error" and claim["error"]["place"] == place
    assert words in claim["message"] and f"({place})" in claim["message"] and claim["message"] in err
    assert claims["own.judge"]["verdict"] == "upheld", "the others go on"
    assert "jaxdyn_user_" not in err + json.dumps(claims)


def test_a_control_that_passes_says_with_what(mistakes):
    claims, err = mistakes
    assert claims["own.weak"]["verdict"] == "toothless"
    assert "control 'off' is not rejected: the checks also pass with error: 0.00089" in err


def test_the_full_traceback_is_shown_when_asked_for(jaxdyn):
    Path("own.py").write_text(OWN, encoding="utf-8")
    words = ["verify", "own.lost", "--load", "own.py", "--workers", 1, "--json"]
    code, out, err = jaxdyn(*words, "--debug")
    assert (
        code == 2 and "Traceback" in err and "in lost" in err and "Traceback" in json.loads(out)["claims"][0]["error"]["traceback"]
    )
    code, out, err = jaxdyn(*words)
    assert "Traceback" not in err + out and "repeat: jaxdyn verify own.lost --load own.py --debug" in err
    code, _, err = jaxdyn("verify", "own.lst", "--load", "own.py", "--debug")
    assert code == 2 and "Traceback" in err and err.splitlines()[-1].startswith("jaxdyn: no claim matches")


def test_an_undecorated_setting(refused):
    Path("own.py").write_text(OWN.replace("@jd.setting\n", ""), encoding="utf-8")
    refused(["verify", "own", "--load", "own.py"], "S is not a setting", "@jd.setting")


def test_what_a_users_file_prints_stays_off_standard_output(jaxdyn):
    Path("chatty.py").write_text(TOYS.read_text(encoding="utf-8") + "\nprint('hello from my file')\n", encoding="utf-8")
    code, out, _ = jaxdyn("verify", "toy.decay", "--load", "chatty.py", "--workers", 1, "--json")
    assert code == 0 and json.loads(out)["claims"][0]["id"] == "toy.decay"
    _, out, _ = jaxdyn("list", "toy.decay", "--load", "chatty.py", "--json")
    assert json.loads(out)["claims"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["verify", "toy.deca"], ["no claim matches 'toy.deca'", "did you mean toy.decay"]),
        (["verify", "nothing.*"], ["no claim matches", "jaxdyn list"]),
        (["list", "nothing.*"], ["no claim matches"]),
        (["verify", "toy.decay", "--set", "rte=1"], ["Toy has no field 'rte'", "rate, lr"]),
        (["verify", "toy", "solver", "--set", "size=3"], ["not every selected claim has the fields size", "solver.decay"]),
        (["verify", "toy.decay", "--set", "rate=fast"], ["rate='fast'", "a finite number"]),
        (["verify", "toy.decay", "--set", "rate=nan"], ["rate='nan'", "a finite number"]),
        (["verify", "toy.decay", "--set", "rate=-1"], ["rate is positive"]),
        (["verify", "toy.decay", "--set", "rate=1,1"], ["must differ"]),
        (["verify", "toy.decay", "--set", "rate"], ["FIELD=VALUE"]),
        (["verify", "toy.decay", "--set", "rate="], ["FIELD=VALUE"]),
        (["verify", "toy.decay", "--set", "=1"], ["FIELD=VALUE"]),
        (["verify", "toy.decay", "--set", "rate=,"], ["FIELD=VALUE"]),
        (["verify", "toy.decay", "--set", "rate=1", "--set", "rate=2"], ["rate is given twice"]),
        (["verify", "toy.decay", "--set", "optimizer=adam"], ["one of gd, sign"]),
        (["verify", "toy.decay", "--set", "size=2.5"], ["size='2.5'", "a whole number"]),
        (["verify", "toy.decay", "--scale", "huge"], ["quick or paper"]),
        (
            ["verify", "toy.decay", "--by", "size"],
            ["does not sweep size: --by takes what is swept, rate, lr, seed; add --set size=v1,v2,…"],
        ),
        (["verify", "toy.decay", "--by", "nothing"], ["nothing"]),
        *(
            (["verify", "toy.decay", "--by", by], [f"--by {word} is not allowed: write FIELD"])
            for by, word in ((",", ","), ("", "''"))
        ),
        (["verify", "toy.decay", "--set", "rate=1,,2"], ["--set rate=1,,2 is not allowed: write FIELD=VALUE"]),
        (
            ["verify", "toy.decay", "--set", "rate=1e-400"],
            ["rate='1e-400' is not allowed: float64 holds numbers of size from 2.2e-308"],
        ),
        (
            ["verify", "toy.decay", "--report", "report/result.json"],
            ["--report report/result.json is not allowed: the page's name"],
        ),
        (["report", "report", "--report", "mine.py"], ["--report mine.py is not allowed: the page's name must end in .html"]),
        (["map", "toy.decay", "--over", "lr=0.1:1", "--set", "lr=0.3"], ["lr is not allowed twice: the map is over it"]),
        (["map", "toy.decay", "--over", "lr=1e-400:1"], ["--over lr=1e-400:1 is not allowed: float64 holds numbers of size from"]),
        (
            ["map", "toy.decay", "--over", "lr=0.5:0.5000000000000001"],
            ["lr=0.5:0.5000000000000001 is not allowed: float64 has fewer than 17 different numbers between them"],
        ),
        (["verify", "toy.decay", "--by", "lr,lr"], ["--by lr,lr is not allowed: lr is given twice"]),
        (["verify", "toy.decay", "--seeds", "0"], ["--seeds 0", "whole number"]),
        (["verify", "toy.decay", "--seeds", "-1"], ["--seeds"]),
        (["verify", "toy.decay", "--seeds", "many"], ["--seeds many"]),
        (["verify", "toy.decay", "--seeds", "5:3"], ["holds no seed"]),
        (["verify", "toy.decay", "--seeds", ":"], ["--seeds : is not allowed: write FROM:TO with whole numbers"]),
        (["verify", "toy.decay", "--seeds", "3:"], ["--seeds 3: is not allowed: write FROM:TO with whole numbers"]),
        (["verify", "toy.decay", "--seeds", ":3"], ["--seeds :3 is not allowed: write FROM:TO with whole numbers"]),
        (["verify", "toy.decay", "--seeds", "2.5:3"], ["--seeds 2.5:3 is not allowed: write FROM:TO with whole numbers"]),
        (["verify", "toy.decay", "--seeds", "1:2:3"], ["--seeds 1:2:3 is not allowed: write FROM:TO with whole numbers"]),
        (["verify", "toy.decay", "--seeds", ""], ["--seeds '' is not allowed: it is a whole number"]),
        (["verify", "toy.decay", "--seeds", "9" * 5000], ["99999… is not allowed"]),
        (["verify", "toy.decay", "--workers", " "], ["--workers ' ' is not allowed: it is a whole number"]),
        (["verify", "toy.decay", "--fresh", ""], ["--fresh '' is not allowed: it is a whole number"]),
        (["verify", "toy.decay", "--set", ""], ["--set '' is not allowed: write FIELD=VALUE"]),
        *(
            (["verify", "toy.decay", option, ""], [f"argument {option}: '' is not allowed: it is empty"])
            for option in ("--out", "--report", "--cluster", "--load")
        ),
        *(([command, ""], ["'' is not allowed: it is empty"]) for command in ("new", "report")),
        (["map", "toy.decay", "--over", ""], ["argument --over: '' is not allowed: it is empty"]),
        (["verify", "toy.decay", "--seeds", "1152921504606846976"], ["seeds"]),
        (["verify", "toy.decay", "--seeds", "0:1152921504606846976"], ["seeds"]),
        (["verify", "toy.decay", "--workers", "0"], ["--workers 0"]),
        (["verify", "toy.decay", "--workers", "two"], ["--workers two"]),
        (["verify", "toy.decay", "--cluster", "localhost"], ["dask://HOST:PORT"]),
        (["verify", "--frobnicate"], ["--frobnicate is no option of `jaxdyn verify` (see `jaxdyn verify --help`)", "--help"]),
        (["frobnicate"], ["frobnicate is no command of `jaxdyn`"]),
        (["verify", "--minuts", "3"], ["--minuts is no option of `jaxdyn verify`; did you mean --minutes?"]),
        (["verify", "toy.decay", "--seed", "3"], ["--seed is no option of `jaxdyn verify`; did you mean --seeds?"]),
        ([], ["a command is missing: it is one of list, show, verify, diff,"]),
        (["list", "toyy"], ["no claim matches 'toyy'; did you mean toy?"]),
        (["report", "nowhere"], ["nowhere does not exist; give the --out of `jaxdyn verify`"]),
        (["verfy"], ["verfy is no command of `jaxdyn`; did you mean verify? (see `jaxdyn --help`)"]),
        (["cal.quadratic_rate"], ["did you mean `jaxdyn verify cal.quadratic_rate`?"]),
        (["show", "cal.quadratic_rate", "more"], ["more is one word too many for `jaxdyn show`"]),
        (["verify", "toy.deca"], ["no claim matches 'toy.deca'; did you mean toy.decay?"]),
        (["verify", "toy.unlike"], ["no claim matches 'toy.unlike'; `jaxdyn list toy` shows those of toy"]),
        (["new"], ["is missing", "FILE"]),
        (["verify", "toy.decay", "--fresh", "8", "--seeds", "4"], ["--fresh and --seeds are not allowed together"]),
        (["verify", "toy.decay", "--fresh", "-1"], ["--fresh"]),
        (["verify", "toy.decay", "--fresh", "new"], ["--fresh new", "whole number"]),
        (["show"], ["is missing", "CLAIM"]),
        (["show", "toy.deca"], ["no claim matches 'toy.deca'", "did you mean toy.decay"]),
        (["show", "toy"], ["show takes one claim", "'toy' matches 8"]),
    ],
)
def test_wrong_use_is_one_sentence(refused, words, parts):
    load = ["--load", TOYS] if words[:1] in (["verify"], ["list"], ["show"], ["map"]) else []
    refused([*words, *load], *parts)
    assert not list(Path("report").glob("index.html"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("def f(:\n", ["mine.py, line 1", "invalid syntax"]),
        ("x = 1\n", ["no CLAIMS list"]),
        ("raise RuntimeError('boom')\n", ["mine.py cannot be imported", "RuntimeError: boom"]),
        ("import sys\nsys.exit(0)\n", ["mine.py"]),
        (None, ["mine.py: no such file"]),
    ],
    ids=["syntax error", "no claims", "raises", "exits", "missing"],
)
@pytest.mark.parametrize("command", ["list", "verify"])
def test_a_users_file_that_cannot_be_used(refused, command, text, parts):
    if text is not None:
        Path("mine.py").write_text(text, encoding="utf-8")
    refused([command, "--load", "mine.py"], *parts)


def test_the_same_file_twice(refused):
    assert "toy.decay" in refused(["list", "--load", TOYS, "--load", TOYS])


@pytest.mark.parametrize(
    "command", [["verify", "toy.decay", "--load", TOYS, "--workers", 1, "--out"], ["report"]], ids=["verify", "report"]
)
def test_foreign_folders_are_refused_and_left_alone(refused, command):
    Path("photos").mkdir()
    Path("photos/cat.jpg").write_text("meow", encoding="utf-8")
    refused([*command, "photos"], "photos")
    assert [p.name for p in Path("photos").iterdir()] == ["cat.jpg"]
    refused([*command, "photos/cat.jpg"], "cat.jpg")
    assert Path("photos/cat.jpg").read_text(encoding="utf-8") == "meow"


def test_a_damaged_shard_is_named(jaxdyn, refused):
    assert jaxdyn(*verify("toy.decay"))[0] == 0
    shard = next(Path("report").glob("shards/*/*.nc"))
    data = shard.read_bytes()
    shard.write_bytes(data[:-100])
    before = Path("report/result.json").read_bytes()
    refused(verify("toy.decay"), shard.name, "damaged")
    assert shard.read_bytes() == data[:-100] and Path("report/result.json").read_bytes() == before


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(jaxdyn, refused, shell):
    code, out, err = jaxdyn("completion", shell)
    assert code == 0 and err == "" and "--fail-fast" in out and "verify" in out and "show" in out
    refused(["completion", "fish"], "shell fish is not allowed; allowed are bash, zsh")


# report ---------------------------------------------------------------------------------------------------------------


def test_the_report_can_be_built_again(finished, jaxdyn, tmp_path):
    folder = finished[3]
    first = (folder / "index.html").read_bytes()
    (folder / "index.html").unlink()
    code, out, _ = jaxdyn("report", folder)
    assert code == 0 and out.strip() == str(folder / "index.html") and (folder / "index.html").read_bytes() == first
    assert jaxdyn("report", folder, "--report", tmp_path / "sub" / "page.html")[0] == 0
    assert (tmp_path / "sub" / "page.html").read_bytes() == first


def test_a_report_that_cannot_be_written(finished, jaxdyn, refused, tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    refused(["report", finished[3], "--report", tmp_path / "file" / "page.html"], "file")
    refused(["report", finished[3], "--report", tmp_path], "Is a directory")
    for target in (tmp_path / "file" / "page.html", tmp_path):
        code, out, err = jaxdyn(*verify("toy.decay", "--report", target, "--json"))
        *waiting, last = err.splitlines()  # a slow machine says that it still works
        assert code == 2 and out == "" and last.startswith("jaxdyn: cannot write to"), err
        assert all(line.endswith("so far") for line in waiting), "before any work"
    assert not Path("report").exists() and (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"claims": 3}'])
def test_damaged_results_are_refused(refused, content):
    Path("out").mkdir()
    Path("out/result.json").write_text(content, encoding="utf-8")
    Path("out/figures.json.gz").write_bytes(gzip.compress(b"{}"))
    assert "out" in refused(["report", "out"])


# new ------------------------------------------------------------------------------------------------------------------


def test_new_writes_a_claim_that_is_upheld_and_whose_controls_are_rejected(jaxdyn):
    code, out, _ = jaxdyn("new", "my_claims.py")
    assert code == 0 and "jaxdyn verify --load my_claims.py mine" in out
    code, out, err = jaxdyn("verify", "--load", "my_claims.py", "mine", "--workers", 1, "--json")
    (claim,) = json.loads(out)["claims"]
    assert code == 0 and claim["verdict"] == "upheld", err
    assert claim["evidence"] == "network" and claim["bounds"] == "derived" and claim["assumes"] == ["step < 0.1"]
    assert claim["gates"] and all(g["passed"] for g in claim["gates"]) and claim["outside"] == 0
    assert len(claim["controls"]) == len(claim["rivals"]) == 1
    assert all(set(rejected) == {"sign descent", "nothing moves"} for rejected in claim["teeth"].values()), "every check has teeth"
    assert claim["resolution"]["scale"]["x"] < 0.05, "the claim is sharp"


def test_new_does_not_overwrite(refused):
    Path("mine.py").write_text("precious", encoding="utf-8")
    refused(["new", "mine.py"], "mine.py exists already")
    assert Path("mine.py").read_text(encoding="utf-8") == "precious"
    refused(["new", "mine.txt"], "mine.txt is not allowed: the file's name must end in .py")
    for name in (".py", "claims/.py"):
        refused(["new", name], f"{name} is not allowed: the file has no name; write one that ends in .py, e.g. my_claims.py")
    refused(["new", "mine.py/claims.py"], "cannot write")


# clusters ---------------------------------------------------------------------------------------------------------------


def test_a_cluster_that_does_not_answer(jaxdyn, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def silent(address, timeout):
        assert address == "tcp://scheduler:8786"
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", silent)
    code, out, err = jaxdyn("verify", "toy.decay", "--load", TOYS, "--cluster", "dask://scheduler:8786")
    assert code == 2 and out == ""
    assert err.splitlines()[-1].startswith("jaxdyn: --cluster dask://scheduler:8786: no Dask scheduler answers there")


def test_a_dead_worker_is_told_in_one_sentence(jaxdyn, monkeypatch):
    def died(*args, **kwargs):
        raise BrokenProcessPool("A child process terminated abruptly")

    monkeypatch.setattr("jaxdyn.cli.verify.run_plan", died)
    code, out, err = jaxdyn(*verify("toy.decay"))
    assert code == 2 and out == "" and "a worker process died" in err.splitlines()[-1] and "Traceback" not in err
