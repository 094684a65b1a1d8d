"""The runs of pages in processes of their own: one that does not end is ended with its process, and a warm process takes over.

Each process holds the claim and talks as :class:`jaxdyn.explorer.view.Talk` does; it runs the moves of one page at a time. Before
the first move it sends the hash of what verdicts rest on, as it has imported it (:meth:`jaxdyn.explorer.runs.Explorer.basis`). A
process with another hash than the first one has imported other data, say: from then on nothing is run, and pages say so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.failure import PACKAGE, Failure, installed, shown_path
from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.base.processes import depend_on_parent, without_interrupts
from jaxdyn.engine.base.reference import content_hash, read_by
from jaxdyn.explorer.runs import Explorer, Move, one_claim
from jaxdyn.explorer.view import Send, Talk, introduction

__all__ = ["GRACE", "LIMIT", "Recipe", "Relay", "Worker", "Workers", "sources"]

GRACE = 0.5  # seconds that a run has to end by itself: for a newer move, before which it may finish its picture, or if stopped
LIMIT = 300.0  # seconds without a word, after which a run is taken for one that does not end
LOOK = 0.05  # seconds between two looks for a newer move
LAST = ("verdict", "refused", "stopped")  # kinds of messages that end a move
AGAIN = "move a knob to run again"
CHANGED = "has changed since this page was started: start jaxdyn explore again"
CALM = 1.0  # seconds that a run has the machine to itself before a spare process is started next to it
IDLE = 2  # most processes without a run: the last one, which has compiled programs, and a spare one


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a process finds the claim, and where its knobs begin; as for :class:`jaxdyn.explorer.runs.Explorer`.

    ``sources``: the files of the claims, and those that they read, with their contents, from :func:`sources`.
    """

    claim: str
    scale: str
    load: tuple[str, ...]
    start: Move
    sources: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, explorer: Explorer, start: Move) -> Recipe:
        """The recipe of an explorer whose claim is found by its id."""
        return cls(explorer.claim.id, explorer.scale, explorer.load, start, sources(explorer.load))

    def changed(self) -> str | None:
        """A sentence on a file that is no longer as it was loaded: no process may run another version than the page shows."""
        for file, content in self.sources:
            if content_hash(Path(file)) != content:
                return f"{shown_path(file)} {CHANGED}"
        return None


