"""What is still to be asked for, in which order, and what is none of this crawl's business."""

from collections import deque
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from tidemark.adapters.media import is_never_document
from tidemark.adapters.patterns import PathPatterns
from tidemark.adapters.website_options import WebsiteOptions
from tidemark.domain.urls import canonical_url, site_of


@dataclass(frozen=True, slots=True)
class Target:
    """One URL to ask for.

    uri: canonical, what it is known by.
    url: as it is asked for; another spelling of ``uri`` only where the server insists on it.
    depth: links away from a start page.
    referrer: the page that led to it, "" for start pages and sitemap entries.
    hops: redirects followed to get here.
    seed: a start page, or where one redirects to.
    probe: known from before and not reached now; only whether it still exists matters.
    own: a document under its own URI, whatever it calls its canonical one.
    afresh: without conditions, because the bytes held are lost.
    """

    uri: str
    url: str
    depth: int = 0
    referrer: str = ""
    hops: int = 0
    seed: bool = False
    probe: bool = False
    own: bool = False
    afresh: bool = False


class Scope:
    """The start pages' own corners of the web, narrowed by the patterns.

    A start page ``/docs/`` or ``/docs/index.html`` opens everything below ``/docs/``, and ``/docs`` that
    and itself. ``www.`` and the scheme make no difference, any other host or port does.
    """

    def __init__(self, options: WebsiteOptions) -> None:
        self.starts = [uri for start in options.starts if (uri := canonical_url(start))]
        self._areas = [(site_of(uri), _prefix(urlsplit(uri).path)) for uri in self.starts]
        self._patterns = PathPatterns(options.include, options.exclude)

    @property
    def hosts(self) -> int:
        return len({site for site, _ in self._areas})

    def contains(self, uri: str) -> bool:
        """Is it under a start page, whatever the patterns say?"""
        site, path = site_of(uri), urlsplit(uri).path
        return any(
            site == own and (path.startswith(prefix) or path + "/" == prefix)
            for own, prefix in self._areas
        )

    def admits(self, uri: str) -> bool:
        """May it become a document?"""
        return self.contains(uri) and self._patterns.admits(unquote(urlsplit(uri).path))


def _prefix(path: str) -> str:
    folder, _, last = path.rpartition("/")
    return f"{path}/" if last and "." not in last else f"{folder}/"


class Frontier:
    """A queue in which no canonical URL comes up twice; start pages come before all others."""

    def __init__(self, scope: Scope, max_depth: int | None) -> None:
        self._scope = scope
        self._max_depth = max_depth
        self._seeds: deque[Target] = deque()
        self._waiting: deque[Target] = deque()
        self._seen: set[str] = set()

    def __len__(self) -> int:
        return len(self._seeds) + len(self._waiting)

    def __contains__(self, uri: str) -> bool:
        """Was it ever taken in?"""
        return uri in self._seen

    @property
    def seeds(self) -> int:
        """How many start pages wait."""
        return len(self._seeds)

    def offer(self, target: Target) -> None:
        """Take a target in, unless it was seen, is out of scope or too deep, or can be no document."""
        if target.uri not in self._seen and (target.seed or self._wants(target)):
            self._seen.add(target.uri)
            self.again(target)

    def _wants(self, target: Target) -> bool:
        return (
            (self._max_depth is None or target.depth <= self._max_depth)
            and self._scope.admits(target.uri)
            and not is_never_document(target.uri)
        )

    def again(self, target: Target) -> None:
        """Take a target in, whether or not it was seen."""
        (self._seeds if target.seed else self._waiting).append(target)

    def take(self) -> Target:
        """The next one. Raises ``IndexError`` when none waits."""
        return (self._seeds or self._waiting).popleft()

    def clear(self) -> None:
        self._seeds.clear()
        self._waiting.clear()
