"""How the pictures of docs/chunking.md are drawn; `python docs/make_pictures.py` makes them."""
