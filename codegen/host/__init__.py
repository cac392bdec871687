"""Orchestration: what the host does for an entry, as a small program that launches kernels."""
