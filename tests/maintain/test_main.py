"""``python -m jaxdyn.maintain``: its tasks, and the files that they write."""

import subprocess
import sys

import pytest

from jaxdyn.maintain import __main__ as command
from jaxdyn.maintain import atlas, documents, executed, renew, shipped
from jaxdyn.report import studies


def test_help_lists_the_tasks_without_jax():
    code = "import sys\nfrom jaxdyn.maintain.__main__ import main\ntry: main(['--help'])\nfinally: assert 'jax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert all(f"\n    {task} " in done.stdout for task in command.TASKS)


def test_wrong_use_is_one_sentence(tmp_path, capsys):
    assert command.main(["costs", str(tmp_path)]) == 2
    assert "holds no shards" in capsys.readouterr().err
    assert command.main(["studies", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err


def test_stale_documents_make_the_exit_code_1(monkeypatch, capsys, tmp_path):
    for stale, code, text in ((["docs/atlas.md"], 1, "docs/atlas.md is stale\n"), ([], 0, "no document is stale\n")):
        monkeypatch.setattr(documents, "stale", lambda root, stale=stale: stale)
        assert command.main(["docs", "--check", "--root", str(tmp_path)]) == code
        assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("words", "module", "name", "result", "text"),
    [
        (["docs"], documents, "renew", ["one", "two"], "one\ntwo\n"),
        (["run", "a.md"], executed, "write", None, "a.md is renewed\n"),
        (["shipped", "out"], shipped, "write_shipped", (3, 4), "3 claims and 4 programs written to out\n"),
        (["costs", "out"], shipped, "write_costs", 5, "5 programs written to costs.json\n"),
        (["studies", "a", "b"], studies, "write_studies", ["x.one"], "2 studies stored\n"),
        (["maps", "out", "law"], atlas, "make_maps", None, ""),
        (["renew", "--check", "-v"], renew, "check", ["1 of 2 studies are current"], "1 of 2 studies are current\n"),
        (["renew", "--minutes", "2", "--only", "maps"], renew, "renew", ["law: stored"], "law: stored\n"),
    ],
)
def test_each_task_calls_its_writer(monkeypatch, capsys, words, module, name, result, text):
    monkeypatch.setattr(module, name, lambda *_: result)
    assert command.main(words) == 0 and capsys.readouterr().out == text


def test_renewal_takes_minutes_or_checks(capsys):
    assert tuple(renew.KINDS) == command.KINDS
    for words in (["renew"], ["renew", "--check", "--minutes", "2"], ["renew", "--minutes", "0"], ["renew", "--minutes", "soon"]):
        with pytest.raises(SystemExit):
            command.main(words)
        assert "--minutes" in capsys.readouterr().err
