"""Run every benchmark, one after another, each in its own process."""

import subprocess
import sys
from pathlib import Path

CAMPAIGNS = ("bad_inputs.py", "kills.py")  # they time nothing, and take an hour

if __name__ == "__main__":
    here = Path(__file__).parent
    for script in sorted(here.glob("*.py")):
        if script.name not in ("common.py", "run_all.py", *CAMPAIGNS):
            print(f"== {script.stem}", flush=True)
            subprocess.run([sys.executable, script], check=True)