def sources(load: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The files of a user's claims and of all modules next to them that this process has imported, with their contents' hashes.

    So are the files that these modules have read, with what was in them then.
    """
    places = [from_home(path).resolve() for path in load]
    folders = {place if place.is_dir() else place.parent for place in places}
    files, data = {place for place in places if place.is_file()}, dict[str, str]()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        place = Path(file).resolve() if isinstance(file, str) else None
        if place is not None and any(place.is_relative_to(folder) for folder in folders) and not _others(place):
            files.add(place)
            data |= read_by(module.__name__)
    return tuple(sorted((data | {str(file): content_hash(file) for file in files}).items()))


def _others(file: Path) -> bool:
    """Whether a file belongs to jaxdyn or to an installed package, in an environment within a user's folder."""
    return file.is_relative_to(PACKAGE) or installed(file)


def work(recipe: Recipe, pipe: Connection) -> None:
    """In a started process: get ready, say so, and run the moves that come in, until the parent closes the pipe.

    It compiles nothing before the first move, which would have to wait for that, however long it takes.
    """
    depend_on_parent()

    def send(message: Mapping[str, Any]) -> None:
        try:
            pipe.send(message)
        except OSError:  # nobody listens any more
            os._exit(0)

    try:
        explorer = Explorer(one_claim(recipe.claim, recipe.load), recipe.scale, recipe.load)
    except Exception as error:  # a file with claims has changed since, say
        send({"kind": "broken", "text": str(Failure.of(error))})
        return
    if (text := recipe.changed()) is not None:
        send({"kind": "broken", "text": text})
        return
    talk = Talk(explorer, send, recipe.start)
    send({"kind": "ready"})
    with contextlib.suppress(Exception):
        send({"kind": "basis", "hash": explorer.basis(recipe.start)})
    while True:
        try:
            talk.heard(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)


class Worker:
    """A process that runs moves; ``ready`` once it has said so."""

    def __init__(self, recipe: Recipe) -> None:
        """Start it, which takes seconds; this does not wait for it."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(recipe, theirs), daemon=True)
        with without_interrupts():
            self.process.start()
        theirs.close()
        self.ready = False

    def hears(self, content: Mapping[str, Any]) -> None:
        """Send it a message; that it has ended is noticed by :meth:`says`."""
        with contextlib.suppress(OSError):
            self.pipe.send(content)

    def says(self, seconds: float) -> Mapping[str, Any] | None:
        """Its next message, None if there is none within so many seconds.

        Raises:
            EOFError: it has ended.
        """
        try:
            return self.pipe.recv() if self.pipe.poll(seconds) else None
        except OSError as error:  # some systems say so instead
            raise EOFError from error

    def end(self) -> None:
        """End it at once, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Workers:
    """The processes of a server; :meth:`take` one, then :meth:`give` it back, or :meth:`drop` it if it has to be ended."""

    def __init__(self, recipe: Recipe) -> None:
        """Start the first process."""
        self.recipe, self._changed, self._closed = recipe, threading.Lock(), False
        self._bases = set[str]()
        self._idle, self._busy = [Worker(recipe)], list[Worker]()

    def take(self) -> Worker:
        """The process that was given back last, the spare one, or a new one; a spare one follows if the run is no short one."""
        with self._changed:
            worker = self._idle.pop() if self._idle else Worker(self.recipe)
            self._busy.append(worker)
        if not self._idle:
            later = threading.Timer(CALM, self._see_to_spare)
            later.daemon = True
            later.start()
        return worker

    def learn(self, basis: str) -> None:
        """Note what the verdicts of a process rest on."""
        with self._changed:
            self._bases.add(basis)

    def differ(self) -> str | None:
        """A sentence, if verdicts of two processes rest on different things."""
        with self._changed:
            return f"this claim, or what it reads while it is imported, {CHANGED}" if len(self._bases) > 1 else None

    def changed(self) -> str | None:
        """A sentence on what is no longer as it was when the page was started; None if nothing is known to have changed."""
        return self.differ() or self.recipe.changed()

    def give(self, worker: Worker) -> None:
        """Take back a process that waits for the next move, and see to it that there is a spare one."""
        with self._changed:
            self._busy.remove(worker)
            self._idle.append(worker)
            self._complete()

    def drop(self, worker: Worker) -> None:
        """End a process, and see to it that there is a spare one."""
        with self._changed:
            self._busy.remove(worker)
            worker.end()
            self._complete()

    def _see_to_spare(self) -> None:
        with self._changed:
            self._complete()

    def _complete(self) -> None:
        while len(self._idle) > IDLE or (self._closed and self._idle):
            self._idle.pop(0).end()
        if not (self._idle or self._closed):
            self._idle = [Worker(self.recipe)]

    def close(self) -> None:
        """End all processes."""
        with self._changed:
            self._closed = True
            for worker in (*self._idle, *self._busy):
                worker.process.kill()


class Relay:
    """The exchange of messages with one page, as by :class:`jaxdyn.explorer.view.Talk`, whose runs are made in other processes.

    Args:
        explorer: introduces the claim; it runs nothing.
        send: takes a message in JSON types; also called from the relay's thread.
        start: the knobs' first positions.
        workers: the processes.
        limit: seconds without a word after which a run is ended.
    """

    def __init__(self, explorer: Explorer, send: Send, start: Move, workers: Workers, limit: float = LIMIT) -> None:
        self._explorer, self._send, self._start = explorer, send, start
        self._workers, self._limit = workers, limit
        self._next: Mapping[str, Any] | None = None
        self._stop: int | None = None  # the number of the last move that the page stopped
        self._changed, self._ended = threading.Condition(), False
        threading.Thread(target=self._work, daemon=True, name="relay").start()

    def heard(self, content: Any) -> None:
        """Handle a message of the page, as :meth:`jaxdyn.explorer.view.Talk.heard`."""
        kind = content.get("kind") if isinstance(content, Mapping) else None
        if kind == "hello":
            self._send(introduction(self._explorer, self._start))
        elif kind == "move" and isinstance(content.get("number"), int):
            if (text := self._workers.changed()) is not None:
                self._refuse(content, text)
                return
            with self._changed:
                self._next = content
                self._changed.notify()
        elif kind == "stop" and isinstance(content.get("number"), int):
            self._stop = content["number"]

    def close(self) -> None:
        """End the exchange: the page is closed."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._next is not None)
            if self._ended:
                return
            worker = self._workers.take()
            (self._workers.give if self._run(worker) else self._workers.drop)(worker)

    def _newest(self) -> Mapping[str, Any] | None:
        """The latest move that no process has been given."""
        with self._changed:
            content, self._next = self._next, None
            return content

    def _run(self, worker: Worker) -> bool:
        """Give a process the page's moves and pass on what it says until the last one is done; whether it is fit for others."""
        given: Mapping[str, Any] = {}  # the last move that it was given
        running: int | None = None  # the number of the move that it has begun and not ended
        answered = False  # whether the last move has ended, as one with a wrong value does at once while another runs on
        moved = heard = time.monotonic()
        stopping: float | None = None  # since when the last move is to end
        while True:
            if (newer := self._newest()) is not None:
                given, moved, answered, stopping = newer, time.monotonic(), False, None
                worker.hears(given)
            if stopping is None and self._stop == given["number"]:
                stopping = time.monotonic()
                worker.hears({"kind": "stop", "number": given["number"]})
            # what it says
            try:
                message = worker.says(LOOK)
            except EOFError:
                worker.process.join(GRACE)
                self._refuse(given, f"the process of the runs has ended (exit code {worker.process.exitcode}); {AGAIN}")
                return False
            now = time.monotonic()
            if message is not None:
                heard, worker.ready = now, True
                if message["kind"] == "basis":
                    self._workers.learn(message["hash"])
                text = message["text"] if message["kind"] == "broken" else self._workers.differ()
                if text is not None:
                    self._refuse(given, text)
                    return False
                if "number" in message:
                    self._send(dict(message))
                    if message["kind"] not in LAST:
                        running = message["number"]
                    else:
                        running = None if message["number"] == running else running
                        answered = answered or message["number"] == given["number"]
                    if running is None and answered:
                        return True
            # whether it has to be ended
            if self._ended and (running is None or now - moved > GRACE):
                return running is None
            if running not in (None, given["number"]) and now - max(moved, heard) > GRACE:
                if not answered:
                    self._give_to_another(given)
                return False
            if stopping is not None and now - stopping > GRACE:
                self._send({"kind": "stopped", "number": given["number"]})
                return False
            if worker.ready and now - max(moved, heard) > self._limit:
                self._refuse(given, f"ended after {self._limit:g} s without a sign of progress; {AGAIN}")
                return False

    def _give_to_another(self, given: Mapping[str, Any]) -> None:
        """Leave a move, if it is still the latest, for the next process."""
        with self._changed:
            self._next = self._next or given
        self._send({"kind": "progress", "number": given["number"], "text": "the run before did not stop and was ended"})

    def _refuse(self, given: Mapping[str, Any], text: str) -> None:
        self._send({"kind": "refused", "number": given["number"], "text": text})
