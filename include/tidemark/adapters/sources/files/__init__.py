"""Folders of files, local or in a store."""
