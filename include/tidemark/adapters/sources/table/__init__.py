"""Rows of a SQL query."""
