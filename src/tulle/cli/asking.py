"""One question from the command line: planned, released outside a ledger, or booked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core.errors import BudgetError, InputError

if TYPE_CHECKING:
    from tulle.cli.options import Price
    from tulle.core.dataset import Dataset
    from tulle.core.plan import Plan
    from tulle.core.query import Query
    from tulle.core.release import Release
    from tulle.ledger.ledger import Ledger
    from tulle.ledger.session import Session


@dataclass(frozen=True)
class Asking:
    """The question and all that the user said about how to answer it."""

    query: Query
    price: Price
    mechanism: str | None
    like: Dataset | None
    settings: Mapping[str, Any]
    assumed: Mapping[str, Any] | None = None
    """What errors are predicted on where no ``like`` is given; None where none are asked for."""

    def plan(self, dataset: Dataset, *, composed: bool = False) -> Plan:
        """Plan it; nothing is spent. ``composed``: an account adds the price up by divergences."""
        from tulle.ledger.answer import plan_for

        return plan_for(
            dataset,
            self.query,
            unit=self.price.unit,
            options=self.settings,
            composed=composed,
            assumed=self.assumed,
            **self._terms(),
        )

    def release(self, dataset: Dataset) -> Release:
        """Answer it outside a ledger."""
        from tulle.ledger.answer import release

        return release(dataset, self.query, unit=self.price.unit, **self._terms(), **self.settings)

    def ask(self, session: Session, *, again: bool, version: str | None = None) -> Release:
        """Book it and answer it, or find the answer that is already paid for."""
        return session.ask(
            self.query, again=again, version=version, **self._terms(), **self.settings
        )

    def _terms(self) -> dict[str, Any]:
        return {
            "epsilon": self.price.epsilon,
            "delta": self.price.delta,
            "mechanism": self.mechanism,
            "like": self.like,
        }


@dataclass(frozen=True)
class DataVersion:
    """Which version of the data it is, and how the budget of a new account renews."""

    name: str | None = None
    date: str | None = None
    every: str | None = None
    zone: str = "UTC"
    carry: bool = False

    @classmethod
    def of(
        cls, name: str | None, date: str | None, every: str | None, zone: str, *, carry: bool
    ) -> DataVersion:
        """Check that the options go together."""
        if date is not None and name is None:
            raise InputError("--date goes with --version, the name of the data's version.")
        if every is None and (carry or zone != "UTC"):
            raise InputError("--carry and --zone go with --every, the period of the budget.")
        return cls(name, date, every, zone, carry)

    @property
    def renewal(self) -> dict[str, Any]:
        """What to open an account with, so far as it was said."""
        if self.every is None:
            return {}
        return {"every": self.every, "zone": self.zone, "carry": self.carry}


@dataclass(frozen=True)
class LedgerAccount:
    """Where answers are booked: a ledger's file, an account and, the first time, its total."""

    file: Path
    account: str
    budget: str | None
    budget_delta: str | None
    composition_delta: str | None = None
    version: DataVersion = DataVersion()

    @classmethod
    def of(
        cls,
        file: Path,
        account: str | None,
        named: str,
        budget: str | None,
        delta: str | None,
        composition_delta: str | None = None,
        version: DataVersion | None = None,
    ) -> LedgerAccount:
        """Check the options; the account's name defaults to the file's, without its endings."""
        from tulle.core import validate

        if budget is not None:
            validate.positive(budget=budget)
            validate.delta(budget_delta=delta or "0")
        elif delta is not None:
            raise InputError("--budget-delta goes with --budget, the account's total.")
        if composition_delta is not None and delta is None:
            raise InputError("--composition-delta is a part of --budget-delta: give both.")
        name = account if account is not None else named.split(".")[0] or named
        timed = version or DataVersion()
        if timed.every is not None and budget is None:
            raise InputError("--every goes with --budget, what may be spent in each period.")
        return cls(file, name, budget, delta, composition_delta, timed)

    def open(self, dataset: Dataset, asking: Asking) -> tuple[Ledger, Session]:
        """Open the account. A new one is made only if the question can be planned and paid."""
        from tulle.ledger.ledger import Ledger

        ledger = Ledger(self.file, create=False) if os.path.lexists(self.file) else None
        known = {account.name: account for account in ledger.accounts()} if ledger else {}
        if self.account not in known:
            self._check_new(sorted(known), dataset, asking.plan(dataset, composed=True))
        ledger = ledger or Ledger(self.file)
        named = self.version.name
        if self.account in known and named is not None:
            if self.earlier(ledger) is not None:
                named = None
            elif self.version.date is None and ledger.version(self.account, named) is None:
                raise InputError(
                    f"Version {named!r} of account {self.account!r} is new: give its day with "
                    "--date, such as --date 2026-11-09. Nothing was spent."
                )
        session = ledger.open(
            self.account,
            dataset,
            unit=asking.price.unit,
            epsilon=self.budget,
            delta=self.budget_delta or "0",
            composition_delta=self.composition_delta,
            version=named,
            date=None if named is None else self.version.date,
            **self.version.renewal,
        )
        return ledger, session

    def earlier(self, ledger: Ledger) -> str | None:
        """Return the version that was asked for if it is one before the present."""
        named = self.version.name
        if named is None or self.account not in [item.name for item in ledger.accounts()]:
            return None
        present = ledger.account(self.account).version
        if present is None or present.name == named:
            return None
        return named if ledger.version(self.account, named) is not None else None

    def _check_new(self, known: list[str], dataset: Dataset, plan: Plan) -> None:
        from tulle.core.guarantee import display
        from tulle.ledger.account import new_account

        if self.budget is None:
            others = f" Its accounts: {', '.join(map(repr, known))}." if known else ""
            raise InputError(
                f"There is no account {self.account!r} in {self.file} yet.{others} To open it, "
                "say what may be spent in all: --budget EPSILON (and --budget-delta DELTA)."
            )
        if self.version.every is not None and self.version.date is None:
            raise InputError(
                "The day of the data decides which period's budget is spent: give --version and "
                "--date, such as --version 2026-W46 --date 2026-11-09."
            )
        if self.version.name is not None and self.version.date is None:
            raise InputError("A version that is new has a day: give --date.")
        asked = plan.guarantee
        account = new_account(
            self.account,
            dataset,
            unit=plan.unit,
            epsilon=self.budget,
            delta=self.budget_delta or "0",
            composition_delta=self.composition_delta,
        )
        if not account.can_pay(asked, plan.event):
            hint = ""
            if asked.delta and account.composition_delta:
                hint = (
                    f" Of its delta, {display(account.composition_delta)} is set aside for adding "
                    "up many answers; --composition-delta 0 keeps all of it for the answers "
                    "themselves."
                )
            raise BudgetError(
                f"{plan.query} would cost {asked}: more than the whole budget of the new account "
                f"{self.account!r}, epsilon = {self.budget}, delta = {self.budget_delta or '0'}."
                f"{hint} "
                "Raise the budget or ask for less. The account was not opened; nothing was spent."
            )
