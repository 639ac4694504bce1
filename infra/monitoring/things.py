"""What can be watched: functions, tables, queues, APIs, each with its address in CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing CloudWatch has metrics of. The values of the dimensions may hold the stack's parameters: `${Hub}`."""

    name: str
    namespace: str
    dimensions: Mapping[str, str]


def function(name: str) -> Thing:
    return Thing(name, "AWS/Lambda", {"FunctionName": f"${{Hub}}-{name}"})


def table(name: str) -> Thing:
    return Thing(name, "AWS/DynamoDB", {"TableName": f"${{Hub}}-{name}"})


def queue(name: str) -> Thing:
    return Thing(name, "AWS/SQS", {"QueueName": f"${{Hub}}-{name}"})


def dead_letters(name: str) -> Thing:
    """The queue of what a function or a queue of this name gave up."""
    return Thing(name, "AWS/SQS", queue(f"{name}-dead-letters").dimensions)


HTTP_API = Thing("http", "AWS/ApiGateway", {"ApiId": "${HttpApiId}"})
BATCH_API = Thing("batch", "AWS/ApiGateway", {"ApiName": "${Hub}-batch"})
SOCKET_API = Thing("socket", "AWS/ApiGateway", {"ApiId": "${SocketApiId}"})

# The hub counts these itself, in a namespace of its own.
OWN = "Millrace/${Hub}"

ARCHIVE = Thing("archive", OWN, {"service": "archive"})
HUB = Thing("hub", OWN, {"service": "hub"})
DRAIN = Thing("drain", OWN, {"contract": "delivery", "service": "deliver"})


def writer(contract: str, service: str) -> Thing:
    """A function that commits events of a contract, as the hub counts what it does."""
    return Thing(service, OWN, {"contract": contract, "service": service})
