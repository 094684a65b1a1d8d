"""JSON has no infinity and no NaN."""

import json
import math

from jaxdyn.engine.base.jsonable import finite


def test_numbers_that_are_not_finite_become_null():
    found = finite({"a": [1.0, math.nan, (math.inf, 2)], 3: {"b": -math.inf}, "c": "text", "d": None})
    assert found == {"a": [1.0, None, [None, 2]], "3": {"b": None}, "c": "text", "d": None}
    json.dumps(found, allow_nan=False)
