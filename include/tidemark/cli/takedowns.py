"""Taking a document down, by what a person types: its address, another one of it, or a path."""

from typing import Any

from tidemark.cli.explaining import spellings
from tidemark.domain.errors import PermanentError
from tidemark.domain.identity import document_id
from tidemark.stages.kept_out import keeper
from tidemark.stages.takedown import TakenDown, lift, take_down, would_remove
from tidemark.stages.takedown_order import Found, find, unfinished
from tidemark.wiring import Workshop


def run_takedown(shop: Workshop, uri: str, source: str | None) -> list[TakenDown]:
    """Remove what a URI means from every source that has it, or from one; what was done, [] for nothing.

    Without a source it is kept out of every one, also of those that are declared later. With a source, a URI
    that nothing is known of is kept out ahead of time. Raises ``ConfigurationError`` for a source that no one
    knows.
    """
    found = found_documents(shop, uri, source)
    if source is not None and not found:
        spelled = spellings(uri)[0]
        found = [Found(source, spelled, document_id(source, spelled))]
    return [
        take_down(shop.stores, shop.embedding_cache, one, everywhere=source is None)
        for one in found
    ]


def preview_takedown(shop: Workshop, uri: str, source: str | None) -> list[dict[str, Any]]:
    """What a takedown would remove, store by store; [] for nothing."""
    return [
        {
            "source": found.source,
            "uri": found.uri,
            "would_remove": would_remove(shop.stores, shop.embedding_cache, found),
        }
        for found in found_documents(shop, uri, source)
    ]


def list_takedowns(shop: Workshop) -> list[dict[str, Any]]:
    """All that is kept out by order, and the takedowns that were cut short, by source and address."""
    stones = {
        (stone.source, stone.uri): stone
        for name in _names(shop)
        for stone in shop.ledger.taken_down(name)
    }
    told = [
        {
            "source": stone.source,
            "uri": stone.uri,
            "taken_down_at": stone.removed_at.isoformat(),
            "everywhere": stone.everywhere,
            "finished": True,
        }
        for _, stone in sorted(stones.items())
    ]
    begun = [
        {"source": order.found.source, "uri": uri, "taken_down_at": None,
         "everywhere": order.everywhere, "finished": False}
        for order in unfinished(shop.stores.artifacts)
        for uri in order.uris.values()
    ]  # fmt: skip
    return [*begun, *told]


def undo_takedown(shop: Workshop, uri: str, source: str | None) -> list[dict[str, Any]]:
    """Let the next crawl index again what was taken down: source, addresses and id of each.

    Raises ``PermanentError`` for an address that is kept out only because another one was taken down.
    """
    done = [(found, lift(shop.stores, found)) for found in found_documents(shop, uri, source)]
    undone = [
        {"source": found.source, "document_id": str(found.document_id), "lifted": addresses}
        for found, addresses in done
        if addresses
    ]
    if not undone:
        _name_keeper(shop, uri, source)
    return undone


def _name_keeper(shop: Workshop, uri: str, source: str | None) -> None:
    for name in [source] if source is not None else _names(shop):
        for spelled in spellings(uri):
            stone = keeper(shop.ledger, name, spelled)
            if stone is not None and stone.uri == spelled:
                raise PermanentError(
                    f"{spelled} was not taken down from {name} alone; it is kept out of every source "
                    f"since it was taken down from {stone.source} on {stone.removed_at:%Y-%m-%d}.",
                    f"To let it in everywhere: tidemark takedown {stone.uri} --undo",
                )
            if stone is not None:
                raise PermanentError(
                    f"{spelled} was not taken down itself; it is kept out because it is, or leads to, "
                    f"{stone.uri} (source {name}), which was taken down on {stone.removed_at:%Y-%m-%d}.",
                    f"To let both in: tidemark takedown {stone.uri} --undo",
                )


def found_documents(shop: Workshop, uri: str, source: str | None) -> list[Found]:
    """The documents that a URI means."""
    if source is not None:
        shop.declared(source)
    names = sorted({*_names(shop), *([source] if source else [])})
    return find(shop.stores, spellings(uri), names, source)


def _names(shop: Workshop) -> list[str]:
    return sorted({*shop.declarations.sources, *shop.ledger.sources()})
