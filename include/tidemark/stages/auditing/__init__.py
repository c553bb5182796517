"""The parts of the audit: sums, comparison, generations, repair, and the search for a sample."""
