"""longrun.py: a run that is killed, extended or repeated ends with the bits of one that never stopped; bad files are refused."""

import dataclasses
import json
import os
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.mark.slow
def test_killed_and_resumed_ends_with_the_same_bits(tmp_path):
    """Kill -9 in mid-run, twice."""
    path, starts = tmp_path / "killed.run", []
    for segments in (5, 30):
        code = CHILD.format(folder=str(__file__).rsplit("/", 1)[0], path=str(path))
        with subprocess.Popen([sys.executable, "-c", code], encoding="utf-8", stdout=subprocess.PIPE) as process:
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


def test_another_first_state_or_other_data_is_another_run(tmp_path, monkeypatch):
    """Weights or a text that were replaced under the same name; elsewhere the bits of the same seed's weights may differ."""
    zero = train.State(jnp.zeros(3, jnp.float32), (), jnp.zeros((), jnp.int32))
    data = (jnp.arange(5), jax.random.key(3))
    step = lambda state, *_: counted(state)  # noqa: E731

    def go(first=zero, data=data):
        return longrun.run(tmp_path / "a", ABOUT, step, lambda: first, lambda s: {"x": s.params}, until=4, every=2, data=data)

    first = go()
    assert same(first.state, go().state) and longrun.check(tmp_path / "a", ABOUT, step, lambda: zero, every=2, data=data)
    other = zero._replace(params=zero.params.at[1].set(1e-7))
    with pytest.raises(StoreError, match=r"another run: it differs in the first state \(weights, seed\); choose"):
        go(other)
    for changed in ((jnp.arange(5).at[0].set(9), data[1]), (data[0], jax.random.key(4)), data[:1]):
        with pytest.raises(StoreError, match="another run: it differs in the arrays of data;"):
            go(data=changed)
        with pytest.raises(StoreError, match="another run: it differs in the arrays of data;"):
            longrun.check(tmp_path / "a", ABOUT, step, lambda: zero, every=2, data=changed)
    assert not longrun.check(tmp_path / "none", ABOUT, step, lambda: zero, every=2, data=data)
    options = {"until": 4, "every": 2, "data": data}
    with pytest.raises(StoreError, match="another run: it differs in the step "):
        slower = lambda s, *_: counted(s)._replace(params=s.params)  # noqa: E731
        longrun.run(tmp_path / "a", ABOUT, slower, lambda: zero, lambda s: {"x": s.params}, **options)
    assert go().state is not None
    further = longrun.run(tmp_path / "a", ABOUT, step, lambda: zero, lambda s: {"x": s.params}, until=8, every=2, data=data)
    assert int(further.state.step) == 8
    before = go()
    assert before.steps.tolist() == [0, 2, 4] and before.state is None, "the file has gone further"
    where = longrun.own_devices()
    monkeypatch.setattr(longrun, "own_devices", lambda: dataclasses.replace(where, instructions="another processor"))
    assert go(other).steps.tolist() == [0, 2, 4]


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


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"x": np.arange(3)}, "about.x=int64.3. is not allowed: it is a text, a number, a truth value, None, or a list or dict of"),
        ({"x": jnp.ones(2000)}, "about.x=float32.2000. is not allowed"),
        ({"a": {"b": [1, np.ones(2)]}}, r"about.a.b.1.=float64.2. is not allowed"),
        ({"x": {1, 2}}, "about.x=.1, 2. is not allowed"),
        ({"x": jax.random.key(0)}, "about.x=.* is not allowed"),
        ({"x": b"bytes"}, "about.x=b'bytes' is not allowed"),
        ({"x": 1j}, "about.x=1j is not allowed"),
        ({"x": len}, "about.x=.*len.* is not allowed"),
        ({"x": {1: 2}}, "about.x=.1: 2. is not allowed"),
        ({1: 2}, "about=.1: 2. is not allowed"),
        ([1, 2], "about=.1, 2. is not allowed"),
        (None, "about=None is not allowed"),
    ],
)
def test_what_a_run_is_about_can_be_compared(about, words, tmp_path):
    """Arrays would be compared by what is printed of them: a thousand numbers, by six."""
    with pytest.raises(UsageError, match=words) as error:
        count(tmp_path / "a", 4, 2, about=about)
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def counted(state):
    """A step that takes no time."""
    return train.State(state.params * 1.5 + state.step, state.opt, state.step + 1)


def count(path, until, every, observe=lambda state: {"x": state.params}, about=ABOUT, start=None, **options):
    zero = train.State(jnp.zeros((), jnp.float32), (), jnp.zeros((), jnp.int32))
    return longrun.run(path, about, counted, start or (lambda: zero), observe, until=until, every=every, **options)


@settings(deadline=None, max_examples=25, derandomize=True)
@given(ends=st.lists(st.integers(0, 20), min_size=1, max_size=4), every=st.integers(1, 6), last=st.integers(0, 24))
def test_in_parts_it_is_what_it_is_at_once(tmp_path_factory, ends, every, last):
    """Wherever the parts end, also between two records; an end that the file has passed without a record is refused."""
    folder = tmp_path_factory.mktemp("parts")
    for end in sorted(ends):
        count(folder / "parts", end, every)
    try:
        parts = count(folder / "parts", last, every)
    except UsageError as error:
        assert last < max(ends) and last % every and f"has no record at step {last}" in str(error)
        return
    whole = count(folder / "whole", last, every)
    assert parts.steps.tolist() == whole.steps.tolist() == sorted({*range(0, last + 1, every), last})
    assert np.array_equal(parts.records["x"], whole.records["x"])
    assert last < max(ends) or same(parts.state, whole.state)


