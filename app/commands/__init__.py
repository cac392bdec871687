"""What each command does, and what it shows on a terminal and as JSON."""
