"""A first look at fetched pages."""
