"""One file per vendor: the only importer of that vendor, and the translator of its errors."""
