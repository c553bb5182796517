"""Runs git so that a repository cannot make it do anything but read it.

No shell, no hooks, no helpers, no configuration of the machine's or an account's, no transport but the
declared one, no redirects, no question to a terminal. Secrets go through the environment of the process
that git is, never into its arguments or a file that stays. The program's own environment is not handed on.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import quote, urlsplit

from tidemark.adapters.sources.credentials import secret_headers
from tidemark.adapters.sources.git.options import GitOptions
from tidemark.adapters.sources.network import judged_addresses, retry
from tidemark.adapters.sources.selection import quoted
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError


@dataclass(frozen=True, slots=True)
class Addresses:
    """How one branch's files are addressed.

    A document's URI stays when the file changes: where it is shown at the branch, for hosts that are known
    (so it opens in a browser), else ``git+<url of the repository>/blob/<branch>/<path>``. A link leads to
    the file as it was at a commit; "" where no address for that is known.
    """

    document: str
    version: str

    @classmethod
    def of(cls, options: GitOptions, branch: str) -> "Addresses":
        """``branch`` is the one that was found, when none was declared."""
        remote = options.remote
        port = f":{remote.port}" if remote.port and remote.scheme != "ssh" else ""
        web = "http" if remote.scheme == "http" else "https"
        shown = f"{web}://{remote.host}{port}/{remote.path}"
        pages = _shown_by(remote.host)
        if remote.scheme == "file" or pages is None:
            ssh_port = f":{remote.port}" if remote.port else ""
            base = f"{remote.scheme}://{remote.host}{ssh_port}/{remote.path}"
            return cls(f"git+{base}/blob/{quote(branch, safe='/')}/", options.link)
        at_branch, at_commit = pages
        document = f"{shown}/{at_branch}/{quote(branch, safe='/')}/"
        return cls(document, options.link or f"{_escaped(shown)}/{at_commit}/{{commit}}/{{path}}")

    def uri(self, path: str) -> str:
        return self.document + quoted(path)

    def link(self, path: str, commit: str) -> str:
        """ "" without a commit, and where no address is known."""
        if not self.version or not commit:
            return ""
        return self.version.format(commit=commit, path=quoted(path))


def _shown_by(host: str) -> tuple[str, str] | None:
    """What stands between a repository's address and a branch, and a commit, on a host's pages."""
    name = host.removeprefix("www.")
    if name == "github.com" or name.startswith("github."):
        return "blob", "blob"
    if name == "gitlab.com" or name.startswith("gitlab."):
        return "-/blob", "-/blob"
    if name == "bitbucket.org":
        return "src", "src"
    if name in {"gitea.com", "codeberg.org"} or name.startswith(("gitea.", "forgejo.")):
        return "src/branch", "src/commit"
    return None


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.autoDetach": "false",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "protocol.ext.allow": "never",
    "transfer.bundleURI": "false",
}
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_OLDEST = (2, 37)
_LOCAL_SECONDS = 600.0
_BROKEN = (
    "bad object", "corrupt", "not a git repository", "unable to read", "missing", "cannot lock ref",
    "unable to create", "inconsistent", "unresolved deltas", "bad tree", "did not send all",
    "cannot be resolved to branch", "file exists", "failed to read",
)  # fmt: skip
_REFUSALS = (
    "authentication failed", "could not read username", "permission denied", "terminal prompts",
    "returned error: 401", "returned error: 403", "invalid username",
)  # fmt: skip
_MISSING = (
    "not found", "does not appear to be a git repository", "does not exist", "returned error: 404",
    "no such file",
)  # fmt: skip


class BrokenCopyError(PermanentError):
    """The local copy is at fault, as when an update of it was killed."""


class GitProgram:
    """git, for one repository at ``folder`` and one remote."""

    def __init__(self, options: GitOptions, folder: Path) -> None:
        """Raises ``ConfigurationError`` when there is no git."""
        program = shutil.which("git")
        if program is None:
            raise ConfigurationError(
                "There is no git program here.",
                "Install git (in a container, add it to the image), then run again.",
            )
        self._path = program
        _check_version(program)
        self._options = options
        self._folder = folder

    def local(self, *arguments: str, text: bytes | None = None) -> bytes:
        """What a command over the local copy says. Raises ``PermanentError`` when it fails."""
        return self._run(arguments, self._environment({}), _LOCAL_SECONDS, text)

    def remote(self, *arguments: str) -> bytes:
        """What a command that talks to the remote says.

        Raises ``TransientError`` for a remote that stays away when it is tried again,
        ``PermanentError`` for one that refuses.
        """
        with self._access() as environment:
            return retry(lambda: self._run(arguments, environment, self._options.timeout, None))

    @contextmanager
    def stream(self, *arguments: str, writes: bool = False) -> Iterator["subprocess.Popen[bytes]"]:
        """A command over the local copy while it runs; it ends with the context."""
        process = subprocess.Popen(  # noqa: S603 - a list, no shell
            self._command(arguments),
            env=self._environment({}),
            stdin=subprocess.PIPE if writes else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.terminate()
            process.wait()

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [self._path, f"--git-dir={self._folder}", *arguments]

    def _run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        seconds: float,
        text: bytes | None,
    ) -> bytes:
        with subprocess.Popen(  # noqa: S603 - a list, no shell
            self._command(arguments),
            env=dict(environment),
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(text, timeout=seconds)
            except subprocess.TimeoutExpired:
                raise TransientError(
                    f"git did not finish within {seconds:g} s.",
                    "Check the remote and the network; a large repository may need longer at first.",
                ) from None
            finally:
                # With its helpers, which would go on and hold the pipes.
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            raise self._failure(err.decode("utf-8", "replace"))
        return out

    def _failure(self, output: str) -> PermanentError | TransientError:
        lower = output.lower()
        lines = [
            line for line in output.splitlines() if line.startswith(("fatal:", "error:", "ssh:"))
        ]
        reason = " ".join((lines or output.splitlines() or ["it says nothing"])[:2])
        message = f"git could not read {self._options.url}: {reason.strip().rstrip('.')}."
        if "dubious ownership" in lower:
            return PermanentError(
                message, "Let the repository belong to the account that reads it."
            )
        if "host key verification failed" in lower:
            return PermanentError(
                message,
                'Put the server\'s key into the connection: {"host_key": "ssh-ed25519 AAAA..."}.',
            )
        if any(sign in lower for sign in _REFUSALS):
            return PermanentError(
                message, "Check the login and the token or key in the connection."
            )
        if "returned error: 30" in lower or "redirect" in lower:
            return PermanentError(message, "Give the address that it redirects to.")
        if any(sign in lower for sign in _MISSING):
            return PermanentError(
                message, "Check the URL; a private repository may need a connection."
            )
        if any(sign in lower for sign in _BROKEN):
            return BrokenCopyError(message, f"Delete the copy, {self._folder}; it is made anew.")
        return TransientError(message, "Check that the host and the network are up.")

    def _environment(
        self, more: Mapping[str, str], settings: Iterable[tuple[str, str]] = ()
    ) -> dict[str, str]:
        folders = [str(Path(self._path).parent), *os.defpath.split(os.pathsep)]
        merged = [*_SETTINGS.items(), *settings]
        counted = {"GIT_CONFIG_COUNT": str(len(merged))}
        for number, (key, value) in enumerate(merged):
            counted |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return {
            **_ENVIRONMENT,
            "PATH": os.pathsep.join(dict.fromkeys(folders)),
            "GIT_ALLOW_PROTOCOL": self._options.remote.scheme,
            **counted,
            **more,
        }

    @contextmanager
    def _access(self) -> Iterator[dict[str, str]]:
        scheme = self._options.remote.scheme
        if scheme == "ssh":
            with self._ssh() as command:
                yield self._environment({"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"})
        elif scheme == "file":
            yield self._environment({})
        else:
            yield self._environment({}, self._http())

    def _http(self) -> list[tuple[str, str]]:
        """Settings that pin the connection to a judged address and carry the credentials."""
        remote, credentials = self._options.remote, self._options.credentials
        port = remote.port or (443 if remote.scheme == "https" else 80)
        addresses = self._judged(port)
        settings = []
        if ":" not in remote.host:
            # git would resolve the name again, and may then find another address.
            pinned = ",".join(f"[{a}]" if ":" in a else a for a in addresses)
            settings.append(("http.curloptResolve", f"{remote.host}:{port}:{pinned}"))
        origin = f"{remote.scheme}://{urlsplit(remote.address).netloc}/"
        for name, value in secret_headers(_with_login(credentials, remote.host)):
            settings.append((f"http.{origin}.extraHeader", f"{name}: {value}"))
        extra = credentials.extra if credentials else {}
        for key, setting in (("proxy", "http.proxy"), ("ca_file", "http.sslCAInfo")):
            if extra.get(key):
                settings.append((setting, str(extra[key])))
        return settings

    def _judged(self, port: int) -> list[str]:
        """The addresses of the remote that may be connected to, at least one."""
        host = self._options.remote.host
        try:
            addresses = judged_addresses(host, port, allow_private=self._options.allow_private)
        except OSError:
            addresses = []
        if not addresses:
            raise TransientError(
                f"The name {host} cannot be resolved.", "Check the URL and the network."
            )
        return addresses

    @contextmanager
    def _ssh(self) -> Iterator[str]:
        credentials = self._options.credentials
        extra = credentials.extra if credentials else {}
        words = ["ssh", "-F", os.devnull, "-o", "BatchMode=yes", "-o", "ConnectTimeout=30"]
        if credentials and credentials.login:
            words += ["-o", f"User={credentials.login}"]
        remote = self._options.remote
        host = f"[{remote.host}]:{remote.port}" if remote.port else remote.host
        # ssh would resolve the name again, and may then find another address. It takes one only, the
        # first; the host key stays known under the name.
        words += ["-o", f"HostName={self._judged(remote.port or 22)[0]}"]
        words += ["-o", f"HostKeyAlias={host}", "-o", "CheckHostIP=no"]
        with _secret_file(str(extra.get("private_key") or "")) as key_path:
            key = key_path or str(extra.get("key_file") or "")
            if key:
                words += ["-i", key, "-o", "IdentitiesOnly=yes"]
            elif credentials and credentials.password:
                raise ConfigurationError(
                    "git over ssh cannot log in with a password.",
                    "Give the connection a key_file or private_key, or use https with a token.",
                )
            host_key = extra.get("host_key")
            with _secret_file(f"{host} {host_key}" if host_key else "") as known:
                known = known or str(extra.get("known_hosts") or "")
                if known:
                    words += ["-o", f"UserKnownHostsFile={known}"]
                words += ["-o", "StrictHostKeyChecking=yes"]
                yield shlex.join(words)


def _with_login(credentials: Credentials | None, host: str) -> Credentials | None:
    """Hosts take a token as the password of any login, or of one that they name."""
    if credentials is None or credentials.login or not credentials.password:
        return credentials
    login = "x-token-auth" if host == "bitbucket.org" else "x-access-token"
    return replace(credentials, login=login)


@cache
def _check_version(program: str) -> None:
    output = subprocess.run(  # noqa: S603 - a list, no shell
        [program, "--version"], capture_output=True, timeout=60, check=False
    ).stdout.decode("ascii", "replace")
    version = re.search(r"(\d+)\.(\d+)", output)
    if version is None or (int(version[1]), int(version[2])) < _OLDEST:
        raise ConfigurationError(
            f"The git program here is too old ({output.strip()}).",
            f"Install {_OLDEST[0]}.{_OLDEST[1]} or later: older ones cannot be held to an address.",
        )


@contextmanager
def _secret_file(text: str) -> Iterator[str]:
    """The path of a file with a text that only this account reads, gone afterwards; "" for no text."""
    if not text:
        yield ""
        return
    with NamedTemporaryFile("w", prefix="tidemark-", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
        file.flush()
        yield file.name
