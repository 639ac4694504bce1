"""The version gate (C5): which events the tables take, by what the registry knows of their type and version."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.compact.parse import short_numbers
from millrace.lake.domain.registry import FALLBACK, QUARANTINE, REJECT, Defaults, Known, Registry
from millrace.ledger.domain.canonical import canonical

ACCEPTED = "accepted"
UNKNOWN_TYPE, UNKNOWN_VERSION, NOT_AN_OBJECT = "unknown_type", "unknown_version", "payload_not_an_object"
VERSION = "event_version"


def gate(parsed: DataFrame, registry: Registry) -> DataFrame:
    """Adds `status` (accepted, quarantine, reject) and `filled`; tells the `reason`; fills a fallback's payload.

    An accepted event needs its line no longer.
    """
    unknown, policy, filled = F.col("_unknown"), F.col("_policy"), F.col("_filled")
    falls_back = unknown.isNotNull() & (policy == FALLBACK)
    known = parsed.withColumns(
        {
            "_unknown": F.when(F.col("reason").isNull(), _by_type(registry, _unknown, UNKNOWN_TYPE)),
            "_policy": _by_type(registry, lambda known: F.lit(known.policy), registry.policy),
        }
    ).withColumn("_filled", F.when(falls_back, _by_type(registry, _fill, F.col("payload"))))
    reason = F.coalesce("reason", F.when(falls_back & filled.isNull(), NOT_AN_OBJECT), F.when(~falls_back, unknown))
    rejected = F.col("reason").isNull() & unknown.isNotNull() & (policy == REJECT)
    return known.withColumns(
        {
            "status": F.when(reason.isNull(), ACCEPTED).when(rejected, REJECT).otherwise(QUARANTINE),
            "filled": falls_back,
            "payload": F.coalesce("_filled", "payload"),
            "reason": reason,
            "line": F.when(reason.isNotNull(), F.col("line")),
        }
    ).drop("_unknown", "_policy", "_filled")


def _by_type(registry: Registry, of: Callable[[Known], Column], otherwise: Column | str) -> Column:
    """A column that depends on what is known of the row's type: catalog types by name, contracts by their prefix."""
    contract, event_type = F.col("contract"), F.col("event_type")
    wrapped = [
        ((contract == name) & F.startswith(event_type, F.lit(f"{name}.")), of(known))
        for name, known in registry.contracts.items()
    ]
    own = [((contract == "catalog") & (event_type == name), of(known)) for name, known in registry.types.items()]
    chain: Column = reduce(lambda chained, case: chained.when(*case), [*wrapped, *own], F.when(F.lit(False), None))
    return chain.otherwise(otherwise if isinstance(otherwise, Column) else F.lit(otherwise))


def _unknown(known: Known) -> Column:
    if not known.versions:
        return F.lit(None).cast("string")
    return F.when(~F.col(VERSION).isin(*known.versions), UNKNOWN_VERSION)


def _fill(known: Known) -> Column:
    """The payload with the defaults of the nearest known version; null if there are some and it is no object."""
    if not known.versions:
        return F.col("payload")
    filled = _filled(known.versions[min(known.versions)])
    for version in sorted(known.versions):
        filled = F.when(F.col(VERSION) >= version, _filled(known.versions[version])).otherwise(filled)
    return filled


def _filled(defaults: Defaults) -> Column:
    if not defaults:
        return F.col("payload")
    names = F.json_object_keys(short_numbers(F.col("payload")))
    members = [
        F.when(F.array_contains(names, name), "").otherwise("," + canonical({name: value}).decode()[1:-1])
        for name, value in sorted(defaults.items())
    ]
    own = F.expr("substring(trim(payload), 2, length(trim(payload)) - 2)")
    all_members = F.concat(own, *members)
    return F.when(names.isNotNull(), F.concat(F.lit("{"), F.regexp_replace(all_members, "^ *,", ""), F.lit("}")))
