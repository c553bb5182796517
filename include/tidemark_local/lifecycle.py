"""`make up`, `make down` and `make status`: an Airflow that goes on running.

python -m tidemark_local.lifecycle up|down|status
"""

import os
import sys

from tidemark.config.settings import Settings
from tidemark.domain.errors import ConfigurationError, TidemarkError
from tidemark_local.layout import Layout
from tidemark_local.local_secrets import ADMIN
from tidemark_local.ports import is_free
from tidemark_local.run import SITE_VARIABLE, site_port
from tidemark_local.services import LocalAirflow, running

UI_PORT = 8080
SITE_SECONDS = 10 * 365 * 86400
"""How long the sample site serves: until `make down`."""


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def up(settings: Settings) -> int:
    """Start Airflow with its UI and the sample site, and leave them running."""
    found = running(settings.home)
    if found is not None:
        _say(f"Airflow is running already: {found.url} (user {ADMIN}; `make down` stops it)")
        return 0
    with Layout(settings.home).launching():
        airflow = LocalAirflow(
            settings.home, port=_ui_port(), guarded=False, say=lambda what: _say(f"  … {what}")
        )
        _say("Starting Airflow")
        airflow.start()
        site = _start_site(airflow)
        airflow.release()
    _say(f"Airflow is ready: {airflow.url}")
    _say(f"  user      {ADMIN}")
    _say(f"  password  {_password(airflow)}")
    _say(f"  site      {site}")
    _say(f"  logs      {airflow.layout.logs}")
    _say("Sources run by schedule once they are unpaused in the UI. `make down` stops everything.")
    return 0


def _ui_port() -> int:
    given = os.environ.get("PORT") or str(UI_PORT)
    if not given.isdigit() or not 0 < int(given) < 65536:
        raise ConfigurationError(f"PORT={given} is no port.", "Give a number: make up PORT=8081")
    return int(given)


def _password(airflow: LocalAirflow) -> str:
    """The password the first time, later only where it is kept."""
    shown = airflow.layout.password_shown
    if shown.exists():
        return f"in {airflow.layout.passwords}"
    shown.touch()
    return f"{airflow.secrets.admin_password}  (shown once; kept in {airflow.layout.passwords})"


def _start_site(airflow: LocalAirflow) -> str:
    port = site_port()
    if not is_free(port):
        return f"not served: port {port} is taken ({SITE_VARIABLE}=… chooses another)"
    arguments = ["--port", str(port), "--lifetime", str(SITE_SECONDS)]
    airflow.spawn("sample-site", [sys.executable, "-m", "tidemark_local.sample_site", *arguments])
    return f"http://127.0.0.1:{port}/"


def down(settings: Settings) -> int:
    """Stop everything of this home that runs, the database server too."""
    layout = Layout(settings.home)
    if not layout.home.exists():
        _say("Nothing is running.")
        return 0
    with layout.launching():
        stopped = layout.processes().stop()
        layout.state.unlink(missing_ok=True)
        postgres = layout.postgres()
        if postgres.is_running():
            postgres.stop()
            stopped.append("postgres")
    _say(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing is running.")
    return 0


def status(settings: Settings) -> int:
    """Say what of this home runs."""
    layout = Layout(settings.home)
    found = running(settings.home)
    _say(f"home      {layout.home}")
    _say(f"airflow   {found.url if found else 'not running'}")
    for record in layout.processes().alive():
        _say(f"  {record.name:<14} process {record.pid}, log {record.log}")
    _say(f"postgres  {'running' if layout.postgres().is_running() else 'not running'}")
    return 0


COMMANDS = {"up": up, "down": down, "status": status}


def main(arguments: list[str]) -> int:
    """Run one command; 0 on success, 1 with the reason in one line, 2 for bad usage."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        sys.stderr.write(f"usage: python -m tidemark_local.lifecycle {'|'.join(COMMANDS)}\n")
        return 2
    try:
        return COMMANDS[arguments[0]](Settings())
    except TidemarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted; what was started is stopped.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
