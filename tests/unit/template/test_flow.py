"""The flow behind the log: queues, stream and schedule lose nothing quietly, and someone is told."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from millrace.delivery.domain.drains import SLICE_MS, Shares
from millrace.delivery.wiring import REQUEST_SECONDS
from millrace.ledger import wiring as core
from tests.support.translated import attribute, environment, functions, monitoring, named, of_type, read, template

ALARMS = of_type("AWS::CloudWatch::Alarm", monitoring())
FUNCTIONS = sorted(named(function["Properties"]["FunctionName"]) for function in functions().values())
QUEUES = {name: queue["Properties"] for name, queue in of_type("AWS::SQS::Queue").items()}
TABLES = sorted(named(table["Properties"]["TableName"]) for table in of_type("AWS::DynamoDB::Table").values())


def dead_letter_queues() -> set[str]:
    """Every queue that something gives up into, found where it is given up."""
    found = {attribute(q["RedrivePolicy"]["deadLetterTargetArn"]) for q in QUEUES.values() if "RedrivePolicy" in q}
    for kind in ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig"):
        for resource in of_type(kind).values():
            destination = resource["Properties"].get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
            found |= {attribute(destination)} if destination else set()
    found |= {attribute(target["Arn"]) for rule in patterns().values() for target in rule["Properties"]["Targets"]}
    return {queue.removesuffix(".Arn") for queue in found}


def patterns() -> Mapping[str, Any]:
    """Rules that wait for something to happen; the others are schedules."""
    return {name: rule for name, rule in of_type("AWS::Events::Rule").items() if "EventPattern" in rule["Properties"]}


def watched() -> Mapping[str, set[str]]:
    """Metric → the names of what is watched by it."""
    found: dict[str, set[str]] = defaultdict(set)
    for alarm in ALARMS.values():
        *_, dimension = alarm["Properties"]["Dimensions"]
        metric = f"{alarm['Properties']['Namespace']} {alarm['Properties']['MetricName']}"
        found[metric].add(json.dumps(dimension["Value"]) if "Ref" in dimension["Value"] else named(dimension["Value"]))
    return found


def mapping_of(function: str, source: str) -> Any:
    (found,) = (
        mapping["Properties"]
        for mapping in of_type("AWS::Lambda::EventSourceMapping").values()
        if mapping["Properties"]["FunctionName"] == {"Ref": function}
        and attribute(mapping["Properties"]["EventSourceArn"]) == source
    )
    return found


READERS = ["FanOutFunction", "ArchiveFunction"]


def test_the_log_has_the_two_readers_that_dynamodb_allows() -> None:
    readers = [
        mapping["Properties"]["FunctionName"]["Ref"]
        for mapping in of_type("AWS::Lambda::EventSourceMapping").values()
        if attribute(mapping["Properties"]["EventSourceArn"]) == "LogTable.StreamArn"
    ]
    assert sorted(readers) == sorted(READERS)


def test_the_archive_waits_for_more_so_that_small_ledgers_share_an_object() -> None:
    """C3: about a minute, and never longer than the sweep gives it before it rings."""
    mapping = mapping_of("ArchiveFunction", "LogTable.StreamArn")
    assert mapping["MaximumBatchingWindowInSeconds"] == 60
    assert mapping["BatchSize"] >= 1000
    assert 2_000 * mapping["MaximumBatchingWindowInSeconds"] < core.UNARCHIVED_MS


@pytest.mark.parametrize("function", READERS)
def test_a_reader_hears_every_insert_from_the_beginning(function: str) -> None:
    mapping = mapping_of(function, "LogTable.StreamArn")
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert [json.loads(one["Pattern"]) for one in mapping["FilterCriteria"]["Filters"]] == [{"eventName": ["INSERT"]}]


@pytest.mark.parametrize("function", READERS)
def test_a_poisoned_record_is_isolated_then_given_up_where_it_is_seen(function: str) -> None:
    mapping = mapping_of(function, "LogTable.StreamArn")
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRetryAttempts"] >= 1
    assert attribute(mapping["DestinationConfig"]["OnFailure"]["Destination"]) == (
        function.replace("Function", "DeadLetters.Arn")
    )


@pytest.mark.parametrize(
    ("function", "queue"),
    [
        ("IndexFunction", "IndexQueue.Arn"),
        ("FanOutFunction", "WakeQueue.Arn"),
        ("ArchiveFunction", "ArchiveQueue.Arn"),
    ],
)
def test_a_reader_repeats_only_the_rings_that_failed(function: str, queue: str) -> None:
    mapping = mapping_of(function, queue)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"]["MaximumConcurrency"] >= 2


def test_the_sweep_rings_every_queue_that_is_worked_off() -> None:
    worked_off = QUEUES.keys() - dead_letter_queues() - {"SlowQueue"}  # into which only deliver passes on
    rung = {value["Ref"] for name, value in environment("SweepFunction").items() if name.endswith("_QUEUE_URL")}
    assert (
        rung
        == worked_off - {"DeadlineQueue", "SnapshotQueue"}
        == {"IndexQueue", "WakeQueue", "DeliverQueue", "ArchiveQueue"}
    )


def test_a_ring_comes_again_as_soon_as_its_reader_cannot_be_at_work_any_more() -> None:
    """AWS takes no less. More would only be time in which nobody does a dead reader's work."""
    for mapping in of_type("AWS::Lambda::EventSourceMapping").values():
        source = attribute(mapping["Properties"]["EventSourceArn"]).partition(".")[0]
        if source in QUEUES:
            function = mapping["Properties"]["FunctionName"]["Ref"].removesuffix("Aliaslive")
            timeout = functions()[function]["Properties"]["Timeout"]
            window = mapping["Properties"].get("MaximumBatchingWindowInSeconds", 0)
            assert QUEUES[source]["VisibilityTimeout"] == timeout + window


