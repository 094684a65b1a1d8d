"""What a trial's numbers depend on: own helpers wherever they are, packages, declared files and variables; what cannot be seen."""

import json
import os
import subprocess
import sys
import types

import pytest

import jaxdyn as jd
from jaxdyn.engine import registry
from jaxdyn.engine.reference import Ref, load_file, ref_to
from jaxdyn.engine.sources import doubts, renew, source_hash, warning


def test_source_hash_follows_own_helpers(tmp_path, monkeypatch):
    """A helper beside the trial's file decides its numbers as much as the file itself."""
    (tmp_path / "own_trial.py").write_text("from own_helper import factor\ndef trial(s, key): ...\n")
    helper = tmp_path / "own_helper.py"
    hashes = set()
    for text in ("factor = 1\n", "factor = 2\n"):
        helper.write_text(text)
        source_hash.cache_clear()
        hashes.add(source_hash(Ref("jaxdyn_user_own_trial_0", "trial", str(tmp_path / "own_trial.py"))))
    assert len(hashes) == 2


TOPIC = """
import jaxdyn as jd
from helper_of_trial import factor
from helper_of_judge import bound

class Setting:
    width = 3

SIZE = 2

def sizes():  # a comment
    return SIZE

def trial(s, key):
    return factor * sizes()

def judge(ds):
    return bound

CLAIMS = (judge,)
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("return bound", "return bound + 1", True),
        ("CLAIMS = (judge,)", "CLAIMS = (judge, 1)", True),
        ("# a comment", "# another", True),
        ("import jaxdyn as jd", '"""A docstring."""\nimport jaxdyn as jd', True),
        ("    return SIZE", '    """Another."""\n    return SIZE', True),
        ("SIZE = 2", "SIZE = 3", False),
        ("width = 3", "width = 4", False),
        ("factor * sizes()", "factor + sizes()", False),
        ("CLAIMS", "OTHERS", False),  # a module without claims counts whole
    ],
)
def test_source_hash_of_a_topic_leaves_out_judges_and_claims(tmp_path, old, new, same):
    """They stand in the trial's own file; runs that are stored stay valid when only these change."""
    file, hashes = tmp_path / "topic.py", []
    for text in (TOPIC, TOPIC.replace(old, new)):
        file.write_text(text)
        source_hash.cache_clear()
        hashes.append(source_hash(Ref("jaxdyn_user_topic_0", "trial", str(file))))
    assert (hashes[0] == hashes[1]) is same


def test_source_hash_of_a_topic_follows_what_its_trial_imports_alone(tmp_path):
    (tmp_path / "topic.py").write_text(TOPIC)
    for helper, same in (("helper_of_trial", False), ("helper_of_judge", True)):
        hashes = []
        for text in ("factor = bound = 1\n", "factor = bound = 2\n"):
            (tmp_path / f"{helper}.py").write_text(text)
            source_hash.cache_clear()
            hashes.append(source_hash(Ref("jaxdyn_user_topic_0", "trial", str(tmp_path / "topic.py"))))
        assert (hashes[0] == hashes[1]) is same


RUNS = """
import contextlib, io, json, sys
import jaxdyn as jd
from jaxdyn.engine.reference import load_file

for folder in sys.argv[1:]:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        trial = load_file(f"{folder}/trial.py")
        x = jd.sweep(trial.trial, jd.grid(trial.Cell), out=f"{folder}/out").measured_x.item()
    print(json.dumps([x, said.getvalue()]))
"""
TRIAL = """
import json
import os
import jaxdyn as jd
import numpy as np
{lines}

@jd.setting
class Cell:
    rate: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(measured={{"x": s.rate * {factor}}})
"""


