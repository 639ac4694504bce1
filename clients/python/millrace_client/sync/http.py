"""The hub over HTTP: submit events and read them by position. Blocking; retries go out under the same ids."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self
from urllib.parse import quote

import httpx

from millrace_client.errors import Refused, Unreachable, Usage
from millrace_client.sync.cursor_errors import CursorAhead
from millrace_client.sync.protocol import compact

RETRIED = {429, 500, 502, 503, 504}
"""Whether the hub did its work before it answered so or not, the same request again is safe: ids are deduped."""
LONGEST_WAIT = 60.0

JSON = {"Content-Type": "application/json"}

Json = dict[str, Any]


class Client:
    """
    `attempts` counts the first try; where nobody listens, `refusals` of them are enough.

    `sleep` and `transport` are there for tests.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        attempts: int = 6,
        refusals: int | None = None,
        timeout: float = 30,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise Usage(f"{url} is not an address: it starts with http:// or https://.")
        if token is not None and not token.isascii():
            raise Usage("The token has characters that no token has.")
        self._url = url.rstrip("/")
        self._attempts = attempts
        self._refusals = attempts if refusals is None else refusals
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def health(self) -> Json:
        """Asked once: whoever asks wants to know how it is now."""
        return self._send("GET", "/health", attempts=1)

    def delivery_status(self) -> Json:
        """How the targets of the token's tenant fare; for operators."""
        return self._send("GET", "/v1/delivery/status")

    def submit(self, project: str, events: Sequence[Mapping[str, Any]]) -> list[Json]:
        """One result per event, in order. At most as many events as the hub takes in one request."""
        body = self._send("POST", f"/v1/projects/{quote(project, safe='')}/submit_events", {"events": list(events)})
        results: list[Json] = body["results"]
        return results

    def sync(
        self,
        project: str,
        partitions: Sequence[str] | None = None,
        since: int = 0,
        limit: int | None = None,
        sync_to: int | None = None,
    ) -> Json:
        """One page of the events after `since`; without partitions, of the whole project."""
        optional = {
            "partitions": list(partitions) if partitions else None,
            "limit": limit,
            "sync_to_committed_id": sync_to,
        }
        body = {"since_committed_id": since} | {name: value for name, value in optional.items() if value is not None}
        return self._send("POST", f"/v1/projects/{quote(project, safe='')}/sync", body)

    def pages(
        self,
        project: str,
        partitions: Sequence[str] | None = None,
        since: int = 0,
        limit: int | None = None,
        *,
        on_future_cursor: Literal["raise", "resync"] = "raise",
    ) -> Iterator[Json]:
        """
        One sync cycle: pages up to the head as it was at the first page.

        Raises `CursorAhead` if the hub does not have the position `since`; `resync` reads everything instead.
        """
        sync_to = None
        while True:
            page = self.sync(project, partitions, since, limit, sync_to)
            if sync_to is None and page["sync_to_committed_id"] < since:
                if on_future_cursor == "raise":
                    raise CursorAhead(since, page["sync_to_committed_id"])
                since = 0
                continue
            yield page
            if not page["has_more"]:
                return
            since, sync_to = page["next_since_committed_id"], page["sync_to_committed_id"]

    def _send(self, method: str, path: str, body: Json | None = None, attempts: int | None = None) -> Json:
        attempts = attempts or self._attempts
        content = None if body is None else compact(body).encode()
        for attempt in range(1, attempts + 1):
            last = attempt == attempts
            try:
                response = self._http.request(
                    method, self._url + path, content=content, headers=JSON if content else {}
                )
            except httpx.TransportError as error:
                refused = isinstance(error, httpx.ConnectError) and attempt >= self._refusals
                if last or refused:
                    raise Unreachable(f"Cannot reach {self._url}: {error}") from error
                self._sleep(_pause(attempt))
                continue
            except httpx.InvalidURL as error:
                raise Unreachable(f"{self._url} is not an address: {error}") from error
            if response.status_code not in RETRIED or last:
                return _answer(response)
            self._sleep(retry_after(response) or _pause(attempt))
        raise AssertionError("the last attempt returns or raises")


def _answer(response: httpx.Response) -> Json:
    try:
        body = response.json()
    except ValueError as error:
        raise Unreachable(f"{response.url} answered {response.status_code}, and not in JSON: is it a hub?") from error
    if not isinstance(body, dict):
        raise Unreachable(f"{response.url} answered {response.status_code}, but not with an object: is it a hub?")
    if response.is_success:
        return body
    code = str(body.get("code") or body.get("machine_code") or "error")
    message = str(body.get("message") or response.reason_phrase)
    raise Refused(response.status_code, code, message, _details(body))


def _details(body: Json) -> Json:
    """Realtime tells the errors of an event beside its details; here they are among them."""
    details = body.get("details")
    details = details if isinstance(details, dict) else {}
    return {"errors": body["errors"]} | details if body.get("errors") else details


def _pause(attempt: int) -> float:
    return random.uniform(0.5, 1) * min(5.0, 0.2 * 2.0**attempt)  # noqa: S311


def retry_after(response: httpx.Response) -> float:
    """Seconds, 0 if the hub named none; the other form of this header, a date, is not one of its answers."""
    try:
        seconds = float(response.headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0
    return min(seconds, LONGEST_WAIT) if seconds > 0 else 0.0
