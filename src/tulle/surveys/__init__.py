"""Surveys in the local model: answers are perturbed before they leave the person.

Unlike other kinds of data, it holds no sealed data: what reaches the collector is already
private. The client side (:mod:`tulle.surveys.client`, ``account``, ``links_client``) and what it
needs (``data``, ``form``, ``designs``, ``laplace``, ``large``, ``exact``) are plain Python; the
collector side uses arrays.
"""

from tulle.core.public import exports

__getattr__, __dir__ = exports(__name__)
