"""From fetched bytes to points in the index."""
