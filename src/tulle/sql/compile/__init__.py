"""From a question to the one statement that an engine runs, and back to a relation."""
