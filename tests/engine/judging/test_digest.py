"""The digest of what a claim is judged by: it changes with what decides, and with nothing else; it is the same in every process."""

import dataclasses
import functools
import importlib
import os
import re
import shutil
import subprocess
import sys
import threading

import pytest

import jaxdyn as jd
from jaxdyn.engine.base import syntax
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.judging import digest as digest_module
from jaxdyn.engine.judging.digest import digest, whole_digest, why_unknown

SOURCE = '''
import functools
import jax.numpy as jnp
import numpy as np
import jaxdyn as jd

BOUND = {bound}
WEIGHTS = np.array([1.0, {weight}])
NAMES = {{"a", "b", "c"}}


@jd.setting
class Toy:
    x: jd.Swept = 1.0


def trial(s, key):
    return jd.observables(predicted={{"z": s.x}}, measured={{"z": s.x}}, recorded={{"start": 0 * s.x}})


def error(ds):
    """{words}"""
    return {error}  # {words}


def judge(ds, *, least=0.0):
    return [jd.at_most("error", error(ds) * WEIGHTS[0] + len(NAMES) * 0, BOUND)]


CLAIMS = [
    jd.Claim(id="toy.law", title="{words}", statement="{words}", source="{words}", trial=trial, quick=jd.grid(Toy, x=[1.0, 2.0]),
        judge=functools.partial(judge, least={least}), evidence="algebra", bounds="derived",
        controls={{"other": {control}}}, rivals={{"still": {rival}}})
]
'''
PLAIN = {
    "bound": "0.1",
    "weight": "2.0",
    "words": "Words",
    "error": "abs(ds.measured_z - ds.predicted_z)",
    "least": "0.0",
    "control": '{"x": 3.0}',
    "rival": 'jd.swap(predicted_z="start")',
}


def of(folder, **changes):
    folder.mkdir()
    (folder / "toy.py").write_text(SOURCE.format(**PLAIN | changes), encoding="utf-8")
    return digest(load_file(folder / "toy.py").CLAIMS[0])


@pytest.mark.parametrize(
    "change",
    [
        {"bound": "0.2"},
        {"weight": "3.0"},
        {"error": "abs(ds.measured_z - ds.predicted_z) / 2"},
        {"least": "1.0"},
        {"control": '{"x": 4.0}'},
        {"control": 'jd.Control({"x": 3.0}, every_seed=True)'},
        {"rival": 'jd.swap(predicted_z="measured_z")'},
        {"rival": "jd.swap(predicted_z=lambda ds: 2 * ds.start)"},
        {"rival": '{"error": 1.0}'},
    ],
    ids=lambda change: "-".join(change),
)
def test_it_changes_with_what_decides(tmp_path, change):
    assert of(tmp_path / "one") != of(tmp_path / "other", **change)


def test_words_and_marks_make_no_difference(tmp_path):
    """Documentation, comments, titles, where the file lies, and which rival is the mechanism switched off."""
    plain = of(tmp_path / "one")
    assert plain == of(tmp_path / "other", words="Other words, at length") == of(tmp_path / "third")
    assert plain == of(tmp_path / "off", rival='jd.off(predicted_z="start")')


EDITS = {
    "a bound within the judge": ("least=0.0):", "least=1.0):"),
    "a function that it calls": ("abs(ds.measured_z - ds.predicted_z)", "0 * ds.measured_z"),
    "a rival": ("2 * ds.start", "3 * ds.start"),
    "lines above": ("BOUND = ", "# a remark\n\nBOUND = "),
    "what is no Python any more": ("def judge(", "def judge(("),
}


@pytest.mark.parametrize("edit", EDITS)
def test_it_is_of_the_code_that_was_loaded(tmp_path, edit):
    """A file that is edited while its claims are verified is not what judged them."""
    file = tmp_path / "toy.py"
    file.write_text(SOURCE.format(**PLAIN | {"rival": "jd.swap(predicted_z=lambda ds: 2 * ds.start)"}), encoding="utf-8")
    (claim,) = load_file(file).CLAIMS
    loaded = digest(claim)
    file.write_text(file.read_text(encoding="utf-8").replace(*EDITS[edit]), encoding="utf-8")
    late = digest(claim)
    if edit == "what is no Python any more":
        assert late != loaded, "marked as another's, since nothing tells that it is not"
        return
    (again,) = load_file(file).CLAIMS
    assert (digest(again) == loaded) is (edit == "lines above")
    assert late == loaded if edit == "lines above" else late not in (None, digest(again))


