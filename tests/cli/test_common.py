"""Messages in the syntax of the command line."""

from __future__ import annotations


def test_messages_speak_of_options_but_leave_paths_alone() -> None:
    from tulle.cli.common import in_options

    assert in_options("unit='x' is not known.") == "--unit 'x' is not known."
    assert in_options("Name it with mechanism=.") == "Name it with --mechanism."
    assert in_options("say it with nodes=; or not") == "say it with --nodes; or not"
    assert in_options("/data/unit=3/x.csv is empty") == "/data/unit=3/x.csv is empty"


def test_a_question_in_an_error_is_left_as_it_is_written() -> None:
    from tulle.cli.common import in_options

    said = "Pass nodes=5, or ask mixing(by='dept', groups=['a', 'b']) with groups={'r': ['a']}."
    assert in_options(said) == (
        "Pass --nodes 5, or ask mixing(by='dept', groups=['a', 'b']) with --groups {'r': ['a']}."
    )
