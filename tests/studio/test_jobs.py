"""Jobs of the studio."""

from __future__ import annotations

from tulle.studio.jobs import Job


def test_whoever_sees_the_end_of_a_job_finds_its_result() -> None:
    seen = []

    class Watched(Job):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "state" and value == "done":
                seen.append(self.result)

    Watched("ask", {}, "a question").finish("done", result="digest")
    assert seen == ["digest"]
