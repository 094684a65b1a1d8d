"""What ran is what is stored: whatever changes a trial's numbers makes other runs, and nothing else does."""

import concurrent.futures as cf
import multiprocessing
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file, ref_to
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs.chunk import RUNNER, Program
from jaxdyn.engine.programs.tracing import Impure, trace, trace_pure, traced

PACKAGE = Path(jd.__file__).parent
CELL = """
import functools
import json
import os
import jax
import jax.numpy as jnp
import numpy as np
import jaxdyn as jd
{lines}

@jd.setting
class Cell:
    rate: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(measured={{"x": s.rate * {factor}}})
"""


def swept(module, **options):
    return jd.sweep(module.trial, jd.grid(module.Cell), **options).measured_x.item()


def shards(folder):
    return {path.name.partition(".")[0]: path.stat().st_mtime_ns for path in folder.glob("shards/*/*.nc")}


# what reaches a trial by way of other files, registries and decorators

REGISTRY = "REG = {}\ndef reg(f):\n    REG[f.__name__] = f\n    return f\n"
HELPED = {  # files; how the trial uses them
    "names": ({"hlp": "def law(x): return x * 1\n"}, "from hlp import law", "law(1.0)"),
    "module": ({"hlp": "FACTOR = 1 * 1\n"}, "import hlp", "hlp.FACTOR"),
    "all names": ({"hlp": "def law(x): return x * 1\n"}, "from hlp import *", "law(1.0)"),
    "all names of a helper's": (
        {"hlp": "from far import *\ndef law(x): return far(x)\n", "far": "def far(x): return x * 1\n"},
        "from hlp import law",
        "law(1.0)",
    ),
    "package": ({"pkg/mod": "", "pkg/__init__": "def law(x): return x * 1\n"}, "import pkg.mod", "pkg.law(1.0)"),
    "package of a name": (
        {"pkg/mod": "def law(x): return x\n", "pkg/__init__": "import pkg.mod\npkg.mod.law = lambda x: x * 1\n"},
        "from pkg.mod import law",
        "law(1.0)",
    ),
    "registry": ({}, f"{REGISTRY}@reg\ndef law(x): return x * 1", "REG['law'](1.0)"),
    "registry without decorator": ({}, f"{REGISTRY}done = reg(lambda x: x * 1)", "REG['<lambda>'](1.0)"),
    "registry through a function": (
        {},
        f"{REGISTRY}def both(f):\n    return reg(f)\n@both\ndef law(x): return x * 1",
        "REG['law'](1.0)",
    ),
    "registry of a helper": (
        {"hlp": REGISTRY},
        "from hlp import reg, REG\n@reg\ndef law(x): return x * 1",
        "REG['law'](1.0)",
    ),
    "item": ({}, "REG = {}\ndef law(x): return x * 1\nREG['law'] = law", "REG['law'](1.0)"),
    "update": ({}, "REG = {}\ndef law(x): return x * 1\n_ = REG.update(law=law)", "REG['law'](1.0)"),
    "dispatch": (
        {},
        "@functools.singledispatch\ndef law(k, x): ...\n@law.register\ndef _(k: int, x): return x * 1",
        "law(1, 1.0)",
    ),
    "derivative": (
        {},
        "@jax.custom_jvp\ndef law(x): return x\n@law.defjvp\ndef rule(p, t): return p[0], t[0] * 1",
        "jax.grad(law)(s.rate)",
    ),
    "derivative without decorator": (
        {},
        "@jax.custom_jvp\ndef law(x): return x\ndef rule(p, t): return p[0], t[0] * 1\nlaw.defjvp(rule)",
        "jax.grad(law)(s.rate)",
    ),
    "reverse derivative": (
        {},
        "@jax.custom_vjp\ndef law(x): return x\nlaw.defvjp(lambda x: (x, None), lambda _, g: (g * 1,))",
        "jax.grad(law)(s.rate)",
    ),
    "name in an expression": ({}, "_ = (law := lambda x: x * 1)", "law(1.0)"),
    "own module by its name": ({}, "import sys\nme = sys.modules[__name__]\ndef law(x): return x * 1", "getattr(me, 'law')(1.0)"),
    "inner function that is compiled": ({}, "@jax.jit\ndef law(x): return x * 1", "law(s.rate)"),
    "code from a text": ({}, "LAW = 'x * 1'", "eval(LAW, {'x': 1.0})"),
}


