"""Functions of users' files and notebooks: found again, run anew when they change."""

import functools
import itertools
import linecache
import sys
import types

import pytest

import jaxdyn as jd
from jaxdyn.engine.base import reference
from jaxdyn.engine.base.reference import load_file, ref_to, refuse_hidden_names, refuse_namesakes, resolve

NOTEBOOK = """
import jaxdyn as jd
import jax.numpy as jnp

@jd.setting
class Cell:
    rate: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(measured={{"x": s.rate * {factor}}})
"""


@pytest.fixture
def notebook(monkeypatch):
    """A module without a file, as notebooks have, in which cells are run again."""
    module = types.ModuleType("a_notebook")
    monkeypatch.setitem(sys.modules, "a_notebook", module)

    number = itertools.count()

    def run_cell(text):
        name = f"<cell {next(number)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), module.__dict__)
        return module

    return run_cell


@pytest.mark.slow
def test_a_trial_defined_again_in_a_notebook_is_run_anew(notebook):
    for factor in (2, 3):
        cell = notebook(NOTEBOOK.format(factor=factor))
        assert jd.sweep(cell.trial, jd.grid(cell.Cell)).measured_x.item() == factor


@pytest.mark.slow
def test_a_trial_of_a_notebook_can_be_stored(notebook, tmp_path):
    for factor in (2, 3):
        cell = notebook(NOTEBOOK.format(factor=factor))
        assert jd.sweep(cell.trial, jd.grid(cell.Cell), out=tmp_path / "out").measured_x.item() == factor


def test_a_trial_without_source_is_run_and_run_anew_when_it_changes(monkeypatch, tmp_path):
    """Typed at a prompt or read from a pipe: no file, and no source that could be read back."""
    module = types.ModuleType("a_prompt")
    monkeypatch.setitem(sys.modules, "a_prompt", module)
    for factor in (2, 3):
        exec(compile(NOTEBOOK.format(factor=factor), "<stdin>", "exec"), module.__dict__)
        grid = jd.grid(module.Cell)
        assert jd.sweep(module.trial, grid).measured_x.item() == factor
        assert jd.sweep(module.trial, grid, out=tmp_path / "out").measured_x.item() == factor


def test_a_trial_imported_from_a_helper_can_be_found_by_workers(tmp_path):
    """The reference of a function that is not installed carries its file."""
    (tmp_path / "trials_beside.py").write_text("def trial(s, key): ...\n", encoding="utf-8")
    (tmp_path / "claims_here.py").write_text("from trials_beside import trial\n", encoding="utf-8")
    module = load_file(tmp_path / "claims_here.py")
    ref = ref_to(module.trial)
    sys.modules.pop("trials_beside")
    assert ref.path is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "bad.py, line 1: invalid syntax"),
        ("x = 1\nraise RuntimeError('boom')\n", "bad.py cannot be imported: RuntimeError: boom"),
        ("import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'"),
        ("import sys\nsys.exit(3)\n", "bad.py cannot be imported"),
        ("x = '\x00'\n", "bad.py"),
    ],
)
def test_files_that_cannot_be_imported_are_named(tmp_path, text, message):
    file = tmp_path / "bad.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(jd.UsageError, match=message):
        load_file(file)


def test_an_error_in_an_imported_helper_is_placed_there(tmp_path):
    (tmp_path / "wrong_helper.py").write_text("\n\ndef f(:\n", encoding="utf-8")
    (tmp_path / "good.py").write_text("import wrong_helper\n", encoding="utf-8")
    with pytest.raises(jd.UsageError, match="wrong_helper.py, line 3"):
        load_file(tmp_path / "good.py")


def test_missing_files_and_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(jd.UsageError, match="no such file"):
        load_file(tmp_path / "missing.py")
    with pytest.raises(jd.UsageError, match="no such file"):
        load_file(tmp_path)
    (tmp_path / "claims.txt").write_text("CLAIMS = []", encoding="utf-8")
    with pytest.raises(jd.UsageError, match=r"must end in .py"):
        load_file(tmp_path / "claims.txt")


