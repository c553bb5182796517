"""`python -m tidemark.cli`."""

from tidemark.cli import main

main()
