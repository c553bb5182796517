"""Removal of documents that are gone."""
