"""From bytes to elements."""