@pytest.mark.parametrize("name", HELPED)
def test_what_reaches_a_trial_without_its_name_counts(tmp_path, name):
    """The factor 1 becomes 2 somewhere in the files: a sweep in the same folder has the new number."""
    number, got = list(HELPED).index(name), []
    for factor in ("* 1", "* 2"):
        files, lines, used = HELPED[name]
        for file, text in {**files, "trial": CELL.format(lines=lines, factor=used)}.items():
            place = tmp_path / f"{own(file, number)}.py"
            place.parent.mkdir(exist_ok=True)
            place.write_text(own(text, number).replace("* 1", factor), encoding="utf-8")
        got.append(swept(load_file(tmp_path / f"{own('trial', number)}.py"), out=tmp_path / "out"))
    assert got == [1.0, 2.0]


def own(text, number):
    """A process holds one module of a name: each case has its own."""
    for name in ("hlp", "pkg", "far"):
        text = text.replace(name, f"{name}{number}")
    return text


# what a module's names hold, in the same process

HEAD = """
import collections, dataclasses, enum, fractions, functools, types
import jax
import numpy as np
import optax
import xarray as xr
import jaxdyn as jd

@jd.setting
class Cell:
    rate: jd.Swept = 1.0

@dataclasses.dataclass
class Options:
    rate: float = 1.0

class Law:
    rate = 1.0
    def __init__(self, rate=1.0):
        self.rate = rate
    def __call__(self, x):
        return self.rate * x

def scaled(k):
    def law(x):
        return k * x
    return law
"""
STATIC = "type('A', (), {'f': staticmethod(lambda x: %s * x)})"
KINDS = {  # what THING is, what becomes of it, and how a trial uses it
    "number": ("1.0", "THING = 3.0", "THING * x"),
    "sign of zero": ("0.0", "THING = -0.0", "jax.numpy.copysign(x, THING)"),
    "dataclass": ("Options(1.0)", "THING = Options(3.0)", "THING.rate * x"),
    "changed dataclass": ("Options(1.0)", "THING.rate = 3.0", "THING.rate * x"),
    "changed namespace": ("types.SimpleNamespace(rate=1.0)", "THING.rate = 3.0", "THING.rate * x"),
    "class": ("Law", "class Law:\n    rate = 3.0", "Law.rate * x"),
    "changed class": ("Law", "Law.rate = 3.0", "Law.rate * x"),
    "class of a base": ("type('Heir', (Law,), {})", "Law.rate = 3.0", "THING.rate * x"),
    "nested dict": ("{'a': [1.0, 2]}", "THING['a'][0] = 3.0", "THING['a'][0] * x"),
    "dict of lambdas": ("{'f': lambda x: x}", "THING = {'f': lambda x: 3 * x}", "THING['f'](x)"),
    "tuple of lambdas": ("(lambda x: x,)", "THING = (lambda x: 3 * x,)", "THING[0](x)"),
    "dict of closures": ("{'f': scaled(1.0), 'g': scaled(2.0)}", "THING['f'] = scaled(3.0)", "THING['f'](x)"),
    "partial": ("functools.partial(np.multiply, 1.0)", "THING = functools.partial(np.multiply, 3.0)", "THING(2.0) * x"),
    "callable": ("Law(1.0)", "THING = Law(3.0)", "THING(x)"),
    "method": ("Law(1.0).__call__", "THING = Law(3.0).__call__", "THING(x)"),
    "method of a dict": ("{'a': 1.0}.get", "THING = {'a': 3.0}.get", "THING('a') * x"),
    "static method": (STATIC % 1, f"THING = {STATIC % 3}", "THING.f(x)"),
    "member": ("enum.Enum('E', {'A': 1.0}).A", "THING = enum.Enum('E', {'A': 3.0}).A", "THING.value * x"),
    "range": ("range(1)", "THING = range(3)", "len(THING) * x"),
    "fraction": ("fractions.Fraction(1)", "THING = fractions.Fraction(3)", "float(THING) * x"),
    "view of a dict": ("types.MappingProxyType({'a': 1.0})", "THING = types.MappingProxyType({'a': 3.0})", "THING['a'] * x"),
    "named tuple": ("collections.namedtuple('P', 'a')(1.0)", "THING = THING._replace(a=3.0)", "THING.a * x"),
    "deque": ("collections.deque([1.0])", "THING[0] = 3.0", "THING[0] * x"),
    "array": ("np.arange(3.0)", "THING[1] = 5.0", "THING.sum() * x"),
    "labelled array": ("xr.DataArray([1.0])", "THING = xr.DataArray([3.0])", "THING.values[0] * x"),
    "masked array": ("np.ma.array([1.0, 2.0], mask=[0, 0])", "THING.mask = [1, 0]", "THING.sum() * x"),
    "array of objects": ("np.array([Options(1.0)])", "THING[0].rate = 3.0", "THING[0].rate * x"),
    "optimiser": ("optax.sgd(1.0)", "THING = optax.sgd(3.0)", "THING.update(x, THING.init(x))[0]"),
    "mapped function": ("jax.vmap(lambda x: x)", "THING = jax.vmap(lambda x: 3 * x)", "THING(x[None])[0]"),
    "compiled function": ("jax.jit(scaled(1.0))", "THING = jax.jit(scaled(3.0))", "THING(x)"),
    "cached function": ("functools.cache(scaled(1.0))", "THING = functools.cache(scaled(3.0))", "THING(2.0) * x"),
    "function of functions": ("np.vectorize(lambda x: x)", "THING = np.vectorize(lambda x: 3 * x)", "float(THING(1.0)) * x"),
    "attribute of a function": ("scaled(1.0)", "THING.rate = 3.0", "getattr(THING, 'rate', 1.0) * x"),
    "dispatch": ("functools.singledispatch(scaled(1.0))", "THING.register(int, lambda x: 3 * x)", "THING(1) * x"),
    "looked up by its text": ("1.0", "THING = 3.0", "globals()['THING'] * x"),
    "random numbers of a seed": ("1", "THING = 3", "np.random.default_rng(THING).normal() * x"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_value_counts_by_content(monkeypatch, tmp_path, name):
    """A trial of a notebook, which has no file; plain Python is the oracle. Back at the old value the old runs are used."""
    thing, change, use = KINDS[name]
    module = types.ModuleType("some_cells")
    monkeypatch.setitem(sys.modules, "some_cells", module)
    lines = f"{HEAD}\nTHING = {thing}\ndef trial(s, key):\n    x = s.rate\n    return jd.observables(measured={{'x': {use}}})\n"
    got, want, files = [], [], []
    for line in (lines, change, lines):
        exec(compile(line, "<cells>", "exec"), module.__dict__)
        got.append(swept(module, out=tmp_path / "out"))
        want.append(float(module.trial(module.Cell(rate=np_one()), None).measured["x"].value))
        files.append(shards(tmp_path / "out"))
    assert got == want and want[0] == want[2] != want[1]
    assert len(files[1]) == 2 and files[2] == files[1], "made anew once, and found again"


def np_one():
    import numpy as np

    return np.ones((), np.float64)


REMEMBERED = """
OPTIONS = {"factor": 2.0}
def step(x, _):
    return x * OPTIONS["factor"], None
@jax.jit
def compiled(x):
    return x * OPTIONS["factor"]
@functools.cache
def table():
    return OPTIONS["factor"]
def scanned(x):
    return jax.lax.scan(step, x, None, length=1)[0]
"""


@pytest.mark.parametrize("use", ["scanned(s.rate)", "compiled(s.rate)", "table() * s.rate", "jax.vmap(compiled)(s.rate[None])[0]"])
def test_nothing_older_than_a_change_is_remembered(tmp_path, use):
    """Neither by JAX, which traces a function once, nor by functools.cache."""
    (tmp_path / "trial.py").write_text(CELL.format(lines=REMEMBERED, factor=f"1.0 * ({use})"), encoding="utf-8")
    module, got = load_file(tmp_path / "trial.py"), []
    module.OPTIONS["factor"] = 1.0
    module.trial(module.Cell(rate=np_one()), None)  # by hand, before the first sweep
    for factor in (2.0, 3.0, 2.0):
        module.OPTIONS["factor"] = factor
        got.append(swept(module))
    assert got == [2.0, 3.0, 2.0]


def test_compiled_functions_of_others_are_kept(tmp_path):
    import jax

    traces = []

    @jax.jit
    def theirs(x):
        traces.append(x)
        return x + 1

    (tmp_path / "trial.py").write_text(CELL.format(lines="", factor="2.0"), encoding="utf-8")
    module = load_file(tmp_path / "trial.py")
    theirs(1.0)
    swept(module)
    theirs(2.0)
    assert len(traces) == 1


IMPURE = {
    "clock": "import time",
    "unseeded draw": "",
    "state": "COUNT = [0]\ndef count():\n    COUNT[0] += 1\n    return float(COUNT[0])",
}
USES = {"clock": "time.perf_counter()", "unseeded draw": "np.random.default_rng().normal()", "state": "count()"}


@pytest.mark.parametrize("name", IMPURE)
def test_a_trial_that_is_not_pure_is_refused(tmp_path, name):
    (tmp_path / "trial.py").write_text(CELL.format(lines=IMPURE[name], factor=USES[name]), encoding="utf-8")
    module = load_file(tmp_path / "trial.py")
    with pytest.raises(Impure, match=r"trial:trial is not allowed: traced twice, it is two programs") as refused:
        swept(module, out=tmp_path / "out")
    assert "\n" not in str(refused.value) and not list(tmp_path.glob("out/shards/*"))


def test_what_a_trial_keeps_for_itself_is_no_part_of_its_program(tmp_path):
    (tmp_path / "trial.py").write_text(CELL.format(lines="SEEN = []", factor="(SEEN.append(s), 2.0)[1]"), encoding="utf-8")
    assert swept(load_file(tmp_path / "trial.py")) == 2.0


def test_a_trial_that_calls_back_is_never_reused_and_says_so(tmp_path):
    use = "jax.pure_callback(lambda: np.float64(OPTIONS['x']), jax.ShapeDtypeStruct((), np.float64), vmap_method='sequential')"
    (tmp_path / "trial.py").write_text(CELL.format(lines="OPTIONS = {'x': 2.0}", factor=use), encoding="utf-8")
    module = load_file(tmp_path / "trial.py")
    with pytest.warns(UserWarning, match="calls back into Python.*which its program does not tell: its runs are made anew") as said:
        assert swept(module, out=tmp_path / "out") == 2.0
    assert len(said) == 1
    module.OPTIONS["x"] = 3.0
    with pytest.warns(UserWarning):
        assert swept(module, out=tmp_path / "out") == 3.0
    assert swept(module) == 3.0 and not list(tmp_path.glob("out/shards/*/*"))


# workers


def test_a_process_with_another_program_says_so(tmp_path):
    (tmp_path / "trial.py").write_text(CELL.format(lines="FACTOR = 2.0", factor="FACTOR"), encoding="utf-8")
    module = load_file(tmp_path / "trial.py")
    program = Program(ref_to(module.trial), ref_to(module.Cell), split(module.Cell())[0], fingerprint="cpu-" + "0" * 20)
    with pytest.raises(jd.UsageError, match="trial:trial is another program in this process than where its runs were planned"):
        traced(program)
    here = Program(program.trial, program.setting, program.static, fingerprint=trace(program).fingerprint)
    assert traced(here).fingerprint == here.fingerprint and trace_pure(here).fingerprint == here.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "change"), [("FACTOR = 2.0", "FACTOR"), ('FACTOR = {"rate": 1.0}', "rate")])
