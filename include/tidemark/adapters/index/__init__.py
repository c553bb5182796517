"""Vector indexes: a Qdrant server, and its engine embedded."""
