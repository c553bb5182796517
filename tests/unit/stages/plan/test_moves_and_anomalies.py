"""What a run does with addresses that moved, pages that are equal, and versions that are not believed."""

from datetime import timedelta

import pytest
from worlds import SOURCE, World, page

from fakes.inspector import MarkInspector
from tidemark.domain.guards import Guards
from tidemark.domain.identity import document_id
from tidemark.domain.records import AliasKind
from tidemark.stages.explain import explain, not_found

A, B, C = "https://example.org/a", "https://example.org/b", "https://example.org/c"
LONG = [
    f"A paragraph of the page, the number {n}, that says something of its own." for n in range(12)
]


@pytest.fixture
def world() -> World:
    world = World()
    world.inspector = MarkInspector()
    return world


def text(*words: str) -> str:
    return page("A page", *words, *LONG)


def live(world: World) -> list[str]:
    return sorted({str(p.payload["source_uri"]) for p in world.index.scan_points(world.generation)})


# Moves


def test_a_page_that_moved_for_good_takes_its_vectors_and_its_history_along(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    before = world.ledger.documents.get(document_id(SOURCE, A))
    world.source.documents = {B: text("first")}
    world.source.moved = {A: B}
    summary = world.run()
    assert world.embedder.texts == []
    assert (summary.documents, summary.reasons) == ({"add": 1, "remove": 1}, {"moved": 2})
    assert summary.chunks.embedded == 0
    assert live(world) == [B]
    after = world.ledger.documents.get(document_id(SOURCE, B))
    assert before is not None
    assert after is not None
    assert (after.first_seen, after.fetched_at) == (before.first_seen, before.fetched_at)
    assert [a.kind for a in world.ledger.sources.aliases_by_uri([A])] == [AliasKind.MOVED]
    assert world.audit().clean


def test_what_changed_with_the_move_is_all_that_is_embedded(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    world.source.documents = {B: text("another first")}
    world.source.moved = {A: B}
    world.run()
    assert len(world.embedder.texts) == 1
    assert "another first" in world.embedder.texts[0]


def test_a_page_stays_when_what_it_moved_to_cannot_be_had(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    world.source.documents = {}
    world.source.moved = {A: B}
    world.source.failing = {B: "answered 500"}
    summary = world.run()
    assert live(world) == [A]
    assert summary.reasons == {"unreachable": 2}


def test_a_file_that_was_renamed_is_known_by_its_bytes(world: World) -> None:
    world.source.authoritative = True
    world.documents[A] = text("first")
    world.run()
    world.source.documents = {B: text("first")}
    summary = world.run()
    assert world.embedder.texts == []
    assert summary.reasons == {"moved": 2}
    assert live(world) == [B]


def test_a_copy_of_a_file_is_a_document_of_its_own_that_costs_no_embedding(world: World) -> None:
    world.source.authoritative = True
    world.inspector = None
    world.documents[A] = text("first")
    world.run()
    world.documents[B] = text("first")
    summary = world.run()
    assert world.embedder.texts == []
    assert summary.reasons == {"new": 1, "unchanged": 1}
    assert live(world) == [A, B]


def test_explain_finds_a_document_by_the_address_it_had(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    world.source.documents = {B: text("first")}
    world.source.moved = {A: B}
    world.run()
    found = explain(world.ledger, A)
    assert any(e.document is not None and e.document.uri == B for e in found)


# Aliases and duplicates


def test_an_address_that_leads_to_a_document_is_kept_as_another_name_of_it(world: World) -> None:
    world.documents[A] = text("first")
    world.source.aliases = {B: A}
    world.run()
    assert live(world) == [A]
    assert [(a.uri, a.kind) for a in world.ledger.sources.aliases_of(document_id(SOURCE, A))] == [
        (B, AliasKind.ALIAS)
    ]


def test_of_new_pages_with_one_text_the_one_with_the_shortest_address_is_kept(world: World) -> None:
    longer = f"{A}?sort=asc"
    world.source.documents = {longer: text("first"), A: text("first")}
    summary = world.run()
    assert live(world) == [A]
    assert summary.reasons == {"new": 1, "duplicate": 1}
    assert [a.uri for a in world.ledger.sources.aliases_of(document_id(SOURCE, A))] == [longer]


def test_a_duplicate_is_not_fetched_again_while_it_is_unchanged(world: World) -> None:
    world.source.documents = {A: text("first"), f"{A}?b": text("first")}
    world.run()
    summary = world.run()
    assert not world.source.fetched
    assert summary.reasons == {"unchanged": 1, "duplicate": 1}


def test_a_duplicate_takes_over_for_nothing_when_the_page_it_equals_is_gone(world: World) -> None:
    world.source.documents = {A: text("first"), f"{A}?b": text("first")}
    world.run()
    del world.documents[A]
    world.source.gone = {A: "answers 404"}
    world.run()
    assert live(world) == [f"{A}?b"]
    assert world.embedder.texts == []


def test_short_pages_that_are_equal_are_two_pages(world: World) -> None:
    world.source.documents = {A: page("Stub", "To do."), B: page("Stub", "To do.")}
    world.run()
    assert live(world) == [A, B]


# Doubts


@pytest.mark.parametrize(
    "reason", ["soft_404", "login_wall", "consent_wall", "parked", "needs_javascript"]
)
def test_a_suspected_version_is_reported_and_the_last_good_one_stays(
    world: World, reason: str
) -> None:
    world.documents[A] = text("first")
    world.run()
    world.documents[A] = page("Oops", f"SUSPECT {reason} now")
    for runs in (1, 2):
        summary = world.run()
        assert summary.reasons == {reason: 1}
        assert any(reason in line for line in summary.attention)
        record = world.ledger.documents.get(document_id(SOURCE, A))
        assert record is not None
        assert record.suspect is not None
        assert (record.suspect.reason, record.suspect.runs) == (reason, runs)
    assert "first" in " ".join(world.texts())
    world.documents[A] = text("second")
    world.run()
    record = world.ledger.documents.get(document_id(SOURCE, A))
    assert record is not None
    assert record.suspect is None
    assert "second" in " ".join(world.texts())


def test_a_suspected_page_that_was_never_good_is_not_indexed(world: World) -> None:
    world.documents[A] = page("Oops", "SUSPECT soft_404 now")
    summary = world.run()
    assert summary.documents == {"skip": 1}
    assert list(world.ledger.documents.stream(SOURCE)) == []


def test_a_person_may_believe_what_is_suspected(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    world.documents[A] = page("Oops", "SUSPECT soft_404 now")
    assert world.run(accept=frozenset({A})).reasons == {"content": 1}


def test_a_page_that_lost_most_of_its_text_is_believed_when_it_stays_so(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    world.documents[A] = page("A page", "Only this is left.")
    assert [world.run().reasons for _ in range(3)] == [
        {"shrunk": 1},
        {"shrunk": 1},
        {"content": 1},
    ]


def test_a_shrunk_page_that_changes_every_day_is_never_the_same_doubt(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    for day in range(5):
        world.documents[A] = page("A page", f"Down, try again on day {day + 2}.")
        assert world.run().reasons == {"shrunk": 1}


def test_one_text_that_comes_up_at_many_addresses_at_once_is_suspected(world: World) -> None:
    uris = [f"https://example.org/{n}" for n in range(4)]
    world.source.documents = {uri: text(uri) for uri in uris}
    world.run()
    world.source.documents = dict.fromkeys(uris, text("maintenance")) | {C: text("maintenance")}
    summary = world.run()
    assert summary.reasons == {"repeated_text": 5}
    assert live(world) == uris
    assert "maintenance" not in " ".join(world.texts())


def test_nothing_of_a_suspected_version_is_remembered_so_it_is_asked_for_again(
    world: World,
) -> None:
    world.documents[A] = text("first")
    world.run()
    world.documents[A] = page("Oops", "SUSPECT soft_404 now")
    world.run()
    world.run()
    assert world.source.fetched[A] == 1


# Guards


def test_too_many_documents_gone_at_once_wait_for_a_person(world: World) -> None:
    world.source.documents = {f"https://example.org/{n}": text(str(n)) for n in range(20)}
    world.run()
    gone = [f"https://example.org/{n}" for n in range(10)]
    for uri in gone:
        del world.documents[uri]
    world.source.gone = dict.fromkeys(gone, "answers 404")
    summary = world.run(guards=Guards(gone_percent=25))
    assert (summary.status, summary.held) == ("failed", True)
    assert "10 of 20 live documents (50 %) are gone at once; the guard is 25 %." in summary.guards
    assert len(live(world)) == 20
    approved = world.run(guards=Guards(gone_percent=25), approved=True)
    assert approved.status == "success"
    assert len(live(world)) == 10


def test_too_many_documents_changed_at_once_wait_for_a_person(world: World) -> None:
    world.source.documents = {f"https://example.org/{n}": text(str(n)) for n in range(20)}
    world.run()
    world.source.documents = {uri: text(uri) for uri in world.documents}
    summary = world.run()
    assert summary.held
    assert "20 of 20 live documents (100 %) have changed at once" in summary.guards[0]
    assert world.embedder.texts == []


def test_a_number_of_documents_may_be_a_guard_too(world: World) -> None:
    world.source.documents = {f"https://example.org/{n}": text(str(n)) for n in range(20)}
    world.run()
    del world.documents["https://example.org/3"]
    world.source.gone = {"https://example.org/3": "answers 410"}
    assert world.run(guards=Guards(gone_documents=0)).held


def test_a_small_source_is_not_asked_about(world: World) -> None:
    world.source.documents = {A: text("a"), B: text("b")}
    world.run()
    world.source.documents = {A: text("other a"), B: text("other b")}
    assert not world.run().held


def test_documents_that_move_are_not_counted_as_gone(world: World) -> None:
    world.source.documents = {f"https://example.org/{n}": text(str(n)) for n in range(20)}
    world.run()
    moved = {f"{uri}.html": body for uri, body in world.documents.items()}
    world.source.moved = {uri: f"{uri}.html" for uri in world.documents}
    world.source.documents = moved
    summary = world.run()
    assert not summary.held
    assert world.embedder.texts == []
    assert len(live(world)) == 20


def test_a_change_of_configuration_is_nothing_to_ask_about(world: World) -> None:
    world.source.documents = {f"https://example.org/{n}": text(str(n)) for n in range(20)}
    world.run()
    assert not world.run(labels=("another",)).held


# Gone, and back


def test_a_page_that_comes_back_in_time_comes_back_for_nothing(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    world.source.documents = {}
    world.source.gone = {A: "answers 404"}
    world.run()
    assert live(world) == []
    world.source.gone = {}
    world.source.documents = {A: text("first")}
    summary = world.run()
    assert summary.documents == {"restore": 1}
    assert world.embedder.texts == []
    assert not world.partitioner.calls
    assert world.audit().clean


def test_after_the_grace_period_all_of_a_removed_document_goes(world: World) -> None:
    world.documents[A] = text("first")
    world.documents[B] = text("second")
    world.run()
    del world.documents[A]
    world.source.gone = {A: "answers 404"}
    world.run()
    kept = list(world.artifacts.keys("raw/"))
    assert list(world.artifacts.keys("vectors/"))
    world.now += timedelta(days=31)
    world.run()
    assert list(world.artifacts.keys("vectors/")) == []
    assert len(list(world.artifacts.keys("raw/"))) == len(kept) - 1
    assert len(list(world.artifacts.keys("elements/"))) == 1
    (tombstone,) = world.ledger.tombstones.by_uri(A)
    assert tombstone.expired


def test_a_snapshot_that_another_document_shares_stays_with_that_one(world: World) -> None:
    world.inspector = None
    world.source.documents = {A: text("first"), B: text("first")}
    world.run()
    del world.documents[A]
    world.source.gone = {A: "answers 404"}
    world.run()
    world.now += timedelta(days=31)
    world.run()
    assert len(list(world.artifacts.keys("raw/"))) == 1


def test_a_page_that_comes_back_after_the_grace_period_is_embedded_again(world: World) -> None:
    world.documents[A] = text("first")
    world.run()
    world.source.documents = {}
    world.source.gone = {A: "answers 404"}
    world.run()
    world.now += timedelta(days=31)
    world.run()
    world.source.gone = {}
    world.source.documents = {A: text("first")}
    world.run()
    assert world.embedder.texts
    assert world.audit().clean


def test_what_the_source_says_of_its_state_is_kept_once_it_is_applied(world: World) -> None:
    world.source.state = "commit-1"
    world.documents[A] = text("first")
    world.run()
    assert world.ledger.sources.state(SOURCE).state == "commit-1"
    world.source.state = "commit-2"
    world.source.incomplete = "the connection broke"
    world.run()
    assert world.ledger.sources.state(SOURCE).state == "commit-1"


def test_a_version_cut_short_and_doubted_since_leaves_the_last_good_one_whole(world: World) -> None:
    from properties.test_convergence import killed_run

    world.documents[A] = text("first")
    world.run()
    for at in range(0, 60, 3):
        world.documents[A] = text(f"version {at}")
        killed_run(world, at)
        world.documents[A] = page("Oops", "SUSPECT soft_404 now")
        world.run()
        assert world.audit().clean
        assert len(live(world)) == 1


# What leads to a page that is not there


def site_of(world: World, count: int = 20) -> list[str]:
    uris = [f"https://example.org/{n}" for n in range(count)]
    world.source.documents = {uri: text(uri) for uri in uris}
    world.run()
    return uris


@pytest.mark.parametrize("way", ["moved", "aliases"])
def test_many_pages_that_lead_to_one_are_gone_and_a_person_is_asked(world: World, way: str) -> None:
    uris = site_of(world)
    world.source.documents = {A: text("home")}
    setattr(world.source, way, dict.fromkeys(uris, A))
    summary = world.run()
    assert summary.held
    assert "20 of 20 live documents (100 %) are gone at once" in summary.guards[0]
    assert live(world) == sorted(uris)


def test_many_pages_that_move_to_pages_with_one_text_are_gone_too(world: World) -> None:
    uris = site_of(world)
    world.source.documents = {f"{uri}/sorry": text("maintenance") for uri in uris}
    world.source.moved = {uri: f"{uri}/sorry" for uri in uris}
    assert world.run().held


def test_pages_with_one_text_may_come_together_at_one_address(world: World) -> None:
    world.inspector = None
    uris = [f"https://example.org/{n}" for n in range(12)]
    world.source.documents = dict.fromkeys(uris, text("the same"))
    world.run()
    world.source.documents = {A: text("the same")}
    world.source.aliases = dict.fromkeys(uris, A)
    assert not world.run().held


@pytest.mark.parametrize("way", ["moved", "aliases"])
def test_a_page_is_not_let_go_for_one_that_cannot_be_read(world: World, way: str) -> None:
    world.documents[A] = text("first")
    world.run()
    world.source.documents = {B: b"\xff\xfe\x00broken"}
    world.source.media_types = {B: "application/x-broken"}
    world.inspector = None
    setattr(world.source, way, {A: B})
    for _ in range(3):
        world.run()
        assert live(world) == [A]
    world.source.documents = {B: text("first")}
    world.source.media_types = {}
    world.run()
    assert live(world) == [B]


def test_a_page_is_not_let_go_for_one_that_is_not_believed(world: World) -> None:
    uris = site_of(world, 6)
    moved = f"{uris[0]}/new"
    world.source.documents = dict.fromkeys([*uris[1:], moved], text("maintenance"))
    world.source.moved = {uris[0]: moved}
    world.run()
    assert live(world) == uris


def test_a_text_that_has_left_its_page_makes_no_duplicate_of_where_it_is_now(
    world: World,
) -> None:
    world.documents[A] = text("version one")
    world.run()
    world.documents[A] = text("version two")
    world.documents[B] = text("version one")
    world.run()
    assert live(world) == [A, B]
    texts = " ".join(world.texts())
    assert "version one" in texts
    assert "version two" in texts
    assert world.run().documents == {"keep": 2}


@pytest.mark.parametrize("trouble", ["outage", "doubt"])
def test_an_outage_of_a_page_makes_no_document_of_its_duplicate(world: World, trouble: str) -> None:
    world.source.documents = {A: text("first"), f"{A}?b": text("first")}
    world.run()
    if trouble == "outage":
        del world.documents[A]
        world.source.failing = {A: "answered 503"}
    else:
        world.documents[A] = page("Oops", "SUSPECT login_wall now")
    world.run()
    world.source.failing = {}
    world.documents[A] = text("first")
    world.run()
    assert live(world) == [A]


# Guards, again


def test_once_approved_shrunk_pages_are_believed_and_nobody_is_asked_again(world: World) -> None:
    uris = site_of(world)
    world.source.documents = {uri: page("A page", f"{uri} is short.") for uri in uris}
    assert "20 of 20 live documents (100 %) have shrunk at once" in world.run().guards[0]
    approved = world.run(approved=True)
    assert approved.reasons == {"content": 20}
    again = world.run()
    assert (again.status, again.guards) == ("success", ())


def test_a_source_that_is_not_judged_is_asked_about_shrunk_documents_all_the_same(
    world: World,
) -> None:
    uris = [f"file:///docs/{n}.md" for n in range(20)]
    world.source.documents = {uri: text(uri) for uri in uris}
    world.run(judge=False)
    for uri in uris[:11]:
        world.documents[uri] = page("A page", "")
    summary = world.run(judge=False)
    assert summary.held
    assert "11 of 20 live documents (55 %) have shrunk at once" in summary.guards[0]
    assert world.run(judge=False, approved=True).reasons == {"content": 11, "unchanged": 9}


def test_a_file_that_shrank_is_taken_at_its_word(world: World) -> None:
    world.documents[A] = text("first")
    world.run(judge=False)
    world.documents[A] = page("A page", "Only this is left.")
    assert world.run(judge=False).reasons == {"content": 1}


def test_doing_everything_again_hides_no_change_from_the_guards(world: World) -> None:
    uris = site_of(world)
    world.source.documents = {uri: text(f"other {uri}") for uri in uris}
    assert world.run(force=True).held


def test_an_accepted_page_is_not_doubted_again_for_other_bytes_around_its_text(
    world: World,
) -> None:
    world.documents[A] = page("Oops", "SUSPECT soft_404 now")
    world.run(accept=frozenset({A}))
    world.documents[A] += "\n\n"
    assert world.run().reasons == {"furniture": 1}


def test_an_address_to_accept_that_no_document_has_is_named_with_the_one_that_was_meant(
    world: World,
) -> None:
    world.documents[A] = text("first")
    world.run()
    world.documents[A] = page("Oops", "SUSPECT soft_404 now")
    world.run(accept=frozenset({f"{A}z"}))
    (told,) = not_found(world.ledger, SOURCE, {f"{A}z", A, "*"})
    assert told.endswith(f"nothing was accepted for it. Did you mean {A}?")


def test_dead_links_do_not_drown_what_is_more_pressing(world: World) -> None:
    world.documents["https://example.org/z"] = page("Oops", "SUSPECT login_wall now")
    world.source.gone = {f"https://example.org/{n:02}": "answers 404" for n in range(30)}
    attention = world.run().attention
    assert "login_wall" in attention[0]
    assert len(attention) == 5
    assert attention[-1] == "27 more links lead nowhere; `tidemark plan` names them all"
