"""Scalar expressions that cannot fail: kinds of values, conversions, functions and operators."""
