"""The table of programs by platform."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.report import platforms

WIDE = "jaxdyn.theories.li2.wide:trial (('group', '23'), ('hidden', 64))"
LARGE = "jaxdyn.theories.li2.wide:trial (('group', '23'), ('hidden', 512))"
OTHER = "jaxdyn.theories.cal.path:other (('steps', 3),)"
NAMES = [WIDE, LARGE, OTHER]
RESULTS = {
    "about": {"cuda": "JAX 1.0, today"},
    "cuda": {
        WIDE: {"compile_seconds": 3.25, "bytes": 2_500_000, "runs": 12, "estimate": 4_000_000},
        LARGE: {"compile_seconds": 9.0, "bytes": 1, "runs": 12, "estimate": 2},
        "jaxdyn.theories.gone:trial ()": {"compile_seconds": 9.0, "bytes": 1, "runs": 3, "estimate": 2},
    },
    "tpu": {WIDE: {"failed": "no c128 | FFT", "runs": 12, "estimate": 4_000_000}},
}


def test_rows_say_what_compiled():
    _, _, *rows = platforms.table(RESULTS, NAMES, {OTHER: (1.5, 0.1)}).splitlines()
    assert rows == [
        "| `li2.wide` hidden=64 | 12 | 4 |  | 3.2 | 2.5 | no c128   FFT |  |",
        "| `li2.wide` hidden=512 | 12 | 2e-06 |  | 9.0 | 1e-06 |  |  |",
        "| `cal.path:other` |  |  | 1.5 |  |  |  |  |",
    ]


def test_only_programs_of_today_count():
    assert platforms.summary("cuda", RESULTS, NAMES) == (
        "H100: 2 of 3 programs compile (1 not tried). In total 12 s, one at a time; median 9.0 s, longest 9 s (JAX 1.0, today)."
    )
    assert platforms.summary("tpu", RESULTS, NAMES) == "TPU v5e: 0 of 3 programs compile (1 refused by the compiler, 2 not tried)."


def test_programs_that_do_not_compile_are_counted_by_their_reasons():
    lacking = {"failed": "needs complex128, which this platform lacks", "runs": 3, "estimate": 5}
    slow = {"failed": f"{platforms.SLOW} {platforms.LIMIT:g} s", "runs": 3, "estimate": 5}
    assert platforms.summary("tpu", {"tpu": RESULTS["tpu"] | {OTHER: lacking, LARGE: slow}}, NAMES) == (
        "TPU v5e: 0 of 3 programs compile "
        "(1 skipped because they use operations that the platform lacks, 1 refused by the compiler, 1 not within 180 s)."
    )


def test_runs_that_do_not_fit_at_once_are_said():
    halved = RESULTS["tpu"][WIDE] | {"at_once": 6} | RESULTS["cuda"][LARGE]
    del halved["failed"]
    assert "| 9.0 (6 runs at once) | 1e-06 |" in platforms.table({"tpu": {WIDE: halved}}, NAMES, {})


def test_the_table_stands_between_its_marks():
    page = f"before\n{platforms.MARKS[0]}\nold\n{platforms.MARKS[1]}\nafter\n"
    written = platforms.with_programs(page, RESULTS, NAMES, {})
    assert written.startswith(f"before\n{platforms.MARKS[0]}\n- H100:") and written.endswith(f"{platforms.MARKS[1]}\nafter\n")
    assert "old" not in written.split("|")[0] and platforms.with_programs(written, RESULTS, NAMES, {}) == written
    assert "the table says why instead of the seconds" in written
    with pytest.raises(UsageError, match="lacks the marks"):
        platforms.with_programs("nothing", RESULTS, NAMES, {})
