"""JSON, XML and notebooks."""
