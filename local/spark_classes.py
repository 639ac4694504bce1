"""Archive the classes that Spark loads, so that every later session on this machine starts in half the time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from glue_jobs.compact.run import Compact
from glue_jobs.session import JAVA_OPTIONS, class_archive, own_java, spark_session
from glue_jobs.workspace import DirectWorkspace
from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.domain.archive import EventWriter
from millrace.lake.domain.registry import Registry

NOW = 1_770_000_000_000
LINE = {
    "committed_at": NOW,
    "ledger": "sync#classes#demo",
    "tenant": "classes",
    "partitions": [],
    "event_type": "sync.set",
    "event_version": 1,
    "idempotency_key": "k1",
    "occurred_at": "2026-02-01T10:00:00Z",
    "source": "set-up",
    "payload": {},
    "sequence_position": 1,
}


def main() -> int:
    """Whoever cannot have the archive works without it, only slower."""
    archive, java = class_archive(), own_java()
    if archive is None or java is None or archive.exists():
        return 0
    print("Archiving the classes that Spark loads …", flush=True)
    partial = archive.with_suffix(".part")
    subprocess.run([java / "bin" / "java", "-Xshare:dump"], check=False, capture_output=True)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "java.log"
        options = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={partial} -Xlog:disable -Xlog:all=error:file={log}"
        session = spark_session(
            "millrace-classes", local=True, settings={JAVA_OPTIONS: options, "spark.ui.showConsoleProgress": "false"}
        )
        session.sparkContext.setLogLevel("OFF")
        _compact(session, Path(folder) / "store")
        end(session)
    if partial.exists():
        partial.rename(archive)
    else:
        print("Java left no archive; sessions start without it.", file=sys.stderr)
    return 0


def _compact(session: SparkSession, store: Path) -> None:
    """One event through the whole job loads nearly all classes that the jobs ever load."""
    store.mkdir()
    objects, writer = DirectoryObjects(store), EventWriter()
    writer.add_line(LINE)
    made = writer.finish()
    objects.put(made.name, made.data)
    workspace = DirectWorkspace(objects, store.as_uri() + "/")
    Compact(lambda _: session, workspace, Registry(), lambda: "0000000000-classes", lambda: NOW)()


def end(session: SparkSession) -> None:
    """With its Java, which writes the archive as it ends; pyspark alone would not wait for it."""
    gateway = session.sparkContext._gateway  # noqa: SLF001
    session.stop()
    assert gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    sys.exit(main())
