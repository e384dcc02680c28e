"""Regression models of a table of people, fitted under differential privacy.

:class:`Table` holds the records, :func:`linear` and :func:`logistic` ask for a model, and
:class:`Model` predicts from what was released. :class:`LinearRegression` and
:class:`LogisticRegression` are the same with the interface of scikit-learn, which is imported only
when one of them is used.
"""

from tulle.core.public import exports

__getattr__, __dir__ = exports(__name__)
