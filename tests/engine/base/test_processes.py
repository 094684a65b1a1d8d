"""Processes that are started leave Ctrl-C to their parent, and end with it."""

import os
import signal
import subprocess
import sys
import time

import pytest

PARENT = """
import multiprocessing, sys, time
from jaxdyn.engine.base.processes import depend_on_parent, without_interrupts

def wait(ready):
    depend_on_parent()
    ready.set()
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    with without_interrupts():
        child = context.Process(target=wait, args=(ready,))
        child.start()
    ready.wait()
    print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def family(tmp_path):
    """A process and the id of one that it has started."""
    (tmp_path / "parent.py").write_text(PARENT, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    yield parent, child
    parent.kill()
    parent.wait()
    parent.stdout.close()


def runs(process):
    """Whether a process is there, and more than the entry that its parent has not read."""
    try:
        os.kill(process, 0)
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system does not list processes in /proc")
def test_an_interrupt_leaves_a_started_process_and_the_end_of_its_parent_ends_it(family):
    parent, child = family
    os.kill(child, signal.SIGINT)
    time.sleep(0.3)
    assert runs(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 30
    while runs(child):
        assert time.monotonic() < end
        time.sleep(0.02)
