"""Kill the client with SIGKILL before each thing it does to the world, and see what is left. Run by a test, or alone:

    python -m tests.unit.client.kill_points drain /tmp/somewhere

A point is a statement given to SQLite, or a file or connection being opened, renamed or removed. A fresh process is
killed at the first point, another at the second, and so on, until one comes to its end.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millrace.delivery.domain.authority import Bearer
from millrace.delivery.domain.families import Families
from millrace_client.journal.archive_file import ArchiveFolder, read
from millrace_client.journal.collect import Archive, Gc
from millrace_client.journal.drain import Drain
from millrace_client.journal.journals import Journals
from millrace_client.journal.local_journal import LocalJournal
from millrace_client.journal.lock import drain_lock
from millrace_client.journal.migrate import Migrate
from millrace_client.journal.old_queues import OldQueues
from millrace_client.journal.restore import Restore
from millrace_client.journal.session import Surroundings, now_ms, open_session
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.imports import SqliteImports
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.take_over import TakeOver
from tests.support.local_target import LocalTarget, accept, local_target
from tests.support.old_queues import note, old_queue, queued, scoped

EVENTS = int(os.environ.get("MILLRACE_KILL_EVENTS", "3"))
TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "socket.connect", "fcntl.flock")


@dataclass
class Countdown:
    left: int

    def tick(self, *_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in TOUCHES:
            self.tick()

    def begin(self) -> None:
        sys.addaudithook(self.audit)
        connect = sqlite3.connect

        def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*args, **kwargs)
            connection.set_trace_callback(self.tick)
            return connection

        sqlite3.connect = traced  # type: ignore[assignment]


@dataclass(frozen=True)
class Operation:
    """`prepare` makes a home once; `run` is killed in copies of it; `check` looks at what is left, and finishes it."""

    prepare: Callable[[Path], None]
    run: Callable[[Path], None]
    check: Callable[[Path], None]


def kill_at_every_point(operation: Operation, folder: Path) -> int:
    """How many processes were killed before one came to its end."""
    operation.prepare(folder / "start")
    for point in range(1, 10_000):
        home = folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(folder / "start", home)
        child = os.fork()
        if child == 0:
            _run_and_die(operation, home, point)
        status = os.waitpid(child, 0)[1]
        operation.check(home)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, f"ended with {os.WEXITSTATUS(status)}"
            return point - 1
        assert os.WTERMSIG(status) == signal.SIGKILL
    raise AssertionError("it never came to its end")


def _run_and_die(operation: Operation, home: Path, point: int) -> None:
    code = 9
    try:
        Countdown(point).begin()
        operation.run(home)
        code = 0
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        os._exit(code)


def ids(prefix: str = "e") -> list[str]:
    return [f"{prefix}{number}" for number in range(EVENTS)]


def rows(home: Path, query: str, journal: Path | None = None) -> list[tuple[Any, ...]]:
    with Database(journal or home / "event_journal.db") as database:
        assert database.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return database.connection.execute(query).fetchall()


def captured(home: Path, prefix: str = "e") -> None:
    with LocalJournal(home) as journal:
        journal.capture([note(id_) for id_ in ids(prefix)])


def capturing() -> Operation:
    """Two batches; the second is told apart, because the first was answered for before it began."""

    def run(home: Path) -> None:
        with LocalJournal(home) as journal:
            journal.capture([note(id_) for id_ in ids("a")])
            (home / "answered").write_text("a")
            journal.capture([note(id_) for id_ in ids("b")])
            (home / "answered").write_text("ab")

    def check(home: Path) -> None:
        left = {id_ for (id_,) in rows(home, "SELECT event_id FROM event_journal JOIN event_body USING (position)")}
        answered = (home / "answered").read_text() if (home / "answered").exists() else ""
        for batch in "ab":
            assert left.isdisjoint(ids(batch)) or left.issuperset(ids(batch)), "a batch is whole, or not there"
            assert batch not in answered or left.issuperset(ids(batch)), "what was answered for is there"
        run(home)
        assert rows(home, "SELECT count(*) FROM event_body") == [(2 * EVENTS,)]

    return Operation(Path.mkdir, run, check)


def draining(target: LocalTarget) -> Operation:
    def prepare(home: Path) -> None:
        home.mkdir()
        (home / "config.toml").write_text(f'[sync.targets.t]\ntype = "stub"\nurl = "{target.url}"\n')
        captured(home)

    def run(home: Path) -> None:
        session = open_session(home, None, Surroundings(environment={}, random=lambda: 0.0))
        [result] = Drain(session, session.definitions)()
        assert result.drained.complete, result

    def check(home: Path) -> None:
        delivered = {
            id_ for (id_,) in rows(home, "SELECT event_id FROM delivery_ledger JOIN event_journal USING (position)")
        }
        arrived = {id_ for request in target.requests for id_ in request.ids}
        assert delivered <= arrived
        before = len(target.requests)
        run(home)
        again = [id_ for request in target.requests[before:] for id_ in request.ids]
        assert delivered.isdisjoint(again), "what is on record as delivered is not sent again"
        assert delivered | set(again) == set(ids()), "and the rest is"
        target.requests.clear()

    return Operation(prepare, run, check)


def delivered_home(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text('[sync.targets.t]\ntype = "stub"\n')
    captured(home)
    session = open_session(home, None, Surroundings(environment={}))
    Drain(session, session.definitions)()
    captured(home, "waiting")


HISTORY = "SELECT event_id, digest, status, attempts FROM event_journal LEFT JOIN delivery_ledger USING (position)"
REMOVED = "SELECT event_id FROM event_journal LEFT JOIN event_body USING (position) WHERE body IS NULL"


def collecting() -> Operation:
    history: list[list[tuple[Any, ...]]] = []

    def prepare(home: Path) -> None:
        delivered_home(home)
        history.append(rows(home, HISTORY))

    def run(home: Path) -> None:
        with drain_lock(home / "event_journal.lock"), Database(home / "event_journal.db") as database:
            Gc(SqliteJournal(database), now_ms)()

    def check(home: Path) -> None:
        assert rows(home, HISTORY) == history[0]
        assert {id_ for (id_,) in rows(home, REMOVED)} <= set(ids())
        run(home)
        assert [id_ for (id_,) in rows(home, REMOVED)] == ids()

    return Operation(prepare, run, check)


def archiving() -> Operation:
    history: list[list[tuple[Any, ...]]] = []
    bodies: dict[str, bytes] = {}

    def prepare(home: Path) -> None:
        delivered_home(home)
        history.append(rows(home, HISTORY))
        bodies.update(rows(home, "SELECT event_id, body FROM event_journal JOIN event_body USING (position)"))

    def run(home: Path) -> None:
        with drain_lock(home / "event_journal.lock"), Database(home / "event_journal.db") as database:
            Archive(SqliteJournal(database), ArchiveFolder(home / "archive"), now_ms)()

    def check(home: Path) -> None:
        assert rows(home, HISTORY) == history[0]
        stored = dict(entry for file in home.glob("archive/*.jsonl.gz") for entry in read(file))
        for (id_,) in rows(home, REMOVED):
            assert stored[id_] == bodies[id_], "removed here only once it is safe there"
        run(home)
        assert [id_ for (id_,) in rows(home, REMOVED)] == ids()

    return Operation(prepare, run, check)


def migrating() -> Operation:
    everything = set(ids("x")) | set(ids("y"))

    def prepare(home: Path) -> None:
        home.mkdir()
        old_queue(home / "queue.db", *[note(id_) for id_ in ids("x")], uploads=2)
        old_queue(scoped(home, "a"), *[note(id_) for id_ in ids("y")], *[note(id_) for id_ in ids("x")])

    def run(home: Path) -> None:
        with drain_lock(home / "event_journal.lock"), Database(home / "event_journal.db") as database:
            migrated = Migrate(OldQueues(home), SqliteImports(database), Families(), now_ms)(clean=True)
            assert migrated.ok

    def check(home: Path) -> None:
        sources = [home / "queue.db", scoped(home, "a")]
        journal = {id_ for (id_,) in rows(home, "SELECT event_id FROM event_journal JOIN event_body USING (position)")}
        for source in sources:
            with sqlite3.connect(source) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            connection.close()
        assert journal | {id_ for source in sources for id_ in queued(source)} == everything
        run(home)
        assert {id_ for (id_,) in rows(home, "SELECT event_id FROM event_journal")} == everything
        assert [queued(source) for source in sources] == [[], []]
        assert rows(home, "SELECT count(*) FROM event_source") == [(3 * EVENTS,)]

    return Operation(prepare, run, check)


def taking_over() -> Operation:
    """Nobody's journal goes to somebody: no event is lost, none is delivered twice, and no history goes."""
    me = Bearer("me", "acme")
    everything = [*ids(), *ids("waiting")]

    def prepare(home: Path) -> None:
        delivered_home(home)
        with Journals(home).open(me):
            pass

    def run(home: Path) -> None:
        with drain_lock(home / "event_journal.lock"), Journals(home).open(me) as database:
            TakeOver(database)(home / "event_journal.db", now_ms())

    def check(home: Path) -> None:
        def left(query: str) -> list[str]:
            return [id_ for path in (None, Journals(home).path(me)) for (id_,) in rows(home, query, path)]

        with_bytes = "SELECT event_id FROM event_journal JOIN event_body USING (position) ORDER BY position"
        delivered = "SELECT event_id FROM event_journal JOIN delivery_ledger USING (position) ORDER BY position"
        assert set(left(with_bytes)) == set(everything)
        assert set(left(delivered)) == set(ids())
        run(home)
        assert (left(with_bytes), left(delivered)) == (everything, ids())
        assert rows(home, "SELECT count(*) FROM event_journal") == [(0,)]

    return Operation(prepare, run, check)


