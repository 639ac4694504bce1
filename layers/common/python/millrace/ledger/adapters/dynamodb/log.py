"""The log in DynamoDB: one item per page, put if absent. No key is ever deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, condition_failed, refusals, translated
from millrace.ledger.adapters.dynamodb.batch import Item, get_all
from millrace.ledger.domain.names import Ledger, bucket_of
from millrace.ledger.domain.packing import pack, pack_parts, traces_of, unpack, unpack_parts, with_traces
from millrace.ledger.domain.page import Origin, Page
from millrace.ledger.ports import Run, Together

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ABSENT = "attribute_not_exists(b)"


@dataclass(frozen=True, slots=True)
class DynamoLog:
    client: DynamoDBClient
    table: str
    together: Together

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        with translated():
            try:
                self.client.put_item(
                    TableName=self.table,
                    Item=_item(ledger, page),
                    ConditionExpression=ABSENT,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return _page(error.response["Item"])  # type: ignore[typeddict-item]
        return None

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        asked = self._range(ledger, bucket_of(after + 1), "f > :at", after)
        if through is not None:
            if through <= after:
                return Run([])
            asked = self._range(ledger, bucket_of(after + 1), "f BETWEEN :at AND :through", after + 1)
            asked["ExpressionAttributeValues"][":through"] = {"N": str(through)}
        if limit is not None:
            asked["Limit"] = limit
        with translated():
            answer = self.client.query(**asked)
        return Run([_page(item) for item in answer["Items"]], more="LastEvaluatedKey" in answer)

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        with translated():
            answer = self.client.query(
                **self._range(ledger, bucket_of(position), "f <= :at", position), ScanIndexForward=False, Limit=1
            )
        return _page(answer["Items"][0]) if answer["Items"] else None

    def get(self, ledger: Ledger, firsts: Sequence[int]) -> Mapping[int, Page]:
        keys = [_key(ledger, first) for first in firsts]
        pages = (_page(item) for item in get_all(self.client, self.table, keys, self.together))
        return {page.first: page for page in pages}

    def replace(self, ledger: Ledger, page: Page) -> bool:
        return applied(
            lambda: self.client.put_item(
                TableName=self.table,
                Item=_item(ledger, page),
                ConditionExpression="r = :before",
                ExpressionAttributeValues={":before": {"N": str(page.revision - 1)}},
            )
        )

    def _range(self, ledger: Ledger, bucket: int, condition: str, at: int) -> dict[str, Any]:
        return {
            "TableName": self.table,
            "KeyConditionExpression": f"b = :bucket AND {condition}",
            "ExpressionAttributeValues": {":bucket": {"S": _bucket_key(ledger, bucket)}, ":at": {"N": str(at)}},
            "ConsistentRead": True,
        }


def _bucket_key(ledger: Ledger, bucket: int) -> str:
    return f"{ledger.name}#{bucket}"


def _key(ledger: Ledger, first: int) -> dict[str, Any]:
    return {"b": {"S": _bucket_key(ledger, bucket_of(first))}, "f": {"N": str(first)}}


def _item(ledger: Ledger, page: Page) -> dict[str, Any]:
    item = {
        **_key(ledger, page.first),
        "t": {"N": str(page.time_ms)},
        "o": {"S": page.origin.client_id},
        "n": {"B": page.nonce},
        "r": {"N": str(page.revision)},
    }
    if page.origin.connection:
        item["x"] = {"S": page.origin.connection}
    overhead = 64 + len(_bucket_key(ledger, 0)) + len(page.origin.client_id) + len(page.origin.connection)
    if page.parts:
        item["p"] = {"B": pack_parts(page.parts)}
        overhead += len(item["p"]["B"])
    if traces := traces_of(page):
        item["c"] = {"S": traces}
        overhead += 1 + len(traces)
    item["e"] = {"B": pack(page.records, overhead)}
    return item


def _page(item: Item) -> Page:
    page = Page(
        first=int(item["f"]["N"]),
        records=unpack(item["e"]["B"]),
        time_ms=int(item["t"]["N"]),
        origin=Origin(item["o"]["S"], item.get("x", {}).get("S", "")),
        nonce=item["n"]["B"],
        revision=int(item["r"]["N"]),
        parts=unpack_parts(item["p"]["B"]) if "p" in item else (),
    )
    return with_traces(page, item["c"]["S"]) if "c" in item else page
