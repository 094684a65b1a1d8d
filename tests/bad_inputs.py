"""Generated bad inputs: command lines, settings, claims of one's own, damaged folders of results, damaged caches.

Case number i is the same on every machine. A case passes if the command ends by itself with exit code 0, 1 or 2, without a
traceback; with one sentence where the code is 2; and with the numbers of the undamaged run where there are any.
"""

import contextlib
import dataclasses
import io
import json
import os
import random
import re
import shutil
import signal
import traceback
from pathlib import Path

import numpy as np

import jaxdyn as jd
from jaxdyn.cli.main import main
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.programs import direct
from jaxdyn.engine.runs import costs as timings

LIST = ["list", "--load", "mine.py", "--json"]
KINDS = ("command", "setting", "claim", "store", "cache", "model")
LIMIT = 60  # seconds of a case
CLAIMS = """
import jax
import jax.numpy as jnp
import jaxdyn as jd

@jd.setting
class Toy:
    lr: jd.Swept = jd.field(0.1, above=0)
    kind: jd.Code = jd.code("gd", "sign")
    size: int = jd.field(2, at_least=1, at_most=9)
    word: str = "a"
    dtype: str = "float64"

def trial(s, key):
    x0 = 1 + jax.random.uniform(key, (s.size,), jnp.dtype(s.dtype))
    x = jax.lax.fori_loop(0, 9, lambda _, x: x - s.lr * jnp.where(s.kind == "gd", x, jnp.sign(x)), x0)
    return jd.observables(
        predicted={"x": jd.named(x0 * (1 - s.lr) ** 9, "entry")},
        measured={"x": jd.named(x, "entry")},
        assumed={"step": s.lr},
    )

def judge(ds):
    return [jd.at_most("relative error", jd.relative_error(ds, "x", "entry"), 1e-5)]

CLAIMS = [
    jd.Claim(
        id="mine.decay",
        title="Descent shrinks geometrically",
        statement="Descent shrinks by a factor in every step.",
        source="textbook",
        evidence="algebra",
        assumes=jd.below("step", 0.5),
        trial=trial,
        quick=jd.grid(Toy, lr=[0.1, 0.2]),
        seeds=2,
        judge=judge,
        bounds="derived",
        controls={"sign": {"kind": "sign"}},
        rivals={"off": jd.scaled(predicted_x=1.1)},
    )
]
"""
VALUES = (
    *("", " ", "0", "-1", "1", "2", "0.5", "1e-50", "1e400", "nan", "inf", "-0.0", "0.0,-0.0", "1,1", "0.1,0.1000000000000000001"),
    *(
        "a",
        "gd",
        "gd,sign",
        "none",
        "true",
        "[1]",
        "1:2",
        ":",
        ",",
        "=",
        "\ud800",
        "λ",
        "😀",
        "\x00",
        "\n",
        "-",
        "--",
        "*",
        "a.*",
        "[",
    ),
    *("99999999999999999999", "1e3", "0x10", "٣", "float33", "int32", "bfloat16", "../..", "/dev/null", "/dev/full", "/proc/self"),
)
OPTIONS = ("--scale", "--seeds", "--fresh", "--set", "--by", "--out", "--report", "--workers", "--load", "--over", "--cells")
FLAGS = ("--json", "--debug", "--fail-fast", "--help", "--version", "--nothing", "-x")
MODEL_OPTIONS = ("--rank", "--dtype", "--stored", "--side", "--batch", "--length", "--text", "--tokens", "--only", "--wheel")
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 50,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
}
COMMANDS = ("list", "show", "verify", "map", "new", "report", "completion", "", "verfy")
PYTHON = (  # Python values for fields, seeds and arguments
    *(None, True, False, 0, -1, 1, 2, 9, 10, 10**20, 0.1, 0.0, -0.0, 1e-320, 1e400, float("nan"), 1j, "", "a", "gd", b"gd"),
    *([], [0.1], [0.1, 0.1], [0.0, -0.0], (), (1,), {}, {1: 2}, {1}, range(0), range(3), object(), print, int, Path("a")),
    *(
        np.float32(0.1),
        np.int64(3),
        np.bool_(True),
        np.zeros(0),
        np.zeros(2),
        np.zeros((2, 2)),
        np.array("a"),
        np.datetime64("NaT"),
    ),
)
FIELDS = ("lr", "kind", "size", "word", "dtype", "nothing", "seed", "")
REPLACED = (  # of the claim's own source
    *(
        "jd.below",
        "0.5",
        '"algebra"',
        '"derived"',
        "trial=trial",
        "judge=judge",
        "seeds=2",
        "jd.grid(Toy, lr=[0.1, 0.2])",
        "{",
        "]",
    ),
    *('"mine.decay"', '"textbook"', '{"sign": {"kind": "sign"}}', "jd.scaled(predicted_x=1.1)", '"entry"', "1e-5", "ds", "return"),
    *('jd.named(x, "entry")', "s.lr", '{"step": s.lr}', "(s.size,)", "key", "jd.Swept", "jd.setting", "CLAIMS", "9", "0.1", "Toy"),
)
ADDED = (  # fields that the claim leaves at their defaults
    *("paper", "paper_seeds", "max_seeds", "tested", "form", "min_ok", "plot", "caption", "expected", "counterpart", "sibling"),
    *("printed", "talks", "recorded", "recorded_seeds"),
)
BY = (
    *(
        "None",
        "0",
        "-1",
        '""',
        "[]",
        "{}",
        "()",
        "object()",
        "print",
        "float('nan')",
        "jnp.zeros(0)",
        "jnp.ones((2, 3))",
        "1e400",
        "x",
    ),
    *(
        '"\\ud800"',
        '"a/b"',
        '"seed"',
        '"cell"',
        "lambda *a: None",
        "exit(0)",
        "1 / 0",
        "s",
        "jd",
        "True",
        "'λ'",
        "jax.nn.relu",
        "10**20",
    ),
)
CONTENTS = (
    b"",
    b"null",
    b"[]",
    b"{}",
    b"[null]",
    b'{"claims": null}',
    b'{"claims": [null]}',
    b"\x00" * 64,
    b"\xff\xfe",
    b"nan",
    b'"a"',
)


