"""Does the index hold what the ledger says?"""
