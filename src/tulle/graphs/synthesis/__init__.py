"""Synthetic graphs: a private part that sees records, a generator that never does.

``tulle.synthetic(model)`` is the question,
:class:`~tulle.graphs.synthesis.model.SynthesisModel` the base of its mechanisms, one file for each
model. To add a model:

1.  Write ``synthesis/models/<file>.py`` with a class that derives from ``SynthesisModel`` and
    sets ``model`` (the user's word, listed in ``query.MODELS``), ``title``, ``reference``,
    ``options`` (names that ``tulle.synthetic(model, name=value)`` may pass) and,
    where the guarantee has a delta, ``needs_delta``. Decorate it with
    ``@registry.mechanism("graph", "synthetic_<model>", answers=(Synthetic,), units=("edge",))``
    and run ``make index``.
2.  ``prepare(terms, nodes, options)`` returns public settings, a frozen class derived from
    ``ModelSettings``, from public facts only; a budget too small is a ``QueryError`` with advice.
    Graphs of fewer than two nodes never get here: the base answers them with an empty graph.
3.  ``measure(terms, settings, graph, source)`` is the private part. It returns a mapping of
    noisy statistics (numbers, texts, arrays), each drawn with ``tulle.noise`` and ``source``.
    Keep them raw: consistency belongs to the generator, so that the audit sees the noise's law.
4.  ``generate(statistics, settings, random)`` returns the edges as an m × 2 array. It gets no
    graph. ``random`` is a ``tulle.noise.post_processing.Random`` (a numpy Generator that compiled
    kernels accept as well); nothing else may draw. It must cope with any statistics that noise can
    produce.
5.  Audit: an entry in ``CASES`` of ``audit/graphs/synthesis.py``
    that describes each statistic, in the order of the mapping, as one independent law; and at least
    one broken version.

The Release holds the graph as its value (a :class:`~tulle.graphs.synthesis.graph.SyntheticGraph`)
and the statistics in ``parameters["statistics"]``; :func:`model.regenerate` draws further graphs.
"""
