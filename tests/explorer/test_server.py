"""The page of ``jaxdyn explore``: who may see it, and what it does in a browser."""

import asyncio
import contextlib
import http.client
import json
import re
import threading
import time

import pytest
import tornado.websocket

from jaxdyn.errors import UsageError
from jaxdyn.explorer.runs import Explorer, Move, one_claim
from jaxdyn.explorer.server import Server, is_loopback, listen
from tests.engine import toys
from tests.report.test_page import CHROMIUM, Browser

FILE = toys.__file__
DECAY = "toy.decay"


@contextlib.contextmanager
def serving(claim, host="127.0.0.1", start=None, file=FILE):
    """A server in a thread of its own."""
    explorer, ready = Explorer(one_claim(claim, [file]), load=[file]), threading.Event()
    server = Server(explorer, start or Move(), host, 0)
    thread = threading.Thread(target=server.serve, args=(ready.set,), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield server
    finally:
        server.close()
        thread.join(20)


def get(server, path="/", **headers):
    """Status, headers and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.headers), text


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def test_which_addresses_are_this_machines_own():
    own = ["127.0.0.1", "127.9.9.9", "::1", "localhost"]
    assert all(map(is_loopback, own)) and not any(map(is_loopback, ["0.0.0.0", "::", "192.168.0.1", "example.org", ""]))


def test_on_the_loopback_the_page_itself_is_served_and_nothing_is_loaded_from_elsewhere():
    with serving(DECAY) as server:
        status, headers, text = get(server)
        script = get(server, "/explore.js")[2]
        assert status == 200 and "toy.decay" in text and 'src="explore.js"' in text
        assert "http" not in text.replace("http-equiv", "") and "//" not in script.replace("// ", "")
        assert headers["Content-Security-Policy"].startswith("default-src 'none'") and headers["Referrer-Policy"] == "no-referrer"
        assert get(server, "/nothing")[0] == 404


def test_other_sites_are_kept_out():
    """A name that was made to point here, and a page of another site that opens a socket."""
    with serving(DECAY) as server:
        assert get(server, Host="evil.example")[0] == 403
        assert get(server, "/explore.js", Host="evil.example")[0] == 403
        assert get(server, "/talk", **UPGRADE, Host="evil.example", Origin="http://evil.example")[0] == 403
        assert get(server, "/talk", **UPGRADE, Origin="http://evil.example")[0] == 403


def test_on_other_addresses_a_token_is_needed():
    with serving(DECAY, "0.0.0.0") as server:
        for path in ("/", "/explore.js", "/talk", "/?token=", "/?token=x", "/?token=%FF"):
            status, _, text = get(server, path, **(UPGRADE if path == "/talk" else {}))
            assert status == 403 and "needs the token" in text
        status, _, text = get(server, f"/?token={server.token}", Host="machine.example")
        assert status == 200 and f"explore.js?token={server.token}" in text
        assert server.url.endswith(f"/?token={server.token}")


ENDLESS = """
import jax
import jaxdyn as jd

@jd.setting
class Walk:
    step: jd.Swept = 0.5

def walk(s, key):
    place = jax.lax.while_loop(lambda x: x < 1, lambda x: x + s.step, 0.0 * s.step)
    return jd.observables(predicted={"end": jd.named(1.0 + 0 * place, "")}, measured={"end": place})

CLAIMS = [
    jd.Claim(
        id="walk.ends", title="t", statement="s", source="x", evidence="algebra", bounds="derived", seeds=2, trial=walk,
        quick=jd.grid(Walk), judge=lambda ds: [jd.at_most("distance from 1", jd.relative_error(ds, "end"), 1e-9)],
        controls={"other step": {"step": 0.4}}, rivals={"nothing": jd.swap(predicted_end=0.0)},
    )
]
"""


@pytest.fixture
def endless(tmp_path):
    """The server of a claim whose runs do not end if the step is zero."""
    (tmp_path / "walk.py").write_text(ENDLESS, encoding="utf-8")
    with serving("walk.ends", file=str(tmp_path / "walk.py")) as server:
        yield server


def test_over_its_socket_a_run_is_stopped_and_the_next_one_works(endless):
    async def talk():
        socket = await tornado.websocket.websocket_connect(endless.url.replace("http", "ws") + "talk")

        async def until(*kinds):
            while (content := json.loads(await asyncio.wait_for(socket.read_message(), 60)))["kind"] not in kinds:
                pass
            return content

        await socket.write_message(json.dumps({"kind": "move", "number": 1, "values": {"step": "0"}}))
        await until("progress")
        await asyncio.sleep(1)
        await socket.write_message(json.dumps({"kind": "stop", "number": 1}))
        stopped = await until("stopped", "verdict", "refused")
        assert get(endless)[0] == 200, "the server answers at once"
        await socket.write_message(json.dumps({"kind": "move", "number": 2, "values": {}}))
        verdict = await until("stopped", "verdict", "refused")
        socket.close()
        while await socket.read_message() is not None:
            pass
        return stopped, verdict

    stopped, verdict = asyncio.run(talk())
    assert stopped == {"kind": "stopped", "number": 1}
    assert (verdict["number"], verdict["verdict"]) == (2, "upheld")


# in a browser

ROOT = "document.querySelector('#explore')"
SETTLED = f"{ROOT}.dataset.judged !== undefined && !{ROOT}.hasAttribute('aria-busy')"
STATUS, BADGE = (f"document.querySelector('{name}').textContent" for name in (".status", ".verdict"))
FIGURE = "document.querySelector('.drawing').innerHTML"
COMMAND = f"document.querySelector('.command code').textContent.replace(' --load {FILE}', '')"


class Visitor(Browser):
    """A browser on a page that talks."""

    def visit(self, url):
        """Open the page and wait until the first verdict is there."""
        self.send("Page.navigate", url="about:blank")
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && " + f"{ROOT} !== null && " + SETTLED)

    def until(self, expression, seconds=60):
        """Wait until something is true in the page."""
        end = time.monotonic() + seconds
        while not self.js(expression):
            assert time.monotonic() < end, (expression, self.js("document.body.innerText"))
            time.sleep(0.02)

    def settled(self):
        """Wait for the verdict of the last move."""
        self.until(SETTLED)

    def key(self, name, times=1):
        """Press a key."""
        code = {"Tab": 9, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "End": 35}[name]
        more = {"text": "\r"} if name == "Enter" else {}
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)

    def slide(self, field, stop):
        """Move a slider as a hand does."""
        slider = f"document.querySelector('[data-knob={field}] input[type=range]')"
        self.js(f"{slider}.value = {stop}; {slider}.dispatchEvent(new Event('input', {{bubbles: true}}))")


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    visitor = Visitor(tmp_path_factory.mktemp("profile"))
    yield visitor
    visitor.close()


@pytest.fixture(scope="module")
def decay():
    with serving(DECAY) as server:
        yield server


@pytest.mark.slow
def test_knobs_move_figures_change_and_nothing_complains(visitor, decay):
    visitor.visit(decay.url)
    assert visitor.js(BADGE) == "upheld" and visitor.js(COMMAND) == "jaxdyn verify toy.decay"
    figures = [visitor.js(FIGURE)]
    for stop in (10, 60):
        visitor.slide("lr", stop)
        visitor.settled()
        figures.append(visitor.js(FIGURE))
        text = visitor.js("document.querySelector('[data-knob=lr] input[type=text]').value")
        assert visitor.js(COMMAND) == f"jaxdyn verify toy.decay --set lr={text}"
        assert visitor.js("location.hash") == f"#lr={text}"
    assert len(set(figures)) == 3 and all(figure.startswith("<svg") for figure in figures)
    assert "picture after" in visitor.js(STATUS) and visitor.js("document.querySelectorAll('.fits .mark').length") >= 2
    assert visitor.complaints() == []


@pytest.mark.slow
def test_a_link_keeps_the_knobs_and_a_button_puts_them_back(visitor, decay):
    visitor.visit(f"{decay.url}#lr=0.03&optimizer=sign")
    assert visitor.js(COMMAND) == "jaxdyn verify toy.decay --set lr=0.03 --set optimizer=sign"
    assert visitor.js("document.querySelector('[id$=-world]').value") == "sign descent" and visitor.js(BADGE) != "upheld"
    visitor.js("[...document.querySelectorAll('.buttons button')].find(b => b.textContent.includes('own')).click()")
    visitor.settled()
    assert visitor.js(COMMAND) == "jaxdyn verify toy.decay" and visitor.js(BADGE) == "upheld"
    visitor.js("[...document.querySelectorAll('.buttons button')].find(b => b.textContent === 'One setting').click()")
    visitor.settled()
    assert visitor.js("[...document.querySelectorAll('.knob .set > :first-child')].every(t => !t.value.includes(','))")
    assert visitor.complaints() == []


@pytest.mark.slow
def test_the_command_is_copied_by_a_click(visitor, decay):
    visitor.visit(decay.url)
    visitor.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    visitor.js("document.querySelector('.command .copy').click()")
    visitor.until("document.querySelector('.command .copy').textContent === 'Copied'")
    assert visitor.complaints() == []


@pytest.mark.slow
def test_the_keyboard_is_enough(visitor, decay):
    visitor.visit(decay.url)
    reached, where = [], "document.activeElement.closest('[data-knob]')?.dataset.knob + ' ' + document.activeElement.type"
    for _ in range(40):
        visitor.key("Tab")
        reached.append(visitor.js(where))
        if reached[-1] == "lr range":
            break
    assert "lr text" in reached and reached[-1] == "lr range"
    assert visitor.js("getComputedStyle(document.activeElement).outlineStyle") != "none"
    before = visitor.js("document.activeElement.ariaValueText ?? document.activeElement.getAttribute('aria-valuetext')")
    visitor.key("ArrowRight", 3)
    visitor.settled()
    after = visitor.js("document.activeElement.getAttribute('aria-valuetext')")
    assert after != before and visitor.js(COMMAND).endswith(f"--set lr={after}")
    unlabelled = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length && !e.ariaLabel).length"
    assert visitor.js(unlabelled) == 0


@pytest.mark.slow
def test_at_phone_width_the_page_does_not_scroll_sideways_and_the_figure_stays_in_view(visitor, decay):
    visitor.send("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    visitor.visit(decay.url)
    assert visitor.js("document.documentElement.scrollWidth") == 390
    visitor.js("document.querySelector('[data-knob=lr]').scrollIntoView({block: 'end'})")
    box = visitor.js("(r => [r.top, r.bottom])(document.querySelector('.drawing svg').getBoundingClientRect())")
    assert 0 <= box[0] < box[1] < 500
    visitor.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.slow
def test_a_value_that_is_not_allowed_is_a_sentence_next_to_its_knob(visitor, decay):
    visitor.visit(decay.url)
    field = "document.querySelector('[data-knob=rate] input[type=text]')"
    visitor.js(f"{field}.value = '-1'; {field}.dispatchEvent(new Event('change'))")
    visitor.settled()
    assert "rate is positive" in visitor.js("document.querySelector('[role=alert]').textContent")
    assert visitor.js(f"{field}.ariaInvalid ?? {field}.getAttribute('aria-invalid')") == "true"
    assert visitor.js(BADGE) == "upheld" and visitor.js("document.querySelector('.drawing svg') !== null")
    assert visitor.complaints() == []


@pytest.mark.slow
@pytest.mark.parametrize("text", ["abc", "-1", "1e999", "0.1,abc,0.2"])
def test_a_slider_stays_where_it_is_while_what_is_typed_is_wrong(visitor, decay, text):
    visitor.visit(decay.url)
    field, slider = (f"document.querySelector('[data-knob=rate] input[type={kind}]')" for kind in ("text", "range"))
    visitor.slide("rate", 40)
    visitor.settled()
    visitor.js(f"{field}.value = '{text}'; {field}.dispatchEvent(new Event('change'))")
    visitor.settled()
    assert visitor.js("document.querySelector('[role=alert]').textContent") and visitor.js(f"{slider}.value") == "40"
    assert visitor.complaints() == []


@pytest.mark.slow
def test_picture_and_verdict_are_timed_by_one_clock_from_the_move_on(visitor, decay):
    """Also where the server needs long before it runs anything: its own clock starts later than the visitor's."""
    visitor.visit(decay.url)
    for stop in (20, 30):
        visitor.js(
            "window.sends = WebSocket.prototype.send; WebSocket.prototype.send = "
            "function (text) { setTimeout(() => window.sends.call(this, text), 700); }"
        )
        visitor.slide("rate", stop)
        visitor.js("WebSocket.prototype.send = window.sends")
        visitor.settled()
        times = re.search(r"picture after ([\d.]+) (m?s), verdict after ([\d.]+) (m?s)", visitor.js(STATUS))
        picture, verdict = (float(times[i]) * (1e-3 if times[i + 1] == "ms" else 1) for i in (1, 3))
        assert 0.7 <= picture <= verdict, times[0]


@pytest.mark.slow
def test_an_error_of_a_trial_is_shown_as_in_the_terminal(visitor, tmp_path):
    (tmp_path / "broken.py").write_text(
        "import dataclasses\nfrom tests.engine.toys import CLAIMS as TOYS, broken\n"
        "decay = next(claim for claim in TOYS if claim.id == 'toy.decay')\n"
        "CLAIMS = [dataclasses.replace(decay, id='toy.broken', trial=broken)]\n",
        encoding="utf-8",
    )
    with serving("toy.broken", file=tmp_path / "broken.py") as server:
        visitor.visit(server.url)
        text = visitor.js("document.querySelector('.terminal').textContent")
        assert visitor.js(BADGE) == "error" and "✗ toy.broken" in text and "repeat: jaxdyn verify toy.broken" in text
        assert "toys.py" in text
        assert visitor.complaints() == []


WORDS = """
import jaxdyn as jd

@jd.setting
class Words:
    a: jd.Swept = 1.0
    word: str = "x"

def trial(s, key):
    return jd.observables(predicted={"x": s.a}, measured={"x": s.a})

CLAIMS = [
    jd.Claim(
        id="words.one", title="t", statement="s", source="x", evidence="algebra", bounds="derived", seeds=2, trial=trial,
        quick=jd.grid(Words, a=[1.0, 2.0], word=["a,b.txt", " c "]),
        judge=lambda ds: [jd.at_most("error", jd.relative_error(ds, "x"), 0.1)],
        controls={"c": lambda ds: ds.assign(measured_x=2 * ds.measured_x)}, rivals={"r": jd.off(predicted_x=7.0)},
    )
]
"""
ALARM = "document.querySelector('[role=alert]').textContent"
HIDDEN = "document.querySelector('.command').hidden"


def press(visitor, words):
    visitor.js(f"[...document.querySelectorAll('.buttons button')].find(b => b.textContent === {json.dumps(words)}).click()")
    visitor.settled()


@pytest.mark.slow
def test_links_keep_the_claims_own_values_and_quoted_words(visitor, tmp_path):
    """A server that was started elsewhere; a link to the claim's own values; one setting of words with commas and blanks."""
    (tmp_path / "words.py").write_text(WORDS, encoding="utf-8")
    file = str(tmp_path / "words.py")
    command = COMMAND.replace(FILE, file)
    with serving("words.one", start=Move({"a": "0.5"}), file=file) as server:
        visitor.visit(server.url)
        assert visitor.js(command) == "jaxdyn verify words.one --set a=0.5"
        press(visitor, "The claim's own")
        assert visitor.js("location.hash") == "#own" and visitor.js(command) == "jaxdyn verify words.one"
        visitor.visit(visitor.js("location.href"))
        assert visitor.js(command) == "jaxdyn verify words.one", "reloaded"
        press(visitor, "One setting")
        assert visitor.js("document.querySelector('[data-knob=word] input').value") == '"a,b.txt"'
        assert visitor.js(command) == """jaxdyn verify words.one --set a=1 --set 'word="a,b.txt"'"""
        visitor.visit(f"{server.url}#b=3&a=2")
        assert (
            visitor.js(ALARM) == "Not in this claim, and left out: b."
            and visitor.js(command) == "jaxdyn verify words.one --set a=2"
        )
        field = "document.querySelector('[data-knob=a] input[type=text]')"
        visitor.js(f"{field}.value = 'x'; {field}.dispatchEvent(new Event('change'))")
        visitor.settled()
        assert visitor.js(HIDDEN) is True and "a='x' is not allowed" in visitor.js(ALARM)
        press(visitor, "The claim's own")
        assert visitor.js(HIDDEN) is False
        assert visitor.complaints() == []


WORLDS = """
import jaxdyn as jd

@jd.setting
class Three:
    a: jd.Swept = 1.0
    b: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(predicted={"x": s.a + s.b}, measured={"x": s.a + s.b})

CLAIMS = [
    jd.Claim(
        id="worlds.one", title="t", statement="s", source="x", evidence="algebra", bounds="derived", seeds=2, trial=trial,
        quick=jd.grid(Three, b=[1.0, 2.0]), judge=lambda ds: [jd.at_most("error", jd.relative_error(ds, "x"), 0.1)],
        controls={"same": {"a": 1.0}, "one": {"a": 2.0}, "both": {"a": 2.0, "b": 3.0}, "other": {"b": 3.0, "a": 1.0}},
        rivals={"r": jd.off(predicted_x=7.0)},
    )
]
"""


@pytest.mark.slow
def test_the_list_of_worlds_shows_the_world_that_was_chosen(visitor, tmp_path):
    """Also where a world has the claim's own value of a field, or the values of a smaller one."""
    (tmp_path / "worlds.py").write_text(WORLDS, encoding="utf-8")
    listed = "document.querySelector('select[id$=world]')"

    def enter(name):
        visitor.js(f"{listed}.value = {json.dumps(name)}; {listed}.dispatchEvent(new Event('change'))")
        visitor.settled()
        return visitor.js(f"{listed}.value")

    with serving("worlds.one", file=str(tmp_path / "worlds.py")) as server:
        visitor.visit(server.url)
        assert visitor.js(f"{listed}.value") == ""
        assert [enter(name) for name in ("both", "one", "same", "other", "", "both")] == [
            "both",
            "one",
            "same",
            "other",
            "",
            "both",
        ]
        visitor.visit(visitor.js("location.href"))
        assert visitor.js(f"{listed}.value") == "both", "the one with most fields"
        field = "document.querySelector('[data-knob=b] input[type=text]')"
        visitor.js(f"{field}.value = '9'; {field}.dispatchEvent(new Event('change'))")
        visitor.settled()
        assert visitor.js(f"{listed}.value") == "one"
        press(visitor, "The claim's own")
        assert visitor.js(f"{listed}.value") == "" and visitor.complaints() == []


STOP = "document.querySelector('button.stop')"


@pytest.mark.slow
def test_a_run_is_stopped_by_a_button_that_is_there_while_it_runs(visitor, endless):
    shown = f"getComputedStyle({STOP}).visibility"
    visitor.visit(endless.url)
    assert visitor.js(BADGE) == "upheld" and visitor.js(shown) == "hidden"
    field = "document.querySelector('[data-knob=step] input[type=text]')"
    visitor.js(f"{field}.value = '0'; {field}.dispatchEvent(new Event('change'))")
    visitor.until(f"{shown} === 'visible'")
    visitor.until(f"{STATUS}.startsWith('Running')")
    visitor.js(f"{STOP}.click()")
    assert visitor.js(STATUS) == "Stopping …"
    visitor.settled()
    assert re.fullmatch(r"Stopped after (\d+ ms|[\d.]+ s); nothing is shown", visitor.js(STATUS))
    assert visitor.js(FIGURE) == "" and visitor.js(BADGE) == "" and visitor.js(HIDDEN) is True and visitor.js(shown) == "hidden"
    press(visitor, "The claim's own")
    assert visitor.js(BADGE) == "upheld" and visitor.js(FIGURE).startswith("<svg") and visitor.js(HIDDEN) is False
    assert visitor.complaints() == []


@pytest.mark.slow
def test_the_end_of_the_server_is_said(visitor):
    with serving(DECAY) as server:
        visitor.visit(server.url)
    visitor.until("document.querySelector('.status').textContent.includes('start jaxdyn explore again')")


@pytest.mark.slow
def test_in_a_notebook_the_front_end_talks_through_the_widget(visitor, decay):
    """With a model of the widget's kind, whose messages a socket carries here."""
    visitor.visit(decay.url)
    begin = f"""
      const model = {{heard: [], get: () => '', on: (_, f) => model.heard.push(f)}};
      const socket = new WebSocket({json.dumps(decay.url.replace("http", "ws") + "talk")});
      socket.onmessage = (event) => model.heard.forEach(f => f(JSON.parse(event.data)));
      model.send = (content) => socket.send(JSON.stringify(content));
      window.cell = document.body.appendChild(document.createElement('div'));
      socket.onopen = async () => (await import('./explore.js#widget')).default.render({{model, el: window.cell}});
    """
    visitor.js(f"(() => {{ {begin} }})()")
    visitor.until("window.cell.shadowRoot?.querySelector('.badge')?.textContent === 'upheld'")
    assert visitor.js("window.cell.shadowRoot.querySelector('.drawing svg') !== null")
    assert not visitor.js(
        "[...window.cell.shadowRoot.querySelectorAll('.buttons button')].some(b => b.textContent === 'Copy link')"
    )


def test_the_token_is_in_no_log(caplog, monkeypatch):
    """Neither where a request is refused nor where it fails."""

    def broken(*_):
        raise RuntimeError("this page is broken")

    with serving(DECAY, "0.0.0.0") as server, caplog.at_level(0):
        monkeypatch.setattr("jaxdyn.explorer.server.style", broken)
        for path, status in (
            (f"/?token={server.token}x", 403),
            (f"/no?token={server.token}", 404),
            (f"/?token={server.token}", 500),
        ):
            assert get(server, path)[0] == status
    assert "this page is broken" in caplog.text and server.token not in caplog.text


def test_an_address_that_is_none_is_refused_quietly(caplog):
    with serving(DECAY) as server:
        assert get(server, Host="[::1")[0] == 403
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("host", ["no-such-name.invalid", "[::1", "a..b", "x" * 300])
def test_a_host_that_is_none_is_named(host):
    with pytest.raises(UsageError, match="^--host .* is not allowed: it is an address of this machine"):
        listen(host, 0)
