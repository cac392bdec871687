"""The bytes of an executable: the container, and records as JSON."""
