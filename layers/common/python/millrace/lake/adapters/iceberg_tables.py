"""Open tables as Apache Iceberg tables (format v2), in any catalog that pyiceberg knows. Data files are ours already:
a commit only says which of them a table consists of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation

from millrace.lake.adapters.iceberg_replace import ReplacedFiles, timed_uuid
from millrace.lake.adapters.iceberg_schema import NAME_MAPPING, PROPERTIES, schema_of
from millrace.lake.adapters.iceberg_sweep import unreachable
from millrace.lake.domain.edition import ROOT
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.open_tables import DescribedColumn, Shown
from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.errors import Unavailable

FOLDER = f"{ROOT}iceberg/"
RUN = "millrace.run"
LOST = (CommitFailedException, TableAlreadyExistsError, NoSuchTableError, ValidationException)
"""Somebody else changed the table first."""


@dataclass(frozen=True, slots=True)
class IcebergTables:
    """`root` is the store's address, to which object names are added; `namespace` is the catalog's database."""

    catalog: Catalog
    namespace: str
    root: str
    objects: Objects
    columns: Mapping[str, Sequence[DescribedColumn]]
    clock: Callable[[], int]
    io: FileIO = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "io", load_file_io({**self.catalog.properties}, self.root))

    def shown(self, table: str) -> Shown | None:
        with _translated():
            found = self._found(table)
            if found is None:
                return None
            files = self._data_files(found)
            snapshot = found.current_snapshot()
            run = (snapshot.summary and snapshot.summary.additional_properties.get(RUN)) if snapshot else None
            names = frozenset(path.removeprefix(self.root) for path in files)
            return Shown(names, sum(file.record_count for file in files.values()), run or "", found.metadata_location)

    def show(self, table: str, over: Shown | None, files: Collection[str], run: str) -> bool:
        with _translated():
            found = self._found(table)
            if (found and found.metadata_location) != (over and over.tag):
                return False
            try:
                self._commit(self._changing(table, found), found, files, run)
            except LOST:
                return False
            return True

    def forget(self, table: str, before_ms: int) -> int:
        with _translated():
            found = self._found(table)
            if found is None:
                return 0
            current = found.metadata.current_snapshot_id
            if any(one.timestamp_ms < before_ms and one.snapshot_id != current for one in found.snapshots()):
                try:
                    found.maintenance.expire_snapshots().older_than(
                        datetime.fromtimestamp(before_ms / 1000, UTC)
                    ).commit()
                except LOST:
                    return 0
                found = found.refresh()
            gone = unreachable(found, self.objects, f"{FOLDER}{table}/metadata/", self.root, before_ms)
        for name in gone:
            self.objects.delete(name)
        return len(gone)

    def _found(self, table: str) -> Table | None:
        try:
            return self.catalog.load_table((self.namespace, table))
        except NoSuchTableError:
            return None

    def _changing(self, table: str, found: Table | None) -> Transaction:
        """The change begins with the columns: those that the table does not have yet are added."""
        if found is not None:
            change = found.transaction()
            with change.update_schema() as update:
                update.union_by_name(schema_of(self.columns[table]))
        else:
            change = self._creating(table)
        mapping = change.table_metadata.schema().name_mapping.model_dump_json()
        if change.table_metadata.properties.get(NAME_MAPPING) != mapping:
            change.set_properties({NAME_MAPPING: mapping})
        return change

    def _creating(self, table: str) -> Transaction:
        # Where the database is somebody else's to make, a job may not be allowed to.
        if not self.catalog.namespace_exists(self.namespace):
            self.catalog.create_namespace_if_not_exists(self.namespace)
        return self.catalog.create_table_transaction(
            (self.namespace, table),
            schema_of(self.columns[table]),
            f"{self.root}{FOLDER}{table}",
            properties=dict(PROPERTIES),
        )

    def _commit(self, change: Transaction, found: Table | None, files: Collection[str], run: str) -> None:
        held = self._data_files(found) if found is not None else {}
        wanted = {self.root + name for name in files}
        if wanted != held.keys():
            operation = Operation.OVERWRITE if held else Operation.APPEND
            replaced = ReplacedFiles(operation, change, self.io, timed_uuid(self.clock()), {RUN: run})
            for path in sorted(wanted - held.keys()):
                replaced.append_data_file(parquet_file_to_data_file(self.io, change.table_metadata, path))
            for path in sorted(held.keys() - wanted):
                replaced.delete_data_file(held[path])
            replaced.commit()
        change.commit_transaction()

    def _data_files(self, table: Table) -> dict[str, DataFile]:
        snapshot = table.current_snapshot()
        return {
            entry.data_file.file_path: entry.data_file
            for manifest in (snapshot.manifests(self.io) if snapshot else ())
            for entry in manifest.fetch_manifest_entry(self.io, discard_deleted=True)
        }


@contextmanager
def _translated() -> Iterator[None]:
    with translated():
        try:
            yield
        except OSError as error:
            raise Unavailable("Files of an Iceberg table cannot be read or written.", cause=str(error)) from error
