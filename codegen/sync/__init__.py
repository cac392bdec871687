"""Event flags: which orders a tree of machine code needs, and how few flags keep them."""
