"""Where snapshots, elements, listings and plans are kept."""
