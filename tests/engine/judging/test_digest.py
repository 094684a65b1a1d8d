"""The digest of what a claim is judged by: it changes with what decides, and with nothing else; it is the same in every process."""

import dataclasses
import os
import subprocess
import sys

import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.judging.digest import digest

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


def test_what_holds_itself_has_a_digest(claim):
    circle = {"lr": 0.1}
    circle["again"] = [circle]
    found = [digest(dataclasses.replace(claim(), judge=lambda ds, value=value: [])) for value in (circle, {"lr": 0.2})]
    assert found[0] != found[1]
