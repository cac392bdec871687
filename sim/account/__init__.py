"""Where the cycles of a run went: its records, the critical path, the slices of a timeline."""
