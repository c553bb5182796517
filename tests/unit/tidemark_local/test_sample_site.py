"""The server of the sample site behaves as an ordinary web server, so the crawler may be tried on it."""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from tidemark.domain.errors import PermanentError
from tidemark_local.sample_site import ROOT, SampleSite

INCLUDE = ROOT.parent.parent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    (root / "guide").mkdir(parents=True)
    (root / "index.html").write_text("<h1>Home</h1>")
    (root / "guide" / "index.html").write_text("<h1>Guide</h1>")
    (root / "guide" / "power.html").write_text("<h1>Power</h1>")
    (root / "robots.txt").write_text("Sitemap: __ORIGIN__/sitemap.xml\n")
    (root / "_redirects").write_text("# old, new\n/old.html /guide/power.html\n")
    (root / "_404.html").write_text("<h1>Nothing here</h1>")
    (tmp_path / "secret.txt").write_text("secret")
    (root / "way-out.txt").symlink_to(tmp_path / "secret.txt")
    return root


@pytest.fixture
def site(root: Path) -> Iterator[SampleSite]:
    with SampleSite(root) as site:
        yield site


def ask(
    site: SampleSite, path: str, method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    address = site.url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(address, timeout=5)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, headers=names)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_a_page_comes_with_its_type_and_validators(site: SampleSite):
    status, headers, body = ask(site, "/guide/power.html")
    assert (status, body) == (200, b"<h1>Power</h1>")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["ETag"].startswith('"')
    assert headers["Last-Modified"].endswith(" GMT")


def test_a_folder_shows_its_index_and_wants_its_slash(site: SampleSite):
    assert ask(site, "/")[2] == b"<h1>Home</h1>"
    assert ask(site, "/guide/")[2] == b"<h1>Guide</h1>"
    status, headers, _ = ask(site, "/guide")
    assert (status, headers["Location"]) == (301, "/guide/")


def test_a_held_entity_tag_is_answered_with_304_and_no_body(site: SampleSite):
    etag = ask(site, "/")[1]["ETag"]
    for held in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        status, headers, body = ask(site, "/", if_none_match=held)
        assert (status, body, headers["ETag"]) == (304, b"", etag)
    assert ask(site, "/", if_none_match='"other"')[0] == 200


def test_a_held_date_is_answered_with_304_until_the_file_is_newer(site: SampleSite, root: Path):
    modified = ask(site, "/")[1]["Last-Modified"]
    assert ask(site, "/", if_modified_since=modified)[0] == 304
    assert ask(site, "/", if_modified_since="no date")[0] == 200
    later = (root / "index.html").stat().st_mtime + 60
    os.utime(root / "index.html", (later, later))
    assert ask(site, "/", if_modified_since=modified)[0] == 200


def test_the_entity_tag_decides_where_both_are_sent(site: SampleSite):
    sent = {"if_none_match": '"other"', "if_modified_since": formatdate(2**31, usegmt=True)}
    assert ask(site, "/", **sent)[0] == 200


def test_an_edit_within_the_same_second_changes_the_entity_tag(site: SampleSite, root: Path):
    page = root / "index.html"
    before, stamp = ask(site, "/")[1]["ETag"], page.stat().st_mtime
    page.write_text("<h1>Hime</h1>")
    os.utime(page, (stamp, stamp))
    status, headers, body = ask(site, "/", if_none_match=before)
    assert (status, body) == (200, b"<h1>Hime</h1>")
    assert headers["ETag"] != before


def test_a_moved_page_is_answered_with_301(site: SampleSite):
    status, headers, _ = ask(site, "/old.html")
    assert (status, headers["Location"]) == (301, "/guide/power.html")


def test_an_unknown_page_is_answered_with_the_404_page(site: SampleSite):
    for path in ("/none.html", "/guide/power.html/", "/guide/power.html/x"):
        status, _, body = ask(site, path)
        assert (status, body) == (404, b"<h1>Nothing here</h1>"), path