def restoring() -> Operation:
    bodies: dict[str, bytes] = {}
    stored = "SELECT event_id, body FROM event_journal JOIN event_body USING (position)"

    def prepare(home: Path) -> None:
        delivered_home(home)
        bodies.update(rows(home, stored))
        with Database(home / "event_journal.db") as database:
            Archive(SqliteJournal(database), ArchiveFolder(home / "archive"), now_ms)()

    def run(home: Path) -> None:
        with drain_lock(home / "event_journal.lock"), Database(home / "event_journal.db") as database:
            Restore(SqliteJournal(database), ArchiveFolder(home / "archive"), now_ms)()

    def check(home: Path) -> None:
        assert {id_ for (id_,) in rows(home, REMOVED)} in (set(), set(ids())), "a file's events come back together"
        run(home)
        assert dict(rows(home, stored)) == bodies
        assert rows(home, "SELECT count(*) FROM event_journal WHERE removed_ms IS NOT NULL") == [(0,)]

    return Operation(prepare, run, check)


def main(name: str, folder: Path) -> None:
    if name == "drain":
        with local_target(accept) as target:
            print(kill_at_every_point(draining(target), folder))
        return
    made = {
        "capture": capturing,
        "gc": collecting,
        "archive": archiving,
        "restore": restoring,
        "migrate": migrating,
        "take over": taking_over,
    }
    print(kill_at_every_point(made[name](), folder))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
