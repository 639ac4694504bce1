"""The template as CloudFormation gets it: SAM's resources expanded, names filled in. Read by the template tests."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra import cloudformation

ROOT = Path(__file__).parents[2]
STACK = "hub"

# SAM's own library, which ships no types.
transform: Any = import_module("samtranslator.translator.transform").transform

Resource = Mapping[str, Any]
Resources = Mapping[str, Resource]


@cache
def read(path: str) -> dict[str, Any]:
    """One for all who ask: whoever changes it changes a copy."""
    parsed: dict[str, Any] = cloudformation.parse((ROOT / path).read_text())
    return parsed


def translate(source: Mapping[str, Any], **parameters: str) -> dict[str, Any]:
    """What the SAM transform makes of a packaged template; no network, no account."""
    packaged = copy.deepcopy(dict(source))
    for resource in packaged["Resources"].values():
        for uri in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            resource["Properties"][uri] = "s3://packages/" + resource["Properties"][uri].strip("/")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        translated: dict[str, Any] = transform(packaged, parameters, SimpleNamespace(load=dict))
    return translated


@cache
def template() -> dict[str, Any]:
    return translate(read("template.yaml"))


@cache
def monitoring() -> dict[str, Any]:
    return read("infra/monitoring/stack.yaml")


def of_type(kind: str, source: Mapping[str, Any] | None = None) -> Resources:
    resources: Resources = (source or template())["Resources"]
    return {name: resource for name, resource in resources.items() if resource["Type"] == kind}


def functions() -> Resources:
    return of_type("AWS::Lambda::Function")


def named(value: Any) -> str:
    """A name built from the stack's, as it reads in a stack called `hub`."""
    text = value["Fn::Sub"] if isinstance(value, dict) else value
    return str(text).replace("${AWS::StackName}", STACK).replace("${Hub}", STACK)


def attribute(value: Any) -> str:
    """`LogTable.Arn` for a GetAtt, and nothing else: a resource is named by reference or not at all."""
    match value:
        case {"Fn::GetAtt": [str(resource), str(attribute)]}:
            return f"{resource}.{attribute}"
        case _:
            raise AssertionError(f"not a reference to a resource of this template: {value!r}")


def environment(function: str) -> Mapping[str, Any]:
    variables: Mapping[str, Any] = functions()[function]["Properties"]["Environment"]["Variables"]
    return variables
