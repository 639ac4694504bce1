"""The crew on Lambda: the function `crowd` is called for each shard, without waiting for it.

Lambda starts as many of them as there are calls, at once; a queue's mapping would begin with five. Many calls go in
bundles: whoever gets a bundle calls the others in it, so that two rounds of calls reach a thousand shards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.ports import Together
from millrace.live.domain.shards import Shard
from millrace.live.ports import Share

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

BUNDLE = 16


@dataclass(frozen=True, slots=True)
class LambdaCrew:
    client: Callable[[], LambdaClient]
    """Made when the first crowd comes: most processes never meet one."""
    function: str
    together: Together

    def call(self, shares: Sequence[Share]) -> None:
        size = BUNDLE if len(shares) > BUNDLE else 1
        self._call([shares[start : start + size] for start in range(0, len(shares), size)])

    def spread(self, bundle: Sequence[Share]) -> Share:
        """The first of a bundle, when all the others are called for."""
        self._call([[share] for share in bundle[1:]])
        return bundle[0]

    def _call(self, bundles: Sequence[Sequence[Share]]) -> None:
        if bundles:
            client = self.client()
            self.together([partial(self._invoke, client, bundle) for bundle in bundles])

    def _invoke(self, client: LambdaClient, bundle: Sequence[Share]) -> None:
        payload = json.dumps({"shares": [_written(share) for share in bundle]})
        with translated():
            client.invoke(FunctionName=self.function, InvocationType="Event", Payload=payload.encode())


def _written(share: Share) -> dict[str, Any]:
    return {
        "ledger": share.ledger,
        "shard": share.shard.number,
        "of": share.shard.count,
        "base": share.base,
    }


def shares_of(event: Mapping[str, Any]) -> list[Share]:
    return [
        Share(str(one["ledger"]), Shard(int(one["shard"]), int(one["of"])), int(one["base"])) for one in event["shares"]
    ]