HELPERS = ("elsewhere_here", "hlp", "outer", "common", "hlp_later", "hlp_first", "lib_a", "other_helper", "numbers_here")


@pytest.fixture
def apart(monkeypatch):
    """Modules that a test imports are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.setattr(reference, "own_modules", dict(reference.own_modules))
    monkeypatch.setattr(reference, "_noted", {})
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("jaxdyn_user_f", "jaxdyn_user_g")) or name.partition(".")[0] in {*HELPERS, "colorsys"}:
            del sys.modules[name]


def write(folder, **files):
    """Files of these names in a folder; ``a__b`` is the module b of the package a, ``a__`` the package itself."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/') if name[-2:] != '__' else name[:-2] + '/__init__'}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


SHARED = {
    "imported": {"f": "from hlp import X", "hlp": "X = {}"},
    "imported by a helper": {"f": "import outer", "outer": "import hlp", "hlp": "X = {}"},
    "imported in a function": {"f": "def g():\n    import hlp", "hlp": "X = {}"},
    "in a folder": {"f": "from hlp.numbers import X", "hlp__numbers": "X = {}"},
    "in a package": {"f": "from hlp import X", "hlp__": "from .numbers import X", "hlp__numbers": "X = {}"},
}


@pytest.mark.parametrize("files", SHARED.values(), ids=SHARED)
def test_a_helper_whose_name_another_file_has_is_refused(tmp_path, apart, files):
    """Python would give the second file the first one's helper."""
    folders = [write(tmp_path / name, **{n: text.format(name) for n, text in files.items()}) for name in "12"]
    first = load_file(folders[0] / "f.py")
    with pytest.raises(jd.UsageError) as error:
        load_file(folders[1] / "f.py")
    message = str(error.value)
    assert str(folders[0]) in message and str(folders[1]) in message and ("'hlp" in message or "'outer'" in message)
    assert "rename one of them" in message and "\n" not in message
    assert load_file(folders[0] / "f.py") is first, "the first file is left alone"


def test_other_modules_of_a_helpers_name_are_refused(tmp_path, apart, monkeypatch):
    """Python's own, one on the path that is imported later, and the helper of another file that is not next to this one."""
    write(tmp_path / "own", f="import colorsys", colorsys="X = 1")
    write(tmp_path / "later", f="def g():\n    import hlp_later", hlp_later="X = 1")
    write(tmp_path / "path", hlp_later="X = 2", hlp_first="X = 2")
    write(tmp_path / "first", f="import hlp_first", hlp_first="X = 1")
    write(tmp_path / "lone", f="import hlp_first")
    import colorsys  # noqa: F401

    load_file(tmp_path / "first" / "f.py")
    with pytest.raises(jd.UsageError, match="lone/f.py imports 'hlp_first', which is not next to it: this process has .*first/hlp"):
        load_file(tmp_path / "lone" / "f.py")
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    for name, words in (("own", "'colorsys'"), ("later", "path/hlp_later.py"), ("lone", "path/hlp_first.py")):
        with pytest.raises(jd.UsageError, match=f"{words}.*rename one of them"):
            load_file(tmp_path / name / "f.py")


def test_files_of_one_folder_share_their_helpers(tmp_path, apart):
    write(tmp_path, f="from common import X\nimport jaxdyn", g="import common, json", common="X = object()")
    write(tmp_path / "elsewhere", f="import json\nX = 3", common="raise RuntimeError")
    f, g = load_file(tmp_path / "f.py"), load_file(tmp_path / "g.py")
    assert f.X is g.common.X
    assert load_file(tmp_path / "elsewhere" / "f.py").X == 3, "a module that it does not import is no helper"


def test_a_changed_helper_is_imported_anew(tmp_path, apart):
    """With the files that import it, directly or not; the other helpers stay."""
    write(tmp_path, f="from lib_a.near import X, other", lib_a__far="X = 1", other_helper="Y = object()")
    write(tmp_path, lib_a__="", lib_a__near="from .far import X\nimport other_helper as other")
    first = load_file(tmp_path / "f.py")
    assert load_file(tmp_path / "f.py") is first and first.X == 1
    for number in (2, 3, 4):  # as fast as a person cannot: compiled files know whole seconds
        write(tmp_path, lib_a__far=f"X = {number}")
        assert load_file(tmp_path / "f.py").X == number
    assert load_file(tmp_path / "f.py").other is first.other


