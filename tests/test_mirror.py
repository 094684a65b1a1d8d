"""The tests mirror the package: every module has a test file of its own."""

from pathlib import Path

import pytest

import jaxdyn

PACKAGE, TESTS = Path(jaxdyn.__file__).parent, Path(__file__).parent
MODULES = sorted(p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py") if p.name not in ("__init__.py", "__main__.py"))
ELSEWHERE = {  # module -> the test file that is its own
    "theories/joma/nonlinear/mixture.py": "theories/joma/nonlinear/test_mixture_point.py",
    "theories/joma/experiments/table1/model.py": "theories/joma/experiments/table1/test_trial.py",
}
EVERY = {"published.py": "theories/test_published.py", "maps.py": "theories/test_maps.py"}  # modules of this name share a test file


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_its_test_file(module):
    mirrored = EVERY.get(module.name, module.with_name(f"test_{module.name}"))
    assert (TESTS / ELSEWHERE.get(module.as_posix(), mirrored)).is_file()
