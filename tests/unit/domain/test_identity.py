"""Identities and hashes: pinned, since changing one changes every id in every index."""

from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.domain.hashing import canonical, digest_of, digest_text, fingerprint
from tidemark.domain.identity import NAMESPACE, document_id, point_id, point_ids, section_id


def test_the_ids_of_a_known_document_never_change() -> None:
    document = document_id("handbook", "https://example.org/guide")
    assert document == UUID("7e0b86f7-3dd8-543a-8288-5192d6ee4195")
    assert section_id(document, ["Guide", "Install"], 0) == UUID(
        "b3a33e39-ed74-5b38-985d-967dd1d9edd2"
    )
    assert point_id(document, "Guide > Install\nRun it.", 0) == UUID(
        "bdcf5dcb-891a-5c00-8b7c-15dde35dbe1a"
    )


def test_the_hash_of_a_known_value_never_changes() -> None:
    assert digest_of({"b": [1, None, "ü"], "a": True}) == "9b69a35323a61d7eb4db7b1de1c438634c6877e2"


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    backwards = dict(reversed(list(value.items())))
    assert canonical(value) == canonical(backwards)  # type: ignore[arg-type]


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_different_texts_have_different_hashes(texts: list[str]) -> None:
    assert digest_text(texts[0]) != digest_text(texts[1])


def test_a_value_without_a_canonical_form_is_refused() -> None:
    with pytest.raises(TypeError):
        digest_of({"a": object()})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="JSON"):
        digest_of(float("nan"))


def test_equal_texts_in_a_document_get_points_of_their_own() -> None:
    document = document_id("s", "u")
    ids = point_ids(document, ["same", "other", "same"])
    assert len(set(ids)) == 3


@given(st.lists(st.text(max_size=20), unique=True, min_size=1), st.data())
def test_a_point_keeps_its_id_when_others_come_and_go(
    texts: list[str], data: st.DataObject
) -> None:
    document = document_id("s", "u")
    kept = data.draw(st.lists(st.sampled_from(texts), unique=True))
    before = dict(zip(texts, point_ids(document, texts), strict=True))
    after = dict(zip(kept, point_ids(document, kept), strict=True))
    assert all(after[text] == before[text] for text in kept)


def test_a_fingerprint_depends_on_stage_options_and_upstream() -> None:
    base = fingerprint("chunk", {"size": 1}, "up")
    assert base == fingerprint("chunk", {"size": 1}, "up")
    assert len({base, fingerprint("embed", {"size": 1}, "up"), fingerprint("chunk", {"size": 2}, "up"),
                fingerprint("chunk", {"size": 1}, "down")}) == 4  # fmt: skip


def test_a_uri_that_is_not_strict_unicode_has_an_id_too() -> None:
    assert document_id("s", "file:///\udcff.txt") != document_id("s", "file:///\udcfe.txt")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_ids_are_the_standard_name_based_ones(uri: str) -> None:
    assert document_id("s", uri) == uuid5(NAMESPACE, canonical(["document", "s", uri]).decode())


@given(st.uuids(), st.lists(st.text(max_size=30), max_size=6))
def test_the_ids_of_many_points_are_those_of_each(document: UUID, texts: list[str]) -> None:
    texts = [*texts, *texts[:2]]
    seen: list[str] = []
    for text, found in zip(texts, point_ids(document, texts), strict=True):
        assert found == point_id(document, text, seen.count(text))
        seen.append(text)
