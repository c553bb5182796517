"""What a first, cheap look at a fetched page tells: how much it says, and whether to believe it."""

from dataclasses import dataclass
from enum import StrEnum


class Suspicion(StrEnum):
    """Why a page that was answered with success is probably not what its address stands for."""

    SOFT_404 = "soft_404"
    """It says that there is nothing here, with a status that says otherwise."""
    LOGIN_WALL = "login_wall"
    CONSENT_WALL = "consent_wall"
    PARKED = "parked"
    """The domain is for sale, or a host's placeholder answers."""
    NEEDS_JAVASCRIPT = "needs_javascript"
    """An empty shell that a browser would fill."""
    SHRUNK = "shrunk"
    """It lost most of its text since the version that is live."""
    REPEATED_TEXT = "repeated_text"
    """Several addresses suddenly show one text."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A page, looked at without partitioning it.

    text_hash: of its main text, white space folded; equal for pages that differ in furniture alone.
    text_length: of that text, in characters.
    blocks: 64-bit digests of the blocks left after cleaning by structure, in order, each once; what is on
        most pages of a site is furniture (``domain.site_furniture``).
    suspicion, detail: why the page is not to be believed, and on which evidence.
    """

    text_hash: str
    text_length: int
    blocks: tuple[int, ...] = ()
    suspicion: Suspicion | None = None
    detail: str = ""
