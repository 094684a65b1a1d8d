"""Stored sweeps: resume, damage, folders that cannot be used."""

import concurrent.futures as cf
import errno
import functools
import hashlib
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file, ref_to
from jaxdyn.engine.runs import sweep as sweep_module
from jaxdyn.engine.storage import shard, store
from jaxdyn.engine.verification import verify as verify_module
from jaxdyn.errors import StoreError, UsageError
from tests.engine.conftest import SEEDS


@pytest.fixture(scope="session")
def whole(toys, tmp_path_factory):
    """A finished sweep (folder and data): copied by the tests that damage it."""
    out = tmp_path_factory.mktemp("whole") / "out"
    from jaxdyn.engine.programs.chunk import Program
    from jaxdyn.engine.programs.direct import traced_facts

    program = Program(ref_to(toys.decay), ref_to(toys.Toy), tuple((n, getattr(toys.Toy(), n)) for n in toys.Toy.static_fields))
    ds = jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.01, 0.02]), SEEDS, out=out, memory=4 * traced_facts(program)["bytes"])
    return out, ds


@pytest.fixture
def folder(whole, tmp_path):
    return Path(shutil.copytree(whole[0], tmp_path / "out"))


def shards(folder):
    return sorted(folder.glob("shards/*/*.nc"))


def snapshot(folder):
    return {
        p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name not in (".lock", ".lock-owner")
    }


def forbid_running(monkeypatch):
    def run_chunk(chunk):
        raise AssertionError("a chunk was run")

    monkeypatch.setattr(sweep_module, "run_chunk", run_chunk)


def refused(swept, folder, *words):
    """The sweep is refused with one sentence that has these words, and changes no byte of the folder."""
    before = snapshot(folder) if folder.is_dir() else None
    with pytest.raises(StoreError) as error:
        swept(folder)
    message = str(error.value)
    assert "\n" not in message and all(word in message for word in words), message
    if before is not None:
        assert snapshot(folder) == before
    return True


def test_stored_results_equal_results_in_memory(whole, swept, same_bits):
    assert same_bits(whole[1], swept(None))


def test_layout(whole):
    out, _ = whole
    assert json.loads((out / "jaxdyn.json").read_text(encoding="utf-8"))["format"] == 1
    assert len(shards(out)) == 6 and not list(out.rglob(".tmp-*"))


def test_nothing_is_run_when_all_is_stored(whole, folder, swept, same_bits, monkeypatch):
    forbid_running(monkeypatch)
    before = snapshot(folder)
    assert same_bits(swept(folder), whole[1])
    assert snapshot(folder) == before


@pytest.mark.thinned
@pytest.mark.parametrize("lost", [[0], [5], [1, 3], [0, 1, 2, 3, 4, 5]])
def test_missing_shards_are_computed_again_with_the_same_bits(whole, folder, swept, same_bits, chunks_run, lost):
    for path in [shards(folder)[i] for i in lost]:
        path.unlink()
    kept = snapshot(folder)
    assert same_bits(swept(folder), whole[1])
    assert len(chunks_run) == len(lost) and len(shards(folder)) == 6
    assert snapshot(folder).items() >= kept.items(), "what was there is left alone"


def test_more_seeds_and_cells_reuse_what_is_stored(whole, folder, swept, toys, chunks_run, few_runs):
    ds = swept(folder, grid=jd.grid(toys.Toy, lr=[0.01, 0.02, 0.04]), memory=few_runs(toys.decay, toys.Toy(), 4), seeds=SEEDS)
    assert (ds.sel(lr=[0.01, 0.02]).measured_x == whole[1].measured_x).all()
    assert sum(c.runs for c in chunks_run) < 3 * SEEDS, "stored runs are not all run again"


