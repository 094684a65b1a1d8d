"""A release is refused in a sentence unless main is clean, green and of one new version; a wheel runs outside a checkout."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.maintain.__main__ import main
from jaxdyn.maintain.release import release, version_of

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = {
    "pyproject.toml": '[project]\nname = "x"\nversion = "1.2.3"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\n",
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3\n\n### Added\n\n- A thing.\n\n## 1.2.2\n",
    ".ci/run": "#!/bin/sh\ntouch ../ran\n",
}


def git(root, *words):
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *settings, *words], cwd=root, capture_output=True, encoding="utf-8", check=True).stdout


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of main that can be released."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    root = tmp_path / "checkout"
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (root / ".ci" / "run").chmod(0o755)
    git(root, "init")
    git(root, "add", "-A")
    git(root, "commit", "-m", "all")
    return root


def test_a_green_commit_gets_its_tag(checkout, capsys):
    assert main(["release", "--root", str(checkout)]) == 0
    assert "v1.2.3" in capsys.readouterr().out and (checkout.parent / "ran").is_file()
    assert git(checkout, "cat-file", "-t", "v1.2.3").strip() == "tag" and git(checkout, "rev-list", "-1", "v1.2.3") == git(
        checkout, "rev-parse", "HEAD"
    )
    with pytest.raises(UsageError, match="v1.2.3 exists already"):
        release(checkout)


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("pyproject.toml", "1.2.3", "1.2.4", "CITATION.cff does not have version 1.2.4"),
        ("pyproject.toml", "1.2.3", "1.2", "version 1.2 in pyproject.toml is not allowed"),
        (
            "CHANGELOG.md",
            "## Unreleased\n",
            "## Unreleased\n\n### Added\n\n- More.\n",
            "has entries under ## Unreleased; move them",
        ),
        ("CHANGELOG.md", "## 1.2.3", "## 1.2.1", "begins with 1.2.1; its first version is to be 1.2.3"),
        ("CHANGELOG.md", FILES["CHANGELOG.md"], "# Changelog\n", "begins with no version"),
    ],
)
def test_versions_that_do_not_agree_are_refused(checkout, name, before, after, words):
    file = checkout / name
    file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    git(checkout, "commit", "-am", "edited")
    with pytest.raises(UsageError, match=re.escape(words)):
        release(checkout)


def test_another_branch_changes_and_red_checks_are_refused(checkout):
    git(checkout, "switch", "-c", "other")
    with pytest.raises(UsageError, match="branch other is not allowed: main is released"):
        release(checkout)
    git(checkout, "switch", "main")
    (checkout / "new.txt").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"new\.txt differs from the commit"):
        release(checkout)
    (checkout / "new.txt").unlink()
    (checkout / ".ci" / "run").write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    git(checkout, "commit", "-am", "red")
    with pytest.raises(UsageError, match="failed with exit code 3: nothing is tagged"):
        release(checkout)
    assert git(checkout, "tag", "--list") == ""
    with pytest.raises(UsageError, match="cannot be read"):
        release(checkout / "nowhere")


def test_the_project_has_one_version_and_the_changelog_a_section_of_it():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)[1]
    assert cited == PROJECT["version"]
    assert f"## {PROJECT['version']}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert callable(version_of)


def test_the_address_is_a_placeholder_until_the_owner_gives_one():
    assert PROJECT["urls"] == {"Homepage": "https://example.invalid/"}, "put the real one here, too"


@pytest.mark.slow
def test_wheel_and_source_distribution_verify_a_claim_outside_a_checkout(tmp_path):
    """In a bare environment next to the libraries of this one; built as where JAX is not there, since tracing takes minutes."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "jax.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
    sources = tmp_path / "sources"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(sources)], check=True)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(sources)]
    hidden = {**os.environ, "PYTHONPATH": str(tmp_path / "hidden")}
    built = subprocess.run(build, env=hidden, capture_output=True, encoding="utf-8")
    assert built.returncode == 0, built.stdout + built.stderr
    wheel, sdist = (next((tmp_path / "dist").glob(f"jaxdyn-{PROJECT['version']}*.{end}")) for end in ("whl", "tar.gz"))
    assert sdist.stat().st_size > 10**5
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=True)
    python = bare / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    (place,) = (bare / "lib").glob("python3*/site-packages")
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    (place / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"JAXDYN_CACHE": str(tmp_path / "cache")}
    where = subprocess.run(
        [python, "-c", "import jaxdyn, jaxdyn_pytest; print(jaxdyn.__file__, jaxdyn_pytest.__file__)"],
        cwd=tmp_path, env=clean, capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    assert where.count(str(place)) == 2, where
    words = ["verify", "rev.clock", "--out", "out", "--workers", "1"]
    done = subprocess.run([bare / "bin" / "jaxdyn", *words], cwd=tmp_path, env=clean, capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and "upheld" in done.stderr, done.stderr
    assert "rev.clock" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
