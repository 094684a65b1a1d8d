"""How a two-layer, two-head LLaMA block leaves its gradient flow: the order in the step size, and the modified flow's forecast.

``python benchmarks/block_flow.py`` verifies ``variants.flow`` (width 16, full batch, float64, diffrax next to descent) and records
its checks: the order is asked to be 1.00 within .03, and the forecast of the deviation to be right within 5%.
"""

from __future__ import annotations

from common import publish

import jaxdyn as jd

CLAIM = "variants.flow"


def main() -> None:
    """Verify, and record every check with its bounds."""
    result = jd.verify(CLAIM)
    entry = result.to_json()
    rows = [
        {"check": one["name"], "value": one["value"], "least": one["bound"][0], "most": one["bound"][1]} for one in entry["checks"]
    ]
    question = "Does a LLaMA block leave its gradient flow at order 1 in the step size, and by what the modified flow says?"
    publish("block_flow", question, rows, verdict=entry["verdict"], runs=entry["runs"], claim=CLAIM)


if __name__ == "__main__":
    main()
