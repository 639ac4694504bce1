"""The bodies of the marker routes as models: what streams/domain/marker.py checks and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from infra.openapi.models import Closed
from infra.openapi.streams_models import Extensions, Milliseconds, Sparse, StoredExtensions, name, text
from millrace.streams.domain.marker import MAX_REVISION

Revision = Annotated[int, Field(ge=1, le=MAX_REVISION, description="From 1, one more with each accepted write.")]
Expected = Annotated[int, Field(ge=1, le=MAX_REVISION, description="The revision this write is based on.")]


class MarkerPosition(Sparse):
    lat: Annotated[float, Field(ge=-90, le=90)]
    lon: Annotated[float, Field(ge=-180, le=180)]
    alt_m: Annotated[float | None, Field(description="In metres.")] = None


class MarkerCreate(Closed):
    """An optional member that is null counts as left out."""

    label: Annotated[str, text("What people call it.")]
    position: MarkerPosition
    marker_id: Annotated[str | None, name("Yours; with one, sending again is safe. Left out: the hub makes one.")] = (
        None
    )
    topic_id: Annotated[str | None, name("What lists can be narrowed to.")] = None
    extensions: Extensions | None = None


class MarkerMove(Closed):
    position: MarkerPosition
    expected_revision: Expected
    extensions: Annotated[
        Extensions | None, Field(description="In place of the marker's; left out or null, those stay.")
    ] = None


class MarkerRecord(Sparse):
    marker_id: str
    label: str
    position: MarkerPosition
    topic_id: str | None = None
    revision: Revision
    updated_ts_ms: Milliseconds
    extensions: StoredExtensions | None = None


class MarkerWritten(Closed):
    accepted: Literal[True]
    marker: MarkerRecord


class MarkerDeleted(Sparse):
    accepted: Annotated[bool, Field(description="False if there is no such marker; then nothing changed.")]
    marker_id: str
    revision: Revision | None = None


class MarkerList(Closed):
    """A page may be short, even empty: go on until `next_cursor` is null."""

    markers: list[MarkerRecord]
    next_cursor: str | None


MODELS: tuple[type[BaseModel], ...] = (MarkerCreate, MarkerMove, MarkerWritten, MarkerDeleted, MarkerList)
