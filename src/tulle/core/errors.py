"""Every error that tulle raises on purpose.

An error says what was asked, what is allowed and what to do instead. No message holds a record,
nor anything computed from records, except in errors of reading a file: those are the custodian's
own and name a line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from traceback import clear_frames
from typing import NoReturn, ParamSpec, TypeVar

from tulle.core.public import public

Given = ParamSpec("Given")
Result = TypeVar("Result")


@public("Errors")
class TulleError(Exception):
    """Base of all errors that tulle raises on purpose."""


@public("Errors")
class InputError(TulleError, ValueError):
    """An argument or an input file is not usable as it is."""


@public("Errors")
class UnitError(InputError):
    """The privacy unit is unknown, or it does not fit the data or the question."""


@public("Errors")
class QueryError(InputError):
    """The question is malformed or no mechanism answers it under the unit asked for."""


@public("Errors")
class BudgetError(TulleError):
    """The question costs more than the account still holds; nothing was spent."""


@public("Errors")
class LedgerError(TulleError):
    """The ledger file cannot be used, or it fails verification.

    Nothing was spent, unless the message says that an entry stays booked; nothing was drawn.
    """


class NoIntervalError(TulleError):
    """An interval was asked of a release that has none."""


class SealedError(TulleError, TypeError):
    """Raw records were about to leave a dataset by a side door (pickle, copy, format)."""


class MissingExtraError(TulleError, ImportError):
    """An optional library is needed for this call and is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {library}, which is not installed. "
            f"Install it with: pip install 'tulle[{extra}]'"
        )
        self.name = library


class InterruptedAnswer(KeyboardInterrupt):
    """An answer was interrupted when it was paid for: the message says what was booked."""

    def __init__(self, account: str, question: str, price: str, left: str, *, booked: bool) -> None:
        paid = (
            f"Interrupted after {question} was paid for: {price} is booked on account {account!r} "
            "and stays spent, and no answer was kept."
            if booked
            else f"Interrupted while {question} was being paid for: whether {price} is booked on "
            f"account {account!r} is shown by its debits. No answer was drawn."
        )
        again = " Asking again costs again." if booked else ""
        super().__init__(f"{paid}{left}{again}")


def raise_alone(error: BaseException) -> NoReturn:
    """Raise an error that remembers nothing of the exception that is being handled.

    ``raise ... from None`` only hides that one: it stays in ``__context__``, with its words and
    the variables of all its frames, and either may hold a record. Every error that takes the place
    of another library's goes through here.

    Example:
        >>> try:
        ...     try:
        ...         int("a record")
        ...     except ValueError:
        ...         raise_alone(InputError("The column must hold whole numbers."))
        ... except InputError as error:
        ...     print(error.__context__)
        None
    """
    try:
        raise error from None
    finally:
        error.__context__ = None


def forgetful(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function whose errors keep none of its variables, nor those of what it called.

    A traceback holds the variables of every frame on the way, and some programs print them
    (``%xmode Verbose``, ``rich``, error trackers). Whatever handles records is entered through
    here; lines and names of functions stay in the traceback.

    Example:
        >>> @forgetful
        ... def read(record: str) -> int:
        ...     return int(record)
        >>> try:
        ...     read("a record")
        ... except ValueError as error:
        ...     frame = error.__traceback__.tb_next.tb_next.tb_frame
        ...     print(frame.f_code.co_name, frame.f_locals)
        read {}
    """

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return function(*given, **named)
        except BaseException as error:
            forget(error)
            raise
        finally:
            del given, named  # this frame is in the traceback too

    return call


def forget(error: BaseException) -> None:
    """Clear the variables of all frames that an error and those behind it came through."""
    waiting: list[BaseException | None] = [error]
    for one in waiting:
        if one is not None:
            clear_frames(one.__traceback__)
            waiting += [other for other in (one.__cause__, one.__context__) if other not in waiting]


class UnkeptAnswerWarning(UserWarning):
    """An answer was paid for and drawn, but the ledger could not store it: save it yourself."""

    def __init__(self, account: str, cause: Exception) -> None:
        reason = str(cause).replace(" Nothing was spent.", "")
        super().__init__(
            f"The answer was booked on account {account!r} and is returned here, but it could not "
            f"be kept in the ledger: asking again would cost again. Save it now. ({reason})"
        )
