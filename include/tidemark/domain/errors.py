"""What can go wrong, in the two kinds that callers treat differently.

Adapters translate their vendor's exceptions into these at the edge; nothing inside knows a vendor's.
"""


class TidemarkError(Exception):
    """A failure with a hint: ``message`` says what happened to what, ``hint`` what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class TransientError(TidemarkError):
    """May pass by itself (network, a store that is away): worth a retry, never evidence of anything."""


class LockLostError(TransientError):
    """A lock was lost while its holder worked: another may have worked at the same time."""


class PermanentError(TidemarkError):
    """Will fail again the same way: a document's own fault, or a configuration that must be changed."""


class DocumentError(PermanentError):
    """One document cannot be processed; it is quarantined and nothing else stops.

    ``stage`` is the stage that failed ("size", "fetch", "partition", "chunk", "embed", "index").
    """

    def __init__(self, stage: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.stage = stage


class RefusedError(PermanentError):
    """A store or a model refused this very value (too large, malformed); others may pass."""


class ConfigurationError(PermanentError):
    """The declared configuration is wrong; the message names the key and the hint."""


class SourceBusyError(TidemarkError):
    """Another run holds the source's lock."""
