"""``jaxdyn explore`` as a user types it."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
import webbrowser

import pytest

from jaxdyn.cli import explore
from jaxdyn.explorer.runs import Move
from jaxdyn.explorer.server import Server
from tests.cli.test_main import TOYS

pytestmark = pytest.mark.usefixtures("away_from_home")


@pytest.fixture
def served(monkeypatch):
    """What would be served, without serving it."""
    servers = []

    def serve(self, ready=lambda: None):
        servers.append(self)
        ready()
        self.listening.close()

    monkeypatch.setattr(Server, "serve", serve)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_: None)
    return servers


def test_the_address_is_printed_and_knobs_start_where_told(jaxdyn, served):
    words = ("--set", "lr=0.01,0.02", "--set", "rate=2", "--seeds", "3", "--no-browser", "--port", "0")
    code, out, err = jaxdyn("explore", "toy.decay", "--load", TOYS, *words)
    assert code == 0 and re.fullmatch(r"toy.decay: http://127.0.0.1:\d+/  \(Ctrl-C ends it\)\n", out) and err == ""
    assert served[0].start == Move({"lr": "0.01,0.02", "rate": "2"}, "3") and served[0].token == ""


def test_a_value_with_a_comma_keeps_its_quotes():
    assert explore.start_of({"text": ["a,b", "c"], "word": "d"}, None) == Move({"text": '"a,b",c', "word": "d"}, None)


def test_another_address_has_a_token(jaxdyn, served):
    code, out, err = jaxdyn("explore", "toy.decay", "--load", TOYS, "--host", "0.0.0.0", "--port", "0", "--no-browser")
    assert code == 0 and f"?token={served[0].token}" in out and len(served[0].token) >= 32 and "do not share it" in err


def test_a_browser_opens_where_there_is_a_screen(jaxdyn, served, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not explore.can_open()
    monkeypatch.setenv("DISPLAY", ":0")
    assert explore.can_open()
    jaxdyn("explore", "toy.decay", "--load", TOYS, "--port", "0", "--no-browser")
    jaxdyn("explore", "toy.decay", "--load", TOYS, "--port", "0")
    assert opened == [served[1].url]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("toy.*",), "explore takes one claim; 'toy.*' matches"),
        (("toy.nothing",), "no claim matches 'toy.nothing'"),
        (("toy.decay", "--set", "lr=x"), "lr='x' is not allowed: lr is a finite number"),
        (("toy.decay", "--port", "70000"), "--port 70000 is not allowed: it is a whole number from 0"),
        (("toy.decay", "--port", "x"), "--port x is not allowed: it is a whole number of at least 0"),
        (("toy.decay", "--host", "203.0.113.1"), "--host 203.0.113.1 is not allowed: it is an address of this machine"),
        (("toy.decay", "--scale", "huge"), "scale='huge' is not allowed: it is quick or paper"),
    ],
)
def test_wrong_use_is_one_sentence(jaxdyn, served, words, sentence):
    code, out, err = jaxdyn("explore", *words, "--load", TOYS, "--no-browser")
    assert code == 2 and out == "" and err.startswith(f"jaxdyn: {sentence}") and err.count("\n") == 1 and not served


def test_a_port_that_is_taken_is_named_and_the_usual_one_is_replaced(jaxdyn, served, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = jaxdyn("explore", "toy.decay", "--load", TOYS, "--no-browser", "--port", port)
        assert (
            code == 2
            and err == f"jaxdyn: --port {port} is not allowed: another program listens there; without --port a free one is taken\n"
        )
        monkeypatch.setattr("jaxdyn.explorer.server.PORT", port)
        assert jaxdyn("explore", "toy.decay", "--load", TOYS, "--no-browser")[0] == 0
        assert served[0].port not in (0, port)


def test_a_missing_library_is_one_sentence(jaxdyn, monkeypatch):
    monkeypatch.delitem(sys.modules, "jaxdyn.explorer.server")
    monkeypatch.setitem(sys.modules, "tornado", None)
    code, _, err = jaxdyn("explore", "toy.decay", "--load", TOYS)
    assert code == 2 and err == "jaxdyn: explore needs the library tornado: pip install 'jaxdyn[explore]'\n"


@pytest.mark.slow
def test_ctrl_c_ends_it_quietly():
    command = [sys.executable, "-m", "jaxdyn", "explore", "toy.decay", "--load", str(TOYS), "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=dict(os.environ))
    line = process.stdout.readline()
    with urllib.request.urlopen(re.search(r"http://\S+", line)[0]) as answer:
        assert b"toy.decay" in answer.read()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert all(line.startswith("loading JAX …") for line in err.splitlines()), err
