"""Which alarms are made by default: every effect is watched, and a cause alone only where all alarms are asked for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from infra.monitoring.alarm import ALL, Alarm
from infra.monitoring.build import alarms
from infra.monitoring.hub import read_hub
from infra.monitoring.table import THROTTLES, UNREADABLE
from millrace.ledger.domain.errors import UnreadableRow
from millrace.runtime import observe
from tests.support.translated import attribute, functions, monitoring, named, of_type, template

ALARMS = {alarm.name: alarm for alarm in alarms(read_hub())}
CAUSES = {name: alarm for name, alarm in ALARMS.items() if alarm.shown_by}
SOURCES = {"AWS/Lambda": "FunctionName", "AWS/SQS": "QueueName"}


def called_by() -> Mapping[str, set[str]]:
    """Function → the names of all that calls it, found in the template: APIs, queues, the log's stream, schedules,
    other functions."""
    found: dict[str, set[str]] = defaultdict(set)
    for permission in of_type("AWS::Lambda::Permission").values():
        properties = permission["Properties"]
        function = properties["FunctionName"]["Ref"].removesuffix("Aliaslive")
        source = str(properties["SourceArn"])
        found[function] |= {api for api in ("HttpApi", "BatchApi", "SocketApi") if api in source} or {"schedule"}
    for mapping in of_type("AWS::Lambda::EventSourceMapping").values():
        function = mapping["Properties"]["FunctionName"]["Ref"].removesuffix("Aliaslive")
        found[function].add(attribute(mapping["Properties"]["EventSourceArn"]).partition(".")[0])
    called = {named(one["Properties"]["FunctionName"]): name for name, one in functions().items()}
    for caller in functions().values():
        for name, value in caller["Properties"]["Environment"]["Variables"].items():
            if name.endswith("_FUNCTION"):
                found[called[named(value)]].add("functions")
    return found


def watches(alarm: Alarm) -> set[str]:
    """What calls a function, as far as this alarm would show that the function cannot be called."""
    if alarm.thing.namespace == "AWS/ApiGateway":
        return {{"http": "HttpApi", "batch": "BatchApi", "socket": "SocketApi"}[alarm.thing.name]}
    if alarm.kind.metric == "IteratorAge":
        return {"LogTable"}
    if alarm.kind.metric == "AsyncEventAge":
        return {"functions"}
    if alarm.kind.metric == "Invocations":
        return {"schedule"}
    queues = of_type("AWS::SQS::Queue").items()
    return {name for name, queue in queues if named(queue["Properties"]["QueueName"]) == named_thing(alarm)}


def named_thing(alarm: Alarm) -> str:
    return named(alarm.thing.dimensions[SOURCES[alarm.thing.namespace]])


def test_only_causes_are_left_out_by_default_throttled_functions_and_sockets_that_nobody_could_close() -> None:
    throttled = {alarm.name for alarm in ALARMS.values() if alarm.kind == THROTTLES}
    assert CAUSES.keys() == throttled | {"deadline-dead-letters"}
    conditions = {name: one.get("Condition") for name, one in of_type("AWS::CloudWatch::Alarm", monitoring()).items()}
    assert {name for name, condition in conditions.items() if condition == ALL} == {
        alarm.logical_id for alarm in CAUSES.values()
    }
    assert set(conditions.values()) == {None, ALL}


@pytest.mark.parametrize("name", sorted(CAUSES))
def test_what_is_left_out_is_shown_by_alarms_that_are_always_made(name: str) -> None:
    for other in CAUSES[name].shown_by:
        assert not ALARMS[other].shown_by


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_function_that_cannot_be_called_is_noticed_by_all_that_calls_it(function: str) -> None:
    name = named(functions()[function]["Properties"]["FunctionName"]).removeprefix("hub-")
    shown_by = [ALARMS[other] for other in ALARMS[f"{name}-throttles"].shown_by]
    assert called_by()[function]
    assert called_by()[function] == set().union(*map(watches, shown_by))
    for alarm in shown_by:
        if alarm.thing.namespace == "AWS/Lambda":
            assert alarm.thing.name == name


def test_the_parameter_that_asks_for_all_alarms_reaches_them() -> None:
    assert template()["Parameters"]["Alarms"]["Default"] == "essential"
    assert template()["Parameters"]["Alarms"]["AllowedValues"] == ["essential", "all"]
    assert monitoring()["Conditions"][ALL] == {"Fn::Equals": [{"Ref": "Alarms"}, "all"]}
    given = template()["Resources"]["Monitoring"]["Properties"]["Parameters"]
    assert given["Alarms"] == {"Ref": "Alarms"}


def test_a_row_that_cannot_be_read_is_counted_where_its_alarm_looks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever function met it."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "deliver")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Millrace/hub")
    monkeypatch.setattr(observe, "logger", lambda: SimpleNamespace(error=lambda *_, **__: None))
    observe.unreadable(UnreadableRow("targets", "tenant"))
    counted = json.loads(capsys.readouterr().out.splitlines()[-1])
    [metric] = counted["_aws"]["CloudWatchMetrics"]
    (alarm,) = (alarm for alarm in ALARMS.values() if alarm.kind == UNREADABLE)
    assert not alarm.shown_by
    assert metric["Namespace"] == alarm.thing.namespace.replace("${Hub}", "hub")
    assert [one["Name"] for one in metric["Metrics"]] == [alarm.kind.metric]
    assert {name: counted[name] for names in metric["Dimensions"] for name in names} == alarm.thing.dimensions


def test_no_function_reserves_concurrency_so_that_one_is_throttled_only_with_all_others() -> None:
    """Else one could be throttled alone, and a cause would be worth an alarm of its own by default."""
    assert not [name for name, one in functions().items() if "ReservedConcurrentExecutions" in one["Properties"]]


def test_the_dashboard_shows_which_function_is_throttled() -> None:
    body = monitoring()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    for name in read_hub().functions:
        assert f'"AWS/Lambda", "Throttles", "FunctionName", "${{Hub}}-{name}"' in body
