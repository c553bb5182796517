"""Bounds and choices of what is read; part of the partitioner's fingerprint."""

from dataclasses import dataclass
from typing import Literal

PdfStrategy = Literal["fast", "ocr", "hi_res"]


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """Bounds of what is read, and how.

    max_bytes: of a document as fetched. max_expanded_bytes: of an archive (DOCX, EPUB, …) when unpacked.
    max_ratio: times its packed size that it may unpack to. max_html_depth: nested elements.
    max_pages: of a PDF. max_cells: of the tables of a document together.
    max_output_characters: of what a notebook's cell printed, 0 to leave it all out.
    pdf_strategy: "fast" reads the text that a PDF has; "ocr" recognises that of PDFs which have none;
        "hi_res" reads all PDFs by Unstructured's layout model. The latter two need packages of their own.
    """

    max_bytes: int = 64 * 2**20
    max_expanded_bytes: int = 512 * 2**20
    max_ratio: int = 300
    max_html_depth: int = 150
    max_pages: int = 3000
    max_cells: int = 1_000_000
    max_output_characters: int = 1000
    pdf_strategy: PdfStrategy = "fast"