def test_a_worker_that_would_find_another_value_refuses(tmp_path, lines, change):
    """Global numbers and dicts that a script has set: workers import the module anew."""
    use = "FACTOR['rate']" if "{" in lines else "FACTOR"
    (tmp_path / "cell.py").write_text(CELL.format(lines=lines, factor=use), encoding="utf-8")
    module = load_file(tmp_path / "cell.py")
    if change == "rate":
        module.FACTOR["rate"] = 7.0
    else:
        module.FACTOR = 7.0
    assert swept(module, out=tmp_path / "here") == 7.0
    with (
        cf.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(jd.UsageError, match="a name that it uses holds another value"),
    ):
        swept(module, cluster=pool, out=tmp_path / "out")
    assert not list(tmp_path.glob("out/shards/*/*"))


# files, variables, and other processes

RUNS = """
import sys
import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
for folder in sys.argv[1:]:
    trial = load_file(f"{folder}/trial.py")
    print(jd.sweep(trial.trial, jd.grid(trial.Cell), out=f"{folder}/out").measured_x.item())
"""
WAYS = {
    "helper": ("from far_helper import FACTOR", "FACTOR"),
    "helper module": ("import far_helper", "far_helper.FACTOR"),
    "file": ("TABLE = np.loadtxt(os.path.join(os.path.dirname(__file__), 'table.txt'))", "TABLE"),
    "file while traced": ("", "np.loadtxt(os.path.join(os.path.dirname(__file__), 'table.txt'))"),
    "variable": ("FACTOR = float(os.environ['FACTOR'])", "FACTOR"),
    "variable while traced": ("", "float(os.environ['FACTOR'])"),
}


