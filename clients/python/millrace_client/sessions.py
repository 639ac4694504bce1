"""Realtime sessions over HTTP: publish events, replay them, remember how far a consumer is, read the transcript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from millrace_client.errors import Refused
from millrace_client.sync.http import Client, Json


class SessionGapped(Refused):
    """Events after the position are no longer kept. Nothing was skipped yet."""

    def __init__(self, session_id: str, after: int, pruned_through: int) -> None:
        text = (
            f"Events {after + 1} to {pruned_through} of {session_id} are no longer kept; "
            f"read on after {pruned_through}."
        )
        super().__init__(410, "pruned", text, {"after": after, "pruned_through": pruned_through})
        self.pruned_through = pruned_through


class Realtime(Client):
    """The realtime contract of a hub. A context manager, as `Client` is; `subscribe` is in `Subscriber`."""

    def publish(self, event: Mapping[str, Any]) -> Json:
        """The stored event, and whether it was there before. Sent again under the same `eventId` until answered."""
        return self._send("POST", "/v1/realtime/events", dict(event))

    def publish_many(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Json]:
        """One result each, in order: as `publish` answers, or with `ok` false and the error. At most 100."""
        answer = self._send("POST", "/v1/realtime/events", {"events": [dict(event) for event in events]})
        results: Sequence[Json] = answer["results"]
        return results

    def page(self, session_id: str, after: int = 0, limit: int | None = None) -> Json:
        """One page by sequence, as the hub answers it."""
        return self._get(session_id, "events", {"afterSequence": after, "limit": limit})

    def page_of(self, session_id: str, consumer_id: str, limit: int | None = None) -> Json:
        """The page after a consumer's checkpoint."""
        return self._get(session_id, "events", {"consumerId": consumer_id, "limit": limit})

    def replay(self, session_id: str, after: int = 0, *, limit: int | None = None) -> Iterator[Json]:
        """Every event after a sequence up to the newest, once each. Raises `SessionGapped`."""
        while True:
            page = self.page(session_id, after, limit)
            pruned = page.get("prunedThrough")
            if pruned is not None and pruned > after:
                raise SessionGapped(session_id, after, pruned)
            yield from page["events"]
            if not page["hasMore"]:
                return
            after = page["events"][-1]["sequence"]

    def checkpoint(self, session_id: str, consumer_id: str, event: Mapping[str, Any]) -> bool:
        """Remember that a consumer is done with `event`; False if it was further already."""
        body = {
            "consumerId": consumer_id,
            "watermarkTs": event["ts"],
            "watermarkEventId": event["eventId"],
            "watermarkSequence": event.get("sequence"),
        }
        return bool(self._send("POST", _path(session_id, "checkpoint"), body)["applied"])

    def transcript(self, session_id: str, *, rebuild: bool = False) -> Json:
        """All utterances, in order, with the sequence they were taken at. A rebuild needs an operator."""
        query: Json = {"rebuild": "true" if rebuild else None}
        answer = self._get(session_id, "transcript", query)
        utterances = list(answer["utterances"])
        while answer["hasMore"]:
            last = utterances[-1]
            place = {"afterStartMs": last["startMs"], "afterUtteranceId": last["utteranceId"]}
            answer = self._get(session_id, "transcript", place)
            utterances += answer["utterances"]
        return {**answer, "utterances": utterances}

    def metrics(self) -> Json:
        return self._send("GET", "/v1/realtime/metrics")

    def schema(self, event_type: str) -> Json:
        """The JSON Schema of a type's payload."""
        return self._send("GET", f"/v1/realtime/schemas/{quote(event_type, safe='')}")

    def _get(self, session_id: str, part: str, query: Mapping[str, Any]) -> Json:
        given = {name: value for name, value in query.items() if value is not None}
        path = _path(session_id, part)
        return self._send("GET", f"{path}?{urlencode(given)}" if given else path)


def _path(session_id: str, part: str) -> str:
    return f"/v1/realtime/sessions/{quote(session_id, safe='')}/{part}"
