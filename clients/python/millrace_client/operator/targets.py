"""Targets as an operator steers them: counts, attempts, many retries, pauses; and what retention would let go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from millrace_client.operator.http import OperatorHttp
from millrace_client.sync.http import Json


@dataclass(frozen=True, slots=True)
class Targets:
    http: OperatorHttp

    def list(self, *, counts: bool = False) -> Sequence[Json]:
        """The targets that the token may see; with `counts`, how many of their deliveries are not done, by state."""
        found: Sequence[Json] = self.http.get("/v1/targets", {"counts": "true"} if counts else None)["targets"]
        return found

    def get(self, target_id: str) -> Json:
        return self.http.get(_path(target_id))

    def put(self, target_id: str, settings: Mapping[str, Any]) -> Json:
        return self.http.send("PUT", _path(target_id), dict(settings))

    def patch(self, target_id: str, settings: Mapping[str, Any]) -> Json:
        return self.http.send("PATCH", _path(target_id), dict(settings))

    def delete(self, target_id: str) -> bool:
        """False if there was none."""
        return bool(self.http.send("DELETE", _path(target_id))["deleted"])

    def pause(self, target_id: str) -> Json:
        return self.http.send("POST", _path(target_id, "pause"))

    def resume(self, target_id: str) -> Json:
        return self.http.send("POST", _path(target_id, "resume"))

    def drain(self, target_id: str) -> None:
        self.http.send("POST", _path(target_id, "drain"))

    def status(self) -> Json:
        """How all targets fare: what is due, who drains, what is stuck."""
        return self.http.get("/v1/delivery/status")

    def attempts(self, target_id: str, event_id: str) -> Json:
        """One delivery with its last attempts."""
        return self.http.get(_path(target_id, "attempts"), {"event_id": event_id})

    def deliveries(self, target_id: str, status: str | None = None) -> Iterator[Json]:
        """What became of each event; a page is asked for when it is needed."""
        after: str | None = None
        while True:
            page = self.http.get(_path(target_id, "deliveries"), {"status": status, "after": after})
            yield from page["deliveries"]
            after = page["next_after"]
            if after is None:
                return

    def retry(self, target_id: str, event_id: str) -> Json:
        """Try one delivery again; the id is the one that the target knows."""
        return self.http.send("POST", _path(target_id, "deliveries", quote(event_id, safe=""), "retry"))

    def replay(
        self,
        target_id: str,
        contract: str,
        scope: str,
        first: int,
        last: int,
        *,
        until_ms: int | None = None,
        dry_run: bool = False,
    ) -> Iterator[Json]:
        """
        Deliver a range of positions again, step by step: each answer says how many were found and are sent again.

        With `until_ms`, only what was last tried then or before: give the time at which you begin, and a call that is
        repeated replays nothing twice.
        """
        start: int | None = first
        while start is not None:
            body = {"contract": contract, "scope": scope, "from_position": start, "to_position": last}
            step = self.http.send(
                "POST", _path(target_id, "replay"), {**body, "until_ms": until_ms, "dry_run": dry_run}
            )
            yield step
            start = step["next"]

    def retry_many(
        self,
        target_id: str,
        status: str = "terminal_failed",
        *,
        families: Sequence[str] = (),
        since_ms: int | None = None,
        until_ms: int | None = None,
        dry_run: bool = False,
    ) -> Iterator[Json]:
        """Step by step, to the end: each answer says how many matched and how many are tried again."""
        bounds = {"since_ms": since_ms, "until_ms": until_ms, "families": list(families) or None}
        body: Json = {"status": status, "dry_run": dry_run}
        body |= {name: value for name, value in bounds.items() if value is not None}
        while True:
            step = self.http.send("POST", _path(target_id, "retry"), body)
            yield step
            if step["next"] is None:
                return
            body["after"] = step["next"]


@dataclass(frozen=True, slots=True)
class RetentionRules:
    http: OperatorHttp

    def list(self, contract: str | None = None) -> Iterator[Json]:
        """The rules that the token reaches; a page is asked for when it is needed."""
        after: str | None = None
        while True:
            page = self.http.get("/v1/retention", {"contract": contract, "after": after})
            yield from page["policies"]
            after = page["next_after"]
            if after is None:
                return

    def get(self, contract: str, scope: str) -> Json:
        return self.http.get(_scope(contract, scope))

    def put(self, contract: str, scope: str, change: Mapping[str, Any]) -> Json:
        return self.http.send("PUT", _scope(contract, scope), dict(change))

    def plan(self, contract: str, scope: str) -> Json:
        """What would go of this ledger now, and who holds back the rest."""
        return self.http.get(f"{_scope(contract, scope)}/plan")


def _path(target_id: str, *rest: str) -> str:
    return "/".join(["/v1/targets", quote(target_id, safe=""), *rest])


def _scope(contract: str, scope: str) -> str:
    return f"/v1/retention/{quote(contract, safe='')}/{quote(scope, safe='')}"
