"""All that one studio holds: the ledger, the data that is open, its workers, the jobs going on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tulle.core.errors import InputError, raise_alone
from tulle.ledger.ledger import Ledger
from tulle.sql.engines.connector import connector_of, connectors
from tulle.studio.jobs import Job
from tulle.studio.process import Worker
from tulle.studio.public_worker import PublicWorker
from tulle.studio.study import Study

LARGEST_UPLOAD = 200 * 1024 * 1024


class StudioState:
    """The state of a studio. Pages read it and change it through these methods only."""

    def __init__(self, sources: Sequence[str], ledger: str | Path) -> None:
        self.ledger = Ledger(ledger)
        self.sources = [source if "://" in source else str(Path(source)) for source in sources]
        for source in self.sources:
            if "://" not in source and not Path(source).is_file():
                raise InputError(f"{source} is not a file.")
        self._folders = [Path(s).resolve().parent for s in self.sources if "://" not in s]
        self._uploads: Path | None = None
        self.studies: dict[str, Study] = {}
        self.jobs: dict[str, Job] = {}
        self.public_worker = Worker(PublicWorker)
        if len(self.sources) == 1:
            # Its process starts while the browser does.
            study = self.begin(self.sources[0])
            study.worker.submit(Job("peek", {"path": study.place}, "peek"))
        self.notice: tuple[str, str] | None = None
        """What the next page tells: "error" or "good", and the words."""

    def take_notice(self) -> tuple[str, str] | None:
        """Return what waits to be told, once."""
        notice, self.notice = self.notice, None
        return notice

    def begin(self, place: str) -> Study:
        """Put data in the studio, as a draft; the same data is put there once.

        Raises:
            InputError: when it lies outside the folders given at the start.
        """
        if place not in self.sources:
            place = self._checked(place)
        for study in self.studies.values():
            if study.place == place and study.account is None:
                return study
        study = Study(place, self.ledger)
        self.studies[study.identifier] = study
        return study

    def study(self, identifier: str) -> Study:
        """Return a study.

        Raises:
            InputError: when there is none.
        """
        try:
            return self.studies[identifier]
        except KeyError:
            raise_alone(InputError("There is no such study; open it again."))

    def close_study(self, study: Study) -> None:
        """Take a study out of the studio. Its account stays in the ledger."""
        study.worker.close()
        self.studies.pop(study.identifier, None)

    def track(self, job: Job) -> Job:
        """Keep a job, so that pages can follow it."""
        self.jobs[job.identifier] = job
        return job

    def job(self, identifier: str) -> Job:
        """Return a job.

        Raises:
            InputError: when there is none.
        """
        try:
            return self.jobs[identifier]
        except KeyError:
            raise_alone(InputError("There is no such work; it may be from an earlier start."))

    def cancel(self, job: Job) -> None:
        """Stop a job, and say what a stopped answer leaves behind in the ledger."""
        if job.study is None or job.verb != "ask":
            worker = self.public_worker if job.study is None else self.study(job.study).worker
            worker.cancel(job)
            return
        study = self.study(job.study)

        def explain() -> str:
            if job.state == "running":  # what waits has paid nothing, whatever others just paid
                paid = {debit["digest"] for debit in study.debits()}
                kept = {release["debit"] for release in study.releases()}
                lost = paid - kept - job.known - study.lost
                study.lost |= lost
                if lost:
                    return (
                        f"Cancelled after it was paid for: epsilon = {job.arguments['epsilon']} is "
                        "spent and stays spent, and no answer was kept."
                    )
            return "Cancelled before it was paid for: nothing was spent."

        study.worker.cancel(job, explain)

    def upload(self, name: str, content: IO[bytes]) -> str:
        """Keep an uploaded file until the studio ends; return where.

        Raises:
            InputError: when it is too large or its name is not one.
        """
        plain = Path(name).name
        if not plain or plain.startswith(".") or not plain.isprintable():
            raise InputError("The uploaded file needs a plain name.")
        if self._uploads is None:
            self._uploads = Path(tempfile.mkdtemp(prefix="tulle-studio-"))
            self._folders.append(self._uploads.resolve())
        path = self._uploads / plain
        left = LARGEST_UPLOAD
        try:
            # Never over another: a study may be open on it, and reads it again after a cancelling.
            opened = path.open("xb")
        except FileExistsError:
            raise_alone(
                InputError(
                    f"A file {plain!r} was uploaded before. Give this one another name first."
                )
            )
        except OSError:
            raise_alone(InputError("The uploaded file needs a plain name."))
        with opened as file:
            while chunk := content.read(1 << 20):
                left -= len(chunk)
                if left < 0:
                    file.close()
                    path.unlink()
                    raise InputError(
                        f"Uploads are limited to {LARGEST_UPLOAD >> 20} MB. Start the studio "
                        "with the file's path instead."
                    )
                file.write(chunk)
        return str(path)

    def close(self) -> None:
        """End all processes and forget uploads."""
        for study in list(self.studies.values()):
            study.worker.close()
        self.public_worker.close()
        if self._uploads is not None:
            shutil.rmtree(self._uploads, ignore_errors=True)

    def _checked(self, place: str) -> str:
        """Return a place that may be opened though it was not named at the start."""
        if "://" in place or place.endswith(".toml"):
            connector = connector_of(place)
            if "://" in place and connector is not None and connector.remote:
                return place
            # Others can name files anywhere: only whoever starts the studio may do that.
            servers = [one.urls[0] for one in connectors() if one.remote]
            raise InputError(
                f"Here only {' and '.join(servers)} are connected to. Name the file of a database, "
                "or a TOML file, when you start the studio."
            )
        return str(self._inside_folders(place))

    def find_beside(self, study: Study, name: str) -> str:
        """Return a file that was named beside a study's own.

        Raises:
            InputError: when it is not there, or outside the folders given at the start.
        """
        place = Path(name)
        if not place.is_absolute() and "://" not in study.place:
            place = Path(study.place).parent / place
        return str(self._inside_folders(str(place)))

    def _inside_folders(self, place: str) -> Path:
        try:
            path = Path(place).resolve()
            inside = any(path.is_relative_to(folder) for folder in self._folders)
            exists = inside and path.is_file()
        except (OSError, ValueError, RuntimeError):
            # No file can have such a name, or links lead in a circle.
            raise_alone(InputError("There is no such file."))
        if not inside:
            raise InputError(
                "That file lies outside the folders the studio was started with. Start it with "
                "the file's path, or upload the file."
            )
        if not exists:
            raise InputError("There is no such file.")
        return path
