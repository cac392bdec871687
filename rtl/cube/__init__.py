"""The cube: whole mads in hardware, from one processing element."""
