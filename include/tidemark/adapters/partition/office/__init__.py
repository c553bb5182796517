"""Office formats, books and mail."""