def test_the_whole_digest_is_of_all_but_the_runs(tmp_path):
    (tmp_path / "toy.py").write_text(SOURCE.format(**PLAIN), encoding="utf-8")
    claim = load_file(tmp_path / "toy.py").CLAIMS[0]
    assert (
        whole_digest(claim)
        == whole_digest(dataclasses.replace(claim))
        == whole_digest(dataclasses.replace(claim, paper=claim.quick))
    )
    others = {
        "statement": "Another.",
        "min_ok": 0.5,
        "assumes": (jd.above("x", 1.0),),
        "caption": "Axes.",
        "plot": lambda ds, fig: None,
    }
    found = {whole_digest(dataclasses.replace(claim, **{name: value})) for name, value in others.items()}
    assert len(found | {whole_digest(claim)}) == 1 + len(others) and None not in found
    assert whole_digest(dataclasses.replace(claim, judge=threading.Lock().acquire)) is None


def test_it_tells_lambdas_apart(tmp_path):
    first, second = "jd.swap(predicted_z=lambda ds: 2 * ds.start)", "jd.swap(predicted_z=lambda ds: 3 * ds.start)"
    assert of(tmp_path / "one", rival=first) != of(tmp_path / "other", rival=second)


@pytest.mark.slow
def test_it_is_the_same_in_every_process():
    code = "from jaxdyn.engine.catalogue.registry import all_claims; from jaxdyn.engine.judging.digest import digest; "
    code += "print([digest(c) for c in all_claims(theories={'gromov'}).values()])"
    seen = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        seen.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8", check=True).stdout)
    assert len(seen) == 1 and len(eval(seen.pop())) == 4


def test_a_judge_made_at_a_prompt_has_one(claim):
    code = compile("def judge(ds):\n    return [jd.at_most('z', ds.measured_z, 1.0)]\n", "<prompt>", "exec")
    names = {"jd": jd}
    exec(code, names)
    assert digest(claim(judge=names["judge"])) != digest(claim())


HELD = '''
import collections, dataclasses, enum, functools, types
import jax, jax.numpy as jnp
import numpy as np
import xarray as xr
import jaxdyn as jd

LIMIT = {limit}

@jd.setting
class Toy:
    x: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(predicted={{"z": s.x}}, measured={{"z": s.x}})

@dataclasses.dataclass(frozen=True)
class Data:
    limit: float

@dataclasses.dataclass
class Defaults:
    limit: float = {limit}
    more: dict = dataclasses.field(default_factory=lambda: {{"limit": {limit}}})

class Plain:
    """{words}"""
    limit = {limit}
    def method(self): return {limit}
    @property
    def read(self): return {limit}
    @staticmethod
    def static(): return {limit}

class Slots:
    __slots__ = ("limit",)
    def __init__(self): self.limit = {limit}

class Derived(Plain):
    pass

class Pair(collections.namedtuple("Pair", "low high")):
    def middle(self): return (self.low + self.high) / 2 * {limit}

class Levels(enum.Enum):
    STRICT = {limit}

class Judge:
    def __init__(self): self.limit = {limit}
    def __call__(self, ds): return [jd.at_most("z", ds.measured_z, self.limit)]
    def method(self, ds): return self(ds)

@functools.cache
def cached(): return {limit}

@functools.lru_cache
def cached_too(): return {limit}

@jax.jit
def jitted(x): return x * {limit}

NAMESPACE, DATA, SLOTS = types.SimpleNamespace(limit={limit}), Data({limit}), Slots()
SLICE, RANGE, QUEUE = slice(0, int({limit})), range(int({limit})), collections.deque([{limit}])
BIG, SHORT, OBJECTS = np.full(20_000, {limit}), np.float32({limit}), np.array([None, {limit}], object)
DAY, ONE = np.datetime64("2026-01-01") + int({limit}), np.array({limit})
JAX, LABELLED = jnp.asarray({limit}), xr.DataArray([1.0, {limit}], dims="i", coords={{"i": [0, 1]}})
COORDS, WHOLE = xr.DataArray([1.0], dims="i", coords={{"i": [{limit}]}}), xr.Dataset({{"x": ("i", [{limit}])}})
PARTIAL, BOUND = functools.partial(max, {limit}), Judge().method
CIRCLE = types.SimpleNamespace(limit={limit})
CIRCLE.again = CIRCLE
NESTED = {{"a": [types.SimpleNamespace(inner=(Data({limit}),))]}}

def judge(ds):
    limit = {how}
    return [jd.at_most("z", ds.measured_z, limit)]

CLAIMS = [
    jd.Claim(id="toy.law", title="x", statement="x", source="x", trial=trial, quick=jd.grid(Toy, x=[1.0, 2.0]),
        judge={judge}, evidence="algebra", bounds="derived", controls={{"other": {{"x": 3.0}}}})
]
'''
HOWS = [
    *("NAMESPACE.limit", "DATA.limit", "Data(LIMIT).limit", "Defaults().limit", "Defaults().more['limit']", "SLOTS.limit"),
    *("Plain.limit", "Plain().method()", "Plain().read", "Plain.static()", "Derived.limit", "Pair(1, 2).middle()"),
    *("Levels.STRICT.value", "cached()", "cached_too()", "jitted(1.0)", "ds.z[SLICE]", "len(RANGE)", "QUEUE[0]", "BIG[0]", "SHORT"),
    *("OBJECTS[1]", "DAY", "ONE", "float(JAX)", "LABELLED[1]", "COORDS.i", "WHOLE.x", "PARTIAL()", "BOUND"),
    *("CIRCLE.limit", "NESTED"),
]


