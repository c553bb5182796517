"""From the elements of a document to its sections and chunks (entry: ``chunk``)."""
