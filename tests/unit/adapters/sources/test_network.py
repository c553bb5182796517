"""Requests that are made again: how often, and which are not."""

from collections.abc import Callable

import httpx
import pytest

from tidemark.adapters.sources import network as network_tries
from tidemark.adapters.sources.files.http_store import WebFolder
from tidemark.adapters.sources.files.store import Location
from tidemark.adapters.sources.network import retry
from tidemark.domain.errors import PermanentError, TransientError


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_tries, "FIRST_WINDOW", 0.0)


def failing(errors: list[Exception]) -> tuple[Callable[[], str], list[int]]:
    calls: list[int] = []

    def request() -> str:
        calls.append(len(calls))
        if errors:
            raise errors.pop(0)
        return "answer"

    return request, calls


def test_an_outage_that_passes_is_not_noticed() -> None:
    request, calls = failing([TransientError("away")] * 2)
    assert retry(request) == "answer"
    assert len(calls) == 3


def test_an_outage_that_stays_is_told_with_its_last_error() -> None:
    last = TransientError("still away")
    request, calls = failing([TransientError("away"), TransientError("away"), last])
    with pytest.raises(TransientError) as raised:
        retry(request)
    assert raised.value is last
    assert len(calls) == 3


def test_a_refusal_is_not_tried_again() -> None:
    request, calls = failing([PermanentError("no")])
    with pytest.raises(PermanentError):
        retry(request)
    assert len(calls) == 1


def test_what_took_long_to_fail_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_tries, "NO_MORE_AFTER", 0.0)
    request, calls = failing([TransientError("no answer in time")])
    with pytest.raises(TransientError):
        retry(request)
    assert len(calls) == 1


def test_waits_are_taken_at_random_from_a_window_that_widens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network_tries, "FIRST_WINDOW", 0.5)
    waits: list[list[float]] = []
    monkeypatch.setattr("time.sleep", lambda seconds: waits[-1].append(seconds))
    for _ in range(50):
        waits.append([])
        retry(failing([TransientError("away")] * 2)[0])
    assert all(first <= 0.5 and second <= 1.0 for first, second in waits)
    assert len({first for first, _ in waits}) > 45
    assert max(second for _, second in waits) > 0.5


def answering(*answers: httpx.Response | Exception) -> tuple[WebFolder, list[str]]:
    left, asked = list(answers), list[str]()

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    folder = WebFolder(Location("https://share.example.org/"))
    folder._client = httpx.Client(transport=httpx.MockTransport(handler))
    return folder, asked


def test_a_file_on_a_web_server_that_stumbles_is_read_all_the_same() -> None:
    folder, asked = answering(
        httpx.Response(503), httpx.ReadError("reset"), httpx.Response(200, content=b"text")
    )
    assert folder.request("GET", "https://share.example.org/a.md", 100)[1] == b"text"
    assert len(asked) == 3


@pytest.mark.parametrize("status", [403, 404, 501])
def test_a_web_server_that_refuses_is_asked_once(status: int) -> None:
    folder, asked = answering(httpx.Response(status))
    with pytest.raises((PermanentError, FileNotFoundError)):
        folder.request("GET", "https://share.example.org/a.md", 100)
    assert len(asked) == 1


def test_a_body_that_declares_to_be_too_large_is_not_read() -> None:
    folder, _ = answering(httpx.Response(200, content=b"x" * 1_000))
    answer, body = folder.request("GET", "https://share.example.org/a.md", 100)
    assert (answer.headers["Content-Length"], body) == ("1000", b"")
