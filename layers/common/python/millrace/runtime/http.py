"""HTTP: from API Gateway's event to a request, and from a result or an error to its answer."""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from millrace.ledger.domain import strict_json
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import AuthFailed, BadRequest, MillraceError
from millrace.ledger.domain.naming import is_text
from millrace.ledger.domain.tracing import HEADER, traceparent
from millrace.runtime import bearer, observe, settings

MAX_BODY_BYTES = 1024 * 1024

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    body: str
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Request:
    event: Mapping[str, Any]
    noted: dict[str, Any] = field(default_factory=dict)
    """What the log line of this request should say beside route and status."""
    _bearer: Identity | None = None

    @property
    def route(self) -> str:
        """As an HTTP API names it. Through a REST API, the first part of a path is the stage."""
        if "routeKey" in self.event or "resource" not in self.event:
            return str(self.event.get("routeKey") or "")
        return f"{self.method} /{self._context.get('stage', '')}{self.event['resource']}"

    @property
    def method(self) -> str:
        return str(self._context.get("http", {}).get("method") or self.event.get("httpMethod") or "")

    @property
    def _context(self) -> Mapping[str, Any]:
        context: Mapping[str, Any] = self.event.get("requestContext") or {}
        return context

    @property
    def id(self) -> str:
        """As the gateway numbered it; its access log, our log line and the answer have the same."""
        return str(self._context.get("requestId") or "")

    def header(self, name: str) -> str:
        """Header names are case-insensitive, whatever the gateway made of them."""
        headers = self.event.get("headers") or {}
        return str(next((value for key, value in headers.items() if key.lower() == name), ""))

    @property
    def trace(self) -> str:
        """The call of the caller's that this request belongs to, if it says so."""
        return traceparent(self.header(HEADER))

    def path(self, name: str) -> str:
        return _text(name, (self.event.get("pathParameters") or {}).get(name, ""))

    def query(self, name: str) -> str | None:
        """A query parameter; of one given twice, the gateway joins the values by commas."""
        value = (self.event.get("queryStringParameters") or {}).get(name)
        return None if value is None else _text(name, value)

    def only_query(self, *known: str) -> None:
        """A parameter nobody knows may be a typing error in one that matters."""
        unknown = sorted(set(self.event.get("queryStringParameters") or {}) - set(known))
        if unknown:
            rule = f"No such query parameter; known: {', '.join(known) or 'none'}."
            raise BadRequest(rule, field=str(unknown[0])[:64])

    def identity(self) -> Identity:
        """The bearer of this request's token; raises `AuthFailed`, or `Throttled` if its tenant sends too much."""
        if self._bearer is None:
            self._bearer = self._admitted()
        return self._bearer

    def _admitted(self) -> Identity:
        scheme, _, token = self.header("authorization").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise AuthFailed("Send the header Authorization: Bearer <token>.", field="authorization")
        identity = bearer.tokens().verify(token.strip())
        self.noted.update(client_id=identity.client_id, tenant=identity.tenant)
        bearer.count_request(identity.tenant)
        return identity

    def json(self) -> Any:
        """The body as strict JSON; size and type are checked first."""
        self.require_json()
        self.require_no_encoding()
        return strict_json.parse(self.body(), MAX_BODY_BYTES)

    def require_json(self) -> None:
        """Raises `BadRequest` if the body says that it is something else."""
        kind, _, parameters = self.header("content-type").lower().partition(";")
        if kind.strip() != "application/json":
            value_class = kind.strip()[:64] or "none"
            raise BadRequest("Send the body as application/json.", field="content-type", value_class=value_class)
        if parameters.replace(" ", "").replace('"', "") not in ("", "charset=utf-8", "charset=utf8"):
            raise BadRequest("Send the body in UTF-8.", field="content-type", value_class="another charset")

    def require_no_encoding(self) -> None:
        if self.header("content-encoding").strip().lower() not in ("", "identity"):
            raise BadRequest("Send the body without a content encoding.", field="content-encoding")

    @property
    def is_binary(self) -> bool:
        """Whether the gateway took the body for bytes, not text."""
        return bool(self.event.get("isBase64Encoded"))

    def body(self) -> bytes:
        """As it was sent."""
        body = str(self.event.get("body") or "")
        if not self.is_binary:
            strict_json.refuse_replacements(body)
            return body.encode("utf-8", "surrogatepass")
        try:
            return base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise BadRequest("The body is not valid base64.", field="body") from error


def _text(name: str, value: Any) -> str:
    text = str(value)
    if not is_text(text):
        raise BadRequest(f"{name} has a lone surrogate, which no UTF-8 text can carry.", field=name)
    return text


def to_json(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def endpoint(
    answer: Callable[[Request], Response], refuse: Callable[[MillraceError], Response] | None = None
) -> Callable[[Mapping[str, Any], Any], Answer]:
    """Make a function of a request into a Lambda handler: errors become answers, and every call one log line.

    `refuse` says how a contract words its errors; without it they are `{code, message, details}`.
    """

    @wraps(answer)
    def handler(event: Mapping[str, Any], context: Any) -> Answer:
        request = Request(event)
        started = time.perf_counter()
        try:
            response = answer(request)
        except MillraceError as error:
            response = (refuse or refusal)(error)
            request.noted.update(code=error.code, reason=error.message, details=dict(error.details))
        except Exception:  # noqa: BLE001 - the last line of defence: the caller gets an answer, we get the trace
            observe.logger().exception("unexpected_error", route=request.route)
            unknown = MillraceError("Something went wrong on our side; the same request again is safe.")
            response = (refuse or refusal)(unknown)
        observe.logger().info(
            "request",
            **observe.fields(
                method=request.method,
                route=request.route,
                status=response.status,
                duration_ms=round((time.perf_counter() - started) * 1000, 1),
                request_id=request.id or None,
                invocation_id=getattr(context, "aws_request_id", None),
                **request.noted,
            ),
        )
        return _encode(response, request)

    return handler


def refusal(error: MillraceError) -> Response:
    body = {"code": error.code, "message": error.message, "details": dict(error.details)}
    return Response(json.dumps(body), error.status, headers=retry_headers(error))


def retry_headers(error: MillraceError) -> dict[str, str]:
    """What a client should do next, as headers say it."""
    headers = {}
    if error.retry_after_ms is not None:
        headers["retry-after"] = str(max(1, -(-error.retry_after_ms // 1000)))
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def _encode(response: Response, request: Request) -> Answer:
    headers = {"content-type": response.content_type, "x-content-type-options": "nosniff", **response.headers}
    if request.id:
        headers["x-request-id"] = request.id
    headers |= cors_headers(request)
    return {"statusCode": response.status, "headers": headers, "body": response.body, "isBase64Encoded": False}


def cors_headers(request: Request) -> dict[str, str]:
    """Empty unless the deployment allows the origin the browser named."""
    origin, allowed = request.header("origin"), settings.origins()
    if not origin or not allowed & {origin, "*"}:
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
        "access-control-allow-headers": "authorization, content-type, traceparent",
        "access-control-expose-headers": "retry-after, x-request-id",
        "access-control-max-age": "600",
        "vary": "origin",
    }
