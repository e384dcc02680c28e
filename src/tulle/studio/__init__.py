"""The studio: a local web page on which a custodian publishes without writing code.

Three kinds of process, so that the wall between inside and outside is a real one:

* the *server* renders pages. It never reads data: what it knows are public facts, releases and the
  ledger, and what the custodian asks a data worker to show;
* one *data worker* for each open dataset reads the records, pays the ledger and draws answers.
  Cancelling kills it: the ledger has the debit already, so a cancelled answer stays paid;
* the *public worker* plans questions from public facts and audits mechanisms. It has no data.
"""
