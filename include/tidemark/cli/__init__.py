"""The command line: a contract that scripts outside the project rely on."""

from tidemark.cli.app import main

__all__ = ["main"]
