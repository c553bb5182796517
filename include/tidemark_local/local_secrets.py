"""Keys and passwords of the local Airflow, generated once and readable by their owner only."""

import base64
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from tidemark.domain.errors import PermanentError
from tidemark_local.layout import Layout

ADMIN = "admin"
TASKS = "tidemark"
"""The account that tasks use, to write notes on their own runs; it may not change the configuration."""


@dataclass(frozen=True, slots=True)
class LocalSecrets:
    """What the services share, and the passwords of the two accounts."""

    fernet_key: str
    jwt_secret: str
    api_secret_key: str
    admin_password: str
    tasks_password: str
    fresh: bool
    """Were they made just now (so that the password is worth showing)?"""


def local_secrets(layout: Layout) -> LocalSecrets:
    """Read the secrets of a home, generating what is missing.

    Raises ``PermanentError`` when a file there cannot be read.
    """
    keys, _ = _kept(
        layout.keys,
        {
            "fernet_key": base64.urlsafe_b64encode(os.urandom(32)).decode(),
            "jwt_secret": secrets.token_urlsafe(48),
            "api_secret_key": secrets.token_urlsafe(48),
        },
    )
    # In the form that Airflow's simple auth manager reads: user name to password.
    passwords, fresh = _kept(
        layout.passwords, {ADMIN: secrets.token_urlsafe(12), TASKS: secrets.token_urlsafe(24)}
    )
    return LocalSecrets(
        keys["fernet_key"],
        keys["jwt_secret"],
        keys["api_secret_key"],
        passwords[ADMIN],
        passwords[TASKS],
        fresh,
    )


def _kept(path: Path, generated: dict[str, str]) -> tuple[dict[str, str], bool]:
    """The values in a file, completed by the generated ones; whether any was new."""
    held: dict[str, str] = {}
    try:
        if path.exists():
            held = {str(k): str(v) for k, v in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise PermanentError(
            f"The secrets in {path} cannot be read: {error}.",
            "Correct the file, or remove it to have new ones generated.",
        ) from error
    values = generated | held
    if values == held:
        return held, False
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        json.dump(values, out, indent=1)
    unfinished.rename(path)
    return values, True
