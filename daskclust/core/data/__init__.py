"""What comes in: containers, columns, checks, units, and the words of messages."""
