"""The table of programs by platform."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.report import platforms

WIDE = "jaxdyn.theories.li2.wide:trial (('group', '23'), ('hidden', 64))"
LARGE = "jaxdyn.theories.li2.wide:trial (('group', '23'), ('hidden', 512))"
OTHER = "jaxdyn.theories.cal.path:other (('steps', 3),)"
CURRENT = {WIDE: "aa", LARGE: "bb", OTHER: "cc"}
RESULTS = {
    "cuda": {
        f"{WIDE} aa 12": {"compile_seconds": 3.25, "bytes": 2_500_000, "runs": 12, "estimate": 4_000_000},
        f"{LARGE} old 12": {"compile_seconds": 9.0, "bytes": 1, "runs": 12, "estimate": 2},
        "jaxdyn.theories.gone:trial () aa 3": {"compile_seconds": 9.0, "bytes": 1, "runs": 3, "estimate": 2},
    },
    "tpu": {f"{WIDE} aa 12": {"failed": "no c128 | FFT", "runs": 12, "estimate": 4_000_000}},
}


def test_rows_say_what_compiled_and_what_has_changed_since():
    _, _, *rows = platforms.table(RESULTS, CURRENT, {OTHER: (1.5, 0.1)}).splitlines()
    assert rows == [
        "| `li2.wide` hidden=64 | 12 | 4 |  | 3.2 | 2.5 | no c128   FFT |  |",
        "| `li2.wide` hidden=512 | 12 | 2e-06 |  | 9.0\\* | 1e-06 |  |  |",
        "| `cal.path:other` |  |  | 1.5 |  |  |  |  |",
    ]


def test_only_programs_as_they_are_now_count():
    assert platforms.summary("cuda", RESULTS, CURRENT) == (
        "H100: of 3 programs 1 were compiled as they are now, 1 of them without fault, in 3 s one after another; "
        "the middle one took 3.2 s, the longest 3 s."
    )
    assert platforms.summary("tpu", RESULTS, CURRENT).endswith("1 were compiled as they are now, 0 of them without fault.")


def test_the_table_stands_between_its_marks():
    page = f"before\n{platforms.MARKS[0]}\nold\n{platforms.MARKS[1]}\nafter\n"
    written = platforms.with_programs(page, RESULTS, CURRENT, {})
    assert written.startswith(f"before\n{platforms.MARKS[0]}\n- H100:") and written.endswith(f"{platforms.MARKS[1]}\nafter\n")
    assert "old" not in written.split("|")[0] and platforms.with_programs(written, RESULTS, CURRENT, {}) == written
    with pytest.raises(UsageError, match="lacks the marks"):
        platforms.with_programs("nothing", RESULTS, CURRENT, {})
