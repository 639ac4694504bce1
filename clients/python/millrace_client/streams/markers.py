"""Markers of a runtime: points that many clients may change. A client that was not first is told, by the revision."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from millrace_client.errors import Usage
from millrace_client.streams.rest import Reply, Rest, segment
from millrace_client.streams.sdk_answers import not_found
from millrace_client.streams.sdk_errors import Conflict, NoAnswer
from millrace_client.sync.protocol import Json, compact
from millrace_client.sync.settings import Backoff

PAGE = 500


@dataclass(frozen=True, slots=True)
class Position:
    lat: float
    lon: float
    alt_m: float | None = None

    def as_json(self) -> Json:
        place: Json = {"lat": self.lat, "lon": self.lon}
        return place if self.alt_m is None else place | {"alt_m": self.alt_m}


@dataclass(frozen=True, slots=True)
class Marker:
    """A record as the hub has it. A write names the revision it has seen."""

    marker_id: str
    label: str
    position: Position
    revision: int
    updated_ts_ms: int
    topic_id: str | None = None
    extensions: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Markers:
    """
    The markers of one runtime; `Runtime.markers` has them.

    Writing needs a token with the role producer; whatever reads the list, also on the way to a write, consumer too.
    """

    _rest: Rest
    _path: str
    _new_id: Callable[[], str]

    async def create(
        self,
        label: str,
        position: Position,
        *,
        marker_id: str | None = None,
        topic_id: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Marker:
        """
        Raises `Conflict` if a marker has the id. Without one it gets a new id here, so that trying again is safe.

        If an answer was lost on the way, a marker with this id, label, position and topic is taken for the one that
        this call created.
        """
        chosen = self._new_id() if marker_id is None else marker_id
        optional = {"topic_id": topic_id, "extensions": None if extensions is None else dict(extensions)}
        given = {name: value for name, value in optional.items() if value is not None}
        body = {"marker_id": chosen, "label": label, "position": position.as_json()} | given
        try:
            return _written(await self._rest.request("POST", self._path, content=_encoded(body)))
        except Conflict as error:
            found = await self.refresh(chosen) if error.attempts > 1 else None
            if found is None or (marker_id is not None and not _is(found, label, position, topic_id)):
                raise
            return found

    async def move(
        self,
        marker_id: str,
        position: Position,
        expected_revision: int | None = None,
        *,
        extensions: Mapping[str, Any] | None = None,
        retry: bool = True,
    ) -> Marker:
        """
        Without a revision the current one is read first; extensions that are given take the place of the marker's.

        If another write came first, the marker is read from the list again and then moved, over what the other one
        did, until it holds or attempts run out; with `retry=False` the `Conflict` is raised instead. A marker that is
        gone is not brought back: that is `SDK_RUNTIME_NOT_FOUND`, or the `Conflict` if it went in the meantime.
        """
        path = f"{self._path}/{segment('marker_id', marker_id)}/position"
        expected = await self._revision(marker_id) if expected_revision is None else expected_revision
        backoff = Backoff(self._rest.settings)
        given = {} if extensions is None else {"extensions": dict(extensions)}
        for left in reversed(range(self._rest.attempts)):
            body = {"position": position.as_json(), "expected_revision": expected, **given}
            try:
                return _written(await self._rest.request("PATCH", path, content=_encoded(body)))
            except Conflict as error:
                if not (retry and left) and error.attempts == 1:
                    raise
                found = await self.refresh(marker_id)
                if found is None:
                    raise
                if error.attempts > 1 and found.revision == expected + 1 and found.position == position:
                    return found  # our own write, whose answer was lost
                if not (retry and left):
                    raise
                expected = found.revision
            await self._rest.settings.sleep(backoff.next())
        raise AssertionError("the last attempt returns or raises")

    async def delete(self, marker_id: str, expected_revision: int | None = None) -> bool:
        """
        False if there is no such marker, or if an earlier attempt of this call deleted it and its answer was lost.

        Without a revision the current one is read first. A `Conflict` is raised, never overridden: what someone else
        has just changed is not for this call to delete.
        """
        path = f"{self._path}/{segment('marker_id', marker_id)}"
        if expected_revision is None:
            found = await self.refresh(marker_id)
            if found is None:
                return False
            expected_revision = found.revision
        reply = await self._rest.request("DELETE", path, params={"expected_revision": expected_revision})
        return reply.body.get("accepted") is True

    async def refresh(self, marker_id: str) -> Marker | None:
        """The marker as it is now, read from the list page by page; None if there is none."""
        async with aclosing(self.list()) as markers:
            async for marker in markers:
                if marker.marker_id == marker_id:
                    return marker
        return None

    async def list(self, topic_id: str | None = None, *, page: int = PAGE) -> AsyncGenerator[Marker, None]:
        """All markers, or those of a topic; `page` is how many are asked for at once."""
        cursor: str | None = None
        while True:
            query = {"cursor": cursor, "max": page, "topic_id": topic_id}
            body = (await self._rest.request("GET", self._path, params=query)).body
            records, cursor = _page(body)
            for record in records:
                yield _marker(record)
            if cursor is None:
                return

    async def _revision(self, marker_id: str) -> int:
        found = await self.refresh(marker_id)
        if found is None:
            raise not_found("There is no such marker.", domain="marker", marker_id=marker_id)
        return found.revision


def _encoded(body: Json) -> bytes:
    try:
        return compact(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Usage(f"The marker is not JSON: {error}") from error


def _written(reply: Reply) -> Marker:
    return _marker(reply.body.get("marker"))


def _page(body: Json) -> tuple[list[Any], str | None]:
    records, cursor = body.get("markers"), body.get("next_cursor")
    if isinstance(records, list) and (cursor is None or (isinstance(cursor, str) and cursor)):
        return records, cursor
    raise NoAnswer("A list of markers that is not of the contract.")


def _marker(record: Any) -> Marker:
    try:
        place = record["position"]
        return Marker(
            str(record["marker_id"]),
            str(record["label"]),
            Position(place["lat"], place["lon"], place.get("alt_m")),
            int(record["revision"]),
            int(record["updated_ts_ms"]),
            record.get("topic_id"),
            record.get("extensions"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NoAnswer(f"A marker that is not of the contract: {error!r}") from error


def _is(found: Marker, label: str, position: Position, topic_id: str | None) -> bool:
    """Extensions are left out: the hub may keep them redacted."""
    return (found.label, found.position, found.topic_id) == (label, position, topic_id)
