"""A mail: its subject as the title, who wrote it when, and its body without the attachments."""

import re
from collections.abc import Iterator, Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import Any

from lxml import etree

from tidemark.adapters.decoding import decode
from tidemark.adapters.partition.html.cleaner import parse_content
from tidemark.adapters.partition.html.lines import LINE_END
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.html.tree import add_block, language_code
from tidemark.adapters.partition.text.plain import read_plain_text
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument

# The text of a mail: what its writer says, what they quote, and how they sign.

_QUOTED = re.compile(r"\s?((?:> ?)+)(.*)$")
_SIGNATURE = re.compile(r"--\s*$")
_LONGEST_SIGNATURE = 12


def read_mail_text(text: str) -> etree._Element:
    """The blocks of a mail's plain text as HTML elements under one root.

    Lines after ">" become quotations without that mark, one for each depth; the lines after "--" one block.
    """
    lines = text.replace("\r\n", "\n").expandtabs(8).split("\n")
    lines, signature = _signed(lines)
    root = etree.Element("div")
    for depth, part in _by_depth(lines):
        blocks = read_plain_text("\n".join(part), titled=False)
        if depth:
            quote = etree.SubElement(root, "blockquote")
            quote.extend(list(blocks))
        else:
            root.extend(list(blocks))
    if signature:
        add_block(root, "p", LINE_END.join(signature))
    return root


def _signed(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of a mail without its signature, and those of that; both without the mark between them."""
    for index in range(len(lines) - 1, -1, -1):
        if not _SIGNATURE.fullmatch(lines[index]):
            continue
        below = [line.strip() for line in lines[index + 1 :]]
        signature: list[str] = []
        for line in below:
            if _QUOTED.match(line) or (not line and signature and len(signature) > 3):
                break
            signature += [line] if line else []
        filled = [line for line in below if line]
        if signature == filled and len(signature) <= _LONGEST_SIGNATURE:
            return lines[:index], signature
        return lines, []
    return lines, []


def _by_depth(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines that are quoted equally deep, 0 for the writer's own."""
    depth, run = 0, list[str]()
    for line in lines:
        match = _QUOTED.match(line)
        here = match[1].count(">") if match else 0
        if here != depth and run:
            if any(part.strip() for part in run):
                yield depth, run
            run = []
        depth = here
        run.append(match[2] if match else line)
    if any(part.strip() for part in run):
        yield depth, run


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


# An Outlook message, read as the mail that it is.


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
