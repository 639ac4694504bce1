"""Wiring of the streams contract: runtimes, rows, keys and privacy, built on first use like everything in `wiring`."""

from __future__ import annotations

import hmac
import os
from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime import settings, wiring
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.adapters.dynamodb.raw_values import DynamoRawValues
    from millrace.adapters.dynamodb.rows import DynamoRows
    from millrace.adapters.dynamodb.runtimes import DynamoRuntimes
    from millrace.adapters.keyring import StagedKeys
    from millrace.adapters.sealing import AesSealer
    from millrace.application.announce import Announce
    from millrace.application.diagnostics import Audit, Diagnostics
    from millrace.application.emit import Emit
    from millrace.application.markers import Markers, SettleMarkers
    from millrace.application.poll import Poll
    from millrace.application.runtime_access import Negotiate
    from millrace.application.runtime_status import RuntimeStatus
    from millrace.domain.streams.privacy import Policy


def new_id() -> str:
    return os.urandom(16).hex()


def row_nonce() -> str:
    """Tells the last few writers of one row apart; each row carries several."""
    return os.urandom(8).hex()


@cache
def keys() -> StagedKeys:
    from millrace.adapters.clients import read_secret_stage
    from millrace.adapters.keyring import StagedKeys

    return StagedKeys(lambda stage: read_secret_stage(setting("STREAM_SECRET_ARN"), stage), wiring.now_ms)


@cache
def runtimes() -> DynamoRuntimes:
    from millrace.adapters.dynamodb.runtimes import DynamoRuntimes

    return DynamoRuntimes(wiring.dynamodb(), setting("STATE_TABLE"), wiring.together(), wiring.now_ms)


@cache
def rows() -> DynamoRows:
    from millrace.adapters.dynamodb.rows import DynamoRows

    return DynamoRows(wiring.dynamodb(), setting("STATE_TABLE"))


@cache
def raw_values() -> DynamoRawValues:
    from millrace.adapters.dynamodb.raw_values import DynamoRawValues

    return DynamoRawValues(wiring.dynamodb(), setting("DIAGNOSTICS_TABLE"), wiring.together())


@cache
def sealer() -> AesSealer:
    from millrace.adapters.sealing import AesSealer

    return AesSealer(keys())


@cache
def policy() -> Policy:
    from millrace.domain.streams.privacy import Policy

    return Policy.of(settings.privacy())


def hasher(tenant: str) -> Callable[[str], str]:
    """Tenants' hashes cannot be compared with each other's."""
    from millrace.domain.streams.privacy import hasher as keyed

    return keyed(hmac.digest(keys().current(), b"privacy " + tenant.encode(), "sha256"))


@cache
def negotiate() -> Negotiate:
    from millrace.application.runtime_access import Negotiate

    return Negotiate(runtimes())


@cache
def emit() -> Emit:
    from millrace.application.announce import Announce
    from millrace.application.emit import Emit
    from millrace.domain.streams.transition import undone

    announce = Announce(rows(), wiring.commit(), row_nonce, wiring.pause, undone)
    return Emit(
        wiring.commit(),
        announce,
        runtimes(),
        raw_values(),
        sealer(),
        policy(),
        hasher,
        wiring.together(),
        wiring.now_ms,
    )


@cache
def poll() -> Poll:
    from millrace.application.poll import Poll

    return Poll(
        wiring.log(),
        wiring.state(),
        runtimes(),
        runtimes(),
        keys(),
        wiring.heads(),
        wiring.together(),
        wiring.now_ms,
        lambda: os.urandom(8).hex(),
    )


@cache
def runtime_status() -> RuntimeStatus:
    from millrace.adapters.dynamodb.projections import DynamoProjections
    from millrace.application.runtime_status import RuntimeStatus

    projections = DynamoProjections(wiring.dynamodb(), setting("STATE_TABLE"), "status")
    return RuntimeStatus(
        wiring.log(), wiring.state(), projections, runtimes(), wiring.heads(), wiring.together(), wiring.now_ms
    )


@cache
def announce_markers() -> Announce:
    from millrace.application.announce import Announce

    return Announce(rows(), wiring.commit(), row_nonce, wiring.pause)


@cache
def markers() -> Markers:
    from millrace.application.markers import Markers

    return Markers(announce_markers(), rows(), rows(), runtimes(), keys(), policy(), hasher, wiring.now_ms, new_id)


def settle_markers(may_go_on: Callable[[], bool]) -> SettleMarkers:
    from millrace.application.markers import SettleMarkers

    return SettleMarkers(announce_markers(), rows(), rows(), wiring.now_ms, may_go_on)


@cache
def audit() -> Audit:
    from millrace.application.diagnostics import Audit

    return Audit(
        wiring.commit(), wiring.log(), wiring.state(), wiring.heads(), wiring.together(), wiring.now_ms, new_id
    )


@cache
def diagnostics() -> Diagnostics:
    from millrace.application.diagnostics import Diagnostics

    return Diagnostics(runtimes(), raw_values(), sealer(), audit(), wiring.now_ms, new_id, new_id)
