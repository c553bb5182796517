"""A process of its own in which risky documents are read."""
