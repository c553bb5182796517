"""Which profile a document gets: by its path, by its source, or by its own content."""

from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from tidemark.domain.model import PartitionedDocument
from tidemark.domain.profile import BUILT_IN, Profile, ProfileChoice
from tidemark.stages.chunking.sniff import sniff_content


def choose_profile(choice: ProfileChoice, uri: str, document: PartitionedDocument) -> Profile:
    """The first pattern that fits decides, then the default, then what the content looks like.

    A pattern fits the whole path of a URI, or its end after a "/"; ``*`` stands for any characters.
    """
    path = unquote(urlsplit(uri).path)
    for pattern, profile in choice.by_path:
        if fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern.lstrip('/')}"):
            return profile
    if choice.default is not None:
        return choice.default
    kind = sniff_content(document)
    return choice.by_content.get(kind) or BUILT_IN[kind]
