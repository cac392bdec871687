"""Scalar expressions of kernels and of orchestrations, in the machine's own arithmetic."""
