"""Makes stack.yaml, the alarms and the dashboard of the hub: `make generated`. A test fails when it is stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from infra.monitoring import dashboard, table
from infra.monitoring.alarm import ALL, Alarm
from infra.monitoring.hub import HubNames, read_hub

STACK = Path(__file__).parent / "stack.yaml"
HEADER = "# Generated from the modules beside it by `make generated`; do not edit.\n"


def alarms(hub: HubNames) -> list[Alarm]:
    return [
        *table.APIS,
        *(alarm for name in hub.functions for alarm in table.of_function(name)),
        *table.FUNCTIONS,
        *table.QUEUES,
        *(alarm for name in hub.tables for alarm in table.of_table(name)),
    ]


def stack(hub: HubNames) -> dict[str, Any]:
    """A new version of a function is taken back when the alarm of its errors goes off: these are handed out."""
    errors = [alarm for name in hub.functions for alarm in table.of_function(name) if alarm.kind == table.ERRORS]
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Millrace's alarms and its dashboard.",
        "Parameters": {
            "Hub": {
                "Type": "String",
                "Description": "The name of the hub's stack. Every name in the hub starts with it.",
            },
            "HttpApiId": {"Type": "String"},
            "SocketApiId": {"Type": "String"},
            "AlarmTopicArn": {
                "Type": "String",
                "Default": "",
                "Description": "The SNS topic that alarms are sent to. If it is empty, they only change colour.",
            },
            "Alarms": {
                "Type": "String",
                "Default": "essential",
                "AllowedValues": ["essential", "all"],
                "Description": "Whether alarms are made whose trouble others show too; each alarm is billed.",
            },
        },
        "Conditions": {
            "Notifies": {"Fn::Not": [{"Fn::Equals": [{"Ref": "AlarmTopicArn"}, ""]}]},
            ALL: {"Fn::Equals": [{"Ref": "Alarms"}, "all"]},
        },
        "Resources": {
            **{alarm.logical_id: alarm.resource() for alarm in alarms(hub)},
            "Dashboard": dashboard.resource(hub),
        },
        "Outputs": {
            "DashboardName": {"Value": {"Ref": "Dashboard"}},
            **{alarm.logical_id: {"Value": {"Ref": alarm.logical_id}} for alarm in errors},
        },
    }


class _Dumper(yaml.SafeDumper):
    """Repeats what occurs twice instead of pointing to it, and writes long texts as they read."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def files() -> dict[Path, str]:
    return {STACK: HEADER + yaml.dump(stack(read_hub()), Dumper=_Dumper, sort_keys=False, width=1000)}
