"""The template keeps the ledger's promises: what CloudFormation gets after the SAM transform."""

from __future__ import annotations

import copy
import json
import re
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

from infra.cloudformation import parse
from tests.support.translated import (
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
PASSING = {"ConnectionsTable": "ttl", "DiagnosticsTable": "ttl", "WaitingTable": "z"}
"""Who is connected or waits, which is no fact, and raw values that end with their grant: every other table keeps what
it has. Each with the attribute that says when a row ends."""
LASTING = [name for name in TABLES if name not in PASSING]
ALSO_ANSWERED = {
    "ingest": {"POST /api/v1/events/{proxy+}"},
    "meta": {"OPTIONS /{proxy+}", "$default"},
}
"""Routes that a function answers beside those it names: an HTTP API has no route that ends in a slash."""
SOCKET_ROUTES = {"$connect", "$disconnect", "$default"}


def answered(folder: str) -> set[str]:
    """The routes that a function names: the keys of its `ROUTES`, or the first words of its module."""
    module = runpy.run_path(str(ROOT / "functions" / folder / "app.py"))
    if "ROUTES" in module:
        return set(module["ROUTES"])
    methods, path = re.fullmatch(r"([A-Z and]+) (/\S+): .*", module["__doc__"]).groups()  # type: ignore[union-attr]
    return {f"{method} {path}" for method in methods.split(" and ")}


def folder_of(function: str) -> str:
    return str(SOURCE["Resources"][function]["Properties"]["CodeUri"]).strip("/").rpartition("/")[2]


SOURCE = read("template.yaml")
API_FUNCTIONS = sorted(name.removesuffix("Aliaslive") for name in of_type("AWS::Lambda::Alias"))


def table(name: str) -> Any:
    return of_type("AWS::DynamoDB::Table")[name]


def properties_of(name: str) -> Any:
    return template()["Resources"][name]["Properties"]


def routes_of(api: str) -> Iterator[tuple[str, Any]]:
    """Route key → the integration's properties."""
    for route in of_type("AWS::ApiGatewayV2::Route").values():
        if route["Properties"]["ApiId"] == {"Ref": api}:
            integration = route["Properties"]["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")
            yield route["Properties"]["RouteKey"], properties_of(integration)


def access_logs(stage: str) -> Any:
    settings = properties_of(stage)["AccessLogSettings"]
    return settings["Fn::If"][1] if "Fn::If" in settings else settings


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


@pytest.mark.parametrize("name", LASTING)
def test_a_table_survives_mistakes(name: str) -> None:
    assert table(name)["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


@pytest.mark.parametrize("name", [*LASTING, "ArchiveBucket", *sorted(of_type("AWS::SecretsManager::Secret"))])
def test_facts_and_what_opens_them_stay_when_their_stack_goes(name: str) -> None:
    """A first deployment that fails takes back what it made; else every retry would meet names that are taken."""
    resource = template()["Resources"][name]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


@pytest.mark.parametrize("name", TABLES)
def test_no_table_is_protected_by_the_template(name: str) -> None:
    """Protected from its creation on, a table blocks the rollback of a first deployment. `make deploy` protects it."""
    assert "DeletionProtectionEnabled" not in table(name)["Properties"]


@pytest.mark.parametrize(("api", "stage"), [("HttpApi", "HttpStage"), ("SocketApi", "SocketStage")])
def test_a_stage_is_made_after_all_its_routes(api: str, stage: str) -> None:
    """It deploys itself: made earlier, it would be deployed again for each of them."""
    routes = of_type("AWS::ApiGatewayV2::Route")
    own = [name for name, route in routes.items() if route["Properties"]["ApiId"] == {"Ref": api}]
    assert sorted(template()["Resources"][stage]["DependsOn"]) == sorted(own)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_encrypted_and_paid_by_use(name: str) -> None:
    """By a key that AWS owns, which costs nothing, or by the account's own."""
    own = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": {"Ref": "KmsKeyArn"}}
    assert table(name)["Properties"]["SSESpecification"] == {"Fn::If": ["HasKey", own, {"Ref": "AWS::NoValue"}]}
    assert table(name)["Properties"]["BillingMode"] == "PAY_PER_REQUEST"


@pytest.mark.parametrize("name", LASTING)
def test_nothing_in_a_table_expires(name: str) -> None:
    assert "TimeToLiveSpecification" not in table(name)["Properties"]


@pytest.mark.parametrize(("name", "ends"), PASSING.items())
def test_what_passes_expires_and_goes_with_its_stack(name: str, ends: str) -> None:
    assert table(name)["Properties"]["TimeToLiveSpecification"] == {"AttributeName": ends, "Enabled": True}
    assert table(name)["DeletionPolicy"] == table(name)["UpdateReplacePolicy"] == "Delete"


def test_no_backup_of_raw_values_outlives_their_grant() -> None:
    """P4: a recovery to an earlier time would bring back what a grant's end took away."""
    assert "PointInTimeRecoverySpecification" not in table("DiagnosticsTable")["Properties"]
    assert "StreamSpecification" not in table("DiagnosticsTable")["Properties"]


def test_only_the_log_has_a_stream_and_it_carries_keys_only() -> None:
    streams = {name: table(name)["Properties"].get("StreamSpecification") for name in TABLES}
    assert {name: stream for name, stream in streams.items() if stream} == {"LogTable": {"StreamViewType": "KEYS_ONLY"}}


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("ClaimsTable", [("k", "HASH", "S")]),
        ("LogTable", [("b", "HASH", "S"), ("f", "RANGE", "N")]),
        ("WaitingTable", [("l", "HASH", "S"), ("k", "RANGE", "B")]),
        ("StateTable", [("p", "HASH", "S"), ("s", "RANGE", "S")]),
        ("DiagnosticsTable", [("p", "HASH", "S"), ("s", "RANGE", "S")]),
        ("IndexTable", [("p", "HASH", "S"), ("s", "RANGE", "S")]),
        ("ConnectionsTable", [("p", "HASH", "S"), ("s", "RANGE", "S")]),
        ("DeliveryTable", [("p", "HASH", "S"), ("s", "RANGE", "S")]),
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


def test_each_route_reaches_the_live_alias_of_the_function_that_answers_it() -> None:
    reached: dict[str, set[str]] = {}
    for key, integration in routes_of("HttpApi"):
        assert integration["PayloadFormatVersion"] == "2.0"
        reached.setdefault(folder_of(integration["IntegrationUri"]["Ref"].removesuffix("Aliaslive")), set()).add(key)
    assert {"submit", "sync", "poll"} <= reached.keys()
    for folder, keys in reached.items():
        batch = {"POST /api/v1/events/batch/"}
        assert keys == (answered(folder) - batch) | ALSO_ANSWERED.get(folder, set()), folder


def test_exactly_the_functions_behind_an_api_have_a_live_alias() -> None:
    reached = {integration["IntegrationUri"]["Ref"] for _, integration in routes_of("HttpApi")}
    assert reached | {"SocketFunctionAliaslive"} == of_type("AWS::Lambda::Alias").keys()


def test_no_route_ends_in_a_slash_which_an_http_api_refuses() -> None:
    assert not [key for key, _ in routes_of("HttpApi") if key.endswith("/")]


def test_every_message_of_a_socket_reaches_the_live_alias_of_one_function() -> None:
    integrations = dict(routes_of("SocketApi"))
    assert integrations.keys() == SOCKET_ROUTES
    for integration in integrations.values():
        uri, names = integration["IntegrationUri"]["Fn::Sub"]
        assert uri.endswith(":lambda:path/2015-03-31/functions/${Function}/invocations")
        assert names == {"Function": {"Ref": "SocketFunctionAliaslive"}}
        assert integration["IntegrationType"] == "AWS_PROXY"
        assert "PayloadFormatVersion" not in integration


def test_the_socket_is_routed_by_the_type_of_its_messages() -> None:
    assert properties_of("SocketApi")["ProtocolType"] == "WEBSOCKET"
    assert properties_of("SocketApi")["RouteSelectionExpression"] == "$request.body.type"


@pytest.mark.parametrize("function", ["SocketFunction", "FanOutFunction", "ConsoleFunction", "MetaFunction"])
def test_a_function_that_sends_or_says_where_knows_the_socket_and_its_stage(function: str) -> None:
    assert environment(function)["SOCKET_API_ID"] == {"Ref": "SocketApi"}
    assert environment(function)["SOCKET_STAGE"] == properties_of("SocketStage")["StageName"]


def test_the_output_names_the_sockets_address_with_its_stage() -> None:
    condition, own, address = template()["Outputs"]["WebSocketUrl"]["Value"]["Fn::If"]
    assert (condition, own) == ("HasSocketDomain", {"Fn::Sub": "wss://${SocketDomainName}"})
    address = address["Fn::Sub"]
    assert address.startswith("wss://${SocketApi}.execute-api.")
    assert address.endswith(f"/{properties_of('SocketStage')['StageName']}")


def test_the_socket_has_a_name_of_its_own_if_the_operator_has_one() -> None:
    """API Gateway maps no WebSocket API to a name that has an API of another kind."""
    mapping = properties_of("SocketMapping")
    assert (mapping["ApiId"], mapping["Stage"]) == ({"Ref": "SocketApi"}, {"Ref": "SocketStage"})
    assert mapping["DomainName"] == {"Ref": "SocketDomain"}
    assert "ApiMappingKey" not in mapping
    assert properties_of("SocketDomain")["DomainName"] == {"Ref": "SocketDomainName"}
    parts = [template()["Resources"][name] for name in ("SocketDomain", "SocketMapping")]
    assert {one["Condition"] for one in parts} == {"HasSocketDomain"}
    assert template()["Parameters"]["SocketDomainName"]["Default"] == ""
    assert attribute(template()["Outputs"]["SocketDomainTarget"]["Value"]) == "SocketDomain.RegionalDomainName"
    of_http = [one["Properties"] for one in of_type("AWS::ApiGatewayV2::ApiMapping").values()]
    assert [one["ApiId"] for one in of_http if one["DomainName"] == {"Ref": "SocketDomain"}] == [{"Ref": "SocketApi"}]


@pytest.mark.parametrize("function", ["ConsoleFunction", "MetaFunction"])
def test_who_says_where_the_socket_is_knows_its_own_name(function: str) -> None:
    assert environment(function)["SOCKET_DOMAIN"] == {"Ref": "SocketDomainName"}


@pytest.mark.parametrize("stage", sorted(of_type("AWS::ApiGatewayV2::Stage")))
def test_an_api_keeps_callers_within_the_chosen_rate(stage: str) -> None:
    settings = properties_of(stage)["DefaultRouteSettings"]
    assert settings["ThrottlingRateLimit"] == {"Ref": "ThrottleRate"}
    assert settings["ThrottlingBurstLimit"] == {"Ref": "ThrottleBurst"}


@pytest.mark.parametrize(("stage", "group"), [("HttpStage", "HttpAccessLogs"), ("SocketStage", "SocketAccessLogs")])
def test_an_api_logs_each_request_as_one_json_line_without_payload_or_token(stage: str, group: str) -> None:
    settings = access_logs(stage)
    assert attribute(settings["DestinationArn"]) == f"{group}.Arn"
    line = json.loads(settings["Format"])
    assert "$context.requestId" in line.values()
    assert all(value.startswith("$context.") for value in line.values())
    assert not [value for value in line.values() if "header" in value.lower() or "authorizer" in value.lower()]


def test_no_api_logs_what_it_carries() -> None:
    for stage in of_type("AWS::ApiGatewayV2::Stage"):
        assert not properties_of(stage)["DefaultRouteSettings"].keys() & {"DataTraceEnabled", "LoggingLevel"}


def test_a_hub_deploys_to_an_account_where_sockets_may_not_log() -> None:
    assert template()["Parameters"]["WebSocketAccessLogs"]["Default"] == "false"
    when, _, otherwise = properties_of("SocketStage")["AccessLogSettings"]["Fn::If"]
    assert (when, otherwise) == ("LogsSockets", {"Ref": "AWS::NoValue"})
    assert template()["Resources"]["SocketAccessLogs"]["Condition"] == "LogsSockets"


def test_no_origin_may_call_from_a_browser_unless_named() -> None:
    assert template()["Parameters"]["CorsOrigins"]["Default"] == ""
    when, configured, otherwise = properties_of("HttpApi")["CorsConfiguration"]["Fn::If"]
    assert (when, otherwise) == ("AnswersCors", {"Ref": "AWS::NoValue"})
    assert configured["AllowOrigins"] == {"Ref": "CorsOrigins"}


def test_a_named_origin_may_use_every_method_there_is_a_route_for() -> None:
    _, configured, _ = properties_of("HttpApi")["CorsConfiguration"]["Fn::If"]
    routed = {key.partition(" ")[0] for key, _ in routes_of("HttpApi")} - {"$default"}
    assert routed <= set(configured["AllowMethods"])


@pytest.mark.parametrize("function", API_FUNCTIONS)
def test_an_api_function_starts_from_a_snapshot_only_if_asked_to(function: str) -> None:
    assert functions()[function]["Properties"]["SnapStart"] == {"ApplyOn": {"Ref": "SnapStart"}}
    assert template()["Parameters"]["SnapStart"]["Default"] == "None"


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
    source = copy.deepcopy(read("template.yaml"))
    source["Resources"]["CommonLayer"]["Properties"]["ContentUri"] = "another/"
    before, after = (of_type("AWS::Lambda::Version", t) for t in (template(), translate(source)))
    assert len(before) == len(after) == len(API_FUNCTIONS)
    assert not before.keys() & after.keys()


@pytest.mark.parametrize("secret", sorted(of_type("AWS::SecretsManager::Secret")))
def test_a_secret_is_generated_and_long(secret: str) -> None:
    assert properties_of(secret)["GenerateSecretString"]["PasswordLength"] >= 48
    assert "SecretString" not in properties_of(secret)


def test_a_replaced_secret_publishes_the_functions_that_read_it() -> None:
    """Its address is in their environment, which a published version keeps."""
    stamped = the_only("AWS::AppConfig::HostedConfigurationVersion")["Content"]["Fn::Join"][1]
    for secret in of_type("AWS::SecretsManager::Secret"):
        assert {"Fn::GetAtt": [secret, "Id"]} in stamped


@pytest.mark.parametrize("function", sorted(functions()))
def test_the_environment_holds_a_secrets_name_and_never_its_value(function: str) -> None:
    for variable, value in environment(function).items():
        text = json.dumps(value)
        assert "resolve:" not in text
        if any(secret in text for secret in of_type("AWS::SecretsManager::Secret")) or "SECRET" in variable:
            kind = variable.removesuffix("_SECRET_ARN").capitalize()
            assert attribute(value) == f"{kind}Secret.Id"


@pytest.mark.parametrize("function", ["EmitFunction", "MarkersFunction"])
def test_who_writes_streams_knows_the_privacy_policy(function: str) -> None:
    """P3"""
    assert environment(function)["PRIVACY_POLICY"] == {"Ref": "PrivacyPolicy"}
    assert json.loads(template()["Parameters"]["PrivacyPolicy"]["Default"]) == {}


def test_no_deployment_can_allow_targets_on_its_own_machine() -> None:
    """D12"""
    for function in functions():
        assert "MILLRACE_LOOPBACK_TARGETS" not in environment(function)
    assert not [name for name in template()["Parameters"] if "loopback" in name.lower()]


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_functions_code_is_in_the_folder_the_template_names(function: str) -> None:
    folder = ROOT / read("template.yaml")["Resources"][function]["Properties"]["CodeUri"]
    assert functions()[function]["Properties"]["Handler"] == "app.handler"
    assert (folder / "app.py").is_file()


def test_what_one_reader_changes_in_a_template_no_other_sees() -> None:
    text = "Resources:\n  Table: {Name: !Ref Stage}"
    parse(text)["Resources"].clear()
    assert parse(text) == {"Resources": {"Table": {"Name": {"Ref": "Stage"}}}}
