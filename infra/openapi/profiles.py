"""The routes of profiles of projects."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import JSON, PROBLEMS, content, operation, parameter, problems, ref, response
from millrace.sync.application.choose_profile import FRESH_MS
from millrace.sync.doors.profiles import MOST_LISTED

CHANGE = {"profile": "canonical"}
PLACE = [parameter("project", "path", {"type": "string", "minLength": 1})]


def paths() -> dict[str, Any]:
    body = content(JSON, ref("ProfileChange"))
    body[JSON]["example"] = CHANGE
    done = {"200": response("What holds for the project now.", ref("ProfileAnswer"))}
    reading = [status for status in PROBLEMS if status != "413"]
    return {
        "/v1/profiles": {
            "get": operation(
                "operators",
                "listProfiles",
                "List projects whose profile was set",
                "Those that the token names. A page may be short before the end. Needs the role operator.",
                {"200": response("Some of them.", ref("ProfileList")), **problems(*reading)},
                parameters=[
                    parameter("after", "query", {"type": "string"}, "The `next_after` of the page before."),
                    parameter(
                        "max", "query", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": 100}
                    ),
                ],
            )
        },
        "/v1/projects/{project}/profile": {
            "put": operation(
                "operators",
                "setProfile",
                "Say which shape of events a project takes",
                f"Submits follow within {FRESH_MS // 1000} seconds. Events that were committed before stay as they "
                "are. Null takes away what was set: then the deployment decides. Needs the role operator and the "
                "partition `*`.",
                {**done, **problems(*PROBLEMS)},
                parameters=PLACE,
                body=body,
            ),
            "get": operation(
                "operators",
                "readProfile",
                "Read which shape of events a project takes",
                "And who said so. Needs the role operator.",
                {**done, **problems(*reading)},
                parameters=PLACE,
            ),
        },
    }
