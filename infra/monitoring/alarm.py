"""An alarm: what is watched, for which trouble, and the text that a person reads when it goes off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infra.monitoring.things import Thing

ALL = "AllAlarms"
"""The condition under which every alarm is made, also those whose trouble others show."""
TELL_THE_TOPIC = {"Fn::If": ["Notifies", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}


@dataclass(frozen=True, slots=True)
class AlarmKind:
    """A kind of trouble: the metric that shows it, and when there is too much of it."""

    name: str
    """Ends the names of its alarms."""
    metric: str
    statistic: str = "Sum"
    seconds: int = 300
    in_a_row: int = 1
    """As many periods of so many seconds must be bad."""
    comparison: str = "GreaterThanThreshold"
    threshold: int = 0
    missing: str = "notBreaching"


@dataclass(frozen=True, slots=True)
class Alarm:
    thing: Thing
    kind: AlarmKind
    wrong: str
    """What is wrong, in one sentence."""
    do: str
    """What to do about it, and what can wait until the morning."""
    shown_by: Sequence[str] = ()
    """The alarms that show the same trouble to whoever suffers from it. Beside them this one names the cause, and is
    made only if all alarms are asked for, since each is billed. Empty: it is always made."""

    @property
    def name(self) -> str:
        return f"{self.thing.name}-{self.kind.name}"

    @property
    def logical_id(self) -> str:
        """The name without "table". It never changes: CloudFormation would create an alarm whose name is taken."""
        return "".join(word.capitalize() for word in self.name.split("-") if word != "table")

    def resource(self) -> dict[str, Any]:
        return {
            "Type": "AWS::CloudWatch::Alarm",
            **({"Condition": ALL} if self.shown_by else {}),
            "Properties": {
                "AlarmName": {"Fn::Sub": f"${{Hub}}-{self.name}"},
                "AlarmDescription": f"{self.wrong} {self.do}",
                "Namespace": _value(self.thing.namespace),
                "MetricName": str(self.kind.metric),
                "Dimensions": [{"Name": name, "Value": _value(text)} for name, text in self.thing.dimensions.items()],
                "Statistic": self.kind.statistic,
                "Period": self.kind.seconds,
                "EvaluationPeriods": self.kind.in_a_row,
                "ComparisonOperator": self.kind.comparison,
                "Threshold": self.kind.threshold,
                "TreatMissingData": self.kind.missing,
                "AlarmActions": TELL_THE_TOPIC,
            },
        }


def _value(text: str) -> str | dict[str, str]:
    if parameter := re.fullmatch(r"\$\{(\w+)\}", text):
        return {"Ref": parameter[1]}
    return {"Fn::Sub": text} if "${" in text else text
