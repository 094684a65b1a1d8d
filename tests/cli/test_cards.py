"""Accelerators in folders that pretend to be a machine's: what is counted, shared, refused, and said to be unused."""

import subprocess

import pytest

from jaxdyn.cli import cards
from jaxdyn.errors import UsageError


@pytest.fixture(autouse=True)
def nothing_asked_for(monkeypatch):
    """JAX chooses, no card is hidden, and no tool lists any."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(cards, "asked", str)
    monkeypatch.setattr(cards.subprocess, "run", refuse)


def refuse(*_, **__):
    raise FileNotFoundError("nvidia-smi")


def installed(monkeypatch, *names):
    monkeypatch.setattr(cards.importlib.util, "find_spec", lambda name: name if name in names else None)


def files(root, *names, text=""):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def gpus(root, count, nodes=None):
    """A machine with NVIDIA cards, and files of so many of them."""
    files(root, "dev/nvidiactl", "dev/nvidia-uvm", *(f"dev/nvidia{i}" for i in range(count if nodes is None else nodes)))
    return files(root, *(f"proc/driver/nvidia/gpus/0000:{i}b:00.0/information" for i in range(count)))


def tpu(root, device="0x0063"):
    files(root, "sys/bus/pci/devices/0000:00:04.0/vendor", text="0x1ae0\n")
    return files(root, "sys/bus/pci/devices/0000:00:04.0/device", text=f"{device}\n")


def test_cards_are_counted_by_their_files(tmp_path):
    assert cards.nvidia_cards(tmp_path) == ()
    assert cards.nvidia_cards(gpus(tmp_path, 3)) == ("0", "1", "2")


def test_a_container_with_files_of_one_card_has_one(tmp_path):
    assert cards.nvidia_cards(gpus(tmp_path, 8, nodes=1)) == ("0",)


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("", ()),
        ("2,5", ("2", "5")),
        (" GPU-1f , MIG-a/1/0", ("GPU-1f", "MIG-a/1/0")),
        ("0,-1,2", ("0",)),
        ("-1", ()),
        ("0,0", ("0",)),
    ],
)
def test_the_variable_of_cuda_says_which_cards_are_visible(tmp_path, monkeypatch, visible, names):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert cards.nvidia_cards(tmp_path) == (), "a variable makes no card"
    assert cards.nvidia_cards(gpus(tmp_path, 8)) == names


def test_where_files_say_nothing_the_tool_is_asked(tmp_path, monkeypatch):
    files(tmp_path, "dev/dxg")
    assert cards.nvidia_cards(tmp_path) == ()
    listed = "GPU 0: NVIDIA H100 (UUID: GPU-1)\n  MIG 1g.10gb Device 0\nGPU 1: NVIDIA H100 (UUID: GPU-2)\n"
    monkeypatch.setattr(cards.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, listed))
    assert cards.nvidia_cards(tmp_path) == ("0", "1")


def test_a_network_card_of_the_same_maker_is_no_tpu(tmp_path):
    assert not cards.has_tpu(tmp_path)
    assert not cards.has_tpu(tpu(tmp_path, "0x0042")) and cards.has_tpu(tpu(tmp_path))


@pytest.mark.parametrize(
    ("count", "workers", "given"),
    [(8, 8, ["0", "1", "2", "3", "4", "5", "6", "7"]), (8, 3, ["0,1", "2,3", "4,5"]), (2, 1, ["0,1"]), (5, 2, ["0,1", "2,3"])],
)
def test_every_worker_gets_as_many_cards_as_another(count, workers, given):
    assert cards.shares([str(i) for i in range(count)], workers) == given


def test_workers_share_the_cards_that_are_used(tmp_path, monkeypatch):
    machine = gpus(tmp_path, 4)
    installed(monkeypatch)
    assert cards.shared_cards(4, machine) == (), "JAX cannot use them"
    installed(monkeypatch, "jax_cuda13_plugin")
    assert cards.shared_cards(4, machine) == cards.shared_cards(2, machine) == ("0", "1", "2", "3")
    assert cards.shared_cards(1, machine) == cards.shared_cards(None, machine) == (), "one process has them all"
    monkeypatch.setattr(cards, "asked", lambda: "cpu")
    assert cards.shared_cards(4, machine) == ()


def test_more_workers_than_cards_are_refused(tmp_path, monkeypatch):
    installed(monkeypatch, "jax_cuda13_plugin")
    said = "--workers 3 is not allowed: each worker needs a card of its own, and JAX sees 2 NVIDIA cards"
    with pytest.raises(UsageError, match=f"^{said}$"):
        cards.shared_cards(3, gpus(tmp_path, 2))


def test_several_workers_on_a_tpu_are_refused(tmp_path, monkeypatch):
    installed(monkeypatch, "libtpu")
    assert cards.shared_cards(1, tpu(tmp_path)) == ()
    with pytest.raises(UsageError, match=r"^--workers 2 is not allowed on a TPU: one process uses all its chips"):
        cards.shared_cards(2, tmp_path)


def test_cards_that_cannot_be_counted_are_shared_by_nobody(tmp_path, monkeypatch):
    """Those of another maker, say: JAX is asked what it has."""
    monkeypatch.setattr(cards.jax, "default_backend", lambda: "gpu")
    with pytest.raises(UsageError, match="JAX sees 0 NVIDIA cards"):
        cards.shared_cards(2, tmp_path)


@pytest.mark.parametrize(
    ("machine", "library", "words"),
    [
        (gpus, None, "an NVIDIA GPU is present but not used: make verify EXTRA=cuda13, or pip install 'jaxdyn[cuda13]'; "),
        (
            gpus,
            "jax_cuda13_plugin",
            "an NVIDIA GPU is present but not used: JAX could not open it (CUDA 13 needs a driver from 580 on",
        ),
        (tpu, None, "a TPU is present but not used: make verify EXTRA=tpu, or pip install 'jaxdyn[tpu]'; "),
        (tpu, "libtpu", "a TPU is present but not used: JAX could not open it ("),
    ],
)
def test_an_accelerator_that_is_not_used_is_named_with_the_cure(tmp_path, monkeypatch, machine, library, words):
    installed(monkeypatch, library)
    assert cards.unused(tmp_path) is None, "none is there"
    machine(tmp_path, *((1,) if machine is gpus else ()))
    sentence = cards.unused(tmp_path)
    assert sentence.startswith(words) and sentence.endswith("; JAX_PLATFORMS=cpu hides this message") and "\n" not in sentence
    with monkeypatch.context() as patch:
        patch.setattr(cards, "asked", lambda: "cpu")
        assert cards.unused(tmp_path) is None, "the CPU is asked for"
    monkeypatch.setattr(cards.jax, "default_backend", lambda: "gpu")
    assert cards.unused(tmp_path) is None, "it is used"


def test_a_card_that_is_hidden_on_purpose_is_not_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert cards.unused(gpus(tmp_path, 1)) is None
