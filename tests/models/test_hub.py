"""Names of the hub against a stand-in on the loopback, in processes of their own: the library's settings are read once."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models import hub
from jaxdyn.models.checkpoint import open_checkpoint
from jaxdyn.models.tokenizer import BESIDE
from tests.models.hugging import needs_models
from tests.models.small import saved

pytestmark = needs_models
COMMIT = "a" * 40
SCRIPT = """
import sys
from jaxdyn.cli.main import main
sys.exit(main(["models", "show", sys.argv[1], "--json"]))
"""


class Hub(http.server.BaseHTTPRequestHandler):
    """Files of one model, ``org/model``."""

    def log_message(self, *_):
        """Print nothing."""

    def do_HEAD(self):  # noqa: N802
        """As GET, without the body."""
        self.do_GET()

    def do_GET(self):  # noqa: N802
        """The model's list of files, or one of them."""
        self.server.asked.append(f"{self.command} {self.path}")
        files = self.server.files
        name = self.path.partition("?")[0].removeprefix(f"/org/model/resolve/{COMMIT}/")
        if self.path.startswith("/api/models/org/model/tree/"):
            tree = [{"type": "file", "path": name, "size": len(body), "oid": "0" * 40} for name, body in files.items()]
            self.reply(200, json.dumps(tree).encode(), {"Content-Type": "application/json"})
        elif self.path.startswith("/api/models/org/model"):
            body = json.dumps({"id": "org/model", "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}).encode()
            self.reply(200, body, {"Content-Type": "application/json"})
        elif name in files:
            tag = hashlib.sha256(files[name]).hexdigest()
            self.reply(200, files[name], {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT})
        else:
            self.reply(404, b"{}", {"X-Error-Code": "RepoNotFound", "Content-Type": "application/json"})

    def reply(self, code, body, headers):
        """Send a reply."""
        self.send_response(code)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture
def stand_in(tmp_path):
    """A hub with one model, and further files that nobody should ask for."""
    folder = saved(tmp_path / "model")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files = {file.name: file.read_bytes() for file in folder.iterdir()}
    server.files |= {"pytorch_model.bin": b"pickled", "modeling.py": b"raise SystemExit('executed')"}
    server.files |= dict.fromkeys(BESIDE, b"{}")
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def show(name, server, home, **more):
    """``jaxdyn models show NAME`` with that hub and a cache of its own."""
    where = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")} | where | more
    return subprocess.run([sys.executable, "-c", SCRIPT, name], capture_output=True, encoding="utf-8", env=env)


@pytest.mark.slow
def test_a_name_is_downloaded_once_and_offline_from_then_on(stand_in, tmp_path):
    first = show("org/model", stand_in, tmp_path / "home")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["family"] == "llama"
    taken = {line.rpartition("/")[2] for line in stand_in.asked if "/resolve/" in line}
    assert taken == {"config.json", "model.safetensors", *BESIDE}, "safetensors only, and no code"
    stand_in.asked.clear()
    again = show("org/model", stand_in, tmp_path / "home", HF_HUB_OFFLINE="1")
    assert again.returncode == 0 and stand_in.asked == [], again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"HF_HUB_OFFLINE": "1"}, {}])
def test_what_the_hub_does_not_have_is_one_sentence(more, stand_in, tmp_path):
    done = show("org/nothing", stand_in, tmp_path / "home", **more)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("jaxdyn: the model org/nothing cannot be had from the hub: ") and "Traceback" not in done.stderr
    assert bool(stand_in.asked) != bool(more)


def test_other_texts_are_no_names():
    texts = ("org/model", "a.b/c-d_1", "gpt2", "a/b/c", "../x", "/etc/passwd", "./m", "a/..", "-/")
    assert [text for text in texts if hub.is_name(text)] == ["org/model", "a.b/c-d_1"]
    with pytest.raises(UsageError, match="there is no model gpt2: it is a folder with config.json"):
        open_checkpoint("gpt2")
