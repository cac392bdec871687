"""A sweep: one kernel on many machines and in many sizes, by several processes."""
