"""Rotation of the three secrets on a whole hub, as docs/operations.md tells an operator to do it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from standardwebhooks import Webhook

from tests.e2e.conftest import Hub
from tests.e2e.receivers import receiver
from tests.e2e.streams_api import KEYED_FUNCTIONS, event, negotiated, numbers, restart, rotate
from tests.e2e.test_delivery_hub import Tenant, secret

SEALERS = ("targets", "deliver")


@pytest.fixture
def hub(stack: Hub) -> Iterator[Hub]:
    """Tests after these sign with the token secret that the stack began with."""
    yield stack
    rotate(stack, "TokenSecretArn", stack.secret)
    restart(stack, *stack.stack.functions)


def status(hub: Hub, token: str) -> int:
    answer = hub.http.post(
        "/v1/projects/demo/sync", json={"since_committed_id": 0}, headers={"Authorization": f"Bearer {token}"}
    )
    return answer.status_code


def test_one_rotation_of_all_three_secrets_disturbs_nobody(hub: Hub) -> None:
    """Functions run on, with what they know; what they do not recognise makes them look again."""
    runtime, tenant, token = negotiated(hub, "rotated"), Tenant(hub), hub.token()
    runtime.emit("s", *(event(f"e{number}") for number in range(4)))
    cursor = runtime.poll("s", max=2)["next_cursor"]
    with receiver() as target:
        tenant.put("a", url=target.url, mode="webhook")
        tenant.ingest("before")
        tenant.until(lambda: target.ids == ["before"])
        new = rotate(hub, "TokenSecretArn")
        rotate(hub, "StreamSecretArn")
        rotate(hub, "DeliverySecretArn")
        assert status(hub, hub.token(signed_with=new)) == status(hub, token) == 200
        assert numbers(runtime.poll("s", cursor, max=1)) == [3]
        restart(hub, *KEYED_FUNCTIONS, *SEALERS, "sync", "ingest")
        assert status(hub, hub.token(signed_with=new)) == status(hub, token) == 200
        assert numbers(runtime.poll("s", cursor)) == [3, 4]
        tenant.ingest("after")
        tenant.until(lambda: target.ids == ["before", "after"])
        for posted in target.posts:
            Webhook(secret("a")).verify(posted.body, posted.headers)


def test_a_second_rotation_ends_the_tokens_of_the_first_value(hub: Hub) -> None:
    token = hub.token()
    first = rotate(hub, "TokenSecretArn")
    second = rotate(hub, "TokenSecretArn")
    restart(hub, "sync")
    assert [status(hub, one) for one in (token, *(hub.token(signed_with=value) for value in (first, second)))] == [
        401,
        200,
        200,
    ]


def test_a_target_that_is_put_again_between_two_rotations_gets_everything_and_another_is_told_to_be_lost(
    hub: Hub,
) -> None:
    tenant = Tenant(hub)
    with receiver() as kept, receiver() as lost:
        tenant.put("kept", url=kept.url)
        tenant.put("lost", url=lost.url)
        rotate(hub, "DeliverySecretArn")
        restart(hub, *SEALERS)
        again = {"signing_secret": secret("a")}
        answer = hub.http.patch("/v1/targets/kept", json=again, headers=tenant.headers())
        assert answer.status_code == 200, answer.text
        rotate(hub, "DeliverySecretArn")
        restart(hub, *SEALERS)
        tenant.ingest("e1")
        tenant.until(lambda: kept.ids == ["e1"])
        assert tenant.get("/v1/targets/kept").json()["signing_secrets"] == 1
        assert tenant.get("/v1/targets/lost").json()["signing_secrets"] == 0
        assert lost.ids == [], "nothing is sent unsigned"
        tenant.put("lost", url=lost.url)
        tenant.until(lambda: lost.ids == ["e1"])
