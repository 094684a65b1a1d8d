"""longrun.py: a run that is killed, extended or repeated ends with the bits of one that never stopped; bad files are refused."""

import json
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn import train
from jaxdyn.errors import StoreError, UsageError
from jaxdyn.text import longrun

ABOUT = {"lr": 0.01, "text": "numbers"}
CHILD = """
import sys, time
from pathlib import Path
sys.path.insert(0, {folder!r})
from test_longrun import go

class Told:
    def start(self, total, done):
        print("start", done, flush=True)
    def advance(self, steps, facts):
        print("segment", flush=True)
        time.sleep(0.01)

go(Path({path!r}), until=400, every=2, save_seconds=0.0, progress=Told())
"""


def loss(params, x):
    return jnp.mean(jnp.square(jnp.tanh(params["w"] @ x) - x))


def begin():
    return train.init(optax.adam(0.01), {"w": jax.random.normal(jax.random.key(0), (3, 3), jnp.float32)})


def go(path, until=12, every=4, about=ABOUT, **options):
    step = train.make_step(
        loss, optax.adam(0.01), lambda i, key: jax.random.normal(jax.random.fold_in(key, i), (3, 5), jnp.float32)
    )

    def observe(state):
        return {"norm": jnp.sum(jnp.square(state.params["w"])), "w": state.params["w"]}

    return longrun.run(path, about, step, begin, observe, until=until, every=every, data=(jax.random.key(1),), **options)


def same(a, b):
    return jax.tree.all(jax.tree.map(lambda x, y: np.array_equal(x, y), a, b))


def test_records_are_those_of_a_plain_loop(tmp_path):
    run = go(tmp_path / "a.run")
    assert list(run.steps) == [0, 4, 8, 12]
    state, expected = begin(), []
    tx = optax.adam(0.01)
    for i in range(13):
        if i % 4 == 0:
            expected.append(np.asarray(state.params["w"]))
        x = jax.random.normal(jax.random.fold_in(jax.random.key(1), i), (3, 5), jnp.float32)
        updates, opt = tx.update(jax.grad(loss)(state.params, x), state.opt, state.params)
        state = train.State(optax.apply_updates(state.params, updates), opt, state.step + 1)
    np.testing.assert_allclose(run.records["w"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.records["norm"], np.sum(np.square(run.records["w"]), (1, 2)), rtol=1e-6)


def test_killed_and_resumed_ends_with_the_same_bits(tmp_path):
    """Kill -9 in mid-run, twice."""
    path, starts = tmp_path / "killed.run", []
    for segments in (5, 30):
        code = CHILD.format(folder=str(__file__).rsplit("/", 1)[0], path=str(path))
        with subprocess.Popen([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE) as process:
            starts.append(int(process.stdout.readline().split()[1]))
            for _ in range(segments):
                assert process.stdout.readline() == "segment\n"
            time.sleep(0.013)
            process.kill()
    assert starts[0] == 0 < starts[1] < 400, "the second child resumed where the first was killed"
    run = go(path, until=400, every=2, save_seconds=0.0)
    assert same(run, go(tmp_path / "whole.run", until=400, every=2))
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".tmp")] or list(tmp_path.glob("*.run"))


def test_extended_run_is_the_long_one_and_a_finished_one_is_read(tmp_path):
    go(tmp_path / "a.run", until=8)
    longer = go(tmp_path / "a.run", until=16)
    assert same(longer, go(tmp_path / "b.run", until=16))
    stamp = (tmp_path / "a.run").stat().st_mtime_ns
    assert same(longer, go(tmp_path / "a.run", until=16))
    shorter = go(tmp_path / "a.run", until=8)
    assert list(shorter.steps) == [0, 4, 8] and np.array_equal(shorter.records["w"], longer.records["w"][:3])
    assert (tmp_path / "a.run").stat().st_mtime_ns == stamp, "nothing to do, nothing written"


def test_interrupted_between_segments_keeps_what_was_saved(tmp_path):
    class Stop:
        def start(self, total, done):
            self.left = 3

        def advance(self, steps, facts):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "a.run", until=40, save_seconds=0.0, progress=Stop())
    assert same(go(tmp_path / "a.run", until=40), go(tmp_path / "b.run", until=40))


@pytest.mark.parametrize("cut", [slice(0, -1), slice(1, None), slice(0, 5), slice(0, 0)])
def test_damaged_file_is_refused_and_kept(tmp_path, cut):
    path = tmp_path / "a.run"
    go(path)
    path.write_bytes(path.read_bytes()[cut])
    content = path.read_bytes()
    with pytest.raises(StoreError, match="damaged or not a run file"):
        go(path)
    assert path.read_bytes() == content


def test_one_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a.run"
    go(path)
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        go(path)


@pytest.mark.parametrize(("change", "named"), [({"about": {"lr": 0.02, "text": "numbers"}}, "lr"), ({"every": 2}, "every")])
def test_file_of_another_run_is_refused(tmp_path, change, named):
    go(tmp_path / "a.run")
    with pytest.raises(StoreError, match=f"another run: it differs in {named};"):
        go(tmp_path / "a.run", **change)


def test_bad_counts(tmp_path):
    with pytest.raises(UsageError, match="every=0 is not allowed"):
        go(tmp_path / "a.run", every=0)
    assert not list(tmp_path.iterdir())


def test_settings_and_paths_can_be_what_a_run_is_about(tmp_path):
    about = {"path": tmp_path, "sizes": (1, 2)}
    go(tmp_path / "a.run", about=about)
    head = (tmp_path / "a.run").read_bytes().split(b"\n")[2]
    assert json.loads(head)["sizes"] == [1, 2]
    go(tmp_path / "a.run", about=about)