def held(folder, limit="2.0", how="LIMIT", judge="judge", words="words"):
    folder.mkdir()
    (folder / "toy.py").write_text(HELD.format(limit=limit, how=how, judge=judge, words=words), encoding="utf-8")
    return digest(load_file(folder / "toy.py").CLAIMS[0])


@pytest.mark.parametrize("how", HOWS)
def test_a_limit_counts_wherever_it_is_held(tmp_path, how):
    one, same = held(tmp_path / "1", how=how), held(tmp_path / "2", how=how, words="others")
    other = held(tmp_path / "3", "3.0", how)
    assert one == same != other and None not in (one, other)


@pytest.mark.parametrize("judge", ["Judge()", "Judge().method", "functools.partial(Judge().method)"])
def test_a_judge_may_be_an_object_or_a_method(tmp_path, judge):
    one, same, other = (held(tmp_path / name, limit, judge=judge) for name, limit in (("1", "2.0"), ("2", "2.0"), ("3", "3.0")))
    assert one == same != other and None not in (one, other)


def test_values_that_are_calculated_once_may_be_there_or_not(claim):
    class Lazy:
        def __init__(self):
            self.given = 1

        @functools.cached_property
        def late(self):
            return self.given + 1

    new, used = Lazy(), Lazy()
    assert used.late == 2
    judges = [lambda ds, lazy=lazy: [lazy.late] for lazy in (new, used)]
    facts = {digest(dataclasses.replace(claim(), judge=judge)) for judge in judges}
    assert len(facts) == 1 and facts != {None}


@pytest.mark.parametrize("value", [threading.Lock(), (n for n in range(3))], ids=lambda value: type(value).__name__)
def test_what_cannot_be_hashed_makes_the_digest_unknown(claim, value):
    unknown = dataclasses.replace(claim(), judge=lambda ds, held=value: [])
    assert digest(unknown) is None and why_unknown(unknown) == f"an object of the class {type(value).__qualname__}"
    assert why_unknown(claim()) is None


def test_a_constant_counts_without_source(claim):
    def made(bound):
        names = {"jd": jd}
        exec(compile(f"def judge(ds):\n    return [jd.at_most('z', ds.measured_z, {bound})]\n", "<prompt>", "exec"), names)
        return digest(claim(judge=names["judge"]))

    assert made(0.1) == made(0.1) != made(0.2)


def test_what_holds_itself_has_a_digest(claim):
    circle = {"lr": 0.1}
    circle["again"] = [circle]
    found = [digest(dataclasses.replace(claim(), judge=lambda ds, value=value: [])) for value in (circle, {"lr": 0.2})]
    assert found[0] != found[1]