@pytest.mark.parametrize("name", ["until", "every"])
@pytest.mark.parametrize("wrong", [-1, True, 0.9, 2.0, "4", float("nan"), None, 10**20, np.bool_(True)])
def test_counts_are_whole_numbers(tmp_path, name, wrong):
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        count(tmp_path / "a", **({"until": 4, "every": 2} | {name: wrong}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [-1, True, "4", float("nan"), None])
def test_the_time_between_saves_is_a_number(tmp_path, wrong):
    with pytest.raises(UsageError, match="save_seconds=.* is not allowed: save_seconds is"):
        count(tmp_path / "a", 4, 2, save_seconds=wrong)


def test_numbers_of_numpy_are_the_same_run(tmp_path):
    count(tmp_path / "a", 4, 2, about={"seed": 3, "lr": 0.5, "on": True, "none": float("nan")})
    about = {"seed": np.int64(3), "lr": np.float32(0.5), "on": np.True_, "none": np.float64("nan")}
    about |= {"on": np.array(True), "seed": jnp.int32(3)}
    again = count(str(tmp_path / "a"), np.int64(8), np.int32(2), about=about)
    assert again.steps.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "complex64", "bool"])
def test_records_of_any_dtype_go_through_the_file(tmp_path, dtype):
    def observe(state):
        return {"a/b": jnp.full((2,), state.params).astype(dtype), "": state.step}

    first = count(tmp_path / "a", 6, 2, observe)
    again = count(tmp_path / "a", 6, 2, observe)
    assert first.records["a/b"].dtype == again.records["a/b"].dtype == jnp.dtype(dtype)
    assert all(first.records[name].tobytes() == again.records[name].tobytes() for name in ("a/b", ""))


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        (lambda s: {"x": "word"}, "the record x is not allowed: observe gives a dict of arrays of numbers"),
        (lambda s: {"x": None}, "the record x is not allowed"),
        (lambda s: {"x": jax.random.key(0)}, "the record x is not allowed"),
        (lambda s: [s.params], "a record of list is not allowed: observe gives a dict of arrays"),
        (lambda s: {f"x{int(s.step)}": s.params}, "the record x0 at step 2 is nothing, and the first is float32"),
        (
            lambda s: {"x": np.zeros(int(s.step))},
            "the record x at step 2 is float64.2., and the first is float64.0.: they must be alike",
        ),
        (lambda s: {"x": np.zeros(1, "float32" if s.step else "float64")}, "the record x at step 2 is float32"),
    ],
)
def test_records_that_cannot_be_stored_are_refused(tmp_path, observe, message):
    with pytest.raises(UsageError, match=message):
        count(tmp_path / "a", 6, 2, observe)


def test_weights_of_another_shape_are_another_run(tmp_path):
    count(tmp_path / "a", 4, 2)
    step = jnp.zeros((), jnp.int32)
    for params in (jnp.zeros(3, jnp.float32), jnp.zeros((), jnp.int32), {"w": jnp.zeros(())}):
        with pytest.raises(StoreError, match="belongs to another run: its weights or its optimizer are others"):
            count(tmp_path / "a", 8, 2, start=lambda params=params: train.State(params, (), step))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_no_run(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="pipe cannot be read: it is no plain file"):
        count(tmp_path / "pipe", 4, 2)


@pytest.mark.parametrize("name", [".", "a\0b", "x" * 300, "file/below"])
def test_a_path_that_cannot_be_read_is_refused(tmp_path, name):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError):
        count(tmp_path / name, 4, 2)


@pytest.mark.parametrize("until", [12, 20])
@pytest.mark.parametrize(
    ("other", "named"),
    [
        (lambda state: {"w": jnp.max(jnp.abs(state.params["w"]))}, "w"),
        (lambda state: {"w": 1.01 * state.params["w"]}, "w"),
        (lambda state: {"v": state.params["w"]}, "v"),
        (lambda state: {"w": state.params["w"], "norm": jnp.sum(state.params["w"])}, "norm"),
        (lambda state: {"w": state.params["w"].astype(jnp.bfloat16)}, "w"),
    ],
)
def test_a_file_of_other_records_is_refused(other, named, until, tmp_path):
    path, step = tmp_path / "a.run", train.make_step(loss, optax.adam(0.01))
    data = (jnp.ones((3, 5)),)

    def again(observe, until):
        return longrun.run(path, ABOUT, step, begin, observe, until=until, every=4, data=data)

    again(lambda state: {"w": state.params["w"]}, 12)
    with pytest.raises(StoreError, match=f"holds records of another observe: {named} differs"):
        again(other, until)
    rounded = again(lambda state: {"w": state.params["w"] * (1 + 1e-6)}, until)
    assert len(rounded.steps) == until // 4 + 1


def test_counts_and_complex_numbers_and_nan_are_the_same_records(tmp_path):
    def observe(state):
        w = state.params["w"]
        return {"step": state.step, "z": jax.lax.complex(w, -w), "none": w * jnp.nan, "half": w.astype(jnp.bfloat16), "ok": w > 0}

    for until in (8, 12):
        run = longrun.run(tmp_path / "a.run", ABOUT, train.make_step(loss, optax.adam(0.01)), begin, observe, until=until, every=4,
                          data=(jnp.ones((3, 5)),))  # fmt: skip
    assert list(run.records["step"]) == [0, 4, 8, 12]


@pytest.mark.parametrize(("one", "other"), [(True, 1), (False, 0.0), ([True], [1]), ({"a": True}, {"a": 1})])
def test_a_truth_value_is_no_number(one, other, tmp_path):
    path = tmp_path / "a.run"
    go(path, about={"shuffled": one})
    with pytest.raises(StoreError, match="differs in shuffled"):
        go(path, about={"shuffled": other})
