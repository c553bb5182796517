from typing import Any

import pytest

from tidemark.adapters.sources.credentials import secret_headers
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.config.settings import Settings
from tidemark.config.sources import SourceContext
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({}, {}),
        ({"login": "reader", "password": "hush"}, {"Authorization": "Basic cmVhZGVyOmh1c2g="}),
        ({"login": "reader"}, {"Authorization": "Basic cmVhZGVyOg=="}),
        ({"password": "hush"}, {"Authorization": "Bearer hush"}),
        ({"login": "a", "extra": {"token": "hush"}}, {"Authorization": "Bearer hush"}),
        ({"extra": {"cookie": "a=1; b=2"}}, {"Cookie": "a=1; b=2"}),
        ({"extra": {"cookies": {"a": "1", "b": "2"}}}, {"Cookie": "a=1; b=2"}),
        ({"extra": {"cookie": "a=1", "cookies": {"b": 2}}}, {"Cookie": "a=1; b=2"}),
        ({"extra": {"headers": {"X-Key": "hush"}}}, {"X-Key": "hush"}),
        (
            {"password": "hush", "extra": {"headers": {"authorization": "old", "X-Key": "k"}}},
            {"X-Key": "k", "Authorization": "Bearer hush"},
        ),
    ],
)
def test_a_connection_of_any_type_becomes_the_headers_that_open_a_site(
    fields: dict[str, Any], headers: dict[str, str]
) -> None:
    assert dict(secret_headers(Credentials("intranet", "whatever", **fields))) == headers
    assert secret_headers(None) == ()


@pytest.mark.parametrize(
    ("extra", "told"),
    [({"headers": "X-Key: hush"}, "headers"), ({"cookies": ["hush"]}, "cookies"),
     ({"headers": {"X-Key": "hush\r\nX-Other: 1"}}, "X-Key"), ({"token": "hush\n"}, "Authorization")],
)  # fmt: skip
def test_what_cannot_be_sent_is_told_with_the_connection_and_without_the_secret(
    extra: dict[str, Any], told: str
) -> None:
    given = SourceContext(Settings(), Credentials("intranet", extra=extra))
    with pytest.raises(ConfigurationError, match=told) as error:
        WebsiteOptions(url="https://example.org/").open(given)
    assert "intranet" in str(error.value)
    assert "hush" not in str(error.value)


def test_options_show_no_secret_and_no_secret_changes_the_fingerprint() -> None:
    def options(secret: str) -> WebsiteOptions:
        return WebsiteOptions(
            url="https://example.org/",
            credentials=Credentials("intranet", login="a", password=secret),
            proxy=f"http://user:{secret}@proxy.example:3128",
        )

    assert "hush" not in repr(options("hush"))
    assert options("hush").fingerprint == options("other").fingerprint
    assert options("hush").fingerprint == WebsiteOptions(url="https://example.org/").fingerprint


@pytest.mark.parametrize(
    "proxy", ["proxy.example:3128", "socks5://proxy.example", "http://", "http://a:b:c"]
)
def test_a_proxy_that_is_no_url_is_told_without_showing_it(proxy: str) -> None:
    with pytest.raises(ValueError, match=r"an http\(s\) URL of a proxy"):
        WebsiteOptions(url="https://example.org/", proxy=proxy)
