"""All models of synthetic graphs; importing this registers them."""

from tulle.graphs.synthesis.degrees import OneK

__all__ = ["OneK"]
