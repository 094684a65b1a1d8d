"""The tests mirror the package: every module has a test file of its own."""

from pathlib import Path

import pytest

import jaxdyn

PACKAGE, TESTS = Path(jaxdyn.__file__).parent, Path(__file__).parent
MODULES = sorted(p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py") if p.name not in ("__init__.py", "__main__.py"))
ELSEWHERE = {  # module -> the test file that is its own
    "theories/joma/mixture.py": "theories/joma/trials/test_mixture.py",
    "theories/joma/published.py": "experiments/test_text.py",
    "theories/joma/table1_model.py": "theories/joma/trials/test_table1.py",
}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_its_test_file(module):
    mirrored = module.with_name(f"test_{module.name}")
    assert (TESTS / ELSEWHERE.get(module.as_posix(), mirrored)).is_file()
