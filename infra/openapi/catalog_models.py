"""The bodies of the catalog contract as models: what lake/domain/catalog.py checks, as it is published (C1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue

from infra.limits import TEXTS
from infra.openapi.models import Closed, FieldError
from millrace.lake.domain.catalog import MAX_TEXT_BYTES, MAX_VERSION
from millrace.runtime.requests import MAX_BATCH

Text = Annotated[
    str, Field(min_length=1, max_length=MAX_TEXT_BYTES, pattern=r"\S", description=f"At most {MAX_TEXT_BYTES} bytes.")
]


class CatalogEvent(Closed):
    __doc__ = f"The envelope. Its sequence position is given by the ledger. At most {TEXTS['catalog-event']}."

    event_type: Annotated[Text, Field(examples=["materialization.completed"])]
    event_version: Annotated[int, Field(ge=1, le=MAX_VERSION, description="Of this type's schema.", examples=[1])]
    idempotency_key: Annotated[
        Text | None,
        Field(description="The same key again is the same event. Left out: made from type, version and payload."),
    ] = None
    occurred_at: Annotated[str, Field(description="ISO-8601 in UTC.", examples=["2026-02-16T10:00:00Z"])]
    source: Annotated[Text, Field(description="Who produced it.", examples=["warehouse"])]
    trace_id: Text | None = None
    payload: Annotated[JsonValue, Field(description="Any JSON value but null.", examples=[{"table": "orders"}])]


class CatalogBatch(Closed):
    events: Annotated[list[CatalogEvent], Field(min_length=1, max_length=MAX_BATCH)]


class CatalogCommitted(Closed):
    idempotency_key: str
    status: Literal["committed"]
    sequence_position: Annotated[int, Field(ge=1)]
    deduped: Annotated[bool, Field(description="It was there before; its first position is told.")]
    committed_at: Annotated[int, Field(description="When it was first committed, in ms since 1970.")]


class CatalogRejected(Closed):
    idempotency_key: Annotated[str | None, Field(description="As sent, if it was a string.")] = None
    status: Literal["rejected"]
    reason: Literal["validation_failed", "conflict", "too_large"]
    errors: list[FieldError]


class CatalogBatchAnswer(Closed):
    """One result per event, in the order of the request."""

    results: list[Annotated[CatalogCommitted | CatalogRejected, Field(discriminator="status")]]


MODELS: tuple[type[BaseModel], ...] = (CatalogEvent, CatalogBatch, CatalogCommitted, CatalogBatchAnswer)
