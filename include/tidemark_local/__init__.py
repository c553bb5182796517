"""What makes Tidemark run on one machine with nothing installed beside it; not for production."""
