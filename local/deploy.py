"""Deploy: create or update a CloudFormation stack, wait for it, and say which resource failed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from local.cloud import Cloud
from local.errors import LocalError
from local.package import package

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import WaiterConfigTypeDef

CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")
MOST_BYTES_INLINE = 51_200
PACE: WaiterConfigTypeDef = {"Delay": 1, "MaxAttempts": 300}


class DeployFailed(LocalError):
    """CloudFormation gave up."""

    def __init__(self, stack_name: str, events: list[str]) -> None:
        super().__init__("\n  ".join([f"The stack {stack_name} could not be deployed:", *events]))


def deploy(
    cloud: Cloud, template: Path, stack_name: str, parameters: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns the stack's outputs."""
    try:
        _apply(cloud.cloudformation, stack_name, _request(cloud, template, stack_name, parameters or {}))
        stack = cloud.cloudformation.describe_stacks(StackName=stack_name)["Stacks"][0]
    except WaiterError as error:
        raise DeployFailed(stack_name, _failures(cloud.cloudformation, stack_name)) from error
    except ClientError as error:
        raise DeployFailed(stack_name, [error.response["Error"].get("Message", str(error))]) from error
    except BotoCoreError as error:
        raise DeployFailed(stack_name, [str(error)]) from error
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _request(cloud: Cloud, template: Path, stack_name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """CloudFormation takes long templates from a bucket only."""
    bucket = f"{stack_name}-artefacts"
    body = package(template, bucket, cloud.s3)
    request = {
        "StackName": stack_name,
        "Capabilities": CAPABILITIES,
        "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
    }
    if len(body.encode()) <= MOST_BYTES_INLINE:
        return request | {"TemplateBody": body}
    cloud.s3.put_object(Bucket=bucket, Key="template.yaml", Body=body.encode())
    return request | {"TemplateURL": f"{cloud.endpoint_url}/{bucket}/template.yaml"}


def _apply(cloudformation: CloudFormationClient, stack_name: str, request: dict[str, Any]) -> None:
    if not _exists(cloudformation, stack_name):
        cloudformation.create_stack(**request)
        cloudformation.get_waiter("stack_create_complete").wait(StackName=stack_name, WaiterConfig=PACE)
        return
    try:
        cloudformation.update_stack(**request)
    except ClientError as error:
        # CloudFormation has no code of its own for this.
        if "No updates are to be performed" in str(error):
            return
        raise
    cloudformation.get_waiter("stack_update_complete").wait(StackName=stack_name, WaiterConfig=PACE)


def _exists(cloudformation: CloudFormationClient, stack_name: str) -> bool:
    try:
        cloudformation.describe_stacks(StackName=stack_name)
    except ClientError:
        return False
    return True


def _failures(cloudformation: CloudFormationClient, stack_name: str) -> list[str]:
    events = cloudformation.describe_stack_events(StackName=stack_name)["StackEvents"]
    return [
        f"{event.get('LogicalResourceId')} ({event.get('ResourceType')}): {event.get('ResourceStatusReason')}"
        for event in reversed(events)
        if event.get("ResourceStatus", "").endswith("FAILED")
    ] or ["no resource reported a failure; see the emulator's log"]