@dataclasses.dataclass
class Result:
    """What came of a case: exit code, what was said, what was printed, and why it is a fault, if it is one."""

    words: str
    code: int | None = None
    said: str = ""
    printed: str = ""
    fault: str | None = None


class TooLong(BaseException):
    """Raised by the alarm; no code of the package's or a user's may catch it."""


@contextlib.contextmanager
def alarm(seconds):
    """Raise ``TooLong`` after so many seconds."""

    def ring(*_):
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def called(words, function):
    """The result of a call that gives an exit code."""
    out, err, result = io.StringIO(), io.StringIO(), Result(words)
    try:
        with alarm(LIMIT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            result.code = function()
    except SystemExit as end:  # of --help and --version
        result.code = 0 if end.code in (None, 0) else 99
    except TooLong:
        result.fault = f"not over after {LIMIT} s"
    except BaseException:
        result.fault = "traceback: " + traceback.format_exc(limit=-4)
    result.said, result.printed = err.getvalue(), out.getvalue()
    if result.fault is None:
        result.fault = _fault(result)
    return result


def _fault(result):
    if result.code not in (0, 1, 2):
        return f"exit code {result.code}"
    if "Traceback" in result.said + result.printed and "--debug" not in result.words:
        return "a traceback was shown"
    sentences = [line for line in result.said.splitlines() if line.startswith("jaxdyn: ")]
    erring = " error  (expected " in result.said  # a claim that errs says why below its verdict
    if result.code == 2 and len(sentences) != 1 - erring:
        return f"{len(sentences)} sentences instead of one"
    return None


def python(function):
    """A call from Python as an exit code: 2 for one sentence."""

    def run():
        try:
            function()
        except jd.UsageError as error:
            print(f"jaxdyn: {' '.join(str(error).split())}", file=__import__("sys").stderr)
            return 2
        return 0

    return run


def numbers(text):
    """Verdicts and values of a verification's JSON."""
    return [(c["id"], c["verdict"], c["checks"], c["resolution"]) for c in json.loads(text)["claims"]]


class Campaign:
    """Cases in a folder of their own, with an undamaged run to compare with."""

    def __init__(self, folder):
        """Make the claim, the cache and the undamaged run."""
        self.folder = Path(folder)
        os.chdir(self.folder)
        Path("mine.py").write_text(CLAIMS, encoding="utf-8")
        os.environ["JAXDYN_CACHE"] = str(self.folder / "cache")
        self.verify = ["verify", "--load", "mine.py", "mine", "--json", "--workers", "1", "--out"]
        whole = called("undamaged", lambda: main([*self.verify, "whole"]))
        assert whole.code == 0, whole
        self.expected = numbers(whole.printed)
        self.listed = called("undamaged", lambda: main(LIST)).printed
        self.toy = load_file("mine.py")

    def case(self, number):
        """The result of one case."""
        rng = random.Random(number)
        kind = KINDS[number % len(KINDS)]
        result = getattr(self, f"_{kind}")(rng)
        result.words = f"{number} {result.words}"
        return result

    def _command(self, rng):
        words = [rng.choice(COMMANDS)]
        words += ["--load", "mine.py"] if rng.random() < 0.7 and words[0] in ("list", "show", "verify", "map") else []
        words += [rng.choice(["mine", "mine.decay", *VALUES])] if rng.random() < 0.8 else []
        for _ in range(rng.randrange(4)):
            if rng.random() < 0.25:
                words.append(rng.choice(FLAGS))
            else:
                option, value = rng.choice(OPTIONS), rng.choice(VALUES)
                field = f"{rng.choice(FIELDS)}={value}" if option in ("--set", "--over") and rng.random() < 0.8 else value
                words += [option, field]
        runs = words[0] in ("verify", "map")
        words += ["--load", "mine.py"] if runs and "mine.py" not in words else []
        words += ["mine.decay"] if runs and not {"mine", "mine.decay"} & {*words} else []  # all theories would take long
        words += ["--out", "out"] if runs and "--out" not in words else []
        words += ["--workers", "1"] if runs and "--workers" not in words else []
        shutil.rmtree("out", ignore_errors=True)
        words = [w for w in words if "\x00" not in w]  # no shell can pass it
        return called(" ".join(map(repr, words)), lambda: main(words))

    def _model(self, rng):
        """Commands about models; ``llama-9M`` and a small config.json are there, no weights are."""
        words = [rng.choice(["memory", "memory", "memory", "probe", "models"])]
        words += [rng.choice(["show", "show", "get", *VALUES[:3]])] if words == ["models"] else []
        words += [rng.choice(["llama-9M", "config.json", "mine.py", "whole", *VALUES])] if rng.random() < 0.9 else []
        for _ in range(rng.randrange(3)):
            words += [rng.choice(MODEL_OPTIONS), rng.choice(["full", "galore", "bf16", "8bit", "long", *VALUES])]
        words += ["--method", rng.choice(["full", "lora"])] if words[0] == "memory" else []  # all of them take long
        changed = {rng.choice(list(CONFIG)): rng.choice([None, -1, 0, 1, 3, 2**31, 10**30, 0.5, float("nan"), "64", [], {}, True])}
        Path("config.json").write_text(json.dumps(CONFIG | (changed if rng.random() < 0.5 else {})), encoding="utf-8")
        words = [w for w in words if "\x00" not in w]
        return called(" ".join(map(repr, words)), lambda: main(words))

    def _setting(self, rng):
        fields = {rng.choice(FIELDS): rng.choice(PYTHON) for _ in range(rng.randrange(1, 3))}
        seeds, claim = rng.choice([2, 2, 2, *PYTHON]), self.toy.CLAIMS[0]
        ways = {
            "grid": lambda: jd.sweep(self.toy.trial, jd.grid(self.toy.Toy, **fields), seeds),
            "Toy": lambda: self.toy.Toy(**fields),
            "verify": lambda: jd.verify(claim, seeds=seeds, **fields),
            "many": lambda: jd.verify_many([claim], by=rng.choice(["", "lr", "nothing", "seed"]), **fields),
        }
        way = rng.choice(list(ways))
        if way == "Toy":  # dataclasses refuse unknown names themselves
            fields = {name: value for name, value in fields.items() if name in self.toy.Toy.hints}
        return called(f"{way} {fields!r} seeds={seeds!r}", python(ways[way]))

    def _claim(self, rng):
        text, changes = CLAIMS, []
        for _ in range(rng.randrange(1, 3)):
            old, new = rng.choice(REPLACED), rng.choice(BY)
            new = old[: old.find("=") + 1] + new if re.match(r"\w+=", old) else new
            places = [i for i in range(len(text)) if text.startswith(old, i)]
            if places:
                at = rng.choice(places)
                text, changes = text[:at] + new + text[at + len(old) :], [*changes, f"{old} -> {new}"]
        if rng.random() < 0.4:
            added = f"{rng.choice(ADDED)}={rng.choice(BY)}"
            text, changes = text.replace("seeds=2,", f"seeds=2, {added},"), [*changes, added]
        Path("changed.py").write_text(text, encoding="utf-8")
        words = ["verify", "--load", "changed.py", "mine", "--workers", "1", "--out", "changed"]
        shutil.rmtree("changed", ignore_errors=True)
        return called("; ".join(changes), lambda: main(words))

    def _hurt(self, file, rng):
        """Damage a file or folder; returns how."""
        content, ways = file.read_bytes(), ["emptied", "halved", "flipped", "replaced", "removed", "a folder", "doubled"]
        way = rng.choice(ways)
        if way == "flipped" and content:
            at = rng.randrange(len(content))
            content = content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
        changed = {"emptied": b"", "halved": content[: len(content) // 2], "replaced": rng.choice(CONTENTS), "doubled": content * 2}
        file.unlink()
        if way == "a folder":
            file.mkdir()
        elif way != "removed":
            file.write_bytes(changed.get(way, content))
        return way

    def _same(self, result):
        """The fault of a result that is neither the undamaged one nor one sentence."""
        if result.fault is None and result.code != 2 and numbers(result.printed) != self.expected:
            result.fault = "other numbers than undamaged"
        return result

    def _store(self, rng):
        shutil.rmtree("hurt", ignore_errors=True)
        shutil.copytree("whole", "hurt")
        done = []
        for _ in range(rng.randrange(1, 3)):
            files = sorted(p for p in Path("hurt").rglob("*") if p.is_file() and p.name != ".lock")
            file = rng.choice(files)
            done.append(f"{file.suffix or file.name} {self._hurt(file, rng)}")
        words = f"store: {', '.join(done)}"
        if rng.random() < 0.3:
            return called(f"report of {words}", lambda: main(["report", "hurt"]))
        return self._same(called(words, lambda: main([*self.verify, "hurt"])))

    def _cache(self, rng):
        _forget()
        shutil.rmtree("again", ignore_errors=True)
        dear = "catalogue-theories" if rng.random() < 0.95 else " "  # takes ten seconds to make again
        files = sorted(p for p in Path("cache").glob("*.jsonl") if not p.name.startswith(dear))
        done = [f"{file.name.split('-')[0]} {self._hurt(file, rng)}" for file in rng.sample(files, min(len(files), 2))]
        words = LIST if rng.random() < 0.3 else [*self.verify, "again"]
        result = called(f"cache: {', '.join(done)}; {words[0]}", lambda: main(words))
        result = self._same(result) if words[0] == "verify" else result
        if words is LIST and result.fault is None and result.printed != self.listed:
            result.fault = "another list than undamaged"
        if result.fault is None and result.code != 0:
            result.fault = f"exit code {result.code} because of a cache: {result.said}"
        for leftover in Path("cache").glob("*.jsonl"):
            if leftover.is_dir():
                leftover.rmdir()
        _forget()
        return result


def _forget():
    """Read the caches again, as a new process does."""
    for cached in (timings.measured_costs, timings.shipped_costs, timings.reference_costs, direct.shipped_programs):
        cached.cache_clear()
