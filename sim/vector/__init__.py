"""The vector core: tiles in UB, what its instructions make of them, and how long they take."""