def test_a_worker_imports_a_changed_helper_anew(tmp_path, apart):
    """What a trial refers to is another trial when its helper has changed, though the trial's own text is the same."""
    refs = []
    for number in (1, 2):
        write(tmp_path, f="from numbers_here import X\ndef trial(s, key):\n    return X", numbers_here=f"X = {number}")
        refs.append(ref_to(load_file(tmp_path / "f.py").trial))
        reference.objects.pop(refs[-1])  # a worker has met no function
        assert resolve(refs[-1])(None, None) == number
    assert refs[0] != refs[1] and str(refs[0]) == str(refs[1])


def test_a_changed_file_of_the_same_length_is_run_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for number in (1, 2, 3):
        assert load_file(write(tmp_path, f=f"X = {number}") / "f.py").X == number


NAMED = """
import functools

def trial(s, key):
    return {factor}

def doubled(function):
    @functools.wraps(function)
    def inner(s, key):
        return 2 * function(s, key)
    return inner
"""


def test_two_objects_of_one_name_are_refused_together_and_not_apart(notebook):
    """A cell that is run again, and a decorator that keeps the name."""
    first = notebook(NAMED.format(factor=1)).trial
    second = notebook(NAMED.format(factor=2)).trial
    wrapped = notebook(NAMED.format(factor=2)).doubled(second)
    for pair in ((first, second), (second, wrapped), (first, second, first)):
        with pytest.raises(jd.UsageError, match="two different objects called a_notebook:trial are not allowed: trials, or sett"):
            refuse_namesakes(pair)
        for one in pair:
            refuse_namesakes([one, one])
            assert resolve(ref_to(one)) is one


def test_a_name_that_other_processes_would_find_elsewhere_is_refused(notebook):
    cell = notebook(NAMED.format(factor=1))
    first, wrapped = cell.trial, cell.doubled(cell.trial)
    refuse_hidden_names([ref_to(first)])
    for hidden in (wrapped, first):
        reference_ = ref_to(hidden)
        if hidden is first:
            notebook(NAMED.format(factor=2))
        with pytest.raises(jd.UsageError, match="a_notebook:trial is not allowed in other processes: .* rename one of them"):
            refuse_hidden_names([reference_])
    del cell.trial
    with pytest.raises(jd.UsageError, match="not allowed in other processes"):
        refuse_hidden_names([ref_to(first)])


class Callable:
    """An object that can be called."""

    def __call__(self, s, key):
        """Nothing."""

    def method(self, s, key):
        """Nothing."""


@pytest.mark.parametrize(
    "thing", [None, "x", 5, functools.partial(print), Callable(), Callable().method], ids=lambda thing: type(thing).__name__
)
def test_only_functions_and_classes_have_a_reference(thing):
    with pytest.raises(jd.UsageError, match="is not allowed: it must be a function at the top level of a module"):
        ref_to(thing)


# data that are read while a file is imported

