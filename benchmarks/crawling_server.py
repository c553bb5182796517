"""A site without files: page N is made when it is asked for, with a tree of links below a common menu.

    python benchmarks/crawling_server.py PAGES

prints its port and serves until its standard input closes. Pages have an ETag and answer 304.
"""

import asyncio
import sys
from collections.abc import Iterator

CHILDREN = 10
MENU = 40
_SENTENCE = "The crawler reads this sentence on page {} and finds that it says little. "


def paths(pages: int) -> Iterator[str]:
    """Of all pages, the start page first."""
    yield "/"
    for number in range(1, pages):
        yield path_of(number)


def path_of(number: int) -> str:
    return f"/section-{number % 97}/topic-{number % 1009}/page-{number}.html" if number else "/"


def etag_of(path: str) -> str:
    return f'"v1-{path}"'


def page(path: str, pages: int) -> bytes:
    """The page at a path: a menu of ``MENU`` links, ``CHILDREN`` links down the tree, some text."""
    name = path.rpartition("/")[2]
    number = int(name.removeprefix("page-").removesuffix(".html")) if name else 0
    menu = "".join(
        f'<li><a href="{path_of(n)}">Menu {n}</a></li>' for n in range(1, min(MENU + 1, pages))
    )
    below = range(number * CHILDREN + 1, min(number * CHILDREN + CHILDREN + 1, pages))
    links = "".join(f'<li><a href="{path_of(n)}#top">Page {n}</a></li>' for n in below)
    said = _SENTENCE.format(number) * 6
    text = "".join(f"<h2>Part {n}</h2><p>{said}</p>" for n in range(8))
    return (
        f"<!doctype html><html><head><meta charset=utf-8><title>Page {number}</title></head><body>"
        f"<nav><ul>{menu}</ul></nav><main><h1>Page {number}</h1>{text}<ul>{links}</ul></main>"
    ).encode()


async def _serve(pages: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                known = path == "/" or "/page-" in path
                tag = etag_of(path)
                if not known:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                elif tag in head:
                    writer.write(
                        f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\nContent-Length: 0\r\n\r\n".encode()
                    )
                else:
                    body = page(path, pages)
                    writer.write(
                        f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nETag: {tag}\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n".encode()
                        + body
                    )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