@pytest.mark.parametrize("whole", [True, False], ids=["package", "folder"])
def test_what_a_module_within_a_module_does_counts(tmp_path, whole, monkeypatch):
    """``import pkg.helper`` and ``pkg.helper.bound()``; a package, or a folder without a file of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for name, bound in (("one", "0.1"), ("same", "0.1"), ("other", "0.2")):
        package = f"digested_{whole}_{name}"
        (tmp_path / package).mkdir()
        if whole:
            (tmp_path / package / "__init__.py").write_text("", encoding="utf-8")
        (tmp_path / package / "helper.py").write_text(f"def bound():\n    return {bound}\n", encoding="utf-8")
        source = f"import {package}.helper\n" + SOURCE.replace("BOUND)]", f"{package}.helper.bound())]")
        (tmp_path / f"{package}_claims.py").write_text(source.format(**PLAIN), encoding="utf-8")
        found.append(digest(load_file(tmp_path / f"{package}_claims.py").CLAIMS[0]))
    assert None not in found and found[0] != found[2]


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of installed packages: ``packages(name, version, files, offers)`` installs one."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(name, version, files, offers=""):
        for info in site.glob(f"{name}-*"):
            shutil.rmtree(info)
        for module in [one for one in sys.modules if one.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        for path, text in files.items():
            (site / name).mkdir(exist_ok=True)
            (site / name / path).write_text(text, encoding="utf-8")
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        if offers:
            (info / "entry_points.txt").write_text(f"[jaxdyn.claims]\nmine = {offers}\n", encoding="utf-8")
        importlib.invalidate_caches()
        digest_module.offered.cache_clear()
        syntax.version_of.cache_clear()

    yield install
    monkeypatch.undo()
    digest_module.offered.cache_clear()
    syntax.version_of.cache_clear()


def test_an_installed_package_that_offers_claims_counts_by_its_source(packages):
    source = "from offering.helper import bound\n" + SOURCE.replace("BOUND)]", "bound())]").format(**PLAIN)
    found = []
    for bound in ("0.1", "0.1", "0.25"):
        files = {"__init__.py": "", "helper.py": f"def bound():\n    return {bound}\n", "claims.py": source}
        packages("offering", "1.0", files, "offering.claims")
        importlib.reload(importlib.import_module("offering.helper"))
        found.append(digest(importlib.import_module("offering.claims").CLAIMS[0]))
    assert None not in found and found[0] == found[1] != found[2]


def test_a_library_that_jaxdyn_does_not_need_counts_with_its_version(packages, claim):
    found = []
    for version in ("1.0", "1.0", "2.0"):
        packages("borrowed", version, {"__init__.py": "def bound(ds):\n    return []\n"})
        found.append(digest(dataclasses.replace(claim(), judge=importlib.import_module("borrowed").bound)))
    assert None not in found and found[0] == found[1] != found[2]


HOLDER = """
import collections, enum, functools, operator, types
import jax, jax.numpy as jnp, numpy as np, xarray as xr
import jaxdyn as jd

@jd.setting
class Toy:
    x: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(predicted={"z": s.x}, measured={"z": s.x})

%s

def judge(ds):
    return [jd.at_most("error", abs(ds.measured_z - ds.predicted_z), %s)]

