"""Builds clients of the lean wire from the environment of a function."""

from __future__ import annotations

from collections.abc import Callable

from millrace.ledger.adapters.wire.connections import AwsEndpoint, KeptConnections, WireLimits
from millrace.ledger.adapters.wire.credentials import Credentials, function_credentials
from millrace.ledger.adapters.wire.dynamodb import LeanDynamoDB
from millrace.ledger.adapters.wire.endpoints import endpoint_url, region
from millrace.ledger.adapters.wire.retrying import Retries
from millrace.ledger.adapters.wire.service import Service
from millrace.ledger.adapters.wire.services import LeanQueues, LeanSecrets, LeanSockets
from millrace.ledger.adapters.wire.signing import Signer


def lean_dynamodb(limits: WireLimits, retries: int) -> LeanDynamoDB:
    return LeanDynamoDB(_service("dynamodb", "DYNAMODB", limits, retries))


def lean_queues(limits: WireLimits, retries: int) -> LeanQueues:
    return LeanQueues(_service("sqs", "SQS", limits, retries))


def lean_secrets(limits: WireLimits, retries: int) -> LeanSecrets:
    return LeanSecrets(_service("secretsmanager", "SECRETS_MANAGER", limits, retries))


def lean_sockets(limits: WireLimits, retries: int, url: str) -> LeanSockets:
    """At the stage of a WebSocket API."""
    return LeanSockets(service_at(url, "execute-api", region(), limits, retries))


def _service(name: str, setting: str, limits: WireLimits, retries: int) -> Service:
    return service_at(endpoint_url(name, setting, region()), name, region(), limits, retries)


def service_at(
    url: str,
    signed_as: str,
    in_region: str,
    limits: WireLimits,
    retries: int,
    credentials: Callable[[], Credentials] = function_credentials,
) -> Service:
    """`retries` is what boto3 calls `max_attempts`: repeats, without the first attempt."""
    return Service(
        KeptConnections(AwsEndpoint.of(url), limits), Signer(signed_as, in_region), Retries(retries + 1), credentials
    )
