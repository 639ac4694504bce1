"""What the emulator's gateways do with compressed bodies: an HTTP API hands on the bytes, a REST API unpacks them.

Imported by `local.launch` only: it is the emulator's.
"""

import json
import zlib
from typing import Any

from ministack.services import apigateway, apigateway_v1

MOST_BYTES = 10 * 1024 * 1024
"""Of a request, as AWS counts it."""
GZIP = 16 + zlib.MAX_WBITS


class Packed(str):
    """The type of what is in a compressed body. The body is bytes, whatever that says."""

    __slots__ = ()


def pass_bytes_on() -> None:
    """The emulator decodes a body by its type alone, which damages JSON that is compressed: no byte of it is left.

    What an HTTP API does there is not documented, and our door takes more than this (ADR 0015).
    """
    invoke, is_text = apigateway._invoke_lambda_proxy, apigateway._v2_request_body_is_text  # noqa: SLF001

    async def unharmed(*arguments: Any, **settings: Any) -> Any:
        integration, api_id, stage, path, method, headers, *rest = arguments
        if headers.get("content-encoding") and "content-type" in headers:
            headers = {**headers, "content-type": Packed(headers["content-type"])}
        return await invoke(integration, api_id, stage, path, method, headers, *rest, **settings)

    apigateway._invoke_lambda_proxy = unharmed  # noqa: SLF001
    apigateway._v2_request_body_is_text = lambda kind: not isinstance(kind, Packed) and is_text(kind)  # noqa: SLF001


def unpack_as_rest_apis_do() -> None:
    """AWS documents that a REST API unpacks requests; the header is left, as nothing says that it goes."""
    execute = apigateway_v1.handle_execute

    async def unpacking(*arguments: Any, **settings: Any) -> Any:
        api_id, stage, method, path, headers, body, *rest = arguments
        if body and headers.get("content-encoding", "").strip().lower() == "gzip":
            try:
                body = _unpacked(body)
            except zlib.error:
                return _refusal(415, "Unsupported Media Type")
            if body is None:
                return _refusal(413, "Request Too Long")
        return await execute(api_id, stage, method, path, headers, body, *rest, **settings)

    apigateway_v1.handle_execute = unpacking


def _unpacked(body: bytes) -> bytes | None:
    """None if it is more than a request may have."""
    inflate = zlib.decompressobj(GZIP)
    content = inflate.decompress(body, MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        return None
    if not inflate.eof:
        raise zlib.error("cut off")
    return content


def _refusal(status: int, message: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps({"message": message}).encode()
