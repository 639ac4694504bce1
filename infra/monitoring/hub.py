"""The hub as template.yaml states it: the names of its functions and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import cloudformation

TEMPLATE = Path(__file__).parents[2] / "template.yaml"


@dataclass(frozen=True, slots=True)
class HubNames:
    functions: Sequence[str]
    tables: Sequence[str]


def read_hub() -> HubNames:
    resources = cloudformation.parse(TEMPLATE.read_text())["Resources"]
    return HubNames(
        functions=_names(resources, "AWS::Serverless::Function", "FunctionName"),
        tables=_names(resources, "AWS::DynamoDB::Table", "TableName"),
    )


def _names(resources: Mapping[str, Any], kind: str, field: str) -> list[str]:
    """`submit` for a function called `${AWS::StackName}-submit`."""
    return [
        resource["Properties"][field]["Fn::Sub"].removeprefix("${AWS::StackName}-")
        for resource in resources.values()
        if resource["Type"] == kind
    ]
