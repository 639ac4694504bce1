"""docs/costs.md is computed from what the templates and the benchmarks say, and keeps to the figures we hold."""

from __future__ import annotations

import copy
import math

import pytest

from infra.costs import idle, ways_in, ways_out
from infra.costs.counted import HubTemplates, hub, measured
from infra.costs.held import HOURS_A_MONTH, IDLE_RUNS
from infra.costs.lines import Bill
from infra.costs.page import PAGE, files
from infra.costs.prices import ALARM, MILLION, PRICES
from tests.support.translated import monitoring, of_type, template

IDLE_DOLLARS = 15
LONELY_DOLLARS = 5.81
"""What a million lonely events cost when they were counted last; 9.88 at first. It may only fall."""


def test_the_page_of_costs_is_not_stale() -> None:
    assert files()[PAGE] == PAGE.read_text(), "run: make generated"


def test_a_hub_with_default_parameters_that_has_nothing_to_do_costs_at_most_15_dollars_a_month() -> None:
    assert idle.monthly() <= IDLE_DOLLARS


def test_a_lonely_event_a_second_does_not_get_dearer() -> None:
    assert round(ways_out.lonely().dollars * MILLION, 2) <= LONELY_DOLLARS


def test_what_is_always_there_is_counted_in_the_translated_template() -> None:
    mappings = of_type("AWS::Lambda::EventSourceMapping").values()
    queues = [one for one in mappings if "Queue" in str(one["Properties"]["EventSourceArn"])]
    assert hub().polled_queues == len(queues)
    assert len(hub().of_type("AWS::SecretsManager::Secret")) == len(of_type("AWS::SecretsManager::Secret"))
    schedules = [rule for rule in of_type("AWS::Events::Rule").values() if "ScheduleExpression" in rule["Properties"]]
    assert len(hub().ticks) == len(schedules)
    assert hub().alarms("all") == len(of_type("AWS::CloudWatch::Alarm", monitoring()))
    assert hub().dashboards == 1
    assert len(hub().functions) == len(of_type("AWS::Lambda::Function"))


def test_nothing_else_that_is_billed_while_idle_has_come_into_the_template() -> None:
    """Each of these has its line, or costs nothing until it is used. A new type of resource must be thought of."""
    free = {
        "AWS::ApiGateway::BasePathMapping",
        "AWS::ApiGateway::Deployment",
        "AWS::ApiGateway::Method",
        "AWS::ApiGateway::Resource",
        "AWS::ApiGateway::RestApi",
        "AWS::ApiGateway::Stage",
        "AWS::ApiGatewayV2::Api",
        "AWS::ApiGatewayV2::ApiMapping",
        "AWS::ApiGatewayV2::DomainName",
        "AWS::ApiGatewayV2::Integration",
        "AWS::ApiGatewayV2::Route",
        "AWS::ApiGatewayV2::Stage",
        "AWS::AppConfig::Application",
        "AWS::AppConfig::ConfigurationProfile",
        "AWS::AppConfig::HostedConfigurationVersion",
        "AWS::CloudFormation::Stack",
        "AWS::CodeDeploy::Application",
        "AWS::CodeDeploy::DeploymentGroup",
        "AWS::DynamoDB::Table",
        "AWS::Glue::Database",
        "AWS::Glue::Job",
        "AWS::Glue::Trigger",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::Lambda::Alias",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::Function",
        "AWS::Lambda::LayerVersion",
        "AWS::Lambda::Permission",
        "AWS::Lambda::Version",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
        "AWS::S3::BucketPolicy",
        "AWS::SQS::Queue",
        "AWS::SQS::QueuePolicy",
    }
    counted = {"AWS::SecretsManager::Secret", "AWS::Events::Rule", "AWS::Lambda::EventSourceMapping"}
    assert {one["Type"] for one in template()["Resources"].values()} <= free | counted
    assert {one["Type"] for one in monitoring()["Resources"].values()} == {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
    }
    assert all(
        one["Properties"]["BillingMode"] == "PAY_PER_REQUEST" for one in of_type("AWS::DynamoDB::Table").values()
    )


def test_an_alarm_over_several_metrics_is_billed_for_each() -> None:
    grown = copy.deepcopy(dict(hub().monitoring))
    alarm = next(one for one in grown["Resources"].values() if "Condition" not in one)
    alarm["Properties"]["Metrics"] = [{"Expression": "a + b"}, {"MetricStat": {}}, {"MetricStat": {}}]
    assert HubTemplates(hub().template, grown).alarms() == hub().alarms() + 1


def test_one_more_alarm_or_secret_is_on_the_bill() -> None:
    (alarms,) = (bill for bill in idle.lines() if bill.what == "alarms")
    assert alarms.dollars == pytest.approx(ALARM.of(hub().alarms()))
    assert idle.monthly() == pytest.approx(sum(line.dollars for bill in idle.lines() for line in bill.lines))


def test_every_scheduled_function_has_its_idle_run() -> None:
    assert IDLE_RUNS.keys() == hub().ticks.keys()


def test_the_jobs_run_as_often_as_the_price_of_running_them_says() -> None:
    parameters = template()["Parameters"]
    assert parameters["CompactSchedule"]["Default"] == "cron(10 * * * ? *)", f"{HOURS_A_MONTH} a month"
    assert parameters["RetainSchedule"]["Default"] == "cron(40 3 * * ? *)", "one a day"


def test_a_figure_that_the_benchmarks_do_not_have_is_named() -> None:
    with pytest.raises(LookupError, match=r"costs\.commit"):
        measured("costs", "commit", scenario="unheard of")


@pytest.mark.parametrize(
    "bill", [*idle.lines(), *ways_in.all_ways(), *ways_out.all_ways(), ways_out.lonely()], ids=lambda b: b.what
)
def test_a_bill_is_the_sum_of_its_lines_and_says_how_each_was_counted(bill: Bill) -> None:
    assert math.isclose(bill.dollars, sum(line.units * line.price.dollars / line.price.per for line in bill.lines))
    assert bill.dollars > 0
    for line in bill.lines:
        assert line.how in bill.how or not line.units


def test_every_price_is_on_the_page_with_its_service() -> None:
    text = PAGE.read_text()
    for price in PRICES:
        assert f"| {price.text} | {price.service} |" in text