def run(tmp_path, folders, **variables):
    """What sweeps give and say in a process of their own, with the stores of the processes before."""
    env = {**os.environ, "JAXDYN_CACHE": str(tmp_path / "cache"), **variables}
    command = [sys.executable, "-c", RUNS, *map(str, folders)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


WAYS = {
    "helper": ("from far_helper import FACTOR", "FACTOR"),
    "helper module": ("import far_helper", "far_helper.FACTOR"),
    "declared file": ("TABLE = np.loadtxt(jd.reads('table.txt'))", "TABLE"),
    "file": ("TABLE = np.loadtxt(os.path.join(os.path.dirname(__file__), 'table.txt'))", "TABLE"),
    "declared variable": ("FACTOR = float(jd.reads_variable('FACTOR', '1'))", "FACTOR"),
    "variable": ("FACTOR = float(os.environ['FACTOR'])", "FACTOR"),
    "variable while traced": ("", "float(os.environ['FACTOR'])"),
}


@pytest.mark.slow
def test_no_stale_runs_after_a_change_elsewhere(tmp_path):
    """A helper on the path, a file or a variable that is read: what is stored belongs to their state."""
    folders, got = [tmp_path / name.replace(" ", "_") for name in WAYS], []
    (tmp_path / "far").mkdir()
    for folder, (lines, factor) in zip(folders, WAYS.values(), strict=True):
        folder.mkdir()
        (folder / "trial.py").write_text(TRIAL.format(lines=lines, factor=factor))
    for value in ("2.0", "3.0"):
        (tmp_path / "far" / "far_helper.py").write_text(f"FACTOR = {value}\n")
        for folder in folders:
            (folder / "table.txt").write_text(value)
        path = os.pathsep.join([str(tmp_path / "far"), os.environ.get("PYTHONPATH", "")])
        got.append(run(tmp_path, folders, FACTOR=value, PYTHONPATH=path))
    for (name, (lines, factor)), *runs in zip(WAYS.items(), *got, strict=True):
        assert [number for number, _ in runs] == [2.0, 3.0], name
        declared = "os." not in lines + factor
        assert all(("its runs are made anew every time" in said) is not declared for _, said in runs), name


def texts(tmp_path, files, start):
    """What counts of these files for the trial in one of them."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    source_hash.cache_clear()
    return source_hash(Ref("jaxdyn_user_claims_0", "trial", str(tmp_path / start)))


def claims(lines, used):
    return f"import functools\nimport jax\nCLAIMS = []\n{lines}\ndef trial(s, key):\n    return {used}\n"


REGISTRY = "REG = {}\ndef reg(f):\n    REG[f.__name__] = f\n    return f\n"
HELPED = {
    "all names": {"claims.py": claims("from hlp import *", "law(s)"), "hlp.py": "def law(x): return x * 1\n"},
    "all names of a helper's": {
        **{"claims.py": claims("from hlp import law", "law(s)"), "hlp.py": "from far import *\ndef law(x): return far(x)\n"},
        "far.py": "def far(x): return x * 1\n",
    },
    "package": {
        **{"claims.py": claims("import pkg.mod", "pkg.law(s)"), "pkg/mod.py": ""},
        "pkg/__init__.py": "def law(x): return x * 1\n",
    },
    "package of a name": {
        **{"claims.py": claims("from pkg.mod import law", "law(s)"), "pkg/mod.py": "def law(x): return x\n"},
        "pkg/__init__.py": "import pkg.mod\npkg.mod.law = lambda x: x * 1\n",
    },
    "registry": {"claims.py": claims(f"{REGISTRY}@reg\ndef law(x): return x * 1", "REG['law'](s)")},
    "registry without decorator": {"claims.py": claims(f"{REGISTRY}done = reg(lambda x: x * 1)", "REG['law'](s)")},
    "registry through a function": {
        "claims.py": claims(f"{REGISTRY}def both(f):\n    return reg(f)\n@both\ndef law(x): return x * 1", "REG['law'](s)")
    },
    "registry of a helper": {
        **{"claims.py": claims("from hlp import reg, REG\n@reg\ndef law(x): return x * 1", "REG['law'](s)"), "hlp.py": REGISTRY},
    },
    "item": {"claims.py": claims("REG = {}\ndef law(x): return x * 1\nREG['law'] = law", "REG['law'](s)")},
    "update": {"claims.py": claims("REG = {}\ndef law(x): return x * 1\n_ = REG.update(law=law)", "REG['law'](s)")},
    "dispatch": {
        "claims.py": claims(
            "@functools.singledispatch\ndef law(k, x): ...\n@law.register\ndef _(k: int, x): return x * 1", "law(1, s)"
        )
    },
    "derivative": {
        "claims.py": claims("@jax.custom_jvp\ndef law(x): ...\n@law.defjvp\ndef rule(p, t): return p[0], t[0] * 1", "law(s)")
    },
    "derivative without decorator": {
        "claims.py": claims("@jax.custom_jvp\ndef law(x): ...\ndef rule(p, t): return p, t * 1\nlaw.defjvp(rule)", "law(s)")
    },
    "name in an expression": {"claims.py": claims("_ = (law := lambda x: x * 1)", "law(s)")},
    "own module by its name": {
        "claims.py": claims("import sys\nme = sys.modules[__name__]\ndef law(x): return x * 1", "getattr(me, 'law')(s)")
    },
}


@pytest.mark.parametrize("files", HELPED.values(), ids=HELPED)
def test_what_reaches_a_trial_without_its_name_counts(tmp_path, files):
    later = {
        name: text.replace("x * 1", "x * 2").replace("t[0] * 1", "t[0] * 2").replace("t * 1", "t * 2")
        for name, text in files.items()
    }
    assert later != files and texts(tmp_path, files, "claims.py") != texts(tmp_path, later, "claims.py")


def test_a_trial_in_a_package_follows_its_modules_and_the_packages_above(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    files = {
        **{"outer_pkg/__init__.py": "import jax\nTHEORY = 'page'\n", "outer_pkg/inner/law.py": "factor = 1\n"},
        "outer_pkg/inner/__init__.py": "from outer_pkg.inner.law import factor\ndef trial(s, key): return factor\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def now(name, text):
        (tmp_path / name).write_text(text)
        source_hash.cache_clear()
        return source_hash(Ref("outer_pkg.inner", "trial"))

    try:
        before = now("outer_pkg/__init__.py", files["outer_pkg/__init__.py"])
        assert now("outer_pkg/__init__.py", "import jax\nTHEORY = 'another page'\n") == before
        assert now("outer_pkg/__init__.py", "import jax\nTHEORY = 'page'\njax.config.update('jax_debug_nans', False)\n") != before
        now("outer_pkg/__init__.py", files["outer_pkg/__init__.py"])
        assert now("outer_pkg/inner/law.py", "factor = 2\n") != before
    finally:
        for name in [name for name in sys.modules if name.startswith("outer_pkg")]:
            del sys.modules[name]


def test_what_decorates_and_changes_other_things_does_not_count(tmp_path):
    lines = "{registry}@reg\ndef judge(ds): return {n}\n@jax.jit\ndef figure(ds): return {n}\nOTHERS = [judge({n})]"
    one, other = (claims(lines.format(registry=REGISTRY, n=n), "jax.numpy.sum(s)") for n in (1, 2))
    assert texts(tmp_path, {"claims.py": one}, "claims.py") == texts(tmp_path, {"claims.py": other}, "claims.py")


CELL = TRIAL.replace("{lines}", "FACTOR = 2.0\ndef scale():\n    return FACTOR").replace("{factor}", "scale()")


@pytest.mark.slow
def test_a_name_that_is_set_anew_is_seen_in_the_same_process(tmp_path):
    (tmp_path / "cell.py").write_text(CELL.replace("{{", "{").replace("}}", "}"))
    module = load_file(tmp_path / "cell.py")
    got = []
    for factor in (2.0, 3.0, 2.0):
        module.FACTOR = factor
        for out in (None, tmp_path / "out"):
            got.append(jd.sweep(module.trial, jd.grid(module.Cell), out=out).measured_x.item())
    assert got == [2.0, 2.0, 3.0, 3.0, 2.0, 2.0]


REMEMBERED = """
import functools
import jax
import jaxdyn as jd

@jd.setting
class Cell:
    rate: jd.Swept = 1.0

    @property
    def scaled(self):
        return self.rate * OPTIONS["factor"]

OPTIONS = {"factor": 2.0}
def step(x, _):
    return x * OPTIONS["factor"], None
@jax.jit
def compiled(x):
    return x * OPTIONS["factor"]
@functools.cache
def table():
    return OPTIONS["factor"]
class Odd:
    factor = 2.0
    def __reduce_ex__(self, protocol):
        raise TypeError
ODD = Odd()
def scanned(s, key):
    return jd.observables(measured={"x": jax.lax.scan(step, s.rate, None, length=1)[0]})
def jitted(s, key):
    return jd.observables(measured={"x": compiled(s.rate)})
def tabled(s, key):
    return jd.observables(measured={"x": s.rate * table()})
def odd(s, key):
    return jd.observables(measured={"x": s.rate * ODD.factor})
"""


@pytest.fixture(scope="module")
def remembering(tmp_path_factory):
    file = tmp_path_factory.mktemp("remembering") / "remembering.py"
    file.write_text(REMEMBERED)
    return load_file(file)


@pytest.mark.parametrize("name", ["scanned", "jitted", "tabled", "odd"])
def test_nothing_older_than_a_change_is_remembered(remembering, name):
    """Neither by JAX, which traces a function once, nor by functools.cache, nor of objects that cannot be compared."""
    got, trial = [], getattr(remembering, name)
    remembering.OPTIONS["factor"] = 1.0
    trial(remembering.Cell(), None)  # by hand, before the first sweep
    for factor in (2.0, 3.0):
        remembering.OPTIONS["factor"] = remembering.ODD.factor = factor
        got.append(jd.sweep(trial, jd.grid(remembering.Cell)).measured_x.item())
    assert got == [2.0, 3.0]


def test_the_remedy_fits_the_doubt(remembering, tmp_path):
    assert warning([ref_to(remembering.odd)]).endswith(
        "remembering:ODD holds what cannot be compared (a Odd): its runs are made anew every time; make it a field of the setting"
    )


def test_a_setting_is_compared_as_its_trial_is(remembering):
    trial, setting = ref_to(remembering.tabled), ref_to(remembering.Cell)
    remembering.OPTIONS["factor"] = 2.0
    renew(trial, setting)
    before = source_hash(setting)
    remembering.OPTIONS["factor"] = 4.0
    renew(trial, setting)
    assert source_hash(setting) != before


def test_functions_of_notebooks_are_in_doubt_where_they_read(monkeypatch):
    module = types.ModuleType("reading_cells")
    monkeypatch.setitem(sys.modules, "reading_cells", module)
    exec("import numpy as np\ndef trial(s, key): return helper()\ndef helper(): return np.load('a')", module.__dict__)
    assert doubts(ref_to(module.trial)) == ("helper reads what it does not declare (load)",)


def test_no_trial_of_the_package_is_in_doubt():
    trials = {ref_to(claim.trial) for claim in registry.all_claims().values()}
    assert len(trials) > 100 and all(doubts(trial) == () for trial in trials)


@pytest.mark.slow
def test_a_worker_that_would_find_another_value_refuses(tmp_path):
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    (tmp_path / "cell.py").write_text(CELL.replace("{{", "{").replace("}}", "}"))
    module = load_file(tmp_path / "cell.py")
    module.FACTOR = 5.0
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(jd.UsageError, match="holds another value"):
        jd.sweep(module.trial, jd.grid(module.Cell), cluster=pool, out=tmp_path / "out")


def test_a_declared_file_that_is_not_there_is_named(tmp_path):
    (tmp_path / "trial.py").write_text("import jaxdyn as jd\nx = jd.reads('a.txt')\n")
    with pytest.raises(jd.UsageError, match=r"jd.reads\('a.txt'\): .*a.txt cannot be read \(No such file or directory\)"):
        load_file(tmp_path / "trial.py")


def test_what_is_compiled_into_python_has_a_hash():
    assert source_hash(Ref("builtins", "print")) == source_hash(Ref("builtins", "print"))
