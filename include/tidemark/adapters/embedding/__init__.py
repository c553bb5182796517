"""Models, tokenizers and lexical encoders."""
