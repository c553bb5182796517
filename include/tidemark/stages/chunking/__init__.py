"""From the elements of a document to its sections and chunks, in parts (entry: ``tidemark.stages.chunk``)."""
