"""A connection's secrets as the headers that carry them."""

import base64
from collections.abc import Mapping

from tidemark.domain.credentials import Credentials
from tidemark.domain.errors import ConfigurationError


def secret_headers(credentials: Credentials | None) -> tuple[tuple[str, str], ...]:
    """The headers of a connection, whatever its type.

        extra "headers" (a mapping)            these
        extra "cookie", "cookies" (a mapping)  Cookie
        extra "token", else a password alone   Authorization: Bearer
        login, with or without a password      Authorization: Basic

    Raises ``ConfigurationError`` that names the connection and the field, never a value.
    """
    if credentials is None:
        return ()
    headers = {name.lower(): (name, value) for name, value in _mapping(credentials, "headers")}
    for name, value in (("Cookie", _cookie(credentials)), ("Authorization", _grant(credentials))):
        if value:
            headers[name.lower()] = (name, value)
    for name, value in headers.values():
        if not (name.strip() and is_header_text(name) and is_header_text(value)):
            raise ConfigurationError(
                f"The connection {credentials.name!r} has a value for the header {name!r} that cannot be"
                " sent as it is.",
                "Use plain text without line breaks.",
            )
    return tuple(headers.values())


def is_header_text(text: str) -> bool:
    """Can it be sent as a header's name or value?"""
    return text.isascii() and text.isprintable() and text == text.strip()


def _grant(credentials: Credentials) -> str:
    token = credentials.extra.get("token") or ("" if credentials.login else credentials.password)
    if token:
        return f"Bearer {token}"
    if credentials.login:
        pair = f"{credentials.login}:{credentials.password}".encode()
        return f"Basic {base64.b64encode(pair).decode('ascii')}"
    return ""


def _cookie(credentials: Credentials) -> str:
    cookies = [f"{name}={value}" for name, value in _mapping(credentials, "cookies")]
    plain = credentials.extra.get("cookie")
    return "; ".join([*([str(plain)] if plain else []), *cookies])


def _mapping(credentials: Credentials, key: str) -> list[tuple[str, str]]:
    value = credentials.extra.get(key) or {}
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"The connection {credentials.name!r} has {key!r} that is no mapping.",
            f'Write {{"{key}": {{"name": "value"}}}} in its extra.',
        )
    return [(str(name), str(text)) for name, text in value.items()]
