"""The batch door: a REST API beside the HTTP API, whose path and rights are the same (D8)."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.delivery.domain.targets import BATCH_PATH
from tests.support.translated import attribute, of_type, template
from tests.unit.template.test_template import properties_of, routes_of


def path_of(resource: str) -> str:
    properties = properties_of(resource)
    parent = properties["ParentId"]
    above = path_of(parent["Ref"]) if "Ref" in parent else ""
    return f"{above}/{properties['PathPart']}"


def test_it_has_the_path_that_the_http_api_has() -> None:
    """Its stage is the first part of it."""
    (method,) = of_type("AWS::ApiGateway::Method").values()
    path = f"/{properties_of('BatchStage')['StageName']}{path_of(method['Properties']['ResourceId']['Ref'])}"
    assert f"{method['Properties']['HttpMethod']} {path}" in dict(routes_of("HttpApi"))
    assert BATCH_PATH.startswith(path.removesuffix("{proxy+}"))


def test_it_reaches_the_live_alias_of_the_same_function_which_it_alone_may_call_for_that_path() -> None:
    integration = properties_of("BatchMethod")["Integration"]
    uri, names = integration["Uri"]["Fn::Sub"]
    assert uri.endswith(":lambda:path/2015-03-31/functions/${Function}/invocations")
    assert integration["Type"] == "AWS_PROXY"
    assert integration["IntegrationHttpMethod"] == "POST"
    assert names["Function"] == properties_of("IngestIntegration")["IntegrationUri"]
    permission = properties_of("BatchPermission")
    assert permission["FunctionName"] == names["Function"]
    assert permission["SourceArn"]["Fn::Sub"].endswith(":${BatchApi}/*/POST/v1/events/*")


def test_bodies_reach_the_function_as_bytes_whatever_their_type() -> None:
    """D8: so that nothing is lost, whether or not the gateway has unpacked them."""
    assert properties_of("BatchApi")["BinaryMediaTypes"] == ["*/*"]


def test_the_token_is_checked_by_the_function_as_on_every_route() -> None:
    assert properties_of("BatchMethod")["AuthorizationType"] == "NONE"


def test_it_keeps_callers_within_the_chosen_rate_and_logs_no_bodies() -> None:
    (settings,) = properties_of("BatchStage")["MethodSettings"]
    assert settings["ThrottlingRateLimit"] == {"Ref": "ThrottleRate"}
    assert settings["ThrottlingBurstLimit"] == {"Ref": "ThrottleBurst"}
    assert not settings.keys() & {"DataTraceEnabled", "LoggingLevel"}


def test_a_deployment_is_made_after_what_it_copies() -> None:
    assert template()["Resources"]["BatchDeployment"]["DependsOn"] == "BatchMethod"


@pytest.mark.parametrize(
    ("mapping", "api", "key"), [("HttpMapping", "HttpApi", None), ("BatchMapping", "BatchApi", "api")]
)
def test_one_name_serves_both_apis_if_the_operator_has_one(mapping: str, api: str, key: str | None) -> None:
    """D1"""
    properties: dict[str, Any] = properties_of(mapping)
    assert (properties["ApiId"], properties.get("ApiMappingKey")) == ({"Ref": api}, key)
    assert properties["DomainName"] == {"Ref": "Domain"}
    assert {template()["Resources"][name]["Condition"] for name in ("Domain", mapping)} == {"HasDomain"}
    assert template()["Parameters"]["DomainName"]["Default"] == ""
    assert properties_of("BatchStage")["StageName"] == "api", "a mapping takes its key off the path, as a stage does"
    assert attribute(template()["Outputs"]["DomainTarget"]["Value"]) == "Domain.RegionalDomainName"
