import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.domain.urls import (
    MAX_URL_LENGTH,
    Resolver,
    canonical_url,
    has_credentials,
    origin_of,
    site_of,
)

SEGMENT = st.text(alphabet="abzXY019-._~%é ;=&+,@:", max_size=8)
PATH = st.lists(st.one_of(SEGMENT, st.sampled_from([".", "..", ""])), max_size=6).map("/".join)
QUERY = st.lists(st.tuples(SEGMENT, SEGMENT), max_size=4).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)
URL = st.builds(
    lambda scheme, host, port, path, query: f"{scheme}://{host}{port}/{path}?{query}",
    st.sampled_from(["http", "HTTPS"]),
    st.sampled_from(["example.org", "EXAMPLE.org.", "bücher.example", "[::1]", "10.0.0.1"]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    PATH,
    QUERY,
)


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("http://example.org:80/a", "http://example.org/a"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:443/a", "http://example.org:443/a"),
        ("http://example.org./a", "http://example.org/a"),
        ("http://example.org/a#part", "http://example.org/a"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/../../a", "http://example.org/a"),
        ("http://example.org/a/..", "http://example.org/"),
        ("http://example.org/a%2e%2e/%7euser/%c3%a9", "http://example.org/a../~user/%C3%A9"),
        ("http://example.org/%2e%2e/a", "http://example.org/a"),
        ("http://example.org/é b", "http://example.org/%C3%A9%20b"),
        ("http://example.org/100%", "http://example.org/100%25"),
        ("http://example.org/a%2fb", "http://example.org/a%2Fb"),
        ("http://example.org/?b=2&a=1", "http://example.org/?a=1&b=2"),
        ("http://example.org/?a=2&a=1", "http://example.org/?a=2&a=1"),
        ("http://example.org/?q=a+b", "http://example.org/?q=a%20b"),
        ("http://example.org/?", "http://example.org/"),
        ("http://example.org/?utm_source=x&page=2&fbclid=1", "http://example.org/?page=2"),
        ("http://example.org/a;jsessionid=AB12?x=1", "http://example.org/a?x=1"),
        ("http://example.org/?PHPSESSID=abc&x=1", "http://example.org/?x=1"),
        ("http://example.org/(S(lit3py55t21z5v55vlm25s55))/a", "http://example.org/a"),
        ("http://example.org/(S(lit3py55t21z5v55))/", "http://example.org/"),
        ("http://example.org/(A(one)B)/a", "http://example.org/(A(one)B)/a"),
        ("http://example.org/?UTM_Source=x&Page=2", "http://example.org/?Page=2"),
        ("http://example.org/?id=7&lang=de&page=2", "http://example.org/?id=7&lang=de&page=2"),
        ("http://example.org/?x=%7e&y=%2f", "http://example.org/?x=~&y=%2F"),
        ("http://example.org/?sid=0123456789abcdef0123456789abcdef", "http://example.org/"),
        ("http://example.org/?sid=12", "http://example.org/?sid=12"),
        ("http://user:secret@example.org/a", "http://example.org/a"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[0:0::1]:80/", "http://[::1]/"),
        ("http:\\\\example.org\\a?x=\\", "http://example.org/a?x=%5C"),
        ("  http://exam\nple.org/a\t ", "http://example.org/a"),
    ],
)
def test_it_gives_one_spelling_to_every_url(spelling: str, canonical: str) -> None:
    assert canonical_url(spelling) == canonical


@pytest.mark.parametrize(
    "other",
    [
        "mailto:a@example.org", "javascript:alert(1)", "ftp://example.org/", "example.org", "",
        "http://", "http://exa mple/", "http://example.org:port/", "http://example.org:99999/",
        "http://[::1/", "http://a..b\u2603.example/", "http://example.org/" + "a" * MAX_URL_LENGTH,
    ],
)  # fmt: skip
def test_it_knows_what_is_no_web_address(other: str) -> None:
    assert canonical_url(other) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/docs", "http://example.org/docs/"),
        ("http://example.org/", "http://example.org/index.html"),
        ("http://example.org/a", "https://example.org/a"),
        ("http://example.org/a", "http://example.org/A"),
        ("http://example.org/a%2Fb", "http://example.org/a/b"),
        ("http://example.org/?page=1", "http://example.org/?page=2"),
        ("http://example.org/", "http://www.example.org/"),
    ],
)
def test_it_keeps_apart_what_a_server_may_answer_differently(one: str, other: str) -> None:
    assert canonical_url(one) != canonical_url(other)


def test_it_resolves_against_the_page_it_stands_on() -> None:
    assert canonical_url("../b?x=1#y", "http://example.org/a/c/") == "http://example.org/a/b?x=1"
    assert canonical_url("//other.example/b", "https://example.org/") == "https://other.example/b"


@given(URL)
def test_canonicalising_twice_changes_nothing_more(url: str) -> None:
    once = canonical_url(url)
    assert once is not None
    assert canonical_url(once) == once


@given(st.text(alphabet="abZ09-._~/"))
def test_escaping_more_than_needed_makes_no_other_url(path: str) -> None:
    escaped = "".join(c if c == "/" else f"%{ord(c):02x}" for c in path)
    base = "http://example.org/"
    assert canonical_url(base + escaped) == canonical_url(base + path)


@given(st.permutations(["a=1", "b=2", "c=%20", "d"]))
def test_the_order_of_differently_named_parameters_means_nothing(parts: list[str]) -> None:
    assert canonical_url("http://example.org/?" + "&".join(parts)) == (
        "http://example.org/?a=1&b=2&c=%20&d"
    )


@given(URL, PATH)
def test_the_quick_way_for_the_links_of_a_page_gives_the_same(base: str, reference: str) -> None:
    canonical = canonical_url(base)
    assert canonical is not None
    assert Resolver(base)(reference) == canonical_url(reference, canonical)


def test_it_tells_origin_site_and_credentials() -> None:
    assert origin_of("https://example.org:8443/a") == "https://example.org:8443"
    assert site_of("https://www.example.org/a") == site_of("http://example.org/b")
    assert site_of("http://example.org:81/") != site_of("http://example.org/")
    assert has_credentials("https://user@example.org/")
    assert not has_credentials("https://example.org/@user")
