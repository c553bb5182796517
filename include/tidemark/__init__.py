"""Tidemark keeps a retrieval index true to its sources."""

__version__ = "0.1.0"