@pytest.mark.slow
def test_no_stale_runs_after_a_change_elsewhere(tmp_path):
    """A helper on the path, a file or a variable that is read: what is stored belongs to their state."""
    folders, got, files = [tmp_path / name.replace(" ", "_") for name in WAYS], [], []
    (tmp_path / "far").mkdir()
    for folder, (lines, factor) in zip(folders, WAYS.values(), strict=True):
        folder.mkdir()
        (folder / "trial.py").write_text(CELL.format(lines=lines, factor=factor), encoding="utf-8")
    for value in ("2.0", "3.0", "2.0"):
        (tmp_path / "far" / "far_helper.py").write_text(f"FACTOR = {value}\n", encoding="utf-8")
        for folder in folders:
            (folder / "table.txt").write_text(value, encoding="utf-8")
        path = os.pathsep.join([str(tmp_path / "far"), os.environ.get("PYTHONPATH", "")])
        got.append([float(line) for line in python(RUNS, *folders, FACTOR=value, PYTHONPATH=path)])
        files.append([shards(folder / "out") for folder in folders])
    assert got == [[2.0] * len(WAYS), [3.0] * len(WAYS), [2.0] * len(WAYS)]
    assert files[2] == files[1] and all(len(each) == 2 for each in files[2])


def python(code, *args, **variables):
    """The lines that a process of its own prints."""
    env = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], env=env, capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


