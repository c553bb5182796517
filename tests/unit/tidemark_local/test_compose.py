"""docker-compose.yaml: wired to every setting, pinned, healthy, and without a default secret."""

import base64
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidemark.config.settings import PROJECT, Settings
from tidemark_local.containers import GENERATED, completed, write_env

TEXT = (PROJECT / "docker-compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]
EXAMPLE = (PROJECT / ".env.example").read_text(encoding="utf-8")
TIDEMARK = [name for name, service in SERVICES.items() if service.get("image") == "tidemark:local"]
DEPLOYED = {"home", "sources_file", "ledger_url", "artifacts_url", "qdrant_url", "qdrant_api_key"}
"""Settings whose value in a container is another one than on a laptop."""


def variables(text: str) -> list[str]:
    return re.findall(r"\$\{([A-Z0-9_]+)", text)


@pytest.mark.parametrize("field", sorted(Settings.model_fields))
@pytest.mark.parametrize("service", TIDEMARK)
def test_every_setting_is_wired_into_every_service(service: str, field: str) -> None:
    assert f"TIDEMARK_{field.upper()}" in SERVICES[service]["environment"]


def test_no_variable_is_wired_that_the_product_does_not_read() -> None:
    wired = {n for n in SERVICES["worker"]["environment"] if n.startswith("TIDEMARK_")}
    assert wired == {f"TIDEMARK_{field.upper()}" for field in Settings.model_fields}


@pytest.mark.parametrize("field", sorted(set(Settings.model_fields) - DEPLOYED))
def test_the_defaults_are_those_of_the_settings(field: str) -> None:
    name = f"TIDEMARK_{field.upper()}"
    value = SERVICES["worker"]["environment"][name]
    match = re.fullmatch(r"\$\{" + name + r":-(.*)\}", value)
    assert match, f"{name} cannot be set from .env: {value}"
    assert match[1] == str(Settings.model_fields[field].default)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_image_is_pinned(name: str) -> None:
    service = SERVICES[name]
    if "build" not in service:
        assert re.search(r":v?\d+\.\d+\.?\d*\S*$", service["image"])


def test_the_base_image_is_pinned_and_runs_as_an_ordinary_user() -> None:
    text = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert bases
    assert all(re.search(r":3\.11\.\d+-slim", base) for base in bases)
    assert re.findall(r"^USER (\S+)", text, re.MULTILINE)[-1] not in ("root", "0")


def test_qdrant_is_of_the_release_of_the_pinned_client() -> None:
    pinned = (PROJECT / "requirements.txt").read_text(encoding="utf-8")
    client = re.search(r"^qdrant-client==(\d+\.\d+)", pinned, re.MULTILINE)
    server = re.search(r":v(\d+\.\d+)", SERVICES["qdrant"]["image"])
    assert client
    assert server
    assert client[1] == server[1]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"init"}))
def test_every_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_a_service_waits_for_exists(name: str) -> None:
    assert set(SERVICES[name].get("depends_on", {})) <= set(SERVICES)


@pytest.mark.parametrize("secret", sorted(GENERATED))
def test_no_secret_has_a_default(secret: str) -> None:
    uses = re.findall(r"\$\{" + secret + r"([^}]*)\}", TEXT)
    assert uses
    assert all(use.startswith(":?") for use in uses)
    assert re.search(rf"^{secret}=$", EXAMPLE, re.MULTILINE), "the example holds a secret"


def test_nothing_else_that_looks_like_a_secret_is_written_down() -> None:
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|SECRET|_KEY$|FERNET", key):
                assert str(value).startswith("${"), f"{key} of {name}"


def test_every_variable_is_in_the_example_or_has_a_default() -> None:
    known = set(re.findall(r"^([A-Z0-9_]+)=", EXAMPLE, re.MULTILINE))
    defaulted = set(re.findall(r"\$\{([A-Z0-9_]+):-", TEXT))
    assert set(variables(TEXT)) <= known | defaulted


def test_the_example_names_no_variable_that_is_not_read() -> None:
    known = set(re.findall(r"^([A-Z0-9_]+)=", EXAMPLE, re.MULTILINE))
    assert known <= set(variables(TEXT))


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_ports_are_published_on_loopback_unless_asked_otherwise(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert "127.0.0.1" in port


def test_there_are_two_databases_and_they_are_not_shared() -> None:
    environment = SERVICES["worker"]["environment"]
    assert "@airflow-db:5432/airflow" in environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert "@ledger-db:5432/tidemark" in environment["TIDEMARK_LEDGER_URL"]


def test_celery_runs_the_tasks() -> None:
    assert SERVICES["worker"]["environment"]["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"
    assert SERVICES["worker"]["command"] == ["airflow", "celery", "worker"]


def test_a_generated_env_has_every_secret_and_each_another(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text(EXAMPLE, encoding="utf-8")
    write_env(tmp_path)
    path = tmp_path / ".env"
    held = dict(re.findall(r"^([A-Z0-9_]+)=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
    secrets = [held[name] for name in GENERATED]
    assert len(set(secrets)) == len(GENERATED)
    # They become parts of URLs.
    assert all(re.fullmatch(r"[A-Za-z0-9_=-]{32,}", secret) for secret in secrets)
    assert len(base64.urlsafe_b64decode(held["AIRFLOW_FERNET_KEY"])) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_present_env_keeps_its_values(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text(EXAMPLE, encoding="utf-8")
    (tmp_path / ".env").write_text("REDIS_PASSWORD=mine\nPORT=9000\nOWN=1\n", encoding="utf-8")
    write_env(tmp_path)
    text = (tmp_path / ".env").read_text(encoding="utf-8")
    assert "REDIS_PASSWORD=mine\n" in text
    assert "PORT=9000\n" in text
    assert "OWN=1\n" in text
    write_env(tmp_path)
    assert (tmp_path / ".env").read_text(encoding="utf-8") == text


def test_completing_keeps_the_comments() -> None:
    assert completed("# why\nPORT=8080\n", "") == "# why\nPORT=8080\n"
