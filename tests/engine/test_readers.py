"""Where a trial's file reads what it does not declare."""

import pytest

from jaxdyn.engine.reference import Ref
from jaxdyn.engine.sources import doubts

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
    return jd.observables(measured={{"x": s.rate}})
"""

UNSEEN = [
    ("x = open('a.txt').read()", "open"),
    ("x = np.loadtxt('a.txt')", "np.loadtxt"),
    ("from pathlib import Path\nx = Path('a').read_text()", "read_text"),
    ("x = os.environ['A']", "os.environ"),
    ("x = os.getenv('A')", "os.getenv"),
    ("import json\nx = json.load(open('a'))", "json.load"),
    ("def f():\n    return np.load('a.npy')\nx = f()", "np.load"),
    ("def f():\n    return np.load(jd.reads('a.npy'))\nx = f()", "reads inside a function"),
    ("import configparser as c\nx = c.ConfigParser()\nx.read('a.ini')", "x.read"),
    ("import linecache\nx = linecache.getline('a', 1)", "linecache.getline"),
    ("import fileinput\nx = list(fileinput.input('a'))", "fileinput.input"),
    ("from pathlib import Path\nx = list(Path('a').glob('*'))", "glob"),
    ("from pathlib import Path\nx = list(Path('a').iterdir())", "iterdir"),
    ("from pathlib import Path\nx = list(Path('a').rglob('*'))", "rglob"),
    ("x = os.listdir('a')", "os.listdir"),
    ("x = list(os.scandir('a'))", "os.scandir"),
    ("x = list(os.walk('a'))", "os.walk"),
    ("x = os.path.exists('a')", "os.path.exists"),
    ("from os import walk as wander\nx = list(wander('a'))", "wander"),
    ("x = os.environb[b'A']", "os.environb"),
    ("from os import getenv as ge\nx = ge('A')", "ge"),
    ("x = dict(os.environ)['A']", "os.environ"),
    ("x = os.environ.get('A')", "os.environ"),
    ("from os import environ as e\nx = e['A']", "e"),
    ("rd = open\nx = rd('a').read()", "rd"),
    ("x = list(map(open, ['a']))", "open"),
    ("x = getattr(os, 'getenv')('A')", "getattr"),
    ("from numpy import load\nx = load('a.npy')", "load"),
    ("from numpy import *\nx = load('a.npy')", "load"),
    ("import numpy as n\nx = n.load('a.npy')", "n.load"),
    ("import sys\nx = float(sys.argv[1])", "sys.argv"),
    ("import importlib.util as iu\nx = iu.spec_from_file_location('h', 'h.py')", "iu.spec_from_file_location"),
    ("def f(spec, h):\n    spec.loader.exec_module(h)\nx = f(1, 2)", "spec.loader.exec_module"),
    ("from importlib.machinery import SourceFileLoader\nx = SourceFileLoader('h', 'h.py').load_module()", "load_module"),
    ("PATH = jd.reads('a.txt')\nx = (PATH.parent / 'b.txt').read_text()", "read_text"),
    ("PATH = jd.reads('a.txt')\nx = open(f'{PATH}.bak')", "open"),
    ("PATH = jd.reads('a.txt')\nPATH = PATH.with_name('b.txt')\nx = open(PATH)", "open"),
    ("PATH = jd.reads('a.txt')\ndef f(PATH):\n    return open(PATH)\nx = f('b.txt')", "open"),
    ("x = np.loadtxt(jd.reads_variable('FILE'))", "np.loadtxt"),
    ("import importlib\nx = importlib.import_module('a')", "importlib.import_module"),
]
SEEN = [
    "PATH = jd.reads('a.txt')\nx = np.loadtxt(PATH)",
    "PATH = jd.reads('a.txt')\ndef f():\n    return np.loadtxt(PATH)",
    "x = jd.reads('a.txt').read_text()",
    "os.environ.setdefault('A', '1')\nos.environ['B'] = '2'",
    "x = jd.reads_variable('A')",
    "with open(jd.reads('a.txt')) as f:\n    x = f.read(3)",
    "PATHS = {n: jd.reads(n) for n in ('a', 'b')}\nx = [np.loadtxt(path) for path in PATHS.values()] + [np.load(PATHS['a'])]",
    "import configparser\nPATH = jd.reads('a.ini')\nx = configparser.ConfigParser()\nx.read(PATH)",
    "from jaxdyn import reads\nPATH = str(reads('a.txt'))\nx = json.loads(open(PATH).read())",
    "from os import environ as e\ne['A'] = '1'",
    "def walk(n):\n    return n\nclass Walker:\n    def walk(self, n):\n        return self.walk(n - 1)\nx = walk(3)",
    "def draws():\n    return open('never called by the trial')",
    "if __name__ == '__main__':\n    print(open('a').read())",
    "rng = np.random.default_rng(0)\ndef load(x):\n    return x\ny = load(3)",
]


def doubts_about(tmp_path, lines):
    """Of a trial in a file with these lines."""
    (tmp_path / "trial.py").write_text(TRIAL.format(lines=lines))
    doubts.cache_clear()
    return doubts(Ref("jaxdyn_user_trial_0", "trial", str(tmp_path / "trial.py")))


@pytest.mark.parametrize(("lines", "words"), UNSEEN)
def test_what_cannot_be_seen_is_said(tmp_path, lines, words):
    found = doubts_about(tmp_path, lines)
    assert any(f"({words}" in one for one in found) and all("trial.py:" in one for one in found), found


@pytest.mark.parametrize("lines", SEEN)
def test_what_is_declared_or_only_written_is_no_doubt(tmp_path, lines):
    assert doubts_about(tmp_path, lines) == ()
