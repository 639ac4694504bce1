"""The HTTP edge: requests decoded, errors translated, CORS answered, nothing leaked."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from millrace.ledger.domain.errors import BadRequest, Contention, Throttled, TooLarge
from millrace.runtime import observe
from millrace.runtime.http import Request, Response, endpoint

JSON = {"Content-Type": "application/json; charset=utf-8"}


def call(answer: Any, **event: Any) -> dict[str, Any]:
    return endpoint(answer)({"routeKey": "POST /x", "requestContext": {"http": {"method": "POST"}}, **event}, None)


def echo(request: Request) -> Response:
    return Response(json.dumps(request.json()))


def test_a_body_is_read_plain_or_in_base64() -> None:
    assert call(echo, headers=JSON, body='{"a":"ü"}')["body"] == '{"a": "\\u00fc"}'
    encoded = base64.b64encode('{"a":"ü"}'.encode()).decode()
    assert call(echo, headers=JSON, body=encoded, isBase64Encoded=True)["body"] == '{"a": "\\u00fc"}'
    assert call(echo, headers=JSON, body="%%%", isBase64Encoded=True)["statusCode"] == 400


def test_a_body_with_a_content_encoding_is_refused() -> None:
    answer = call(echo, headers={**JSON, "Content-Encoding": "gzip"}, body="{}")
    assert (answer["statusCode"], json.loads(answer["body"])["details"]["field"]) == (400, "content-encoding")


@pytest.mark.parametrize(
    ("error", "status", "code", "retry"),
    [
        (BadRequest("no", field="x"), 400, "bad_request", None),
        (TooLarge("no"), 413, "too_large", None),
        (Throttled("slow down"), 429, "rate_limited", "1"),
        (Contention("busy"), 503, "server_error", "1"),
    ],
)
def test_an_error_becomes_its_answer(error: Exception, status: int, code: str, retry: str | None) -> None:
    def fail(_request: Request) -> Response:
        raise error

    answer = call(fail)
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (status, code)
    assert answer["headers"].get("retry-after") == retry


def test_an_unexpected_error_is_a_500_without_its_text() -> None:
    def fail(_request: Request) -> Response:
        raise RuntimeError("hunter2")

    answer = call(fail)
    assert answer["statusCode"] == 500
    assert json.loads(answer["body"])["code"] == "server_error"
    assert "hunter2" not in answer["body"]


@pytest.mark.parametrize(
    ("allowed", "origin", "answered"),
    [
        ("", "https://a.example", None),
        ("https://a.example,https://b.example", "https://b.example", "https://b.example"),
        ("https://a.example", "https://evil.example", None),
        ("*", "https://any.example", "https://any.example"),
        ("https://a.example", "", None),
    ],
)
def test_cors_is_answered_only_to_allowed_origins(
    monkeypatch: pytest.MonkeyPatch, allowed: str, origin: str, answered: str | None
) -> None:
    monkeypatch.setenv("CORS_ORIGINS", allowed)
    headers = call(lambda _request: Response("{}"), headers={"Origin": origin})["headers"]
    assert headers.get("access-control-allow-origin") == answered


def test_bytes_that_were_not_utf_8_are_refused_and_not_merged_into_one() -> None:
    """A gateway puts U+FFFD for them, so two ids could become one; the escape is fine."""
    answer = call(echo, headers=JSON, body='{"id":"w\ufffd"}')
    assert (answer["statusCode"], "UTF-8" in answer["body"]) == (400, True)
    assert call(echo, headers=JSON, body='{"id":"w\\ufffd"}')["statusCode"] == 200
    invalid = base64.b64encode(b'{"id":"w\xff"}').decode()
    assert call(echo, headers=JSON, body=invalid, isBase64Encoded=True)["statusCode"] == 400


def test_another_charset_is_refused() -> None:
    answer = call(echo, headers={"content-type": "application/json; charset=latin1"}, body="{}")
    assert (answer["statusCode"], json.loads(answer["body"])["details"]["field"]) == (400, "content-type")


def test_an_unknown_query_parameter_is_named() -> None:
    def answer(request: Request) -> Response:
        request.only_query("limit")
        return Response("{}")

    assert call(answer, queryStringParameters={"limit": "1"})["statusCode"] == 200
    refused = call(answer, queryStringParameters={"limt": "1"})
    assert (refused["statusCode"], json.loads(refused["body"])["details"]["field"]) == (400, "limt")


@pytest.mark.parametrize("error", [None, BadRequest("no"), RuntimeError("boom")])
def test_a_request_has_one_id_in_the_answer_in_our_log_and_in_the_gateways(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, Any]] = []
    quiet = SimpleNamespace(info=lambda _name, **fields: lines.append(fields), exception=lambda *_, **__: None)
    monkeypatch.setattr(observe, "logger", lambda: quiet)

    def handle(_request: Request) -> Response:
        if error:
            raise error
        return Response("{}")

    event = {"requestContext": {"requestId": "gateway-1", "http": {"method": "GET"}}, "routeKey": "GET /x"}
    answer = endpoint(handle)(event, SimpleNamespace(aws_request_id="invocation-1"))
    assert answer["headers"]["x-request-id"] == "gateway-1"
    assert [(line["request_id"], line["invocation_id"]) for line in lines] == [("gateway-1", "invocation-1")]