WAYS = {
    "open": "opened(DATA)",
    "bytes": "opened(bytes(DATA))",
    "pathlib": "DATA.read_text()",
    "relative": "opened('data.txt')",
    "descriptor": "os.read(FILE := os.open(DATA, os.O_RDONLY), 99).decode()\nos.close(FILE)",
    "loadtxt": "str(np.loadtxt(DATA))",
    "fromfile": "np.fromfile(DATA, np.uint8).tobytes().decode()",
    "memmap": "bytes(np.memmap(DATA, np.uint8, 'r')).decode()",
    "pandas": "str(pd.read_csv(DATA, header=None).values[0, 0])",
    "json": "json.loads(read(DATA))",
    "function": "read(DATA)",
    "method": "Reader().text",
    "thread": "next(concurrent.futures.ThreadPoolExecutor().map(Path.read_text, [DATA]))",
}
READING = """
import concurrent.futures, json, os
from pathlib import Path
import numpy as np
import pandas as pd

DATA = Path(__file__).parent / "data.txt"
read = lambda path: path.read_text()

def opened(path):
    with open(path) as file:
        return file.read()

class Reader:
    text = DATA.read_text()

X = {}
X = float(X)
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_file_is_imported_anew_when_its_data_change(tmp_path, monkeypatch, apart, way):
    monkeypatch.chdir(tmp_path)
    text = READING if way == "method" else READING.replace("    text = DATA.read_text()\n", "    pass\n")
    write(tmp_path, f=text.format(WAYS[way]))
    got, refs = [], []
    for number in ("1", "2", "2", "1"):
        if not got or got[-1].X != float(number):
            (tmp_path / "data.txt").write_text(number, encoding="utf-8")
        got.append(load_file("f.py"))
        refs.append(ref_to(got[-1].Reader))
        assert got[-1].X == float(number)
    assert got[1] is got[2], "nothing has changed"
    assert refs[0].version != refs[1].version == refs[2].version and refs[0].version == refs[3].version


@pytest.mark.parametrize("helper", ["X = {}", "def g():\n    return {}\nX = g()", "import outer\nX = outer.X"])
def test_data_of_a_helper_are_its_own_and_those_of_all_who_import_it(tmp_path, apart, helper):
    reading = "float((__import__('pathlib').Path(__file__).parent / 'data.txt').read_text())"
    write(tmp_path, f="from hlp import X", g="import hlp\nX = hlp.X", hlp=helper.format(reading), outer=f"X = {reading}")
    for number in ("1", "2"):
        (tmp_path / "data.txt").write_text(number, encoding="utf-8")
        for name in ("f.py", "g.py", "f.py"):
            assert load_file(tmp_path / name).X == float(number)
        assert load_file(tmp_path / "f.py") is load_file(tmp_path / "f.py")


def test_what_is_written_or_belongs_to_others_is_no_data(tmp_path, apart):
    text = """
import importlib.metadata, os, sys
from pathlib import Path
import colorsys, numpy
import numpy.testing  # read from the disk only once
HERE = Path(__file__).parent
with open(HERE / "log.txt", "a") as log:
    log.write("imported\\n")
importlib.metadata.version("numpy"), Path("/proc/self/stat").exists() and Path("/proc/self/stat").read_text(), os.urandom(3)
"""
    write(tmp_path, f=text)
    module = load_file(tmp_path / "f.py")
    (tmp_path / "log.txt").write_text("another", encoding="utf-8")
    assert load_file(tmp_path / "f.py") is module and reference.read_by(module.__name__) == {}


def test_a_file_that_was_not_there_is_read_when_it_is(tmp_path, apart):
    text = "from pathlib import Path\ntry:\n    X = Path(__file__[:-4] + 'data.txt').read_text()\nexcept OSError:\n    X = None\n"
    write(tmp_path, f=text)
    assert load_file(tmp_path / "f.py").X is None and load_file(tmp_path / "f.py") is load_file(tmp_path / "f.py")
    (tmp_path / "data.txt").write_text("1", encoding="utf-8")
    assert load_file(tmp_path / "f.py").X == "1"


def test_data_that_change_while_they_are_read_are_read_again(tmp_path, apart):
    write(tmp_path, f="P = __import__('pathlib').Path(__file__).parent / 'data.txt'\nX = P.read_text()\nP.write_text('2')\n")
    (tmp_path / "data.txt").write_text("1", encoding="utf-8")
    assert [load_file(tmp_path / "f.py").X for _ in range(2)] == ["1", "2"]


def test_an_import_that_failed_leaves_nothing_behind(tmp_path, apart):
    write(tmp_path, f="from pathlib import Path\nX = 1 / float(Path(__file__[:-4] + 'data.txt').read_text())")
    (tmp_path / "data.txt").write_text("0", encoding="utf-8")
    with pytest.raises(jd.UsageError, match="ZeroDivisionError"):
        load_file(tmp_path / "f.py")
    (tmp_path / "data.txt").write_text("2", encoding="utf-8")
    assert load_file(tmp_path / "f.py").X == 0.5 and load_file(tmp_path / "f.py") is load_file(tmp_path / "f.py")


# modules that no import statement names, and what functions read when they are called

OTHER_WAYS = {
    "import_module": ("import importlib\nget = lambda: X\nX = importlib.import_module('hlp').X", "hlp.py"),
    "__import__": ("get = lambda: X\nX = __import__('hlp').X", "hlp.py"),
    "within a function": ("get = lambda: __import__('hlp').X", "hlp.py"),
    "by a helper": ("import outer\nget = outer.get", "hlp.py"),
    "in another folder": (
        "import sys\nsys.path.insert(0, __file__[:-4] + 'src')\nfrom elsewhere_here import X\nget = lambda: X",
        "",
    ),
    "runpy": ("import runpy\nget = lambda: X\nX = runpy.run_path(__file__[:-4] + 'hlp.py')['X']", "hlp.py"),
    "list in a folder": ("import os\nX = len(os.listdir(__file__[:-4] + 'data'))\nget = lambda: X", "data/new"),
    "glob": ("from pathlib import Path\nX = len([*Path(__file__[:-4] + 'data').glob('*')])\nget = lambda: X", "data/new"),
    "scandir within": (
        "import os\nC = []\nget = lambda: C[0] if C else C.append(len([*os.scandir(__file__[:-4] + 'data')])) or C[0]",
        "",
    ),
    "own cache": ("import common\nget = common.get", "data.txt"),
}
BY_HELPER = "import importlib\nX = importlib.import_module('hlp').X\nget = lambda: X"
CACHING = """
from pathlib import Path
kept = {}
def get():
    if not kept:
        kept[0] = int(Path(__file__).with_name("data.txt").read_text())
    return kept[0]
