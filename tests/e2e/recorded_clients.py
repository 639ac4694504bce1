"""What clients in use send, byte by byte: each shape of S16 in the order and the spelling of its own client.

`TOKEN` stands for the token. A field that a client does not know is not in its JSON at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIRST = {
    "connect": '{"type":"connect","protocolVersion":"1.0","timestamp":1738451200000,"msgId":"9b1c","payload":'
    '{"token":"TOKEN","clientId":"C1"}}',
    "sync": '{"type":"sync","protocolVersion":"1.0","timestamp":1738451200010,"msgId":"0d2e","payload":'
    '{"partitions":["workspace-1"],"sinceCommittedId":0,"limit":500}}',
    "submit_events": '{"type":"submit_events","protocolVersion":"1.0","timestamp":1738451200020,"msgId":"77aa",'
    '"payload":{"events":[{"id":"evt-1","partitions":["workspace-1"],"type":"explorer.folderCreated",'
    '"payload":{"id":"A","name":"Folder \\u00e4","size":1.50,"tags":[]},'
    '"meta":{"clientId":"C1","clientTs":1738451200000}},'
    '{"id":"evt-2","partitions":["workspace-1","archive"],"userId":"user-123","type":"explorer.folderMoved",'
    '"payload":{"id":"A","to":null},"meta":{"clientId":"C1","clientTs":1738451200001.5,"draft":7}}]}}',
}
SECOND = {
    "connect": '{"type":"connect","protocolVersion":"1.0","timestamp":1738451200000,"msgId":"9b1c","payload":'
    '{"token":"TOKEN","clientId":"C1","projectId":"recorded-2"}}',
    "sync": '{"type":"sync","protocolVersion":"1.0","timestamp":1738451200010,"msgId":"0d2e","payload":'
    '{"projectId":"recorded-2","sinceCommittedId":0,"limit":500}}',
    "submit_events": '{"type":"submit_events","protocolVersion":"1.0","timestamp":1738451200020,"msgId":"77aa",'
    '"payload":{"events":[{"id":"evt-1","partition":"workspace-1","projectId":"recorded-2",'
    '"type":"explorer.folderCreated","schemaVersion":1,"payload":{"id":"A","name":"Folder \\u00e4","size":1.50},'
    '"meta":{"clientId":"C1","clientTs":1738451200000}},'
    '{"id":"evt-2","partition":"workspace-1","projectId":"recorded-2","userId":"user-123",'
    '"type":"explorer.folderMoved","schemaVersion":2,"payload":{"id":"A","to":null},'
    '"meta":{"clientId":"C1","clientTs":1738451200001.5}}]}}',
}
COMPARED = ("id", "partition", "partitions", "projectId", "userId", "type", "schemaVersion", "payload", "meta")


def compared(event: Mapping[str, Any]) -> dict[str, Any]:
    """What these clients hold an event that comes to be: if it differs from what they have, they disconnect."""
    return {name: event[name] for name in COMPARED if name in event}
