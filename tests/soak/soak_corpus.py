"""A folder of documents that changes as folders do, every change drawn from one seeded generator.

Each sentence names its document (``D0042``) and has a number of its own, so that a text which is embedded
tells whose it is, and no two texts are equal unless they are the same one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

WORDS = re.findall(
    r"\w+",
    "amber anchor basin beacon breakwater buoy cable channel current depth drift ebb estuary ferry flood "
    "fog gauge harbour keeper lamp lantern level marsh mast mooring neap pier pilot quay radar reef "
    "sand sensor shoal signal slack spring station storm surge swell tide tower wharf wind winter",
)
DOCUMENT = re.compile(r"\bD\d{4}\b")
"""How a document is named in each of its sentences."""

Part = list[str]
"""The paragraphs under one heading."""


@dataclass
class Document:
    """A document and where it is: ``parts`` are its headings' bodies."""

    number: int
    kind: str
    parts: list[Part]
    path: Path

    @property
    def name(self) -> str:
        return f"D{self.number:04d}"

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_name(f".{self.path.name}.new")
        unfinished.write_text(_FORMS[self.kind](self), encoding="utf-8")
        unfinished.rename(self.path)


@dataclass
class Corpus:
    """The documents under a folder. ``change`` edits, adds, deletes and renames some of them."""

    folder: Path
    random: Random
    documents: list[Document] = field(default_factory=list)
    _made: int = 0
    _sentences: int = 0

    def grow(self, count: int, largest: int = 9) -> None:
        """Add documents; one in fifteen is four times as long as the ``largest`` others."""
        for _ in range(count):
            sections = self.random.randint(1, largest) * (4 if self.random.random() < 0.07 else 1)
            kind = self.random.choice(("md", "md", "html", "txt"))
            number = self._next()
            document = Document(number, kind, [], self._path(number, kind))
            document.parts = [self._part(document) for _ in range(sections)]
            document.write()
            self.documents.append(document)

    def change(self, share: float = 0.4) -> dict[str, int]:
        """Change about this share of the documents; how many were edited, added, deleted, renamed."""
        chosen = self.random.sample(self.documents, round(len(self.documents) * share))
        counts = {"edited": 0, "deleted": 0, "renamed": 0, "added": 0}
        for document in chosen:
            dice = self.random.random()
            if dice < 0.72:
                self._edit(document)
                counts["edited"] += 1
            elif dice < 0.86:
                self._rename(document)
                counts["renamed"] += 1
            else:
                document.path.unlink()
                self.documents.remove(document)
                counts["deleted"] += 1
        counts["added"] = counts["deleted"] + self.random.randint(-1, 1)
        counts["added"] = max(0, counts["added"])
        self.grow(counts["added"])
        return counts

    def _edit(self, document: Document) -> None:
        part = self.random.choice(document.parts)
        dice = self.random.random()
        if dice < 0.6:
            part[self.random.randrange(len(part))] = self._paragraph(document)
        elif dice < 0.8 or len(document.parts) == 1:
            document.parts.insert(self.random.randint(0, len(document.parts)), self._part(document))
        else:
            document.parts.remove(part)
        document.write()

    def _rename(self, document: Document) -> None:
        before = document.path
        document.path = self._path(self._next(), document.kind)
        document.path.parent.mkdir(parents=True, exist_ok=True)
        before.rename(document.path)

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _path(self, number: int, kind: str) -> Path:
        return self.folder / f"shelf-{number % 7}" / f"{number:04d}.{kind}"

    def _part(self, document: Document) -> Part:
        return [self._paragraph(document) for _ in range(self.random.randint(1, 3))]

    def _paragraph(self, document: Document) -> str:
        return " ".join(self._sentence(document) for _ in range(self.random.randint(2, 5)))

    def _sentence(self, document: Document) -> str:
        self._sentences += 1
        said = " ".join(self.random.choices(WORDS, k=self.random.randint(5, 11)))
        return f"{document.name} entry {self._sentences} says {said}."


def _markdown(document: Document) -> str:
    parts = [
        f"## Part {n} of {document.name}\n\n" + "\n\n".join(part)
        for n, part in enumerate(document.parts, 1)
    ]
    return f"# Station {document.name}\n\n" + "\n\n".join(parts) + "\n"


def _html(document: Document) -> str:
    parts = "".join(
        f"<h2>Part {n} of {document.name}</h2>\n" + "".join(f"<p>{text}</p>\n" for text in part)
        for n, part in enumerate(document.parts, 1)
    )
    title = f"Station {document.name}"
    return (
        f"<!doctype html><html lang='en'><head><title>{title}</title></head>"
        f"<body><main><h1>{title}</h1>\n{parts}</main></body></html>\n"
    )


def _text(document: Document) -> str:
    return "\n\n".join("\n\n".join(part) for part in document.parts) + "\n"


_FORMS: dict[str, Callable[[Document], str]] = {"md": _markdown, "html": _html, "txt": _text}
