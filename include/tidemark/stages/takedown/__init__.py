"""Removal of a document everywhere, for good."""
