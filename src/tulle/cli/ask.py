"""``tulle ask``: pay for an answer, draw it, print it."""

from __future__ import annotations

from tulle.cli import answering, options
from tulle.cli.asking import Asking
from tulle.cli.common import command


@command
def ask(
    edges: options.Edges,
    question: options.Question,
    unit: options.UnitName,
    epsilon: options.Epsilon,
    ledger: answering.LedgerFile = None,
    no_ledger: answering.NoLedger = False,
    account: answering.AccountName = None,
    budget: answering.TotalBudget = None,
    budget_delta: answering.TotalDelta = None,
    delta: options.Delta = "0",
    mechanism: options.MechanismName = None,
    option: options.MechanismOptions = None,
    like: options.Like = None,
    again: answering.Again = False,
    out: answering.Out = None,
    nodes: options.Nodes = None,
    columns: options.Columns = None,
    ignore: options.Ignore = None,
    format: options.Format = None,
    as_json: options.Json = False,
) -> None:
    """Answer a question and book its price. The identical question again is free."""
    price = options.Price.of(unit, epsilon, delta)
    query = options.parse_question(question)
    settings = options.parse_options(option)
    purse = answering.find_purse(
        ledger, no_ledger, account, edges.name, budget, budget_delta, again
    )
    answering.check_out(out)
    network = options.Network(edges, nodes, columns, tuple(ignore or ()), format)
    graph = network.read()
    asking = Asking(query, price, mechanism, options.read_like(like), settings)
    answering.answer(
        graph, asking, purse, network.public(price), again=again, out=out, as_json=as_json
    )
