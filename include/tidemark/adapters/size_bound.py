"""What every source says of an item that it wants and does not fetch because of its size."""

from tidemark.domain.model import CrawlItem, Outcome, SourceItem


def too_large(item: SourceItem, bound: int, size: int | None = None) -> CrawlItem:
    """The outcome of an item of ``size`` bytes, None when it is only known to be more than the bound."""
    return CrawlItem(item, Outcome.TOO_LARGE, detail=told_size(bound, size))


def told_size(bound: int, size: int | None = None) -> str:
    """How large it is and what the bound is, to stand behind its name; alike until one of them changes."""
    if size is None:
        return f"has more than the {bound:,} bytes that are fetched"
    return f"has {size:,} bytes, more than the {bound:,} that are fetched"
