"""In-memory stand-ins of the ports, held to the contract suites that the real adapters pass."""