def test_of_a_list_of_runs_only_those_are_made_that_are_not_stored(toys, tmp_path, chunks_run, same_bits, few_runs):
    """Whichever lists they were in; the results are those of rectangles."""
    grid, three, memory = jd.grid(toys.Toy, lr=[0.01, 0.02]), [0.01, 0.02, 0.04], few_runs(toys.decay, toys.Toy(), 4)
    jd.sweep(toys.decay, grid, 3, out=tmp_path, executor="flat", memory=memory)
    assert [chunk.runs for chunk in chunks_run] == [3, 3]
    del chunks_run[:]
    more = jd.sweep(toys.decay, grid.replace(lr=three), 4, out=tmp_path, executor="flat", memory=memory)
    assert sum(chunk.runs for chunk in chunks_run) == 6 and len({chunk.shape for chunk in chunks_run}) == 1
    del chunks_run[:]
    again = jd.sweep(toys.decay, grid.replace(lr=three), 4, out=tmp_path, executor="flat", memory=memory)
    assert not chunks_run and same_bits(again, more)
    xr.testing.assert_allclose(more, jd.sweep(toys.decay, grid.replace(lr=three), 4), rtol=1e-14)


def test_runs_that_lists_lack_here_and_there_are_put_into_few(toys, tmp_path, chunks_run):
    """A new value is lacking in every list: their runs together need two lists, not one each."""
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02, 0.03])
    jd.sweep(toys.decay, grid.replace(lr=[0.01, 0.03]), 6, out=tmp_path, executor="flat", chunk=3)
    del chunks_run[:]
    ds = jd.sweep(toys.decay, grid, 6, out=tmp_path, executor="flat", chunk=3)
    assert [(chunk.runs, chunk.shape) for chunk in chunks_run] == [(3, (3, 3))] * 2
    xr.testing.assert_allclose(ds, jd.sweep(toys.decay, grid, 6), rtol=1e-14)


