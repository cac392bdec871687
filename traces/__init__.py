"""Tensors in files, and how two runs are compared: bundles, timelines, and the first difference."""
