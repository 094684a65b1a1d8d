"""The history of a folder of ``jaxdyn verify``."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxdyn.report.history import read_history

from ..engine.conftest import TOYS

pytestmark = pytest.mark.usefixtures("away_from_home")
WAITS = """
import sys, time, jaxdyn.theories
jaxdyn.theories.__path__ = []
from jaxdyn.cli import main, verify
verify.OFTEN, verify.SELDOM = 0.0, 0.0
write = verify.rebuild
def rebuild(*words):
    write(*words)
    print("page", file=sys.stderr, flush=True)
    time.sleep(60)
verify.rebuild = rebuild
main.run()
"""


def test_calls_are_kept_and_a_killed_one_is_unfinished(jaxdyn):
    verify = ("verify", "toy.decay", "toy.open", "--load", TOYS, "--workers", 1, "--out", "there")
    assert jaxdyn(*verify, "--set", "lr=0.01,0.02", "--seeds", "2:4")[0] == 0
    page = Path("there/index.html")
    assert "Earlier calls" not in page.read_text(encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", WAITS, *map(str, verify)], stderr=subprocess.PIPE, encoding="utf-8") as process:
        while process.stderr.readline() not in ("page\n", ""):
            pass
        process.send_signal(signal.SIGKILL)
    with contextlib.suppress(OSError):
        with open("there/history.jsonl", "a", encoding="utf-8") as file:
            file.write('{"date": "cut')
    assert jaxdyn(*verify)[0] == 0
    first, killed, last = read_history(Path("there"))
    assert first["command"] == f"jaxdyn verify toy.decay toy.open --seeds 2:4 --set lr=0.01,0.02 --load {TOYS}"
    assert (first["claims"], first["as_expected"], first["unfinished"]) == (2, 2, None) and first["seconds"] > 0
    assert killed["unfinished"] == "1 of 2 claims judged" and last["unfinished"] is None
    text = page.read_text(encoding="utf-8")
    assert "Earlier calls with this folder (2)" in text and "unfinished: 1 of 2 claims judged" in text
    Path("there/history.jsonl").write_bytes(b"\0" * 100)
    assert jaxdyn(*verify)[0] == 0 and len(read_history(Path("there"))) == 1
    assert jaxdyn("report", "there")[0] == 0 and "Earlier calls" not in page.read_text(encoding="utf-8")
