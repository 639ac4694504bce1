"""Sends one HTTP request of streams and markers until it has a final answer. The token may be renewed meanwhile."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import httpx

from millrace_client.errors import Usage
from millrace_client.streams.sdk_answers import error_of, foreign_error, is_error
from millrace_client.streams.sdk_errors import NoAnswer, SdkError
from millrace_client.sync.dial import Token
from millrace_client.sync.http import JSON, RETRIED, retry_after
from millrace_client.sync.protocol import Json
from millrace_client.sync.settings import Backoff, Settings


@dataclass(frozen=True, slots=True)
class Reply:
    """`attempts` above 1: an earlier request may have been carried out although its answer was lost."""

    body: Json
    attempts: int = 1


def segment(name: str, value: str) -> str:
    """An id as part of a path. Raises `Usage` for one that would make another path."""
    if value in ("", ".", ".."):
        raise Usage(f"{name} is not empty, and neither . nor ..")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError as error:
        raise Usage(f"{name} has characters that no UTF-8 text has.") from error


class Rest:
    """
    The hub's HTTP side, as an async context manager.

    Whatever may succeed later is sent again, up to `attempts` requests in all: no answer, a gateway's 429 and 5xx, and
    the hub's errors that say `retryable`. The hub's Retry-After is a lower bound of the pause. Where nobody listens,
    `refusals` of them are enough.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        attempts: int,
        settings: Settings,
        refusals: int | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise Usage(f"{url} is not an address: it starts with http:// or https://.")
        if attempts < 1:
            raise Usage("attempts is at least 1: it counts the first one too.")
        self.attempts = attempts
        self._refusals = attempts if refusals is None else refusals
        self.settings = settings
        self._url = url.rstrip("/")
        self._token = token
        self._transport = transport
        self._in_use: str | None = None
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        timeout = httpx.Timeout(self.settings.request_timeout, connect=self.settings.connect_timeout)
        self._http = httpx.AsyncClient(timeout=timeout, transport=self._transport)
        return self

    async def __aexit__(self, *_: object) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str | int | None] | None = None, content: bytes = b""
    ) -> Reply:
        """The answer's object. Raises `SdkError` or `NoAnswer`; parameters that are None are left out."""
        query = {name: value for name, value in (params or {}).items() if value is not None}
        backoff = Backoff(self.settings)
        for attempt in range(1, self.attempts + 1):
            last = attempt == self.attempts
            try:
                return Reply(await self._try(method, path, query, content), attempt)
            except SdkError as error:
                error.attempts = attempt
                if last or not error.may_repeat:
                    raise
                wait = error.retry_after
            except _Passing as error:
                refused = isinstance(error.__cause__, httpx.ConnectError) and attempt >= self._refusals
                if last or refused:
                    raise NoAnswer(str(error)) from error.__cause__
                wait = error.retry_after
            await self.settings.sleep(max(backoff.next(), wait))
        raise AssertionError("the last attempt returns or raises")

    async def _try(self, method: str, path: str, query: Mapping[str, Any], content: bytes) -> Json:
        response = await self._send(method, path, query, content, self._in_use or await self._ask())
        if response.status_code == httpx.codes.UNAUTHORIZED and not isinstance(self._token, str):
            refused = self._in_use
            token = await self._ask()
            if token != refused:
                response = await self._send(method, path, query, content, token)
        return _object(response)

    async def _send(
        self, method: str, path: str, query: Mapping[str, Any], content: bytes, token: str
    ) -> httpx.Response:
        if self._http is None:
            raise Usage("Use the runtime inside `async with`.")
        headers = {"Authorization": f"Bearer {token}"} | (JSON if content else {})
        try:
            return await self._http.request(
                method, self._url + path, params=query or None, content=content or None, headers=headers
            )
        except httpx.RequestError as error:
            raise _Passing(f"Cannot reach {self._url}: {str(error) or type(error).__name__}") from error
        except httpx.InvalidURL as error:
            raise NoAnswer(f"{self._url} is not an address: {error}") from error

    async def _ask(self) -> str:
        made = self._token if isinstance(self._token, str) else self._token()
        token = await made if inspect.isawaitable(made) else made
        if not token or not token.isascii() or not token.isprintable():
            raise Usage("The token is empty or has characters that no token has.")
        self._in_use = token
        return token


class _Passing(Exception):
    """No readable answer; the next one may be."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def _object(response: httpx.Response) -> Json:
    status = response.status_code
    body = _json(response)
    if body is not None and response.is_success:
        return body
    error = _error(status, body)
    if error is not None:
        error.retry_after = retry_after(response)
        raise error
    message = f"{response.url.copy_with(query=None)} answered {status}, but not as a hub does: is it one?"
    if status in RETRIED:
        raise _Passing(message, retry_after(response))
    raise NoAnswer(message)


def _json(response: httpx.Response) -> Json | None:
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _error(status: int, body: Json | None) -> SdkError | None:
    if body is None:
        return None
    return error_of(body, status) if is_error(body) else foreign_error(status, body, status in RETRIED)
