"""Is a component healthy? Exit 0 when its health address says so; for the containers' health checks.

    python -m tidemark_local.probe URL COMPONENT

Standard library only: Airflow's own command for this takes five CPU seconds, every time.
"""

import json
import sys
import urllib.error
import urllib.request

SECONDS = 8.0


def healthy(url: str, component: str) -> bool:
    """Does the component count as healthy in the JSON at ``url``?"""
    if not url.startswith("http://"):
        return False
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - http only
            said = json.load(answer).get(component) or {}
    except (urllib.error.URLError, OSError, ValueError, AttributeError):
        return False
    return isinstance(said, dict) and said.get("status") == "healthy"


def main(arguments: list[str]) -> int:
    """0 when healthy, 1 when not, 2 for bad usage."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m tidemark_local.probe URL COMPONENT\n")
        return 2
    return 0 if healthy(*arguments) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
