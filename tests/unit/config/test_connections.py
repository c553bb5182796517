"""Credentials of sources, from where Airflow keeps them in the environment."""

import pytest

from tidemark.config.settings import EnvironmentConnections
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError


def found(text: str, monkeypatch: pytest.MonkeyPatch) -> Credentials:
    monkeypatch.setenv("AIRFLOW_CONN_INTRANET", text)
    return EnvironmentConnections().get("intranet")


def test_a_connection_may_be_json(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"conn_type": "http", "login": "a", "password": "b", "port": 81, "extra": {"cookie": "c=d"}}'
    made = found(text, monkeypatch)
    assert (made.kind, made.login, made.password, made.port) == ("http", "a", "b", 81)
    assert made.extra == {"cookie": "c=d"}


def test_its_extra_may_be_json_within_json(monkeypatch: pytest.MonkeyPatch) -> None:
    made = found(
        '{"conn_type": "aws", "extra": "{\\"endpoint_url\\": \\"http://s3\\"}"}', monkeypatch
    )
    assert made.extra == {"endpoint_url": "http://s3"}


def test_a_connection_may_be_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    made = found("google-cloud-platform://a%40b:p%3Aw@host:99/name?token=t", monkeypatch)
    assert made.kind == "google_cloud_platform"
    assert (made.login, made.password, made.host, made.port) == ("a@b", "p:w", "host", 99)
    assert (made.schema, made.extra) == ("name", {"token": "t"})


def test_a_missing_one_says_where_to_make_it() -> None:
    with pytest.raises(ConfigurationError, match=r"Admin > Connections.*AIRFLOW_CONN_NOWHERE"):
        EnvironmentConnections().get("nowhere")


@pytest.mark.parametrize("text", ["{secret", "http://a:secret@host:port/", '{"port": "secret"}'])
def test_one_that_cannot_be_read_does_not_tell_what_is_in_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        found(text, monkeypatch)
    assert "AIRFLOW_CONN_INTRANET is no connection" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_credentials_do_not_show_their_secrets() -> None:
    made = Credentials("intranet", "http", "user", "secret", extra={"token": "secret"})
    assert "secret" not in repr(made)
    assert "intranet" in repr(made)
