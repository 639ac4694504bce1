"""Tables, quarantine and registry as models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue

from infra.openapi.models import Closed
from infra.openapi.streams_models import Milliseconds
from millrace.lake.application.steer_quarantine import MOST_IDS, MOST_LINES

Count = Annotated[int, Field(ge=0)]


class TableModel(Closed):
    table: str
    rows: Count
    files: Count
    bytes: Count


class RunModel(Closed):
    edition: Annotated[int, Field(ge=1)]
    run: str
    published_ms: Milliseconds
    counts: Annotated[dict[str, int] | None, Field(description="What the run found in the archive.")]


class WaitingObjects(Closed):
    """Archive objects after the last one that was processed."""

    objects: Count
    bytes: Count
    oldest_ms: Milliseconds | None
    more: Annotated[bool, Field(description="There are more than were counted.")]


class QuarantineCounts(Closed):
    lines: Count
    objects: Count
    redriven: Count


class TablesModel(Closed):
    """Null: it tells of the whole hub, and the token does not run the hub."""

    edition: Annotated[int, Field(ge=0, description="0 before the first compaction.")]
    run: str | None
    published_ms: Milliseconds | None
    tables: list[TableModel] | None
    runs: Annotated[list[RunModel], Field(description="The last that are known, newest first.")]
    waiting: WaitingObjects | None
    quarantine: QuarantineCounts | None


class QuarantineEntry(Closed):
    """What nobody could tell is null."""

    id: str
    reason: str
    field: str | None
    contract: str | None
    scope: str | None
    position: int | None
    event_type: str | None
    event_version: int | None
    idempotency_key: str | None
    bytes: int | None
    object: Annotated[str, Field(description="The archive object that it was in.")]
    redriven: Annotated[str | None, Field(description="The archive object that it went into again.")]


class QuarantinePage(Closed):
    entries: list[QuarantineEntry]
    complete: Annotated[bool, Field(description="If false, some of these may have been driven again already.")]
    next: str | None


class QuarantinedLine(QuarantineEntry):
    line: Annotated[str | None, Field(description="Null of a whole object, or if it cannot be found any more.")]


class RedriveRequest(Closed):
    """Either `ids` or a `reason`."""

    ids: Annotated[list[str] | None, Field(min_length=1, max_length=MOST_IDS)] = None
    reason: Annotated[str | None, Field(min_length=1)] = None
    after: Annotated[str | None, Field(description="With a reason: the `next` of the answer before.")] = None


class RedrivenLines(Closed):
    redriven: Annotated[dict[str, str], Field(description="By id, the archive object that it went into.")]


class RedrivenSome(RedrivenLines):
    next: Annotated[str | None, Field(description="Where the next request goes on; null at the end.")]


class RepairRequest(Closed):
    lines: Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=MOST_LINES)]


class KnownType(Closed):
    policy: Literal["reject", "quarantine", "fallback"] | None = None
    versions: Annotated[dict[str, dict[str, JsonValue]], Field(description="By version, defaults of the payload.")]


class RegistryContent(Closed):
    policy: Literal["reject", "quarantine", "fallback"] | None = None
    types: dict[str, KnownType] | None = None
    contracts: dict[str, KnownType] | None = None


class RegistrySummary(Closed):
    types: Count
    versions: Count
    policy: str


class RegistryModel(RegistrySummary):
    registry: Annotated[dict[str, Any] | None, Field(description="As it was put; null if none was.")]


MODELS: tuple[type[BaseModel], ...] = (
    TablesModel,
    QuarantinePage,
    QuarantinedLine,
    RedriveRequest,
    RedrivenSome,
    RedrivenLines,
    RepairRequest,
    RegistryContent,
    RegistrySummary,
    RegistryModel,
)
