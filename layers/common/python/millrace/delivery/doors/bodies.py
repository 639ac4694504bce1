"""Bodies that may be compressed: what is too large is refused before it is unpacked, and while."""

from __future__ import annotations

import zlib
from typing import Any

from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest, TooLarge
from millrace.runtime.http import Request

MOST_SENT = 4 * 1024 * 1024
MOST_UNPACKED = 8 * 1024 * 1024
CHUNK = 64 * 1024
AS_BYTES = ("application/octet-stream", "application/gzip")
GZIP = 16 + zlib.MAX_WBITS


class UnsupportedEncoding(BadRequest):
    """The body is encoded in a way that we cannot read; the same body plain is welcome."""

    status = 415


def json_of(request: Request) -> Any:
    """
    The body as strict JSON, plain or gzipped.

    A gateway may hand on a compressed body as text if it is called JSON, which damages it; as bytes it gets through.
    """
    encoding = request.header("content-encoding").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedEncoding("Send the body plain or gzipped.", field="content-encoding")
    if encoding == "gzip" and not request.is_binary:
        rule = "The gateway has damaged the compressed body: send it as application/octet-stream, or plain."
        raise UnsupportedEncoding(rule, field="content-encoding")
    if encoding != "gzip" or request.header("content-type").strip().lower() not in AS_BYTES:
        request.require_json()
    sent = request.body()
    if len(sent) > MOST_SENT:
        raise TooLarge("The body is larger than the limit.", field="body", max_bytes=MOST_SENT, actual_bytes=len(sent))
    return strict_json.parse(unpacked(sent) if encoding == "gzip" else sent, MOST_UNPACKED)


def unpacked(sent: bytes) -> bytes:
    """One gzip member and nothing after it."""
    inflate, parts, size = zlib.decompressobj(GZIP), list[bytes](), 0
    rest = sent
    try:
        while rest and not inflate.eof:
            part = inflate.decompress(rest, CHUNK)
            rest = inflate.unconsumed_tail
            size += len(part)
            if size > MOST_UNPACKED:
                raise TooLarge(
                    "The body is larger than the limit once unpacked.", field="body", max_bytes=MOST_UNPACKED
                )
            parts.append(part)
    except zlib.error as error:
        raise BadRequest("The body is not gzip.", field="body") from error
    if not inflate.eof or inflate.unused_data:
        raise BadRequest("The body is not one whole gzip member.", field="body")
    return b"".join(parts)
