"""All generated bad inputs at once, by kind: how many end in one sentence, in a verdict, or in a fault.

python benchmarks/bad_inputs.py [CASES]
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # the programs are tiny, and run once

import common
import jax

from tests.bad_inputs import KINDS, Campaign


def main(cases: int) -> None:
    """Run the cases, print the faults, and store the counts."""
    warnings.simplefilter("ignore")
    campaign, counts, faults = Campaign(tempfile.mkdtemp()), {kind: Counter[str]() for kind in KINDS}, []
    for number in range(cases):
        result = campaign.case(number)
        outcome = "fault" if result.fault else {0: "exit code 0", 1: "exit code 1", 2: "one sentence"}[int(result.code or 0)]
        counts[KINDS[number % len(KINDS)]][outcome] += 1
        if result.fault:
            faults.append(f"{result.words}: {result.fault}")
            print(faults[-1], flush=True)
        if number % 100 == 99:
            jax.clear_caches()
            print(f"{number + 1} cases, {len(faults)} faults", file=sys.stderr, flush=True)
    rows = [
        {"kind": kind, **{o: counts[kind][o] for o in ("one sentence", "exit code 0", "exit code 1", "fault")}} for kind in KINDS
    ]
    common.publish("bad_inputs", f"{cases} generated bad inputs: how do they end?", rows, faults=faults)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
