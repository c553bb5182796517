"""Servers that are started on demand."""
