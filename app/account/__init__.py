"""Where the cycles of a run went, for a reader: pipes, waits, the bottleneck, the timeline."""
