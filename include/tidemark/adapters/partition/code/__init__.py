"""Program code."""
