"""What the instructions around L1, L0, the accumulator and UB do to bytes; a jitted function a datapath."""
