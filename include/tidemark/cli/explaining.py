"""Finding a document by what a person types: its address, a fragment of it, or a path."""

import os
from pathlib import Path
from urllib.parse import urldefrag

from tidemark.domain.identity import document_id
from tidemark.stages.explain import Explanation, explain
from tidemark.wiring import Workshop


def explain_uri(shop: Workshop, uri: str) -> list[Explanation]:
    """Explain every document that a URI, with or without fragment, or a file's path may mean."""
    names = sorted({*shop.declarations.sources, *shop.ledger.sources()})
    found: list[Explanation] = []
    for spelling in _spellings(uri):
        ids = [document_id(name, spelling) for name in names]
        found += explain(shop.ledger, spelling, ids)
    return found


def _spellings(uri: str) -> list[str]:
    from tidemark.domain.urls import canonical_url

    if "://" not in uri:
        # Unlike pathlib's, these two raise nothing for a loop of links or an unknown user.
        # os.path, which leaves an unknown ~name and a loop of links as they are, where pathlib raises.
        return [Path(os.path.realpath(os.path.expanduser(uri))).as_uri()]  # noqa: PTH111
    bare = urldefrag(uri).url
    canonical = canonical_url(bare) if bare.startswith(("http://", "https://")) else None
    return list(dict.fromkeys([canonical or bare, bare]))
