"""Frozen values and pure rules. Nothing here performs I/O or imports a vendor package."""