"""


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_a_file_is_imported_anew_when_anything_changes_that_came_in_another_way(tmp_path, apart, monkeypatch, way):
    monkeypatch.syspath_prepend(str(tmp_path))  # as a script's folder is
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "data").mkdir()
    write(tmp_path, f=OTHER_WAYS[way][0], g="X = 1", outer=BY_HELPER, common=CACHING)
    for number in (1, 2):
        write(tmp_path, hlp=f"X = {number}", src__elsewhere_here=f"X = {number}")
        (tmp_path / "data.txt").write_text(str(number), encoding="utf-8")
        (tmp_path / "data" / str(number)).touch()
        module = load_file(tmp_path / "f.py")
        assert module.get() == number
        ref = ref_to(module.get) if module.get.__name__ != "<lambda>" else None
        assert load_file(tmp_path / "f.py") is module and load_file(tmp_path / "f.py").get() == number, "nothing has changed"
        assert ref is None or ref.path is not None
    assert load_file(tmp_path / "g.py").X == 1


def test_who_uses_a_module_that_came_in_another_way_is_another_version(tmp_path, apart, monkeypatch):
    """A worker that has its function would not import it anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    refs = []
    for number in (1, 2):
        write(tmp_path, hlp=f"X = {number}", f="X = __import__('hlp').X\ndef trial(s, key):\n    return X")
        refs.append(ref_to(load_file(tmp_path / "f.py").trial))
        assert resolve(refs[-1])(None, None) == number
    assert refs[0] != refs[1]
    write(tmp_path, hlp="X = 3")
    assert load_file(write(tmp_path, g="X = 1") / "g.py").X == 1, "which forgets the helper"
    assert ref_to(resolve(refs[1])).path is not None, "the other file is found as before"


@pytest.mark.parametrize("importing", ["__import__('hlp')", "__import__('importlib').import_module('hlp')"])
def test_another_module_of_the_name_that_a_text_gives_is_refused(tmp_path, apart, importing):
    for name in "12":
        write(tmp_path / name, f=f"X = {importing}.X", hlp=f"X = {name}")
    assert load_file(tmp_path / "1" / "f.py").X == 1
    with pytest.raises(jd.UsageError, match="2/hlp.py and .*1/hlp.py are both imported as 'hlp'.*rename one of them"):
        load_file(tmp_path / "2" / "f.py")
