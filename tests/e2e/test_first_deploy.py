"""A first deployment that fails leaves nothing behind, and what `make deploy` does after one that succeeds."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, WaiterError

from local import after_deploy, cloud
from local.after_deploy import KEPT_TABLES, Account
from local.emulator import emulator, free_port
from tests.support.translated import template

KEPT = sorted(
    name for name, one in template()["Resources"].items() if one.get("DeletionPolicy", "").startswith("Retain")
)
FAILING = {
    "Type": "AWS::Lambda::Url",
    "DependsOn": KEPT,
    "Properties": {"TargetFunctionArn": "nobody", "AuthType": "AWS_IAM"},
}
PACE: Any = {"Delay": 1, "MaxAttempts": 60}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with emulator(tmp_path_factory.mktemp("emulator"), free_port()) as started:
        where = cloud.at(started.endpoint_url)
        yield Account(where.cloudformation, where.client("dynamodb"), where.client("lambda"), where.s3)


def facts(**more: Any) -> str:
    """The part of the template that holds facts: it stays when a stack goes."""
    resources = {name: template()["Resources"][name] for name in KEPT} | more
    return json.dumps({"Resources": resources})


def tables(account: Account) -> set[str]:
    return set(account.dynamodb.list_tables()["TableNames"])


def test_a_first_deployment_that_fails_can_simply_be_repeated(account: Account) -> None:
    account.cloudformation.create_stack(StackName="first", TemplateBody=facts(Failing=FAILING))
    created = account.cloudformation.get_waiter("stack_create_complete")
    with pytest.raises(WaiterError):
        created.wait(StackName="first", WaiterConfig=PACE)
    assert tables(account) == set()

    account.cloudformation.delete_stack(StackName="first")
    account.cloudformation.get_waiter("stack_delete_complete").wait(StackName="first", WaiterConfig=PACE)
    account.cloudformation.create_stack(StackName="first", TemplateBody=facts())
    created.wait(StackName="first", WaiterConfig=PACE)
    assert tables(account) == {f"first-{name.removesuffix('Table').lower()}" for name in KEPT_TABLES}


def test_after_a_deployment_no_table_of_facts_can_be_deleted(account: Account) -> None:
    account.cloudformation.create_stack(StackName="protected", TemplateBody=facts())
    account.cloudformation.get_waiter("stack_create_complete").wait(StackName="protected", WaiterConfig=PACE)
    changed = after_deploy.protect(account, "protected")
    assert len(changed) == len(KEPT_TABLES)
    for name in changed:
        with pytest.raises(ClientError, match="protect"):
            account.dynamodb.delete_table(TableName=name)
    assert after_deploy.protect(account, "protected") == []


def test_every_table_that_stays_is_protected() -> None:
    assert sorted(KEPT_TABLES) == [name for name in KEPT if name.endswith("Table")]


def asked_for(job: str) -> set[str]:
    """What of the bucket a job needs when it starts."""
    properties = template()["Resources"][job]["Properties"]
    named = [properties["Command"]["ScriptLocation"], *properties["DefaultArguments"].values()]
    places = [one["Fn::Sub"] for one in named if isinstance(one, dict) and "Fn::Sub" in one]
    ours = "s3://${ArchiveBucket}/"
    return {place.removeprefix(ours) for place in places if place.startswith(f"{ours}jobs/")}


def test_the_jobs_code_is_put_into_the_bucket(account: Account) -> None:
    account.cloudformation.create_stack(StackName="jobs", TemplateBody=facts())
    account.cloudformation.get_waiter("stack_create_complete").wait(StackName="jobs", WaiterConfig=PACE)
    bucket = after_deploy.put_jobs(account, "jobs").removeprefix("s3://").partition("/")[0]
    listed = account.s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert {one["Key"] for one in listed} == asked_for("CompactJob") | asked_for("RetainJob")


def test_versions_that_no_alias_names_are_removed(account: Account) -> None:
    functions = account.functions
    role = "arn:aws:iam::000000000000:role/x"
    for name in ("aliased", "plain"):
        functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=role,
            Handler="app.handler",
            Code={"ZipFile": zipped(1)},
            Publish=True,
        )
    for number in (2, 3, 4):
        functions.update_function_code(FunctionName="aliased", ZipFile=zipped(number), Publish=True)
    weights: Any = {"AdditionalVersionWeights": {"3": 0.5}}
    functions.create_alias(FunctionName="aliased", Name="live", FunctionVersion="4", RoutingConfig=weights)

    class OfStack(Account):
        def resources(self, stack: str, kind: str) -> dict[str, str]:
            return {"Aliased": "aliased", "Plain": "plain"}

    removed = after_deploy.remove_old_versions(
        OfStack(account.cloudformation, account.dynamodb, functions, account.s3), "any"
    )
    assert removed == ["aliased:1", "aliased:2"]
    assert versions(functions, "aliased") == {"$LATEST", "3", "4"}
    assert versions(functions, "plain") == {"$LATEST", "1"}


def versions(functions: Any, name: str) -> set[str]:
    return {one["Version"] for one in functions.list_versions_by_function(FunctionName=name)["Versions"]}


def zipped(answer: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("app.py", f"def handler(event, context): return {answer}")
    return made.getvalue()


@pytest.mark.parametrize(
    ("words", "config", "stack"),
    [
        ("--stack-name hub", None, "hub"),
        ("--region eu-west-1 --stack-name=hub", "", "hub"),
        ("", '[default.deploy.parameters]\nstack_name = "hub"\n', "hub"),
        ("", '[default.global.parameters]\nstack_name = "hub"\n', "hub"),
        ("--config-env test", '[default.deploy.parameters]\nstack_name = "hub"\n', None),
        ("", "[default.deploy]\nparameters = 3\n", None),
        ("", None, None),
    ],
)
def test_the_stack_is_the_one_that_sam_was_told(
    tmp_path: Path, words: str, config: str | None, stack: str | None
) -> None:
    file = tmp_path / "samconfig.toml"
    if config is not None:
        file.write_text(config)
    assert after_deploy.option_of_sam("stack-name", words, file) == stack
