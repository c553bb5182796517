"""A connection's secrets as adapters take them: options of fsspec's file systems, and headers.

    protocol          login, password                  host, extra
    ----------------  -------------------------------  ----------------------------------------------------
    s3, s3a           access key, secret key           host or endpoint_url, session_token, region_name, anon
    gs, gcs           –                                token or keyfile_dict (an object or its JSON),
                                                       key_path, project, anon
    abfs, abfss, az   account name, account key        account_name, connection_string, sas_token, tenant_id,
                                                       client_id, client_secret
    others            username, password               host, port

``storage_options`` in extra is handed on as it is, and wins. Without a connection the vendors look for
credentials in their own ways (a role of the machine, their configuration files).
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError


def storage_options(protocol: str, credentials: Credentials | None) -> dict[str, Any]:
    """The options of a file system. Raises ``ConfigurationError`` that names the field, never a value."""
    if credentials is None:
        return {}
    if protocol in {"s3", "s3a"}:
        options = _s3(credentials)
    elif protocol in {"gs", "gcs"}:
        options = _gcs(credentials)
    elif protocol in {"abfs", "abfss", "az"}:
        options = _azure(credentials)
    else:
        options = {
            "username": credentials.login,
            "password": credentials.password,
            "host": credentials.host,
            "port": credentials.port,
        }
    kept = {name: value for name, value in options.items() if value not in ("", None)}
    return kept | extra_mapping(credentials, "storage_options")


def extra_mapping(credentials: Credentials, key: str) -> dict[str, Any]:
    """A mapping in a connection's extra, also when it is there as JSON text."""
    value = credentials.extra.get(key) or {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"The connection {credentials.name!r} has {key!r} that is no mapping.",
            f'Write {{"{key}": {{"name": "value"}}}} in its extra.',
        )
    return {str(name): item for name, item in value.items()}


def is_set(credentials: Credentials | None, key: str) -> bool:
    """Is a switch in a connection's extra on, as a value or as text?"""
    value = credentials.extra.get(key) if credentials else None
    return str(value).strip().lower() in {"true", "1", "yes", "on"}


def _s3(credentials: Credentials) -> dict[str, Any]:
    extra = credentials.extra
    region = extra.get("region_name")
    return {
        "key": credentials.login or extra.get("aws_access_key_id"),
        "secret": credentials.password or extra.get("aws_secret_access_key"),
        "token": extra.get("aws_session_token") or extra.get("session_token"),
        "endpoint_url": extra.get("endpoint_url") or _endpoint(credentials),
        "anon": True if is_set(credentials, "anon") else None,
        "version_aware": True if is_set(credentials, "version_aware") else None,
        "client_kwargs": {"region_name": region} if region else None,
    }


def _endpoint(credentials: Credentials) -> str:
    host = credentials.host
    if not host:
        return ""
    if "://" not in host:
        host = f"{credentials.schema or 'https'}://{host}"
    return f"{host}:{credentials.port}" if credentials.port else host


def _gcs(credentials: Credentials) -> dict[str, Any]:
    extra = credentials.extra
    keyfile = extra.get("keyfile_dict")
    token: object = extra.get("token") or extra.get("key_path")
    if keyfile:
        token = extra_mapping(credentials, "keyfile_dict")
    if is_set(credentials, "anon"):
        token = "anon"  # noqa: S105 - gcsfs' word for no credentials
    return {
        "token": token,
        "project": extra.get("project"),
        "endpoint_url": extra.get("endpoint_url") or _endpoint(credentials),
    }


def _azure(credentials: Credentials) -> dict[str, Any]:
    extra = credentials.extra
    return {
        "account_name": credentials.login or extra.get("account_name"),
        "account_key": credentials.password or extra.get("account_key"),
        **{
            name: extra.get(name)
            for name in (
                "connection_string", "sas_token", "tenant_id", "client_id", "client_secret",
                "account_host",
            )
        },
        "anon": True if is_set(credentials, "anon") else None,
    }  # fmt: skip


# A connection's secrets as the headers that carry them.


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
    headers = {
        name.lower(): (name, str(value))
        for name, value in extra_mapping(credentials, "headers").items()
    }
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
    cookies = [f"{name}={value}" for name, value in extra_mapping(credentials, "cookies").items()]
    plain = credentials.extra.get("cookie")
    return "; ".join([*([str(plain)] if plain else []), *cookies])
