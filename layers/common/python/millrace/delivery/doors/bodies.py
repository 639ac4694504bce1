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
ENCODINGS = ("", "identity", "gzip", "x-gzip")
GZIP = 16 + zlib.MAX_WBITS
MAGIC = b"\x1f\x8b"
"""How gzip begins, and no JSON does."""


class UnsupportedEncoding(BadRequest):
    """The body is encoded in a way that we cannot read; the same body plain is welcome."""

    status = 415


def json_of(request: Request) -> Any:
    """
    The body as strict JSON, plain or gzipped.

    Whether it is compressed is seen by its first bytes: a gateway may have unpacked it and left the header, or the
    other way round.
    """
    encoding = request.header("content-encoding").strip().lower()
    if encoding not in ENCODINGS:
        raise UnsupportedEncoding("Send the body plain or gzipped.", field="content-encoding")
    says_packed = encoding.endswith("gzip")
    if not request.is_binary and str(request.event.get("body") or "").startswith("\x1f"):
        rule = "A gateway has damaged the compressed body: send it as application/octet-stream, or plain."
        raise UnsupportedEncoding(rule, field="content-encoding")
    sent = request.body()
    is_packed = sent.startswith(MAGIC)
    if not (is_packed or says_packed) or request.header("content-type").strip().lower() not in AS_BYTES:
        request.require_json()
    most = MOST_UNPACKED if says_packed and not is_packed else MOST_SENT
    if len(sent) > most:
        raise TooLarge("The body is larger than the limit.", field="body", max_bytes=most, actual_bytes=len(sent))
    return strict_json.parse(unpacked(sent) if is_packed else sent, MOST_UNPACKED)


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
