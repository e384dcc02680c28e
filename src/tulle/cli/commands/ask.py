"""``tulle ask``: pay for an answer, draw it, print it."""

from __future__ import annotations

from tulle.cli import answering, options
from tulle.cli.common import command


@command
def ask(
    network: options.Network,
    question: options.Question,
    unit: options.UnitName,
    epsilon: options.Epsilon,
    booking: answering.Booking,
    answer_options: options.AnswerOptions,
    like: options.Like = None,
    out: answering.Out = None,
    as_json: options.Json = False,
) -> None:
    """Answer a question and record its price. The identical question again is free."""
    price = answer_options.price(unit, epsilon)
    query = options.parse_question(question)
    ledger_account = booking.ledger_account(network.name)
    answering.check_out(out)
    graph = network.read()
    asking = answer_options.asking(query, price, options.read_like(like, network))
    public = network.public(price)
    answering.answer(
        graph, asking, ledger_account, public, again=booking.again, out=out, as_json=as_json
    )