@pytest.mark.thinned
@pytest.mark.parametrize("how", ["truncated", "flipped", "emptied", "replaced"])
def test_a_damaged_shard_is_named_and_refused(folder, swept, how):
    victim = shards(folder)[2]
    data = bytearray(victim.read_bytes())
    if how == "truncated":
        data = data[: len(data) // 2]
    elif how == "flipped":
        data[len(data) // 2] ^= 1
    elif how == "emptied":
        data = b""
    else:
        data = shards(folder)[0].read_bytes()
    victim.write_bytes(bytes(data))
    assert refused(swept, folder, victim.name, "damaged", "remove it")
    victim.unlink()
    swept(folder)


@pytest.fixture
def two_programs(toys, tmp_path):
    """Shards of two programs with the same cells and seeds, and a function that runs their sweep again."""

    def again():
        return jd.sweep(toys.decay, jd.grid(toys.Toy, size=[2, 3]), 2, out=tmp_path / "out")

    again()
    return shards(tmp_path / "out"), again


def swap(a, b):
    a.rename(a.with_name("aside"))
    b.rename(a)
    a.with_name("aside").rename(b)


def exchanged(first, second):
    """Each in the other's folder."""
    first.rename(second.parent / first.name)
    second.rename(first.parent / second.name)


def renamed(first, second):
    """Each with the other's identity and its own checksum, as if it had been written there."""
    for path, data, other in [(p, p.read_bytes(), o) for p, o in ((first, second), (second, first))]:
        path.unlink()
        other.with_name(f"{other.name.split('.')[0]}.{path.name.split('.')[1]}.nc").write_bytes(data)


@pytest.mark.parametrize("how", [exchanged, renamed, lambda a, b: swap(a.parent, b.parent)], ids=["moved", "renamed", "folders"])
def test_a_shard_is_not_taken_for_another_programs(two_programs, how):
    (first, second), again = two_programs
    assert first.parent != second.parent
    how(first, second)
    with pytest.raises(StoreError, match="was moved or renamed: it holds runs of .*; move it back, or remove it") as error:
        again()
    assert "\n" not in str(error.value)


def test_a_shard_is_not_taken_for_another_chunks(folder, swept):
    first, second = shards(folder)[:2]
    renamed(first, second)
    assert refused(swept, folder, "was moved or renamed")


def test_what_has_no_shards_name_is_not_read(whole, folder, swept, same_bits, monkeypatch):
    forbid_running(monkeypatch)
    place = shards(folder)[0].parent
    (place / "x.nc").mkdir()
    (place / "y.nc").symlink_to(folder / "nowhere")
    (place / "z.nc").write_text("mine", encoding="utf-8")
    shutil.copy(shards(folder)[0], place / f"copy of {shards(folder)[0].name}")
    (folder / ".tmp-mine").mkdir()
    (place / ".tmp-x.nc").mkdir()
    assert same_bits(swept(folder), whole[1])


@pytest.mark.parametrize("how", ["folder", "dangling", "no shard", "other netCDF"])
def test_a_shard_that_cannot_be_read_is_named(folder, swept, how):
    victim = shards(folder)[1]
    victim.unlink()
    words = "cannot be read"
    if how == "folder":
        victim.mkdir()
    elif how == "dangling":
        victim.symlink_to(folder / "nowhere")
    else:
        words = "is damaged: it is not a shard"
        victim.write_bytes(b"mine" if how == "no shard" else bytes(xr.Dataset({"x": 1.0}).to_netcdf(engine="h5netcdf")))
        victim.rename(victim := victim.with_name(f"{'0' * 20}.{hashlib.sha256(victim.read_bytes()).hexdigest()}.nc"))
    with pytest.raises(StoreError, match=f"{victim} {words}.*; remove it to have its runs computed again") as error:
        swept(folder)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch, swept, toys):
    """Also where a chunk, or what runs it, changes the working directory."""

    class Wandering(cf.ThreadPoolExecutor):
        def submit(self, function, *args):
            os.chdir(tmp_path / "elsewhere")
            return super().submit(function, *args)

    (tmp_path / "elsewhere").mkdir()
    for name, run in (("swept", swept), ("verified", functools.partial(jd.verify, toys.CLAIMS[0]))):
        monkeypatch.chdir(tmp_path)
        with Wandering(1) as pool:
            run(out=name, cluster=pool)
        assert shards(tmp_path / name)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_every_flipped_byte_is_found(folder):
    path = shards(folder)[0]
    data = path.read_bytes()
    for i in random.Random(0).sample(range(len(data)), 25):
        path.write_bytes(data[:i] + bytes([data[i] ^ 128]) + data[i + 1 :])
        with pytest.raises(StoreError, match="damaged"):
            shard.read_shard(path)


def test_a_foreign_folder_is_refused(tmp_path, swept):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert refused(swept, tmp_path, str(tmp_path), "not jaxdyn's")


def test_an_empty_folder_is_used(tmp_path, swept):
    assert swept(tmp_path).sizes["seed"] == SEEDS


def test_a_folder_of_another_job_is_refused(folder, toys):
    for call in (lambda: jd.sweep(toys.net, jd.grid(toys.Net), out=folder), lambda: jd.verify(toys.CLAIMS[0], out=folder)):
        before = snapshot(folder)
        with pytest.raises(StoreError, match="another job .*decay.* choose another"):
            call()
        assert snapshot(folder) == before


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 1}', "\x00\x01", '{"purpose": "x", "form'])
def test_a_damaged_marker_is_refused(folder, swept, content):
    (folder / "jaxdyn.json").write_text(content, encoding="utf-8")
    assert refused(swept, folder, "jaxdyn.json", "damaged")


def test_a_marker_of_bytes_that_are_no_text_is_refused(folder, swept):
    (folder / "jaxdyn.json").write_bytes(b"\xff\xfe\xfa")
    assert refused(swept, folder, "jaxdyn.json", "damaged")


def test_a_folder_of_another_format_is_refused(folder, swept):
    marker = folder / "jaxdyn.json"
    marker.write_text(json.dumps(json.loads(marker.read_text(encoding="utf-8")) | {"format": 99}), encoding="utf-8")
    assert refused(swept, folder, "format 99", "format 1")


def test_a_file_in_the_way_is_refused(tmp_path, swept):
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError, match="out is a file"):
        swept(tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("path", ["file/out", "x" * 300], ids=["below a file", "too long"])
def test_a_path_that_cannot_be_made_is_refused(tmp_path, swept, path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot write to"):
        swept(tmp_path / path)


def test_a_folder_without_permission_is_refused(folder, swept, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    refused_message = None
    try:
        swept(folder)
    except StoreError as error:
        refused_message = str(error)
    monkeypatch.undo()
    assert refused_message is not None and "Permission denied" in refused_message


@pytest.mark.parametrize("where", ["replace", "fsync"])
def test_a_full_disk_ends_in_one_sentence_and_leaves_no_part(folder, swept, monkeypatch, where, whole, same_bits):
    shards(folder)[0].unlink()
    before = snapshot(folder)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, where, full)
        with pytest.raises(StoreError, match="No space left on device; choose another output folder or free some space"):
            swept(folder)
    assert snapshot(folder) == before, "no temporary file is left"
    assert same_bits(swept(folder), whole[1])


def test_a_disk_that_fills_up_inside_the_file_library(folder, swept, whole, same_bits):
    """The netCDF library meets the refusal itself (here: a limit on the size of files)."""
    shards(folder)[0].unlink()
    before = snapshot(folder)
    swept(None)  # compiled, so that nothing else is written below
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(StoreError) as error:
            swept(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot write to" in str(error.value) and "\n" not in str(error.value)
    assert snapshot(folder) == before
    assert same_bits(swept(folder), whole[1])


def test_a_folder_in_use_names_the_process_that_holds_it(folder, swept):
    marker = json.loads((folder / "jaxdyn.json").read_text(encoding="utf-8"))
    named = (f"is in use by process {os.getpid()} on {socket.gethostname()}", "choose another output folder")
    with store.open_folder(folder, marker["purpose"]), cf.ThreadPoolExecutor(1) as other:
        for _ in range(2):  # who is turned away does not wipe the name
            assert other.submit(refused, swept, folder, *named).result()
    swept(folder)


def test_who_holds_a_folder_may_open_it_again_and_gives_it_back_once(folder, swept):
    purpose = json.loads((folder / "jaxdyn.json").read_text(encoding="utf-8"))["purpose"]
    with store.open_folder(folder, purpose), cf.ThreadPoolExecutor(1) as other:
        swept(folder)
        assert other.submit(refused, swept, folder, "is in use by process").result()
        with pytest.raises(StoreError, match="another purpose|holds"), store.open_folder(folder, "verify"):
            raise AssertionError
    with cf.ThreadPoolExecutor(1) as other:
        other.submit(swept, folder).result()


def test_a_file_that_could_not_be_written_later_is_refused_now(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    store.check_writable(tmp_path / "new" / "page.html")
    assert not (tmp_path / "new").exists(), "it may be in an output folder, which is to be empty"
    for path, words in ((tmp_path, "Is a directory"), (tmp_path / "file" / "page.html", "cannot write to")):
        with pytest.raises(StoreError, match=words):
            store.check_writable(path)


def test_leftovers_of_a_killed_run_are_cleared(folder, swept, whole, same_bits):
    (shards(folder)[0].parent / ".tmp-1234.nc").write_bytes(b"half a shard")
    assert same_bits(swept(folder), whole[1])
    assert not list(folder.rglob(".tmp-*"))


def test_a_run_killed_before_its_marker_was_written_goes_on(tmp_path, swept):
    (tmp_path / ".lock").write_text("1", encoding="utf-8")
    (tmp_path / ".tmp-abcd").write_text('{"form', encoding="utf-8")
    assert swept(tmp_path).sizes["seed"] == SEEDS
    assert not list(tmp_path.rglob(".tmp-*"))


TIMES = """
import jaxdyn as jd

@jd.setting
class S:
    a: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(measured={{'x': s.a * {}}})
"""


@pytest.mark.slow
def test_a_changed_trial_does_not_reuse_its_old_shards(tmp_path):
    file = tmp_path / "mine.py"
    values = []
    for factor in (2, 3, 2):
        file.write_text(TIMES.format(factor), encoding="utf-8")
        module = load_file(file)
        values.append(
            jd.sweep(module.trial, jd.grid(module.S, a=[1.0, 10.0]), out=tmp_path / f"out{factor}")
            .measured_x.values.ravel()
            .tolist()
        )
    assert values == [[2, 20], [3, 30], [2, 20]]


def test_an_edited_file_may_go_on_in_its_folder(tmp_path):
    """The folder's purpose is the trial, not one version of its text; the new text's runs are computed anew."""
    file = tmp_path / "mine.py"
    for factor in (2, 3):
        file.write_text(TIMES.format(factor), encoding="utf-8")
        module = load_file(file)
        assert jd.sweep(module.trial, jd.grid(module.S), out=tmp_path / "out").measured_x.item() == factor


def test_claims_share_a_folder(toys, tmp_path, monkeypatch):
    first = jd.verify(toys.CLAIMS[0], out=tmp_path)
    forbid_running(monkeypatch)
    again = jd.verify(toys.CLAIMS[0], out=tmp_path)
    assert again.verdict == first.verdict == "upheld" and again.resolution == first.resolution
    assert jd.verify(toys.CLAIMS[1], out=tmp_path).verdict == "refuted", "the same runs, stored"
    assert again.compile_seconds == again.run_seconds == 0


def test_plan_counts_what_is_stored(toys, tmp_path):
    plan = verify_module.make_plan([toys.CLAIMS[0]], store=tmp_path)
    assert (plan.done, len(plan.jobs)) == (0, 1) and plan.runs == 2 * 2 * 4 * 2, "the control's runs share the program"
    jd.verify(toys.CLAIMS[0], out=tmp_path)
    plan = verify_module.make_plan([toys.CLAIMS[0], toys.CLAIMS[1]], store=tmp_path)
    assert plan.done == plan.runs and plan.seconds() == 0


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP])
def test_without_flock_a_file_is_the_lock(tmp_path, monkeypatch, code):
    """What a process of this machine left is taken over; of another machine nobody knows, and the sentence says what to do."""
    fcntl = pytest.importorskip("fcntl")

    def missing(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", missing)
    name = ".lock" if code == errno.ENOSYS else ".lock-held"
    with store.open_folder(tmp_path, "x"):
        own = (tmp_path / name).read_text(encoding="utf-8").split()
        words = f"is in use by process {os.getpid()} on {socket.gethostname()}; .*, remove .*{name}$"
        with cf.ThreadPoolExecutor(1) as other, pytest.raises(StoreError, match=words):
            other.submit(store.open_folder(tmp_path, "x").__enter__).result()
    assert not (tmp_path / name).exists()
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=subprocess.PIPE, encoding="utf-8").stdout
    (tmp_path / name).write_text(f"{gone.strip()}\n{own[1]}\n", encoding="utf-8")
    with store.open_folder(tmp_path, "x"):
        pass
    for file in (name, ".lock-owner"):
        (tmp_path / file).write_text(f"{gone.strip()}\nother.example\n", encoding="utf-8")
    with pytest.raises(StoreError, match=f"in use by process {gone.strip()} on other.example; .* if it was killed, remove"):
        store.open_folder(tmp_path, "x").__enter__()


def test_an_output_folder_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with store.open_folder("~/out", "x") as folder:
        assert folder == tmp_path / "out"
    with pytest.raises(UsageError, match="no home folder is known for ~nobody-of-this-name"):
        store.whole_path("~nobody-of-this-name/out")
