"""Run every benchmark, one after another, each in its own process; what compares a CPU with an accelerator, only where one is."""

import argparse
import subprocess
import sys
from pathlib import Path

from common import platform_of_runs

SHARED = ("common.py", "pieces.py", "run_all.py", "sweep_trials.py")
CAMPAIGNS = ("bad_inputs.py", "kills.py")  # they time nothing, and take an hour


def scripts(platform: str) -> list[Path]:
    """The benchmarks for a platform, in the order of their names."""
    left_out = {*SHARED, *CAMPAIGNS, *(["accelerator.py"] if platform == "cpu" else [])}
    return [script for script in sorted(Path(__file__).parent.glob("*.py")) if script.name not in left_out]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for script in scripts(platform_of_runs()):
        print(f"== {script.stem}", flush=True)
        subprocess.run([sys.executable, script], check=True)
