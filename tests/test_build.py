"""Wheels and source distributions get the generated files."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("setuptools")
SETUP = Path(__file__).parents[1] / "setup.py"


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("jaxdyn_setup", SETUP)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls_of(hook, monkeypatch, code=0):
    calls = []

    def run(command, **options):
        calls.append((command, options))
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(hook.subprocess, "run", run)
    return calls


def test_the_copy_of_the_package_writes_the_files_into_itself(hook, monkeypatch, tmp_path):
    calls = calls_of(hook, monkeypatch)
    hook.write_generated(tmp_path)
    command, options = calls[-1]
    assert command[1:] == ["-m", "jaxdyn.maintain", "shipped", str(tmp_path / "jaxdyn" / "engine")]
    assert options["cwd"] == tmp_path and options["env"]["PYTHONPATH"] == str(tmp_path) and options["check"]


def test_without_jax_a_warning_is_all(hook, monkeypatch, tmp_path):
    calls = calls_of(hook, monkeypatch, code=1)
    with pytest.warns(UserWarning, match="built without catalogue.json and programs.json"):
        hook.write_generated(tmp_path)
    assert len(calls) == 1


@pytest.mark.parametrize(("editable", "there", "written"), [(False, False, True), (True, False, False), (False, True, False)])
def test_an_editable_install_has_none_and_those_of_a_source_distribution_stay(
    hook, monkeypatch, tmp_path, editable, there, written
):
    from setuptools import Distribution

    roots = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hook, "write_generated", roots.append)
    if there:
        hook.FOLDER.mkdir(parents=True)
        for name in hook.NAMES:
            (hook.FOLDER / name).write_text("{}", encoding="utf-8")
    build = hook.BuildWithGenerated(Distribution({"packages": []}))
    build.ensure_finalized()
    build.build_lib, build.editable_mode = "lib", editable
    build.run()
    assert roots == ([Path("lib")] if written else [])
