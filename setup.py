"""Adds the generated files to wheels and source distributions: the catalogue of claims, and what tracing reveals of their programs.

They are made by the package itself, which needs its dependencies. Where JAX cannot be imported (builds are isolated by default),
the distribution goes without them, and an installed jaxdyn makes them on first use in the user's cache folder.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

FOLDER = Path("jaxdyn", "engine")
NAMES = ("catalogue.json", "programs.json")


def write_generated(root: Path) -> None:
    """Write the generated files into a copy of the package below ``root``, with the code of that copy."""
    environment = {**os.environ, "PYTHONPATH": str(root.resolve())}
    if subprocess.run([sys.executable, "-c", "import jax"], capture_output=True).returncode:
        warnings.warn("JAX cannot be imported: built without catalogue.json and programs.json", stacklevel=2)
        return
    command = [sys.executable, "-m", "jaxdyn.maintain", "shipped", str((root / FOLDER).resolve())]
    subprocess.run(command, cwd=root, env=environment, check=True)


class BuildWithGenerated(build_py):
    """Of a wheel; files that came with a source distribution are kept, and an editable install has none."""

    def run(self) -> None:
        """Copy the package, then add the generated files."""
        super().run()
        if not self.editable_mode and not all((FOLDER / name).is_file() for name in NAMES):
            write_generated(Path(self.build_lib))


class SdistWithGenerated(sdist):
    """Of a source distribution."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the sources, then add the generated files."""
        super().make_release_tree(base_dir, files)
        write_generated(Path(base_dir))


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithGenerated, "sdist": SdistWithGenerated})
