"""One file per version of the ledger schema, never edited once released."""
