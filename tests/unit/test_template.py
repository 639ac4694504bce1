"""The template keeps the ledger's promises: what CloudFormation gets after the SAM transform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.translated import (
    ROOT,
    attribute,
    environment,
    functions,
    named,
    of_type,
    read,
    template,
    translate,
)

TABLES = sorted(of_type("AWS::DynamoDB::Table"))
API_FUNCTIONS = ("MetaFunction", "SubmitFunction", "SyncFunction")
ROUTES = {
    "POST /v1/projects/{project}/submit_events": "Submit",
    "POST /v1/projects/{project}/sync": "Sync",
    "GET /health": "Meta",
    "GET /openapi.json": "Meta",
    "GET /docs": "Meta",
    "OPTIONS /{proxy+}": "Meta",
    "$default": "Meta",
}


def table(name: str) -> Any:
    return of_type("AWS::DynamoDB::Table")[name]


def the_only(kind: str) -> Any:
    (resource,) = of_type(kind).values()
    return resource["Properties"]


def parameters_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from parameters_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from parameters_in(inner)
    elif value in template()["Parameters"]:
        yield value


@pytest.mark.parametrize("name", TABLES)
def test_a_table_survives_mistakes(name: str) -> None:
    properties = table(name)["Properties"]
    assert table(name)["DeletionPolicy"] == table(name)["UpdateReplacePolicy"] == "Retain"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["DeletionProtectionEnabled"] == {"Fn::If": ["ProtectsTables", True, False]}


def test_tables_are_protected_unless_a_deployment_says_otherwise() -> None:
    assert template()["Parameters"]["DeletionProtection"]["Default"] == "true"
    assert template()["Conditions"]["ProtectsTables"] == {"Fn::Equals": [{"Ref": "DeletionProtection"}, "true"]}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_encrypted_and_paid_by_use(name: str) -> None:
    assert table(name)["Properties"]["SSESpecification"] == {"SSEEnabled": True}
    assert table(name)["Properties"]["BillingMode"] == "PAY_PER_REQUEST"


@pytest.mark.parametrize("name", TABLES)
def test_nothing_in_a_table_expires(name: str) -> None:
    assert "TimeToLiveSpecification" not in table(name)["Properties"]


def test_only_the_log_has_a_stream_and_it_carries_keys_only() -> None:
    streams = {name: table(name)["Properties"].get("StreamSpecification") for name in TABLES}
    assert {name: stream for name, stream in streams.items() if stream} == {"LogTable": {"StreamViewType": "KEYS_ONLY"}}


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("ClaimsTable", [("k", "HASH", "S")]),
        ("LogTable", [("b", "HASH", "S"), ("f", "RANGE", "N")]),
        ("StateTable", [("p", "HASH", "S"), ("s", "RANGE", "S")]),
        ("IndexTable", [("p", "HASH", "S"), ("s", "RANGE", "S")]),
    ],
)
def test_a_table_has_the_keys_its_adapter_writes(name: str, keys: list[tuple[str, str, str]]) -> None:
    properties = table(name)["Properties"]
    types = {one["AttributeName"]: one["AttributeType"] for one in properties["AttributeDefinitions"]}
    assert [
        (key["AttributeName"], key["KeyType"], types[key["AttributeName"]]) for key in properties["KeySchema"]
    ] == keys


def test_every_log_group_forgets_after_the_days_a_deployment_chose() -> None:
    for group in of_type("AWS::Logs::LogGroup").values():
        assert group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_function_logs_into_the_group_that_bears_its_name(function: str) -> None:
    properties = functions()[function]["Properties"]
    group = of_type("AWS::Logs::LogGroup")[properties["LoggingConfig"]["LogGroup"]["Ref"]]
    assert named(group["Properties"]["LogGroupName"]) == "/aws/lambda/" + named(properties["FunctionName"])


def test_each_route_reaches_the_live_alias_of_its_function() -> None:
    reached = {}
    for route in of_type("AWS::ApiGatewayV2::Route").values():
        integration = route["Properties"]["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")
        properties = of_type("AWS::ApiGatewayV2::Integration")[integration]["Properties"]
        assert properties["PayloadFormatVersion"] == "2.0"
        reached[route["Properties"]["RouteKey"]] = properties["IntegrationUri"]["Ref"]
    assert reached == {key: f"{function}FunctionAliaslive" for key, function in ROUTES.items()}


def test_the_api_keeps_callers_within_the_chosen_rate() -> None:
    settings = the_only("AWS::ApiGatewayV2::Stage")["DefaultRouteSettings"]
    assert settings["ThrottlingRateLimit"] == {"Ref": "ThrottleRate"}
    assert settings["ThrottlingBurstLimit"] == {"Ref": "ThrottleBurst"}


def test_the_api_logs_each_request_as_one_json_line_without_payload_or_token() -> None:
    settings = the_only("AWS::ApiGatewayV2::Stage")["AccessLogSettings"]
    assert attribute(settings["DestinationArn"]) == "HttpAccessLogs.Arn"
    line = json.loads(settings["Format"])
    assert "$context.requestId" in line.values()
    assert not [value for value in line.values() if "header" in value.lower() or "authorizer" in value.lower()]


def test_no_origin_may_call_from_a_browser_unless_named() -> None:
    assert template()["Parameters"]["CorsOrigins"]["Default"] == ""
    when, configured, otherwise = the_only("AWS::ApiGatewayV2::Api")["CorsConfiguration"]["Fn::If"]
    assert (when, otherwise) == ("AnswersCors", {"Ref": "AWS::NoValue"})
    assert configured["AllowOrigins"] == {"Ref": "CorsOrigins"}


@pytest.mark.parametrize("function", API_FUNCTIONS)
def test_an_api_function_starts_from_a_snapshot(function: str) -> None:
    assert functions()[function]["Properties"]["SnapStart"] == {"ApplyOn": "PublishedVersions"}


@pytest.mark.parametrize("function", API_FUNCTIONS)
def test_a_changed_parameter_publishes_the_functions_that_read_it(function: str) -> None:
    properties = functions()[function]["Properties"]
    (version,) = (
        v for v in of_type("AWS::Lambda::Version").values() if v["Properties"]["FunctionName"] == {"Ref": function}
    )
    stamped = set(parameters_in(the_only("AWS::AppConfig::HostedConfigurationVersion")["Content"]))
    assert set(parameters_in(properties)) <= stamped
    assert "${Settings}" in properties["Description"]["Fn::Sub"]
    assert "${Settings}" in version["Properties"]["Description"]["Fn::Sub"]


def test_a_new_layer_publishes_the_functions_that_use_it() -> None:
    source = read("template.yaml")
    source["Resources"]["CommonLayer"]["Properties"]["ContentUri"] = "another/"
    before, after = (of_type("AWS::Lambda::Version", t) for t in (template(), translate(source)))
    assert len(before) == len(after) == len(API_FUNCTIONS)
    assert not before.keys() & after.keys()


def test_the_token_secret_is_generated_and_long() -> None:
    generated = the_only("AWS::SecretsManager::Secret")["GenerateSecretString"]
    assert generated["PasswordLength"] >= 48
    assert "SecretString" not in the_only("AWS::SecretsManager::Secret")


@pytest.mark.parametrize("function", sorted(functions()))
def test_the_environment_holds_a_secrets_name_and_never_its_value(function: str) -> None:
    for variable, value in environment(function).items():
        text = json.dumps(value)
        assert "resolve:" not in text
        if any(secret in text for secret in of_type("AWS::SecretsManager::Secret")) or "SECRET" in variable:
            assert variable.endswith("_ARN")
            assert attribute(value) == "TokenSecret.Id"


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_functions_code_is_in_the_folder_the_template_names(function: str) -> None:
    folder = ROOT / read("template.yaml")["Resources"][function]["Properties"]["CodeUri"]
    assert functions()[function]["Properties"]["Handler"] == "app.handler"
    assert (folder / "app.py").is_file()
