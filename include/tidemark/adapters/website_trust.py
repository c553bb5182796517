"""Whom a crawl trusts: the authorities that sign certificates, and the origins that may hear secrets."""

from functools import cache
from ssl import SSLContext, SSLError
from urllib.parse import urlsplit

import httpx

from tidemark.adapters.website_options import WebsiteOptions
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.urls import canonical_url, origin_of


@cache
def tls_context(ca_file: str) -> SSLContext:
    """One for the process: reading the authorities takes longer than a crawl of a few pages.

    Raises ``ConfigurationError`` for authorities that cannot be read.
    """
    context = httpx.create_ssl_context(trust_env=False)
    # The system's authorities as well as the packaged ones: intranets have their own.
    context.load_default_certs()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, SSLError) as error:
            raise ConfigurationError(
                f"The certificate authorities in {ca_file} cannot be read ({error}).",
                "Let ca_file name a PEM file that this process may read.",
            ) from error
    return context


def own_origins(options: WebsiteOptions) -> frozenset[str]:
    """The origins that secrets may go to: the start pages', and the same host over TLS."""
    origins = {origin_of(uri) for start in options.starts if (uri := canonical_url(start))}
    secured = {
        origin.replace("http:", "https:", 1)
        for origin in origins
        if origin.startswith("http:") and urlsplit(origin).port is None
    }
    return frozenset(origins | secured)
