"""Makes the template with which CloudFormation adopts restored tables: `python -m infra.adopt --stack NAME …`.

A stack is created by an import of just these resources; a deployment of the whole template then adds the rest to it.
An import takes no resource that it does not adopt, no output and, to be on the safe side, no transform.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra import cloudformation

ROOT = Path(__file__).parents[1]
FOLDER = Path("build") / "adopt"
IDENTIFIERS = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SecretsManager::Secret": "Id",
}
"""Type → the property by which an import names a resource."""
TABLES = ("ClaimsTable", "LogTable", "DeliveryTable")
"""What is restored. State and Index are made anew, and rebuilt."""


class CannotAdopt(Exception):
    """What was asked for is nothing that this template can adopt."""


def adoption(
    template: Mapping[str, Any], stack: str, tables: Sequence[str] = TABLES, others: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The template of the import, and what it imports. `others`: logical id → name of a bucket, ARN of a secret."""
    named = {table: f"{stack}-{table.removesuffix('Table').lower()}" for table in tables} | dict(others or {})
    resources = {name: _adoptable(template, name) for name in named}
    conditions = {name for name in template.get("Conditions", {}) if name in set(_texts(resources))}
    kept_conditions = {name: template["Conditions"][name] for name in sorted(conditions)}
    referred = set(_references([resources, kept_conditions]))
    parameters = {name: value for name, value in template.get("Parameters", {}).items() if name in referred}
    made = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Adopts what was restored; the whole template is deployed over it.",
        "Parameters": parameters,
        "Conditions": kept_conditions,
        "Resources": resources,
    }
    imports = [
        {
            "ResourceType": resources[name]["Type"],
            "LogicalResourceId": name,
            "ResourceIdentifier": {IDENTIFIERS[resources[name]["Type"]]: physical},
        }
        for name, physical in named.items()
    ]
    return made, imports


def _adoptable(template: Mapping[str, Any], name: str) -> Any:
    resource = template["Resources"].get(name)
    if resource is None or resource["Type"] not in IDENTIFIERS:
        raise CannotAdopt(f"{name} is no table, bucket or secret of the template.")
    if resource.get("DeletionPolicy", "Delete") == "Delete":
        raise CannotAdopt(f"{name} goes with its stack: there is nothing to adopt.")
    return resource


def _references(value: Any) -> Iterator[str]:
    """What is named by Ref; of these resources nothing is named in any other way."""
    if isinstance(value, Mapping):
        if isinstance(value.get("Ref"), str):
            yield value["Ref"]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _references(one)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _texts(one)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.adopt", description=__doc__)
    parser.add_argument("--stack", required=True, help="the name of the stack that adopts; its tables begin with it")
    parser.add_argument("--also", action="append", default=[], metavar="ID=NAME", help="a bucket, or a secret by ARN")
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder to write to")
    asked = parser.parse_args(argv)
    others = dict(one.partition("=")[::2] for one in asked.also)
    try:
        template, imports = adoption(
            cloudformation.parse((ROOT / "template.yaml").read_text()), asked.stack, others=others
        )
    except CannotAdopt as error:
        print(error, file=sys.stderr)
        return 2
    asked.to.mkdir(parents=True, exist_ok=True)
    for name, content in (("template.json", template), ("resources.json", imports)):
        (asked.to / name).write_text(json.dumps(content, indent=2) + "\n")
        print(asked.to / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
