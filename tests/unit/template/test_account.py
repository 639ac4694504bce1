"""What an account may ask for: its own key, a boundary, step-by-step deployments, no Glue, loops that go on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.translated import attribute, functions, monitoring, of_type, read, template, translate

SOURCE = read("template.yaml")
DOORS = sorted(name.removesuffix("Aliaslive") for name in of_type("AWS::Lambda::Alias"))
JOB_PARTS = {
    "AWS::Glue::Database",
    "AWS::Glue::Job",
    "AWS::Glue::Trigger",
}


@pytest.mark.parametrize("role", sorted(of_type("AWS::IAM::Role")))
def test_every_role_keeps_to_the_boundary_that_the_account_asks_for(role: str) -> None:
    properties = of_type("AWS::IAM::Role")[role]["Properties"]
    given = {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}]}
    assert properties["PermissionsBoundary"] == given


def test_every_role_may_use_the_accounts_own_key_through_the_services_that_keep_data() -> None:
    policy = of_type("AWS::IAM::ManagedPolicy")["KeyPolicy"]
    assert policy["Condition"] == "HasKey"
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Resource"] == {"Ref": "KmsKeyArn"}
    services = {one["Fn::Sub"] for one in statement["Condition"]["StringEquals"]["kms:ViaService"]}
    kept = ("dynamodb", "s3", "secretsmanager", "sqs")
    assert services == {
        f"{name}.${{AWS::Region}}.{end}" for name in kept for end in ("amazonaws.com", "${AWS::URLSuffix}")
    }
    for name, role in of_type("AWS::IAM::Role").items():
        given = {"Fn::If": ["HasKey", {"Ref": "KeyPolicy"}, {"Ref": "AWS::NoValue"}]}
        assert (given in role["Properties"]["ManagedPolicyArns"]) == (name != "CanaryRole"), name


@pytest.mark.parametrize("policy", ["KeyPolicy", "TracingPolicy"])
def test_a_role_has_its_policies_before_a_function_takes_it(policy: str) -> None:
    """Lambda refuses to make a function that is to be traced and may not send traces. A policy that names roles comes
    after them, at any time; one that they name comes before."""
    assert not {"Roles", "Users", "Groups"} & of_type("AWS::IAM::ManagedPolicy")[policy]["Properties"].keys()


def test_functions_are_traced_only_if_it_is_asked_for() -> None:
    asked = template()["Parameters"]["Tracing"]
    assert (asked["Default"], asked["AllowedValues"]) == ("PassThrough", ["PassThrough", "Active"])
    assert template()["Conditions"]["HasTracing"] == {"Fn::Equals": [{"Ref": "Tracing"}, "Active"]}
    for name, function in functions().items():
        assert function["Properties"]["TracingConfig"] == {"Mode": {"Ref": "Tracing"}}, name
    stage = template()["Resources"]["BatchStage"]["Properties"]
    assert stage["TracingEnabled"] == {"Fn::If": ["HasTracing", True, False]}


def test_every_function_may_send_traces_and_nothing_else_of_x_ray() -> None:
    policy = of_type("AWS::IAM::ManagedPolicy")["TracingPolicy"]
    assert policy["Condition"] == "HasTracing"
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    given = {"Fn::If": ["HasTracing", {"Ref": "TracingPolicy"}, {"Ref": "AWS::NoValue"}]}
    roles = of_type("AWS::IAM::Role")
    traced = {name for name, role in roles.items() if given in role["Properties"]["ManagedPolicyArns"]}
    assert traced == {attribute(function["Properties"]["Role"]).partition(".")[0] for function in functions().values()}


@pytest.mark.parametrize("secret", sorted(of_type("AWS::SecretsManager::Secret")))
def test_a_secret_is_encrypted_with_the_accounts_own_key_if_there_is_one(secret: str) -> None:
    properties = of_type("AWS::SecretsManager::Secret")[secret]["Properties"]
    assert properties["KmsKeyId"] == {"Fn::If": ["HasKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]}


def test_all_requests_go_to_a_new_version_at_once_unless_a_canary_is_asked_for() -> None:
    assert not of_type("AWS::CodeDeploy::DeploymentGroup")
    assert not [name for name, alias in of_type("AWS::Lambda::Alias").items() if "UpdatePolicy" in alias]


def test_with_a_canary_every_door_is_taken_back_when_the_alarm_of_its_errors_goes_off() -> None:
    translated = translate(SOURCE, Canary="true")
    groups = of_type("AWS::CodeDeploy::DeploymentGroup", translated)
    assert sorted(name.removesuffix("DeploymentGroup") for name in groups) == DOORS
    for name, group in groups.items():
        properties = group["Properties"]
        alarm = f"{name.removesuffix('FunctionDeploymentGroup')}Errors"
        (watched,) = properties["AlarmConfiguration"]["Alarms"]
        assert watched["Name"] == {"Fn::GetAtt": ["Monitoring", f"Outputs.{alarm}"]}
        assert monitoring()["Outputs"][alarm]["Value"] == {"Ref": alarm}
        assert properties["DeploymentConfigName"] == {
            "Fn::Sub": ["CodeDeployDefault.Lambda${ConfigName}", {"ConfigName": "Canary10Percent10Minutes"}]
        }
    aliases = of_type("AWS::Lambda::Alias", translated)
    assert all("CodeDeployLambdaAliasUpdate" in alias["UpdatePolicy"] for alias in aliases.values())


def test_a_region_without_glue_gets_everything_but_the_jobs() -> None:
    """Whatever refers to a part of the jobs is left out with them."""
    left_out = {
        name for name, one in template()["Resources"].items() if one.get("Condition") in ("HasJobs", "RunsJobs")
    }
    assert left_out >= {name for kind in JOB_PARTS for name in of_type(kind)}
    for name, resource in (template()["Resources"] | template()["Outputs"]).items():
        if resource.get("Condition") not in ("HasJobs", "RunsJobs"):
            assert not set(unconditional(resource)) & left_out, name


def unconditional(value: Any) -> list[str]:
    """The resources that a value refers to whatever HasJobs says."""
    match value:
        case {"Fn::If": ["HasJobs", _, otherwise]}:
            return unconditional(otherwise)
        case {"Ref": str(name)}:
            return [name]
        case {"Fn::GetAtt": [str(name), _]}:
            return [name]
        case dict():
            return [name for inner in value.values() for name in unconditional(inner)]
        case list():
            return [name for inner in value for name in unconditional(inner)]
        case _:
            return []


def test_lambda_lets_those_go_on_that_ring_for_themselves() -> None:
    """It ends a loop through SQS after about 16 rounds, and a busy ledger takes more."""
    mappings = [one["Properties"] for one in of_type("AWS::Lambda::EventSourceMapping").values()]
    queue_of = {
        (one["FunctionName"]["Ref"].removesuffix("Aliaslive"), one["EventSourceArn"]["Fn::GetAtt"][0])
        for one in mappings
    }
    rings = {
        (name, value["Ref"])
        for name, function in functions().items()
        for value in function["Properties"]["Environment"]["Variables"].values()
        if isinstance(value, dict) and "Ref" in value
    }
    around = {name for name, _ in queue_of & rings} | {"CrowdFunction"}  # which calls itself, without a queue
    allowed = {name for name, one in functions().items() if one["Properties"].get("RecursiveLoop") == "Allow"}
    assert allowed == around


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_function_runs_on_the_platform_that_the_layer_is_built_for(function: str) -> None:
    assert functions()[function]["Properties"]["Architectures"] == ["arm64"]
    assert SOURCE["Resources"]["CommonLayer"]["Properties"]["CompatibleArchitectures"] == ["arm64"]