CLAIMS = [
    jd.Claim(id="toy.held", title="T", statement="S", source="s", trial=trial, quick=jd.grid(Toy), judge=judge, evidence="algebra",
        bounds="derived", controls={"other": {"x": 3.0}}, rivals={})
]
"""
STATES = {  # how a bound is held, and how the judge gets at it
    "defaultdict": ("B = collections.defaultdict(lambda: §)", "B['q']"),
    "method of a dict": ("B = {'x': §}.get", "B('x')"),
    "method of an array": ("B = np.array([§]).item", "B(0)"),
    "method of a list": ("B = [§].__getitem__", "B(0)"),
    "method of a text": ("B = '{}§'.format", "float(B(''))"),
    "method of a number": ("B = (§).__add__", "B(0.0)"),
    "attrs": ("B = xr.DataArray([1.0], attrs={'b': §})", "B.attrs['b']"),
    "attrs of a dataset": ("B = xr.Dataset({'x': ('i', [1.0])}, attrs={'b': §})", "B.attrs['b']"),
    "attrs within a dataset": ("B = xr.Dataset({'x': ('i', [1.0], {'b': §})})", "B.x.attrs['b']"),
    "jit of a partial": ("B = jax.jit(functools.partial(operator.mul, §))", "float(B(1.0))"),
    "cache of a partial": ("B = functools.lru_cache(functools.partial(operator.mul, §))", "B(1.0)"),
    "attribute of a function": ("def B(): return 1\nB.b = §", "B.b"),
    "attribute of a partial": ("B = functools.partial(float, 1.0)\nB.b = §", "B.b"),
    "method of a dict's subclass": ("class D(dict):\n    def __missing__(self, k): return §\nB = D()", "B['x']"),
    "attribute of a list's subclass": ("class D(list):\n    b = §\nB = D()", "B.b"),
    "own attribute of a list's subclass": ("class D(list): pass\nB = D()\nB.b = §", "B.b"),
    "method of a float's subclass": ("class F(float):\n    def b(self): return §\nB = F(1)", "B.b()"),
    "method of a named tuple": ("class N(collections.namedtuple('N', 'a')):\n    def b(self): return §\nB = N(1)", "B.b()"),
    "method of a set's subclass": ("class D(set):\n    def b(self): return §\nB = D()", "B.b()"),
    "array of its own class": ("class A(np.ndarray):\n    b = §\nB = np.zeros(2).view(A)", "B.b"),
    "mask": ("B = np.ma.array([0.1, 0.2], mask=[§ > 0.3, False])", "float(B.min())"),
    "value under a mask": ("B = np.ma.array([§, 0.2], mask=[False, True])", "float(B.min())"),
    "metaclass": ("class M(type):\n    b = §\nclass C(metaclass=M): pass", "C.b"),
    "structured array of objects": ("B = np.array([(§,)], dtype=[('b', object)])", "B['b'][0]"),
    "singledispatch": ("@functools.singledispatch\ndef B(x): return 1\n@B.register\ndef _(x: int): return §", "B(1)"),
    "mapping proxy": ("B = types.MappingProxyType({'b': §})", "B['b']"),
    "method of an enumeration": ("class E(enum.Enum):\n    A = 1\n    def b(self): return §", "E.A.b()"),
}


@pytest.mark.parametrize("how", STATES)
def test_a_state_counts_whatever_holds_it(tmp_path, how):
    found = []
    for name, value in (("one", "0.21"), ("two", "0.35"), ("again", "0.21")):
        file = tmp_path / f"held_{name}.py"
        file.write_text(HOLDER % tuple(text.replace("§", value) for text in STATES[how]), encoding="utf-8")
        found.append(digest(load_file(file).CLAIMS[0]))
    assert None not in found and found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    ("code", "bound", "why"),
    [
        ("B = np.frompyfunc(lambda x: 0.1 * x, 1, 1)", "float(B(1.0))", "a function that numpy.frompyfunc made"),
        ("B = 0.1", "globals()['B']", r"a function that uses globals\(\)"),
        ("B = 0.1", "eval('B')", r"a function that uses eval\(\)"),
        ("B = 'bound.txt'", "float(open(B).read())", r"a function that uses open\(\)"),
        ("from pathlib import Path", "float(Path('bound.txt').read_text())", r"a function that uses read_text\(\)"),
        ("B = 'bound.txt'", "float(np.loadtxt(B))", r"a function that uses loadtxt\(\)"),
        ("B = 'bound.npy'", "float(np.load(B))", r"a function that uses load\(\)"),
        ("import os", "float(os.environ['B'])", r"a function that uses environ\(\)"),
        ("import importlib", "importlib.import_module('bounds').B", r"a function that uses import_module\(\)"),
        ("class M(type):\n    def __getattr__(cls, name): return 0.1\nclass B(metaclass=M): pass", "B.b", "cannot be read"),
    ],
)
def test_what_the_code_does_not_tell_is_unknown(tmp_path, code, bound, why):
    (tmp_path / "hidden.py").write_text(HOLDER % (code, bound), encoding="utf-8")
    (claim,) = load_file(tmp_path / "hidden.py").CLAIMS
    assert digest(claim) is None and re.search(why, why_unknown(claim))
