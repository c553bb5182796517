"""An index in this machine's files, by Qdrant's own engine."""