COPIED = """
import sys
sys.path.insert(0, sys.argv[1])
import jaxdyn as jd
assert jd.__file__.startswith(sys.argv[1])
from jaxdyn.engine.base.reference import load_file
trial = load_file(sys.argv[2])
ds = jd.sweep(trial.trial, jd.grid(trial.Cell, rate=[2.0], way="sin"), out=sys.argv[3], executor=sys.argv[4])
print(ds.measured_x.item(), ds.status.item())
"""
DRAWN = """
import jax
import jax.numpy as jnp
import jaxdyn as jd

@jd.setting
class Cell:
    rate: jd.Swept = 1.0
    way: jd.Code = jd.code("cos", "sin")

def trial(s, key):
    x = s.rate * jax.random.uniform(key, (), jnp.float64)
    return jd.observables(measured={"x": jnp.where(s.way == "sin", jnp.sin(x), jnp.cos(x))})
"""
BETWEEN = {  # module: what it says, and what it might say
    "programs/tracing": ("jax.random.key(0, impl", "jax.random.key(1, impl"),
    "claims/setting": ("else float(cell[i])", "else 2 * float(cell[i])"),
    "claims/code_field": (
        "return self.index == Code.of(other, self.names).index",
        "return self.index != Code.of(other, self.names).index",
    ),
    "programs/program": ("np.asarray(item.value)[:n_seeds, :n_cells]", "3 * np.asarray(item.value)[:n_seeds, :n_cells]"),
    "storage/seeds": ("return np.arange(seeds.start, seeds.stop, dtype", "return 1 + np.arange(seeds.start, seeds.stop, dtype"),
    "programs/sequential": ("result = one({k: v[j]", "result = one({k: 2 * v[j]"),
    "claims/observables": ("return Observables(**groups, status=_status(status)", "return Observables(**groups, status=_status(2)"),
    "storage/shard": ("{str(name): var.values for", "{str(name): 5 * var.values for"),
}


