"""The rules of the verifier: a small function a property."""
