"""Graphs from files and objects of other libraries, and back."""
