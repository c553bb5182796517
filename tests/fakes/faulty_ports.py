"""Ports that fail as the world does: a process dies, a store does not answer, two runs take turns.

All port calls of one run are on one line. At a chosen call of the line the run dies before it, after it or
with half of it done; or a store does not answer for some calls, though it may have done what it was asked.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from greenlet import getcurrent, greenlet
from store_losses import lose

from fakes.ledger import PARTS
from tidemark.domain.errors import TransientError
from tidemark.stages.job import Dependencies

BULK = {
    "upsert_points": 1, "upsert_sections": 1, "set_payloads": 1, "delete_points": 1, "delete_sections": 1,
    "save_aliases": 0, "record_events": 0, "mark_seen": 2, "mark_missing": 2,
}  # fmt: skip
"""Bulk writes, with the place of the argument of which only a half may be carried out."""
INDEX_WRITES = frozenset(
    {"upsert_points", "upsert_sections", "set_payloads", "delete_points", "delete_sections", "switch",
     "drop", "write_epoch"}
)  # fmt: skip
MODES = ("before", "after", "half", "unanswered", "unacknowledged")


class KilledError(BaseException):
    """Stands in for SIGKILL: nothing may catch it and go on."""


@dataclass(frozen=True, slots=True)
class Fault:
    """mode: one of ``MODES``. at: at which call. calls: how many are not answered, for the last two modes."""

    mode: str
    at: int
    calls: int = 1

    @property
    def kills(self) -> bool:
        return self.mode in ("before", "after", "half")


@dataclass
class Line:
    """The port calls of one run.

    fault: what happens at one of them. watch: called after each write to the index.
    photo: called once, before the call ``photo_at``.
    """

    fault: Fault | None = None
    watch: Callable[[str], None] | None = None
    photo: Callable[[], None] | None = None
    photo_at: int = 0
    turns: "Turns | None" = None
    calls: int = 0
    dead: bool = False
    writes: list[str] = field(default_factory=list)

    def call(
        self, port: str, name: str, method: Callable[..., Any], *args: Any, **keys: Any
    ) -> Any:
        if self.turns is not None:
            self.turns.step()
        if self.dead:
            raise KilledError("it is dead already")
        number, fault = self.calls, self.fault
        self.calls += 1
        if self.photo is not None and number == self.photo_at:
            self.photo()
        here = fault is not None and fault.at <= number < fault.at + (
            1 if fault.kills else fault.calls
        )
        if fault is None or not here:
            return self._done(port, name, method, *args, **keys)
        if fault.mode == "unanswered":
            raise TransientError(f"{name} was not answered.")
        if fault.mode == "half" and name in BULK:
            whole = list(args[BULK[name]])
            args = (*args[: BULK[name]], whole[: len(whole) // 2], *args[BULK[name] + 1 :])
        if fault.mode == "half" and (port, name) == ("index", "drop"):
            method = half_of_drop(method)
        if fault.mode != "before":
            self._done(port, name, method, *args, **keys)
        if fault.mode == "unacknowledged":
            raise TransientError(f"{name} was done, and not acknowledged.")
        self.dead = True
        raise KilledError(f"killed {fault.mode} call {number}, {port}.{name}")

    def _done(
        self, port: str, name: str, method: Callable[..., Any], *args: Any, **keys: Any
    ) -> Any:
        if port == "index" and name in INDEX_WRITES and (name not in BULK or args[1]):
            self.writes.append(name)
            try:
                return method(*args, **keys)
            finally:
                if self.watch is not None:
                    self.watch(name)
        return method(*args, **keys)

    def deps(self, deps: Dependencies, **changes: Any) -> Dependencies:
        """The same tools, with every port on this line."""
        ports = {
            name: Port(getattr(deps, name), name, self)
            for name in ("ledger", "index", "artifacts", "embedder")
        }
        return replace(deps, **{**ports, **changes})


def half_of_drop(drop: Callable[[int], None]) -> Callable[[int], None]:
    """Deletes one of a generation's two collections."""
    index = drop.__self__  # type: ignore[attr-defined]

    def half(generation: int) -> None:
        if generation != index.live():
            lose(index, generation, "points")

    return half


class Port:
    """A port all of whose calls are on a line."""

    def __init__(self, inner: Any, name: str, line: Line) -> None:
        self._inner = inner
        self._name = name
        self._line = line

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name in PARTS and not callable(value):
            return Port(value, self._name, self._line)
        if not callable(value):
            return value
        if self._line.turns is not None and name == "lock":
            return lambda *_, **__: nullcontext()  # it was lost, and the run does not know yet
        if self._line.turns is not None and name == "lock_documents":
            value = self._line.turns.lock_documents

        def call(*args: Any, **keys: Any) -> Any:
            return self._line.call(self._name, name, value, *args, **keys)

        return call


class Turns:
    """Some work that goes on in turns, a number of port calls each, as ``lengths`` say; then one by one.

    Documents that one has locked the others wait for.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = iter(lengths)
        self._left = next(self._lengths, None)
        self._workers: list[greenlet] = []
        self._locked: dict[UUID, greenlet] = {}

    def run(self, *work: Callable[[], object]) -> None:
        """Do all of it; what one raises, the others do not see. The first error is raised at the end."""
        errors: list[BaseException] = []

        def guarded(one: Callable[[], object]) -> None:
            try:
                one()
            except KilledError:
                pass
            except Exception as error:  # noqa: BLE001 - raised again below
                errors.append(error)

        self._workers = [greenlet(lambda one=one: guarded(one)) for one in work]
        while alive := [worker for worker in self._workers if not worker.dead]:
            for worker in alive:
                if not worker.dead:
                    worker.switch()
        if errors:
            raise errors[0]

    def step(self) -> None:
        """One port call of whoever's turn it is."""
        if self._left is None:
            return
        self._left -= 1
        if self._left <= 0:
            self._left = next(self._lengths, None)
            self._pass_on()

    @contextmanager
    def _documents(self, ids: Sequence[UUID]) -> Iterator[None]:
        me = getcurrent()
        while any(self._locked.get(key, me) is not me for key in ids):
            self._pass_on()
        self._locked.update(dict.fromkeys(ids, me))
        try:
            yield
        finally:
            self._locked = {key: who for key, who in self._locked.items() if who is not me}

    def lock_documents(self, ids: Sequence[UUID]) -> AbstractContextManager[None]:
        return self._documents(ids)

    def _pass_on(self) -> None:
        parent = getcurrent().parent
        if parent is not None:
            parent.switch()
