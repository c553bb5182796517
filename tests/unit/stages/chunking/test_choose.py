"""What kind of document one is."""

import pytest

from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.stages.chunking.choose import detect_content

TITLE, TEXT, ITEM = ElementKind.TITLE, ElementKind.TEXT, ElementKind.LIST_ITEM
PARAGRAPH = (
    "The keepers of the light wrote down the weather of each day, and of each night the ships that passed. "
    "Of what they wrote little is left, since the sea took the lower rooms in the winter of that year. "
    "What is left tells of long calms, of fog that stood for weeks, and of a cat that knew the hours. "
    "Nobody has read it all, though some have tried, and one of them came to live on the rock for it. "
)


def of(*elements: tuple[ElementKind, str]) -> PartitionedDocument:
    return PartitionedDocument(
        "", tuple(Element(kind, text, 1 if kind is TITLE else None) for kind, text in elements)
    )


def faq() -> PartitionedDocument:
    asked = ["How do I begin?", "May I stop?", "What does it cost?", "Who answers?"]
    parts = [(TITLE, "Questions and answers")]
    for question in asked:
        parts += [(TITLE, question), (TEXT, "You do as the keeper says, and then you wait.")]
    return of(*parts)


def faq_in_paragraphs() -> PartitionedDocument:
    parts = [(TITLE, "Help")]
    for number in range(4):
        parts += [(TEXT, f"Q: May I use gate {number}?"), (TEXT, "A: Yes, at low water.")]
    return of(*parts)


def contract() -> PartitionedDocument:
    clauses = [
        "1.1 The Supplier shall deliver the goods to the Buyer.",
        "1.2 The Buyer shall pay within thirty days of the invoice.",
        "2.1 Either party may terminate this Agreement by notice.",
        "2.2 The parties hereby exclude any liability for delay.",
        "(a) The indemnity herein is limited to the price.",
        "(b) The Supplier shall insure the goods.",
    ]
    return of((TITLE, "Service agreement"), *((TEXT, clause) for clause in clauses))


def german_contract() -> PartitionedDocument:
    parts = []
    for number, name in enumerate(
        ["Gegenstand", "Vergütung", "Haftung", "Kündigung", "Schluss"], 1
    ):
        parts.append((TITLE, f"§ {number} {name}"))
        parts.append(
            (TEXT, "Der Auftragnehmer schuldet dem Auftraggeber die Leistung dieses Vertrages.")
        )
    return of(*parts)


def terms_of_hire() -> PartitionedDocument:
    clauses = [
        "1.1 These terms apply to every contract between the station and the customer.",
        "2.1 The charge is due in advance.",
        "5.1 The customer pays for damage beyond ordinary wear.",
        "5.3 Notwithstanding 5.2, the customer pays nothing if the lock was defective.",
        "6.1 The station is liable for damage caused by gross negligence.",
        "6.2 Otherwise the station is liable only for the breach of duties.",
        "7.1 Liability ends with the hire.",
    ]
    return of((TITLE, "Terms of hire"), *((TEXT, clause) for clause in clauses))


def manual() -> PartitionedDocument:
    parts = []
    for number in range(8):
        parts += [
            (TITLE, f"{number}. Part {number}"),
            (TEXT, "Turn the wheel to the left."),
            (ITEM, "one turn"),
            (ElementKind.CODE, "wheel --left"),
        ]
    return of(*parts)


def troubleshooting() -> PartitionedDocument:
    """Some of its headings are questions, most are not."""
    parts = []
    for number in range(9):
        asked = number % 3 == 0
        parts += [(TITLE, f"Is it {number}?" if asked else f"Case {number}"), (TEXT, PARAGRAPH)]
    return of(*parts)


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (faq(), "faq"),
        (faq_in_paragraphs(), "faq"),
        (contract(), "contract"),
        (german_contract(), "contract"),
        (terms_of_hire(), "contract"),
        (manual(), "docs"),
        (troubleshooting(), "docs"),
        (of((ElementKind.CODE, "def run():\n    return 1\n" * 40)), "code"),
        (of((TITLE, "run.py"), (ElementKind.CODE, "def run():\n    return 1\n" * 40)), "code"),
        (of((TEXT, PARAGRAPH), (ElementKind.CODE, "x = 1\n" * 40)), "docs"),
        (of((TITLE, "Prices"), (ElementKind.TABLE, "mast | 90\nbox | 12\n" * 30)), "table"),
        (of((TEXT, PARAGRAPH), (ElementKind.TABLE, "mast | 90\n" * 30)), "docs"),
        (of((TITLE, "The light"), *[(TEXT, PARAGRAPH)] * 40), "prose"),
        (of(*[(TEXT, "My fellow keepers, the night was long. " * 3)] * 200), "prose"),
        (of(*[(TITLE, "A part"), (TEXT, PARAGRAPH)] * 20), "docs"),
        (of((TITLE, "The light"), (TEXT, PARAGRAPH)), "docs"),
        (of(*[(ITEM, f"{n}. Turn the wheel and hold it.") for n in range(1, 12)]), "docs"),
        (of(*[(TITLE, f"Why {n}?") for n in range(6)]), "docs"),
        (of(), "docs"),
    ],
)  # fmt: skip
def test_a_document_is_told_by_its_elements(document: PartitionedDocument, kind: str) -> None:
    assert detect_content(document) == kind


def test_a_clear_kind_survives_one_more_paragraph() -> None:
    for document in (faq(), contract()):
        longer = PartitionedDocument("", (*document.elements, Element(TEXT, PARAGRAPH)))
        assert detect_content(longer) == detect_content(document)
