"""The bodies of the retention routes as models: what lake/domain/retention_rules.py checks, as it is published (C8)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from infra.openapi.models import Closed, Partition
from millrace.lake.domain.retention_rules import MAX_DAYS, MAX_POSITION


class RetentionChange(Closed):
    """What is named is set, the rest stays; null takes a bound away. At least one bound must be named."""

    partition: Annotated[
        Partition | None, Field(description="Of a project; its rule then counts for it instead of the project's.")
    ] = None
    advance_to: Annotated[
        int, Field(ge=0, le=MAX_POSITION, description="Nothing up to this position is needed. Never goes back.")
    ] = 0
    max_age_days: Annotated[
        int | None, Field(ge=1, le=MAX_DAYS, description="Older events are not needed.", examples=[90])
    ] = None
    max_events: Annotated[
        int | None, Field(ge=1, le=MAX_POSITION, description="But the newest so many are not needed.")
    ] = None


class RetentionBounds(Closed):
    advance_to: int
    max_age_days: int | None
    max_events: int | None


class PartitionRule(RetentionBounds):
    partition: str


class RetentionAnswer(RetentionBounds):
    """All zero and null, without partitions: no policy, so nothing is ever pruned."""

    contract: str
    scope: str
    partitions: list[PartitionRule]


class ListedRule(RetentionBounds):
    contract: str
    scope: str
    partition: Annotated[str | None, Field(description="Null: the whole scope.")]


class RetentionList(Closed):
    policies: list[ListedRule]
    next_after: str | None


class RetentionPlan(Closed):
    contract: str
    scope: str
    floor: int
    head: int
    watermark: Annotated[int, Field(description="Up to which position the policies need nothing any more.")]
    partition_watermarks: dict[str, int]
    holders: Annotated[
        dict[str, int],
        Field(description="Up to which position each reader lets events go; a target is `target:` and its id."),
    ]
    held_by: Annotated[str, Field(description="Who keeps retention from going further, or `watermarks`.")]
    limit: int
    events: Annotated[int, Field(description="How many would go.")]
    bytes: int
    kept_for_a_partition: int
    goes: Annotated[list[list[int]], Field(description="First and last positions, at most 100 spans.")]
    complete: Annotated[bool, Field(description="False: the ledger is longer than one look; more may go.")]
    not_asked: Annotated[list[str], Field(description="What else a run of retention waits for.")]


MODELS: tuple[type[BaseModel], ...] = (RetentionChange, RetentionAnswer, RetentionList, RetentionPlan)
