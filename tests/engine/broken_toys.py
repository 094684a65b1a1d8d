"""One good claim beside claims whose trials cannot be run."""

from pathlib import Path

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file

toys = load_file(Path(__file__).parent / "toys.py")

CLAIMS = [
    jd.Claim(id="toy.good", title="Good", statement="Good.", judge=toys.close, controls=toys.OFF, **toys.COMMON),
    *(
        jd.Claim(
            id=f"toy.{trial.__name__}",
            title="Bad",
            statement="Bad.",
            judge=toys.close,
            controls=toys.OFF,
            **toys.COMMON | {"trial": trial},
        )
        for trial in (toys.broken, toys.no_observables, toys.clashing)
    ),
]
