"""The calls of a folder: kept across calls, at most some hundred, and renewed where the file is damaged."""

import pytest

from jaxdyn.report.history import HISTORY, MOST, call, damage, earlier_calls, read_history, write_history
from jaxdyn.report.page import page

from .handmade import claim


def whole(number=1, **more):
    claims = [claim("toy.one"), claim("toy.two", verdict="refuted"), claim("toy.three", verdict="skipped")]
    return {"claims": claims, "seconds": float(number), "environment": {"date": f"2026-01-{number:02}", "commit": None}} | more


def test_a_call_is_read_back(tmp_path):
    calls = [call(whole(1), "jaxdyn verify a"), call(whole(2, unfinished="1 of 3 claims judged"), "jaxdyn verify <b>")]
    assert (calls[0]["claims"], calls[0]["as_expected"]) == (2, 1), "what was skipped is not counted"
    write_history(tmp_path, calls)
    assert read_history(tmp_path) == calls
    assert earlier_calls(tmp_path, whole(2)) == calls[:1] and earlier_calls(tmp_path, whole(3)) == calls[::-1]
    html = page(whole(3) | {"history": earlier_calls(tmp_path, whole(3))}, {})
    assert "Earlier calls with this folder (2)" in html and "jaxdyn verify &lt;b&gt;" in html
    assert "1 of 2\u00a0claims, unfinished: 1 of 3 claims judged" in html and html.index("2026-01-02") < html.index("2026-01-01")
    assert "Earlier calls" not in page(whole(3), {})


def test_only_the_last_are_kept(tmp_path):
    write_history(tmp_path, [call(whole(n), "jaxdyn verify") for n in range(MOST + 5)])
    assert [one["seconds"] for one in read_history(tmp_path)] == list(range(5, MOST + 5))


@pytest.mark.parametrize(
    "wrong", [b"", b"\xff\xfe", b'{"date": 1}\n', b"[]\nnull\n3\n", b"[" * 100_000, b'{"date": "2026', b"x" * 2**21]
)
def test_damaged_lines_are_left_out_and_said(tmp_path, wrong):
    one = call(whole(), "jaxdyn verify")
    write_history(tmp_path, [one])
    file = tmp_path / HISTORY
    assert damage(tmp_path) == "" == damage(tmp_path / "missing")
    file.write_bytes(wrong + b"\n" + file.read_bytes())
    assert read_history(tmp_path) == ([one] if len(wrong) < 2**20 else [])
    assert ("cannot be read" if len(wrong) > 2**20 else f"{wrong.count(10) + 1} damaged line") in damage(tmp_path)
    write_history(tmp_path, [*read_history(tmp_path), one])
    assert read_history(tmp_path)[-1] == one and damage(tmp_path) == ""


def test_a_folder_in_its_place_costs_nothing(tmp_path):
    (tmp_path / HISTORY).mkdir()
    write_history(tmp_path, [call(whole(), "jaxdyn verify")])
    assert (
        read_history(tmp_path) == [] and "cannot be read" in damage(tmp_path) and [p.name for p in tmp_path.iterdir()] == [HISTORY]
    )
