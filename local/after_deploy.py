"""After a deployment to AWS: protect the tables, put the jobs' code into the bucket, remove versions nobody uses.

CloudFormation cannot do these. A table that is protected from its creation on blocks the rollback of a first deployment
that failed. The bucket exists only after it. And a version that was published stays, which SnapStart bills.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local import jobs
from local.stack import ROOT

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client

KEPT_TABLES = ("ClaimsTable", "LogTable", "StateTable", "IndexTable", "DeliveryTable")
"""Those whose rows are facts. The others hold what passes."""
LATEST = "$LATEST"


@dataclass(frozen=True, slots=True)
class Account:
    cloudformation: CloudFormationClient
    dynamodb: DynamoDBClient
    functions: LambdaClient
    s3: S3Client

    def resources(self, stack: str, kind: str) -> dict[str, str]:
        """Logical name → name in the account."""
        pages = self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        return {
            one["LogicalResourceId"]: one["PhysicalResourceId"]
            for page in pages
            for one in page["StackResourceSummaries"]
            if one["ResourceType"] == kind and "PhysicalResourceId" in one
        }


def protect(account: Account, stack: str) -> list[str]:
    """Returns the tables that were not protected yet."""
    tables = account.resources(stack, "AWS::DynamoDB::Table")
    changed = []
    for name in (tables[logical] for logical in KEPT_TABLES):
        if not account.dynamodb.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
            account.dynamodb.update_table(TableName=name, DeletionProtectionEnabled=True)
            changed.append(name)
    return changed


def remove_old_versions(account: Account, stack: str) -> list[str]:
    """Remove the versions that no alias names. Returns them as `function:version`."""
    removed = []
    for name in account.resources(stack, "AWS::Lambda::Function").values():
        kept = set(_named_by_aliases(account.functions, name)) | {LATEST}
        if kept == {LATEST}:
            continue
        pages = account.functions.get_paginator("list_versions_by_function").paginate(FunctionName=name)
        for version in [one["Version"] for page in pages for one in page["Versions"]]:
            if version not in kept:
                account.functions.delete_function(FunctionName=name, Qualifier=version)
                removed.append(f"{name}:{version}")
    return removed


def _named_by_aliases(functions: LambdaClient, name: str) -> Iterator[str]:
    for page in functions.get_paginator("list_aliases").paginate(FunctionName=name):
        for alias in page["Aliases"]:
            yield alias["FunctionVersion"]
            yield from alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})


def put_jobs(account: Account, stack: str) -> str:
    """Returns the address of the jobs' code."""
    bucket = account.resources(stack, "AWS::S3::Bucket")["ArchiveBucket"]
    for path in (*jobs.build(), jobs.wheels()):
        account.s3.upload_file(str(path), bucket, f"jobs/{path.name}")
    return f"s3://{bucket}/jobs/"


def option_of_sam(option: str, words: str, config: Path) -> str | None:
    """An option of `sam deploy` such as `stack-name`: from its arguments, else from its configuration file."""
    if given := _argument(option, words):
        return given
    try:
        settings = tomllib.loads(config.read_text())
    except FileNotFoundError:
        return None
    chosen = settings.get(_argument("config-env", words) or "default", {})
    key = option.replace("-", "_")
    value = _parameters(chosen, "deploy").get(key) or _parameters(chosen, "global").get(key)
    return value if isinstance(value, str) else None


def _argument(option: str, words: str) -> str | None:
    found = re.search(rf"(?:^|\s)--{option}[ =](\S+)", words)
    return found[1] if found else None


def _parameters(settings: Mapping[str, object], command: str) -> Mapping[str, object]:
    of_command = settings.get(command)
    found = of_command.get("parameters") if isinstance(of_command, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def account_of(session: boto3.Session) -> Account:
    return Account(
        cloudformation=session.client("cloudformation"),
        dynamodb=session.client("dynamodb"),
        functions=session.client("lambda"),
        s3=session.client("s3"),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="make deploy", description=__doc__)
    parser.add_argument("--stack", help="the deployed CloudFormation stack; by default the one that sam deployed")
    asked = parser.parse_args()

    def option(name: str) -> str | None:
        return option_of_sam(name, os.environ.get("SAM_ARGS", ""), ROOT / "samconfig.toml")

    stack = asked.stack or option("stack-name")
    if not stack:
        print(
            "Which stack was deployed? Neither ARGS nor samconfig.toml names one.\n"
            "Say it: make after-deploy ARGS='--stack NAME'",
            file=sys.stderr,
        )
        return 1
    try:
        account = account_of(boto3.Session(region_name=option("region"), profile_name=option("profile")))
        for table in protect(account, stack):
            print(f"{table} is protected against deletion")
        print(f"the jobs' code is in {put_jobs(account, stack)}")
        for version in remove_old_versions(account, stack):
            print(f"{version} is removed: no alias names it")
    except (BotoCoreError, ClientError, KeyError, CalledProcessError) as error:
        print(
            f"{stack} is deployed, but not everything after it could be done: {error!r}\n"
            f"Repeat it as soon as that is mended: make after-deploy ARGS='--stack {stack}'",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
