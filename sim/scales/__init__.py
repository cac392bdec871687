"""The scale-decode unit, what stands around it, and recordings of what it read."""