def test_all_modules_between_a_trial_and_its_arrays_are_tried():
    assert BETWEEN.keys() == set(RUNNER)


@pytest.mark.slow
def test_a_change_between_a_trial_and_its_arrays_is_seen(tmp_path):
    """In a copy of the package each module is changed in turn, the one that derives the keys among them: nothing stored is used."""
    shutil.copytree(PACKAGE, tmp_path / "copy" / "jaxdyn", ignore=shutil.ignore_patterns("__pycache__", "theories", "recorded"))
    (tmp_path / "copy" / "jaxdyn" / "theories").mkdir()
    (tmp_path / "copy" / "jaxdyn" / "theories" / "__init__.py").touch()
    (tmp_path / "drawn.py").write_text(DRAWN, encoding="utf-8")

    def result():
        """What the sweep gives; None where it fails, as it does where other seeds are made than asked for."""
        command = [sys.executable, "-c", COPIED, tmp_path / "copy", tmp_path / "drawn.py", tmp_path / "out", "map"]
        done = subprocess.run(list(map(str, command)), capture_output=True, encoding="utf-8", timeout=300)
        return done.stdout if done.returncode == 0 else None

    plain = result()
    assert plain is not None
    files = shards(tmp_path / "out")
    for name, (before, after) in BETWEEN.items():
        file = tmp_path / "copy" / "jaxdyn" / "engine" / f"{name}.py"
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        file.write_text(text.replace(before, after), encoding="utf-8")
        assert result() != plain, name
        file.write_text(text.replace('"""', '"""Other words. ', 1), encoding="utf-8")
        assert result() == plain, name
        file.write_text(text, encoding="utf-8")
    assert files.items() <= shards(tmp_path / "out").items(), "a docstring made nothing anew"


# edits of a trial's file