def test_head_has_the_headers_of_get_and_no_body(site: SampleSite):
    status, headers, body = ask(site, "/", method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, "13", b"")
    assert headers["ETag"] == ask(site, "/")[1]["ETag"]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/guide/..%2f..%2fsecret.txt",
        "/..%5csecret.txt",
        "//secret.txt",
        "/way-out.txt",
        "/_redirects",
        "/%5f404.html",
        "/index.html%00.txt",
    ],
)
def test_nothing_outside_the_folder_or_hidden_is_served(site: SampleSite, path: str):
    status, _, body = ask(site, path)
    assert status == 404
    assert b"secret" not in body


def test_robots_txt_names_the_servers_own_address(site: SampleSite):
    assert ask(site, "/robots.txt")[2].decode() == f"Sitemap: {site.url}sitemap.xml\n"
    assert b"evil" not in ask(site, "/robots.txt", host="evil.test")[2]
    local = site.url.replace("127.0.0.1", "localhost")
    host = local.removeprefix("http://").rstrip("/")
    assert ask(site, "/robots.txt", host=host)[2].decode() == f"Sitemap: {local}sitemap.xml\n"


def test_it_counts_requests_and_the_bodies_it_sent(site: SampleSite):
    etag = ask(site, "/?page=1")[1]["ETag"]
    ask(site, "/", if_none_match=etag)
    ask(site, "/", method="HEAD")
    ask(site, "/none.html")
    counts = site.counts
    assert (counts.requests, counts.bodies) == (4, 1)
    assert counts.statuses == {200: 2, 304: 1, 404: 1}
    assert counts.bodies_by_path == {"/": 1}
    site.reset()
    assert (site.counts.requests, site.counts.bodies) == (0, 0)


def test_a_path_fails_on_demand_and_recovers(site: SampleSite):
    site.failures["/"] = 503
    assert ask(site, "/")[0] == 503
    assert ask(site, "/guide/")[0] == 200
    site.failures.clear()
    assert ask(site, "/")[0] == 200


def test_a_stop_cuts_open_connections_and_a_start_keeps_the_address(site: SampleSite):
    address = site.url.removeprefix("http://").rstrip("/")
    kept = http.client.HTTPConnection(address, timeout=5)
    kept.request("GET", "/")
    kept.getresponse().read()
    site.stop()
    assert kept.sock.recv(1) == b""
    kept.close()
    with pytest.raises(ConnectionRefusedError):
        ask(site, "/")
    site.start()
    assert site.url == f"http://{address}/"
    assert ask(site, "/")[0] == 200


def test_a_taken_port_is_one_clear_line(site: SampleSite):
    port = int(site.url.rstrip("/").rpartition(":")[2])
    with pytest.raises(PermanentError, match=rf"Port {port} on 127\.0\.0\.1 is taken"):
        SampleSite(port=port).start()
    done = run_server("--port", str(port))
    assert done.returncode == 1
    assert done.stderr == (
        f"sample site: Port {port} on 127.0.0.1 is taken. Choose another with --port.\n"
    )


def test_a_missing_folder_is_refused(tmp_path: Path):
    with pytest.raises(PermanentError, match="There is no folder"):
        SampleSite(tmp_path / "none").start()


def test_the_command_serves_the_bundled_site_and_ends_by_itself(tmp_path: Path):
    done = run_server("--port", "0", "--lifetime", "0.05", "--log", str(tmp_path / "log.txt"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The sample site is at http://127.0.0.1:")
    assert (tmp_path / "log.txt").read_text() == ""


def test_the_log_has_one_line_a_request(root: Path, tmp_path: Path):
    with (tmp_path / "log.txt").open("w+") as log:
        with SampleSite(root, log=log) as site:
            ask(site, "/")
            ask(site, "/none.html", method="HEAD")
        log.seek(0)
        lines = [line.split()[1:] for line in log]
    assert lines == [["GET", "/", "200", "13"], ["HEAD", "/none.html", "404", "21"]]


def run_server(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidemark_local.sample_site", *arguments],
        env={**os.environ, "PYTHONPATH": str(INCLUDE)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
