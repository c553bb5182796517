"""An Outlook message, read as the mail that it is."""

from io import BytesIO
from typing import Any

from tidemark.adapters.html_cleaner import parse_content
from tidemark.adapters.unstructured_email import below_subject
from tidemark.adapters.unstructured_html import elements_of
from tidemark.adapters.unstructured_mail_text import read_mail_text
from tidemark.domain.model import Element, ElementKind, PartitionedDocument


def partition_msg(content: bytes, name: str, max_depth: int) -> PartitionedDocument:
    """Partition a MSG file; ``name`` names it in errors. Raises ``DocumentError``."""
    from oxmsg import Message

    message = Message.load(BytesIO(content))
    subject = _line(message.subject)
    elements: list[Element] = [Element(ElementKind.TITLE, subject, 1)] if subject else []
    envelope = _envelope(message)
    if envelope:
        elements.append(Element(ElementKind.TEXT, "\n".join(envelope)))
    html = (message.html_body or "").replace("\0", "")
    text = (message.body or "").replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    if html.strip():
        elements += below_subject(list(elements_of(parse_content(html, name, max_depth))))
    elif text.strip():
        elements += below_subject(list(elements_of(read_mail_text(text))))
    names = list(filter(None, (_line(part.file_name) for part in message.attachments)))
    if names:
        elements.append(Element(ElementKind.TEXT, f"Attachments: {', '.join(names)}"))
    return PartitionedDocument(subject, tuple(elements))


def _envelope(message: Any) -> list[str]:
    headers = {key.lower(): value for key, value in message.message_headers.items()}
    to = headers.get("to") or ", ".join(filter(None, map(_recipient, message.recipients)))
    shown = [("From", message.sender), ("To", to), ("Cc", headers.get("cc"))]
    lines = [f"{field}: {line}" for field, value in shown if (line := _line(value))]
    sent = message.sent_date
    return [*lines, f"Date: {sent.isoformat(' ', 'minutes')}"] if sent else lines


def _recipient(recipient: Any) -> str:
    name, address = _line(recipient.name), _line(recipient.email_address)
    return f"{name} <{address}>" if name and address and name != address else address or name


def _line(value: str | None) -> str:
    """A property on one line; some programs write the zero that ends it."""
    return " ".join((value or "").replace("\0", " ").split())