PARTS = {
    "doc": '"""A topic."""',
    "helper": "def half(x):\n    return 0.5 * x",
    "rate": "RATE = 2.0",
    "cell": "@jd.setting\nclass Cell:\n    rate: jd.Swept = 1.0\n    size: int = 3",
    "trial": "def trial(s, key):\n    x = half(s.rate) * RATE + jax.random.uniform(key, (s.size,), jnp.float64)\n"
    "    return jd.observables(measured={'x': x.sum()})",
    "judge": "def judge(ds):\n    return [jd.at_most('x', ds.measured_x, 9.0)]",
    "plot": "def plot(ds, ax):\n    ax.plot([1], [2])",
    "claims": "CLAIMS = [jd.Claim(id='mine.law', title='A law', statement='A statement.', source='here', trial=trial, judge=judge, "
    "quick=jd.grid(Cell), controls={'two': {'rate': 20.0}}, evidence='algebra', bounds='derived', plot=plot)]",
}
ORDER = ("doc", "helper", "rate", "cell", "trial", "judge", "plot", "claims")
HARMLESS = {
    "docstring of the module": ("doc", '"""A topic.', '"""Another topic.'),
    "docstring of the trial": ("trial", "def trial(s, key):\n", 'def trial(s, key):\n    """One run."""\n'),
    "comment": ("trial", "    return jd", "    # what it returns\n    return jd"),
    "layout": ("helper", "def half(x):\n", "def half(x,\n         ):\n\n"),
    "name of a helper": ("rate", "RATE = ", "other = half\ndef half(x):\n    return other(x)\nRATE = "),
    "name inside": ("trial", "x = half(s.rate) * RATE", "x = y = half(s.rate) * RATE"),
    "bound": ("judge", "9.0", "8.0"),
    "title": ("claims", "title='A law'", "title='The law'"),
    "statement": ("claims", "A statement.", "Another statement."),
    "control": ("claims", "'rate': 20.0", "'rate': 30.0"),
    "plot": ("plot", "[2]", "[3]"),
}
TELLING = {
    "constant": ("rate", "RATE = 2.0", "RATE = 2.5"),
    "helper": ("helper", "0.5 * x", "0.25 * x"),
    "draw": ("trial", "jax.random.uniform(", "jax.random.normal("),
    "default of a static field": ("cell", "size: int = 3", "size: int = 4"),
    "result": ("trial", "'x': x.sum()", "'x': x.max()"),
}
EDITS = HARMLESS | TELLING


@pytest.fixture(scope="module")
def topic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("topic")

    def run(edits):
        parts = dict(PARTS)
        for name in edits:
            part, before, after = EDITS[name]
            assert before in parts[part], name
            parts[part] = parts[part].replace(before, after)
        source = "\n\n".join(parts[name] for name in ORDER)
        head = "\nimport jax\nimport jax.numpy as jnp\nimport jaxdyn as jd\n"
        (folder / "topic.py").write_text(source.replace('."""', f'."""{head}', 1), encoding="utf-8")
        module = load_file(folder / "topic.py")
        value = swept(module, out=folder / "out")
        return value, shards(folder / "out")

    return run


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sets(st.sampled_from(sorted(EDITS))))
def test_edits_run_anew_what_they_change_and_nothing_else(topic, edits):
    """Any set of edits: without one that tells, the runs of the file as it was are used; with one, they are not."""
    plain, before = topic([])
    value, after = topic(sorted(edits))
    telling = edits & TELLING.keys()
    assert (value != plain) is bool(telling)
    assert before.items() <= after.items()
    if not telling:
        assert after == before
    assert topic(sorted(telling)) == (value, after), "what is harmless adds nothing"


def test_a_renamed_module_and_a_moved_helper_run_nothing_again(tmp_path):
    body = CELL.format(lines="def law(x):\n    return 2.0 * x", factor="law(1.0)")
    (tmp_path / "one.py").write_text(body, encoding="utf-8")
    swept(load_file(tmp_path / "one.py"), out=tmp_path / "out")
    before = shards(tmp_path / "out")
    marker = tmp_path / "out" / "jaxdyn.json"
    (tmp_path / "moved_law.py").write_text("def law(x):\n    return 2.0 * x\n", encoding="utf-8")
    (tmp_path / "two.py").write_text(CELL.format(lines="from moved_law import law", factor="law(1.0)"), encoding="utf-8")
    marker.write_text(
        marker.read_text(encoding="utf-8").replace("one:trial", "two:trial"), encoding="utf-8"
    )  # the folder's purpose names the trial
    assert swept(load_file(tmp_path / "two.py"), out=tmp_path / "out") == 2.0 and shards(tmp_path / "out") == before
