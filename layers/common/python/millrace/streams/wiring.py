"""Wiring of the streams contract: runtimes, rows, keys and privacy, built on first use like everything in `wiring`."""

from __future__ import annotations

import hmac
import os
from functools import cache
from typing import TYPE_CHECKING

from millrace.ledger import wiring as core
from millrace.runtime import observe, settings
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.ledger.adapters.keyring import StagedKeys
    from millrace.streams.adapters.dynamodb.raw_values import DynamoRawValues
    from millrace.streams.adapters.dynamodb.rows import DynamoRows
    from millrace.streams.adapters.dynamodb.runtimes import DynamoRuntimes
    from millrace.streams.adapters.sealing import AesSealer
    from millrace.streams.application.announce import Announce
    from millrace.streams.application.diagnostics import Diagnostics
    from millrace.streams.application.emit import Emit
    from millrace.streams.application.markers import ManageMarkers, SettleMarkers
    from millrace.streams.application.poll import Poll
    from millrace.streams.application.runtime_access import Negotiate
    from millrace.streams.application.runtime_status import RuntimeStatus
    from millrace.streams.application.tell_policy import TellPolicy
    from millrace.streams.domain.privacy import Policy


def row_nonce() -> str:
    """Tells the last few writers of one row apart; each row carries several."""
    return os.urandom(8).hex()


@cache
def keys() -> StagedKeys:
    from millrace.ledger.adapters.keyring import StagedKeys
    from millrace.runtime.clients import read_secret_stage

    return StagedKeys(lambda stage: read_secret_stage(setting("STREAM_SECRET_ARN"), stage), core.now_ms)


@cache
def runtimes() -> DynamoRuntimes:
    from millrace.streams.adapters.dynamodb.runtimes import DynamoRuntimes

    return DynamoRuntimes(core.dynamodb(), setting("STATE_TABLE"), core.together(), core.now_ms)


@cache
def rows() -> DynamoRows:
    from millrace.streams.adapters.dynamodb.rows import DynamoRows

    return DynamoRows(core.dynamodb(), setting("STATE_TABLE"), observe.unreadable)


@cache
def raw_values() -> DynamoRawValues:
    from millrace.streams.adapters.dynamodb.raw_values import DynamoRawValues

    return DynamoRawValues(core.dynamodb(), setting("DIAGNOSTICS_TABLE"), core.together())


@cache
def sealer() -> AesSealer:
    from millrace.streams.adapters.sealing import AesSealer

    return AesSealer(keys())


@cache
def policy() -> Policy:
    from millrace.streams.domain.privacy import Policy

    return Policy.of(settings.privacy())


def hasher(tenant: str) -> Callable[[str], str]:
    """Tenants' hashes cannot be compared with each other's."""
    from millrace.streams.domain.privacy import hasher as keyed

    return keyed(hmac.digest(keys().current(), b"privacy " + tenant.encode(), "sha256"))


@cache
def negotiate() -> Negotiate:
    from millrace.streams.application.runtime_access import Negotiate

    return Negotiate(runtimes(), core.audit())


@cache
def emit() -> Emit:
    from millrace.streams.application.announce import Announce
    from millrace.streams.application.emit import Emit
    from millrace.streams.domain.transition import undone

    return Emit(
        core.commit(),
        Announce(rows(), core.commit(), row_nonce, core.pause, undone),
        runtimes(),
        raw_values(),
        sealer(),
        policy(),
        hasher,
        core.together(),
        core.now_ms,
        tell_policy(),
    )


@cache
def tell_policy() -> TellPolicy:
    from millrace.streams.application.tell_policy import TellPolicy

    return TellPolicy(announce(), core.audit(), policy())


@cache
def poll() -> Poll:
    from millrace.streams.application.poll import Poll

    return Poll(
        core.log(),
        core.state(),
        runtimes(),
        runtimes(),
        keys(),
        core.heads(),
        core.together(),
        core.now_ms,
        lambda: os.urandom(8).hex(),
    )


@cache
def runtime_status() -> RuntimeStatus:
    from millrace.ledger.adapters.dynamodb.projections import DynamoProjections
    from millrace.streams.application.runtime_status import RuntimeStatus

    projections = DynamoProjections(core.dynamodb(), setting("STATE_TABLE"), "status", core.new_edition)
    return RuntimeStatus(core.log(), core.state(), projections, runtimes(), core.heads(), core.together(), core.now_ms)


@cache
def announce() -> Announce:
    from millrace.streams.application.announce import Announce

    return Announce(rows(), core.commit(), row_nonce, core.pause)


@cache
def markers() -> ManageMarkers:
    from millrace.streams.application.markers import ManageMarkers

    return ManageMarkers(
        announce(),
        rows(),
        rows(),
        runtimes(),
        keys(),
        policy(),
        hasher,
        core.now_ms,
        core.new_id,
        tell_policy(),
    )


def settle_markers(may_go_on: Callable[[], bool]) -> SettleMarkers:
    from millrace.streams.application.markers import SettleMarkers

    return SettleMarkers(announce(), rows(), rows(), core.now_ms, may_go_on)


@cache
def diagnostics() -> Diagnostics:
    from millrace.streams.application.diagnostics import Diagnostics

    return Diagnostics(runtimes(), raw_values(), sealer(), core.audit(), core.now_ms, core.new_id, core.new_id)
