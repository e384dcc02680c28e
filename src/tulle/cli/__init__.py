"""The command line: the words of the library, for the shell."""
