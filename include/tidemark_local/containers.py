"""What the containers of docker-compose.yaml need of this project.

    python -m tidemark_local.containers env                   `make env`: a .env with generated secrets
    python -m tidemark_local.containers probe URL COMPONENT   exit 0 when that component is healthy

Standard library only: a machine that runs containers need not set up anything else, and Airflow's own
command for its health takes five CPU seconds, every time.
"""

import base64
import json
import os
import secrets
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PROBE_SECONDS = 8.0


def _token() -> str:
    return secrets.token_urlsafe(32)


def _fernet() -> str:
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


GENERATED: dict[str, Callable[[], str]] = {
    "AIRFLOW_FERNET_KEY": _fernet,
    "AIRFLOW_SECRET_KEY": _token,
    "AIRFLOW_JWT_SECRET": _token,
    "AIRFLOW_ADMIN_PASSWORD": _token,
    "AIRFLOW_TASKS_PASSWORD": _token,
    "AIRFLOW_DB_PASSWORD": _token,
    "LEDGER_DB_PASSWORD": _token,
    "REDIS_PASSWORD": _token,
    "QDRANT_API_KEY": _token,
}
"""Secrets by name, and how each is made."""


def completed(example: str, present: str) -> str:
    """The text of a .env: the example's lines, with the values present, else generated ones.

    Lines of ``present`` that the example does not know follow at the end.
    """
    values = dict(_pairs(present))
    lines = []
    for line in example.splitlines():
        name, equals, default = line.partition("=")
        if not equals or line.startswith("#"):
            lines.append(line)
            continue
        value = values.pop(name, "") or default or GENERATED.get(name, str)()
        lines.append(f"{name}={value}")
    lines += [f"{name}={value}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _pairs(text: str) -> list[tuple[str, str]]:
    split = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return [(name.strip(), value) for name, equals, value in split if equals]


def write_env(project: Path) -> str:
    """Write the .env of a checkout, readable by its owner only; says what was done."""
    path = project / ".env"
    present = path.read_text(encoding="utf-8") if path.exists() else ""
    text = completed((project / ".env.example").read_text(encoding="utf-8"), present)
    if text == present:
        return f"{path} is complete; nothing was changed."
    unfinished = project / ".env.new"
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    unfinished.rename(path)
    done = "completed" if present else "written, with generated secrets"
    return f"{path} is {done}. The password of the user admin is AIRFLOW_ADMIN_PASSWORD in it."


def is_healthy(url: str, component: str) -> bool:
    """Does the component count as healthy in the JSON at ``url``?"""
    if not url.startswith("http://"):
        return False
    try:
        with urllib.request.urlopen(url, timeout=PROBE_SECONDS) as response:  # noqa: S310 - http only
            state = json.load(response).get(component)
    except (OSError, ValueError, AttributeError):
        return False
    return isinstance(state, dict) and state.get("status") == "healthy"


def main(arguments: list[str]) -> int:
    """0 when done or healthy, 1 when not healthy, 2 for bad usage."""
    match arguments:
        case ["env"]:
            sys.stdout.write(write_env(PROJECT) + "\n")
            return 0
        case ["probe", url, component]:
            return 0 if is_healthy(url, component) else 1
    sys.stderr.write("usage: python -m tidemark_local.containers env | probe URL COMPONENT\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
