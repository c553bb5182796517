"""A mail: its subject as the title, who wrote it when, and its body without the attachments."""

from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from tidemark.adapters.html_cleaner import parse_content
from tidemark.adapters.html_titles import language_code
from tidemark.adapters.text_decoding import decode
from tidemark.adapters.unstructured_html import elements_of
from tidemark.adapters.unstructured_mail_text import read_mail_text
from tidemark.domain.model import Element, ElementKind, PartitionedDocument

_SHOWN = ("From", "To", "Cc")


def partition_email(content: bytes, name: str, max_depth: int) -> PartitionedDocument:
    """Partition a mail; ``name`` names it in errors. Raises ``DocumentError``."""
    message = message_from_bytes(content, policy=policy.default)
    subject = _header(message, "Subject")
    elements: list[Element] = []
    if subject:
        elements.append(Element(ElementKind.TITLE, subject, 1))
    envelope = [f"{field}: {value}" for field in _SHOWN if (value := _header(message, field))]
    sent = _sent(message)
    if sent:
        envelope.append(f"Date: {sent}")
    if envelope:
        elements.append(Element(ElementKind.TEXT, "\n".join(envelope)))
    elements += _body(message, name, max_depth)
    attached = [part.get_filename() for part in message.iter_attachments() if part.get_filename()]
    if attached:
        elements.append(Element(ElementKind.TEXT, f"Attachments: {', '.join(map(str, attached))}"))
    return PartitionedDocument(
        subject, tuple(elements), language_code(_header(message, "Content-Language"))
    )


def _body(message: EmailMessage, name: str, max_depth: int) -> list[Element]:
    part = message.get_body(preferencelist=("html", "plain"))
    if part is None:
        return []
    payload = part.get_payload(decode=True)
    text = decode(payload, part.get_content_charset(), name) if isinstance(payload, bytes) else ""
    if not text.strip():
        return []
    if part.get_content_subtype() == "html":
        return below_subject(list(elements_of(parse_content(text, name, max_depth))))
    return below_subject(list(elements_of(read_mail_text(text))))


def below_subject(elements: list[Element]) -> list[Element]:
    """Headings of the body are under the subject."""
    return [
        Element(e.kind, e.text, min((e.level or 1) + 1, 6), e.page_number, e.anchor)
        if e.kind is ElementKind.TITLE
        else e
        for e in elements
    ]


def _header(message: EmailMessage, field: str) -> str:
    try:
        return " ".join(str(message.get(field) or "").split())
    except (
        ValueError,
        IndexError,
        AttributeError,
    ):  # a header that the parser chokes on says nothing
        return ""


def _sent(message: EmailMessage) -> str:
    value = _header(message, "Date")
    try:
        return parsedate_to_datetime(value).isoformat(" ", "minutes") if value else ""
    except ValueError:
        return value