def test_every_queue_that_is_read_gives_up_into_another() -> None:
    read_from = {
        attribute(mapping["Properties"]["EventSourceArn"]).partition(".")[0]
        for mapping in of_type("AWS::Lambda::EventSourceMapping").values()
    } & QUEUES.keys()
    assert read_from
    assert all("RedrivePolicy" in QUEUES[queue] for queue in read_from)


@pytest.mark.parametrize("queue", sorted(QUEUES))
def test_a_queue_is_encrypted(queue: str) -> None:
    """By SQS itself, or by the account's own key. EventBridge may not use that key, so what it fills does not."""
    if queue == "JobFailures":
        assert QUEUES[queue]["SqsManagedSseEnabled"] is True
        return
    assert QUEUES[queue]["SqsManagedSseEnabled"] == {"Fn::If": ["HasKey", False, True]}
    assert QUEUES[queue]["KmsMasterKeyId"] == {"Fn::If": ["HasKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]}


@pytest.mark.parametrize("queue", sorted(dead_letter_queues()))
def test_a_dead_letter_waits_two_weeks_for_someone_to_look(queue: str) -> None:
    assert QUEUES[queue]["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_a_wake_up_of_a_dead_drain_waits_for_no_other_and_comes_again_soon() -> None:
    """D6: a batch is one message, no message waits for its group, and a drain has time for its slice and a request."""
    mapping = mapping_of("DeliverFunction", "DeliverQueue.Arn")
    assert "FifoQueue" not in QUEUES["DeliverQueue"]
    assert mapping["BatchSize"] == 1
    assert mapping["ScalingConfig"]["MaximumConcurrency"] >= 10
    timeout = functions()["DeliverFunction"]["Properties"]["Timeout"]
    assert SLICE_MS + 1000 * (REQUEST_SECONDS + 10) < 1000 * timeout <= 60_000


def test_slow_targets_have_slots_of_their_own_and_no_tenant_has_them_all() -> None:
    """D6: a quick one never waits behind them."""
    quick, slow = (mapping_of("DeliverFunction", f"{name}.Arn") for name in ("DeliverQueue", "SlowQueue"))
    assert slow["BatchSize"] == 1
    shares = {name: template()["Parameters"][name]["Default"] for name in ("TenantDrains", "TenantSlowDrains")}
    assert 3 * shares["TenantDrains"] <= quick["ScalingConfig"]["MaximumConcurrency"]
    assert 3 * shares["TenantSlowDrains"] <= slow["ScalingConfig"]["MaximumConcurrency"]
    assert shares == {"TenantDrains": Shares().quick, "TenantSlowDrains": Shares().slow}


def test_the_sweep_runs_every_five_minutes_and_settle_and_remind_every_minute() -> None:
    ticks = {
        attribute(target["Arn"]): rule["Properties"]["ScheduleExpression"]
        for name, rule in of_type("AWS::Events::Rule").items()
        if name not in patterns()
        for target in rule["Properties"]["Targets"]
    }
    assert ticks == {
        "SweepFunction.Arn": "rate(5 minutes)",
        "SettleFunction.Arn": "rate(1 minute)",
        "RemindFunction.Arn": "rate(1 minute)",
    }


@pytest.mark.parametrize("name", ["Sweep", "Settle", "Remind"])
def test_the_failures_of_a_scheduled_function_are_kept(name: str) -> None:
    (config,) = (
        config["Properties"]
        for config in of_type("AWS::Lambda::EventInvokeConfig").values()
        if config["Properties"]["FunctionName"] == {"Ref": f"{name}Function"}
    )
    assert attribute(config["DestinationConfig"]["OnFailure"]["Destination"]) == f"{name}DeadLetters.Arn"


@pytest.mark.parametrize(
    ("function", "period"), [("SweepFunction", 300), ("SettleFunction", 60), ("RemindFunction", 60)]
)
def test_a_scheduled_function_ends_before_its_next_turn(function: str, period: int) -> None:
    assert functions()[function]["Properties"]["Timeout"] < period


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_every_function_is_watched(metric: str) -> None:
    assert sorted(watched()[f"AWS/Lambda {metric}"]) == FUNCTIONS


def test_every_dead_letter_queue_is_watched() -> None:
    expected = {named(QUEUES[queue]["QueueName"]) for queue in dead_letter_queues()}
    assert len(expected) == 12
    assert watched()["AWS/SQS ApproximateNumberOfMessagesVisible"] == expected


def test_every_queue_that_is_worked_off_is_watched_for_age() -> None:
    expected = {named(queue["QueueName"]) for name, queue in QUEUES.items() if name not in dead_letter_queues()}
    assert watched()["AWS/SQS ApproximateAgeOfOldestMessage"] == expected


def test_every_stream_reader_is_watched_for_lag() -> None:
    readers = {
        named(functions()[mapping["Properties"]["FunctionName"]["Ref"]]["Properties"]["FunctionName"])
        for mapping in of_type("AWS::Lambda::EventSourceMapping").values()
        if attribute(mapping["Properties"]["EventSourceArn"]).endswith(".StreamArn")
    }
    assert readers
    assert watched()["AWS/Lambda IteratorAge"] == readers


@pytest.mark.parametrize("metric", ["ReadThrottleEvents", "WriteThrottleEvents"])
def test_every_table_is_watched(metric: str) -> None:
    assert sorted(watched()[f"AWS/DynamoDB {metric}"]) == TABLES


def test_failures_of_the_apis_are_watched() -> None:
    assert watched()["AWS/ApiGateway 5xx"] == {'{"Ref": "HttpApiId"}'}
    assert watched()["AWS/ApiGateway 5XXError"] == {"hub-batch"}
    for metric in ("IntegrationError", "ExecutionError"):
        assert watched()[f"AWS/ApiGateway {metric}"] == {'{"Ref": "SocketApiId"}'}


@pytest.mark.parametrize("name", ["Sweep", "Settle", "Remind"])
def test_a_scheduled_function_that_does_not_run_is_noticed(name: str) -> None:
    silence = ALARMS[f"{name}Silence"]["Properties"]
    assert named(silence["Dimensions"][0]["Value"]) == f"hub-{name.lower()}"
    assert (silence["MetricName"], silence["ComparisonOperator"]) == ("Invocations", "LessThanThreshold")
    assert silence["TreatMissingData"] == "breaching"


def test_every_alarm_tells_the_topic_if_there_is_one() -> None:
    tells = {"Fn::If": ["Notifies", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    assert [name for name, alarm in ALARMS.items() if alarm["Properties"]["AlarmActions"] != tells] == []


def test_the_dashboard_shows_every_api_function_queue_and_table() -> None:
    body = monitoring()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]
    shown = {
        metric[3]
        for widget in json.loads(named(body))["widgets"]
        for metric in widget["properties"]["metrics"][0:]
        if len(metric) > 3
    }
    assert shown >= {"${HttpApiId}", "hub-batch", "${SocketApiId}"}
    assert shown >= {*FUNCTIONS, *TABLES, *(named(queue["QueueName"]) for queue in QUEUES.values())}


def test_the_monitoring_stack_gets_what_it_asks_for() -> None:
    given = read("template.yaml")["Resources"]["Monitoring"]["Properties"]["Parameters"]
    assert given.keys() == monitoring()["Parameters"].keys()
    assert given["Hub"] == {"Ref": "AWS::StackName"}


def test_outputs_name_everything_a_person_needs() -> None:
    expected = {
        "HttpUrl",
        "HttpApiId",
        "BatchUrl",
        "BatchApiId",
        "DomainTarget",
        "SocketDomainTarget",
        "WebSocketUrl",
        "SocketApiId",
        "DashboardName",
        "ArchiveBucketName",
    }
    expected |= {f"{name}Name" for name in of_type("AWS::Glue::Job")}
    expected |= {f"{name}Arn" for name in of_type("AWS::SecretsManager::Secret")}
    expected |= {f"{name}Name" for name in [*functions(), *of_type("AWS::DynamoDB::Table")]}
    expected |= {f"{name}Url" for name in QUEUES}
    assert template()["Outputs"].keys() == expected
    assert all(output["Description"] for output in template()["Outputs"].values())
