"""The Python facade, the command line, and what joins two rooms below."""
