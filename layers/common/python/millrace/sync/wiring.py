"""Wiring of the sync contract, built on first use like the ledger."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from millrace.ledger import wiring as core
from millrace.runtime import settings
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.sync.adapters.dynamodb import DynamoIndex
    from millrace.sync.adapters.profiles import DynamoProfiles
    from millrace.sync.application.index_partitions import IndexPartitions
    from millrace.sync.application.read_project import ReadProject
    from millrace.sync.application.set_profile import SetProfile
    from millrace.sync.application.submit import Submit
    from millrace.sync.application.sync import Sync


@cache
def partition_index() -> DynamoIndex:
    from millrace.sync.adapters.dynamodb import DynamoIndex

    return DynamoIndex(core.dynamodb(), setting("INDEX_TABLE"), core.together())


@cache
def profiles() -> DynamoProfiles:
    from millrace.sync.adapters.profiles import DynamoProfiles

    return DynamoProfiles(core.dynamodb(), setting("STATE_TABLE"))


@cache
def submit() -> Submit:
    from millrace.sync.application.choose_profile import ChooseProfile
    from millrace.sync.application.submit import Submit

    choose = ChooseProfile(profiles(), settings.profiles(), core.now_ms)
    return Submit(core.commit(), core.now_ms, choose)


@cache
def set_profile() -> SetProfile:
    from millrace.sync.application.set_profile import SetProfile

    return SetProfile(profiles(), settings.profiles())


@cache
def sync() -> Sync:
    from millrace.sync.application.sync import Sync

    return Sync(core.log(), core.state(), partition_index(), core.heads(), core.together())


@cache
def read_project() -> ReadProject:
    from millrace.sync.application.read_project import ReadProject

    return ReadProject(sync())


def index_partitions(may_go_on: Callable[[], bool]) -> IndexPartitions:
    from millrace.sync.application.index_partitions import IndexPartitions

    return IndexPartitions(core.log(), core.noting_state(), partition_index(), may_go_on)
