"""The OpenAPI document as one self-contained HTML page: no script, nothing fetched from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #0a7d5a; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 58rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: .2rem }
h2 { margin-top: 2.6rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem }
code { font: 14px/1.5 ui-monospace, monospace; }
.route code { font-size: 1.02rem }
.method { color: white; background: var(--accent); border-radius: 4px; padding: .1rem .5rem; font-weight: 600 }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 1.2rem }
td, th { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
th { font-weight: 600 }
a { color: var(--accent) }
.muted { opacity: .75 }
"""


def page(document: Mapping[str, Any]) -> str:
    info = document["info"]
    body = "\n".join([*_routes(document), *_schemas(document["components"]["schemas"])])
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])} API</title><style>{STYLE}</style></head><body>
<h1>{escape(info["title"])} <small class="muted">{escape(info["version"])}</small></h1>
<p>{_prose(info["description"])}</p>
<p class="muted">The same as OpenAPI: <a href="openapi.json">openapi.json</a></p>
{body}
</body></html>
"""


def _prose(text: str) -> str:
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", marked)


def _routes(document: Mapping[str, Any]) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f'<h2 class="route" id="{operation["operationId"]}"><span class="method">{method.upper()}</span> '
            yield f"<code>{escape(path)}</code></h2><p><strong>{escape(operation['summary'])}.</strong> "
            yield f"{_prose(operation.get('description', ''))}</p>"
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                yield f"<p>Body: {_kind(schema)}</p>"
            yield from _parameters(operation.get("parameters", []))
            yield "<table><tr><th>Status</th><th>Body</th><th>Meaning</th></tr>"
            for status, response in operation["responses"].items():
                kinds = ", ".join(_kind(content["schema"]) for content in response["content"].values())
                yield f"<tr><td>{status}</td><td>{kinds}</td><td>{_prose(response['description'])}</td></tr>"
            yield "</table>"


def _parameters(parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Those of the query; the path shows its own."""
    asked = [one for one in parameters if one["in"] == "query"]
    if asked:
        yield "<table><tr><th>Query</th><th>Type</th><th>Rule</th></tr>"
        for one in asked:
            text = _prose(one.get("description", "")) + _bounds(one["schema"])
            yield f"<tr><td><code>{one['name']}</code></td><td>{_kind(one['schema'])}</td><td>{text}</td></tr>"
        yield "</table>"


def _schemas(schemas: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        if "properties" not in schema:
            continue
        yield f'<h2 id="{name}">{name}</h2><p>{_prose(schema.get("description", ""))}</p>'
        yield "<table><tr><th>Member</th><th>Type</th><th>Rule</th></tr>"
        for member, rule in schema["properties"].items():
            required = "" if member in schema.get("required", []) else ' <span class="muted">optional</span>'
            text = _prose(rule.get("description", "")) + _bounds(rule)
            yield f"<tr><td><code>{member}</code>{required}</td><td>{_kind(rule)}</td><td>{text}</td></tr>"
        yield "</table>"


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f'<a href="#{name}">{name}</a>' if name != "JsonValue" else "any JSON value"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_kind(one) for one in schema[key] if one.get("type") != "null")
    if "const" in schema:
        return f"<code>{escape(json.dumps(schema['const']))}</code>"
    if "enum" in schema:
        return ", ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("type", "any JSON value")))


def _bounds(rule: Mapping[str, Any]) -> str:
    names = {
        "minItems": "at least",
        "maxItems": "at most",
        "minimum": "from",
        "maximum": "to",
        "minLength": "length from",
        "default": "else",
    }
    options = [rule, *rule.get("anyOf", [])]
    rules = [f"{words} {option[key]}" for option in options for key, words in names.items() if key in option]
    return f' <span class="muted">({", ".join(rules)})</span>' if rules else ""
