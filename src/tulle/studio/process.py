"""A process that works through jobs one after the other, and can be killed at any moment."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tulle.core.errors import TulleError
from tulle.studio.jobs import Job

_CONTEXT = multiprocessing.get_context("spawn")
_LONGEST_CALL = 600.0
"""Seconds after which a page stops waiting; what takes longer is submitted as a job."""

FAULT = (
    "Something went wrong ({}). The details are held back because they might quote the data; run "
    "the same question with the tulle command and TULLE_DEBUG=1 to see them."
)

CLOSED = "The study was closed before this was begun: nothing was spent."


class Worker:
    """The server's end: a queue of jobs, a thread that feeds them, the process that does them.

    ``make`` is called in the process and returns the object whose public methods are the verbs.
    ``first`` lists the jobs that a new process must do before any other, so that one which was
    killed can be replaced.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._current: Job | None = None
        self._closed = False
        self.first: list[tuple[str, dict[str, Any]]] = []
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Job:
        """Put a job at the end of the queue; once it is closed a job fails at once."""
        with self._lock:
            if self._closed:
                job.finish("failed", problem=CLOSED)
            else:
                self._queue.put(job)
        return job

    def call(self, verb: str, **arguments: Any) -> Any:
        """Do a short piece of work and return its result.

        Raises:
            TulleError: with the words of what went wrong.
        """
        job = self.submit(Job(verb, arguments, verb))
        if not job.wait(_LONGEST_CALL):
            self.cancel(job)
            raise TulleError("This took too long and was stopped.")
        if job.state != "done":
            raise TulleError(job.problem or "The work was stopped.")
        return job.result

    def cancel(self, job: Job, explain: Callable[[], str] = lambda: "Cancelled.") -> None:
        """Stop a job: a waiting one is skipped, a running one ends with its process.

        ``explain`` is called when nothing can happen to the job any more; pages see its words
        together with the end.
        """
        with self._lock:
            if job is self._current:
                self._kill()
            job.finish("cancelled", problem=explain())

    def close(self) -> None:
        """End the process and the thread. Jobs that wait are not begun: they could be paid for."""
        with self._lock:
            self._closed = True
            self._queue.put(None)
            self._kill()
        self._thread.join(5)

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = self._pipe = None

    def _feed(self) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if self._closed:
                    job.finish("failed", problem=CLOSED)
                if job.over:
                    continue
                self._current, job.state = job, "running"
            try:
                self._ready()
                self._do(job)
            except (EOFError, OSError, BrokenPipeError):
                with self._lock:
                    job.finish("failed", problem="The process that worked on this has ended.")
                    self._kill()
            finally:
                with self._lock:
                    self._current = None

    def _ready(self) -> None:
        """Start a process if there is none, and bring it where the last one was."""
        with self._lock:
            if self._closed:
                raise EOFError
            if self._process is not None and self._process.is_alive():
                return
            self._pipe, other = _CONTEXT.Pipe()
            self._process = _CONTEXT.Process(
                target=_work, args=(other, self._make), daemon=True, name="tulle-studio"
            )
            self._process.start()
            other.close()
        for verb, arguments in self.first:
            again = Job(verb, arguments, verb)
            self._do(again)
            if again.state == "failed" and self._current is not None:
                # Such as data that has other public facts by now: nothing may be asked of it.
                self._current.finish("failed", problem=again.problem)
                raise EOFError

    def _do(self, job: Job) -> None:
        with self._lock:
            pipe = self._pipe
            # Whoever cancelled it was told that nothing was spent.
            if pipe is None or job.over:
                raise EOFError
            pipe.send((job.verb, job.arguments))
        while True:
            what, *rest = pipe.recv()
            if what == "progress":
                job.fraction, job.label = rest
            elif what == "done":
                job.finish("done", result=rest[0])
                return
            else:
                job.finish("failed", problem=rest[0])
                return


def _work(pipe: Connection, make: Callable[[], Any]) -> None:
    """Answer one request after the other until the pipe closes. Runs in the process."""
    import signal

    # Ctrl-C is for the server, which then closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    servant = make()
    servant.report = lambda fraction, label: pipe.send(("progress", fraction, label))
    while True:
        try:
            verb, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(("done", getattr(servant, verb)(**arguments)))
        except TulleError as error:
            pipe.send(("failed", str(error)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the page must hear of it
            pipe.send(("failed", FAULT.format(type(error).__name__)))
