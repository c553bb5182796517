"""How fast a crawl is, and how much memory it takes as the site grows.

    python benchmarks/crawling.py --pages 10000 --pages 100000 [--profile]
    python benchmarks/crawling.py --folder ../shared/corpora/sites/textual

A made-up site is served by a process of its own over loopback (``crawling_server.py``), and each crawl runs
in a process of its own too, so that its peak memory is its own. Every site is crawled twice: with nothing
known, then with everything known and nothing changed. What is known is made up as well and takes no
memory. A folder is served as a web server would, and what the crawl finds is held against its HTML files.
"""

import argparse
import cProfile
import json
import pstats
import resource
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import perf_counter, process_time
from urllib.parse import quote

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("include", "tests")]

# Below, since its path is set first.
from crawling_server import etag_of, page, paths  # noqa: E402

from fakes.source import MemoryKnown  # noqa: E402
from tidemark.adapters.sources.website.crawl import WebsiteSource  # noqa: E402
from tidemark.adapters.sources.website.options import WebsiteOptions  # noqa: E402
from tidemark.domain.documents import CrawlEnd, CrawlItem, Validators  # noqa: E402
from tidemark.ports.source import Known  # noqa: E402

CONCURRENCY = 8
SAID: dict[str, CrawlItem] = {}


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A ``Known`` that holds all pages of the made-up site, or none."""

    origin: str
    pages: int
    all: bool

    def validators(self, uri: str) -> Validators | None:
        return Validators(etag=etag_of(uri.removeprefix(self.origin))) if self.all else None

    def uris(self) -> Iterator[str]:
        return (self.origin + path for path in paths(self.pages)) if self.all else iter(())

    def content(self, uri: str) -> tuple[bytes, str] | None:
        return (page(uri.removeprefix(self.origin), self.pages), "text/html") if self.all else None

    def state(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Measured:
    """One crawl; memory is the peak resident set of its process in MB (10**6 bytes)."""

    pages: int
    outcomes: dict[str, int]
    seconds: float
    cpu_seconds: float
    pages_per_second: float
    pages_per_cpu_second: float
    peak_mb: float
    body_bytes: int
    complete: bool


def crawl(url: str, known: Known, pages: int) -> Measured:
    options = WebsiteOptions(
        url=url, allow_private=True, concurrency=CONCURRENCY, max_pages=pages + 10, max_depth=100_000,
        delay=0.0, timeout=60,
    )  # fmt: skip
    outcomes: Counter[str] = Counter()
    size, complete = 0, False
    started, cpu = perf_counter(), process_time()
    for found in WebsiteSource(options).crawl(known):
        if isinstance(found, CrawlEnd):
            complete = found.complete
            if found.problem:
                print(found.problem, file=sys.stderr)
            continue
        outcomes[found.outcome.value] += 1
        if isinstance(known, MemoryKnown):
            known.remember(found)
            SAID[found.item.uri] = found
        size += len(found.raw.content) if found.raw else 0
    seconds, cpu = perf_counter() - started, process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    count = outcomes["fetched"] + outcomes["not_modified"]
    return Measured(
        count, dict(outcomes), round(seconds, 1), round(cpu, 1), round(count / seconds),
        round(count / cpu), round(peak, 1), size, complete,
    )  # fmt: skip


def made_up_site(pages: int, *, profile: bool) -> None:
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("crawling_server.py")), str(pages)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    try:
        for again in ("", "--again"):
            command = [
                sys.executable, __file__, "--port", port, "--pages", str(pages),
                *([again] if again else []), *(["--profile"] if profile else []),
            ]  # fmt: skip
            subprocess.run(command, check=True)
    finally:
        server.communicate("")


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""


def folder(root: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    files = {
        "/" + quote(str(f.relative_to(root)).removesuffix("index.html"))
        for f in root.rglob("*.html")
    }
    known = MemoryKnown()
    for name in ("first", "again"):
        SAID.clear()
        measured = crawl(url, known, 100_000)
        print(json.dumps({"folder": root.name, "crawl": name, **asdict(measured)}))
    said = {uri.removeprefix(url.rstrip("/")): item for uri, item in SAID.items()}
    print(f"{len(files)} files, of which not listed: {sorted(files - said.keys())}")
    for path, item in sorted(said.items()):
        if item.outcome.value in {"gone", "failed", "excluded"} or (item.target and path in files):
            print(item.outcome.value, path, item.detail)
    documents = {path for path, item in said.items() if item.outcome.value == "not_modified"}
    print("documents that are no file:", sorted(documents - files))
    server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, action="append", default=[])
    parser.add_argument("--folder", type=Path, action="append", default=[])
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--port", help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.port:
        origin = f"http://127.0.0.1:{told.port}"
        known = MadeUp(origin, told.pages[0], told.again)
        profiler = cProfile.Profile()
        if told.profile:
            profiler.enable()
        measured = crawl(f"{origin}/", known, told.pages[0])
        if told.profile:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        kind = "nothing changed" if told.again else "nothing known"
        print(json.dumps({"crawl": kind, **asdict(measured)}), flush=True)
        return
    for pages in told.pages:
        made_up_site(pages, profile=told.profile)
    for root in told.folder:
        folder(root.resolve())


if __name__ == "__main__":
    main()
