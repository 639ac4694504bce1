"""Talking to a hub's sync contract, as an application would."""

from __future__ import annotations

from typing import Any

import httpx

from tests.e2e.conftest import Hub


def item(id_: str, payload: Any = None, partitions: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": id_, "partitions": partitions or ["p1"], "event": {"type": "t", "payload": payload}, **more}


def post(hub: Hub, path: str, body: Any, **claims: Any) -> httpx.Response:
    return hub.http.post(path, json=body, headers=hub.headers(**claims))


def submit(hub: Hub, project: str, *items: Any) -> list[dict[str, Any]]:
    response = post(hub, f"/v1/projects/{project}/submit_events", {"events": list(items)}, projects=[project])
    assert response.status_code == 200, response.text
    results: list[dict[str, Any]] = response.json()["results"]
    return results


def sync_page(hub: Hub, project: str, **body: Any) -> dict[str, Any]:
    response = post(hub, f"/v1/projects/{project}/sync", {"since_committed_id": 0, **body}, projects=[project])
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def sync_all(hub: Hub, project: str, **body: Any) -> list[dict[str, Any]]:
    """A whole cycle, its watermark given back from page to page."""
    page = sync_page(hub, project, **body)
    events = page["events"]
    while page["has_more"]:
        going_on = {
            "since_committed_id": page["next_since_committed_id"],
            "sync_to_committed_id": page["sync_to_committed_id"],
        }
        page = sync_page(hub, project, **{**body, **going_on})
        events += page["events"]
    return list(events)


def log_lines(hub: Hub, function: str) -> list[str]:
    """What a function has logged so far. The emulator shows a late line with the same process's next call."""
    logs = hub.client("logs")
    group = f"/aws/lambda/{hub.stack.functions[function]}"
    return [
        event["message"]
        for stream in logs.describe_log_streams(logGroupName=group)["logStreams"]
        for event in logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"])["events"]
    ]
