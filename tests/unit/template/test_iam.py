"""Who may do what: read from the roles of the translated template."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.translated import attribute, environment, functions, named, of_type, template

READ_SECRET = {"secretsmanager:GetSecretValue"}
WRITE_LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
SEND = {"sqs:SendMessage"}
RECEIVE = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
TALK = {"execute-api:ManageConnections"}
CALL = {"lambda:InvokeFunction"}
CALLED = re.compile(
    r"arn:\$\{AWS::Partition\}:lambda:\$\{AWS::Region\}:\$\{AWS::AccountId\}:function:\$\{AWS::StackName\}-(?P<name>[a-z-]+)"
)
"""A function that calls itself cannot be referred to by its own role."""
CONNECTIONS = re.compile(
    r"arn:\$\{AWS::Partition\}:execute-api:\$\{AWS::Region\}:\$\{AWS::AccountId\}:"
    r"\$\{SocketApi\}/live/(?P<method>POST|DELETE)/@connections/\*"
)
"""An address that is written out: API Gateway makes connections, so the template has none to refer to."""
BUCKET_FOLDER = re.compile(r"\$\{ArchiveBucket\.Arn\}/(?P<folder>[a-z./]+)?\*?")
CATALOG = re.compile(
    r"arn:\$\{AWS::Partition\}:glue:\$\{AWS::Region\}:\$\{AWS::AccountId\}:"
    r"(?P<kind>catalog|(database|table)/)(\$\{TablesDatabase\}(?P<all>/\*)?)?"
)
JOBS = ("CompactJob", "RetainJob")


def dynamodb(*actions: str) -> set[str]:
    return {f"dynamodb:{action}" for action in actions}


CLAIM = dynamodb("PartiQLInsert", "PutItem", "BatchGetItem", "UpdateItem")
WAIT = dynamodb("PutItem", "UpdateItem", "GetItem", "PartiQLSelect", "BatchWriteItem")

COUNT_REQUESTS: Mapping[str, Any] = {
    "Sid": "CountRequests",
    "Effect": "Allow",
    "Action": ["dynamodb:UpdateItem", "dynamodb:GetItem"],
    "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["rate#*"]}},
}

RIGHTS: Mapping[str, Mapping[str, set[str]]] = {
    "SubmitFunction": {
        "SubmitLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query"),
        "TokenSecret.Id": READ_SECRET,
    },
    "PublishFunction": {
        "PublishLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query", "UpdateItem"),
        "TokenSecret.Id": READ_SECRET,
    },
    "EmitFunction": {
        "EmitLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query", "GetItem", "UpdateItem"),
        "DiagnosticsTable.Arn": dynamodb("PutItem"),
        "TokenSecret.Id": READ_SECRET,
        "StreamSecret.Id": READ_SECRET,
    },
    "MarkersFunction": {
        "MarkersLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query", "GetItem", "UpdateItem", "DeleteItem"),
        "TokenSecret.Id": READ_SECRET,
        "StreamSecret.Id": READ_SECRET,
    },
    "IngestFunction": {
        "IngestLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query"),
        "TokenSecret.Id": READ_SECRET,
    },
    "CatalogFunction": {
        "CatalogLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query"),
        "TokenSecret.Id": READ_SECRET,
    },
    "SyncFunction": {
        "SyncLogs.Arn": WRITE_LOGS,
        "LogTable.Arn": dynamodb("Query", "BatchGetItem"),
        "StateTable.Arn": dynamodb("Query"),
        "IndexTable.Arn": dynamodb("Query"),
        "TokenSecret.Id": READ_SECRET,
    },
    "ReplayFunction": {
        "ReplayLogs.Arn": WRITE_LOGS,
        "LogTable.Arn": dynamodb("Query"),
        "IndexTable.Arn": dynamodb("Query"),
        "StateTable.Arn": dynamodb("Query", "GetItem", "PutItem", "UpdateItem", "DeleteItem"),
        "TokenSecret.Id": READ_SECRET,
    },
    "PollFunction": {
        "PollLogs.Arn": WRITE_LOGS,
        "LogTable.Arn": dynamodb("Query"),
        "StateTable.Arn": dynamodb("Query", "GetItem", "PutItem", "DeleteItem"),
        "TokenSecret.Id": READ_SECRET,
        "StreamSecret.Id": READ_SECRET,
    },
    "DiagnosticsFunction": {
        "DiagnosticsLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query", "GetItem"),
        "DiagnosticsTable.Arn": dynamodb("Query"),
        "TokenSecret.Id": READ_SECRET,
        "StreamSecret.Id": READ_SECRET,
    },
    "TargetsFunction": {
        "TargetsLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM | dynamodb("GetItem"),
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("Query", "PutItem"),
        "StateTable.Arn": dynamodb("Query", "PutItem"),
        "DeliveryTable.Arn": dynamodb("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        "DeliverQueue.Arn": SEND,
        "TokenSecret.Id": READ_SECRET,
        "DeliverySecret.Id": READ_SECRET,
    },
    "RetentionFunction": {
        "RetentionLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("Query", "PutItem"),
        "StateTable.Arn": dynamodb("Query", "PutItem", "UpdateItem"),
        "DeliveryTable.Arn": dynamodb("Query", "BatchGetItem"),
        "TokenSecret.Id": READ_SECRET,
    },
    "LakeFunction": {
        "LakeLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("Query", "PutItem"),
        "StateTable.Arn": dynamodb("Query", "PutItem"),
        "ArchiveBucket.Arn": {"s3:ListBucket"},
        "ArchiveBucket lake/": {"s3:GetObject"},
        "ArchiveBucket ledger/": {"s3:GetObject", "s3:PutObject"},
        "ArchiveBucket lake/quarantine/redriven/": {"s3:PutObject"},
        "ArchiveBucket lake/registry.json": {"s3:PutObject"},
        "TokenSecret.Id": READ_SECRET,
    },
    "OperateFunction": {
        "OperateLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": dynamodb("GetItem"),
        "LogTable.Arn": dynamodb("Query"),
        "StateTable.Arn": dynamodb("Query"),
        "DeliveryTable.Arn": dynamodb("Query", "BatchGetItem"),
        "ConnectionsTable.Arn": dynamodb("Query"),
        "TokenSecret.Id": READ_SECRET,
    },
    "ConsoleFunction": {"ConsoleLogs.Arn": WRITE_LOGS},
    "MetaFunction": {"MetaLogs.Arn": WRITE_LOGS},
    "SocketFunction": {
        "SocketLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query", "BatchGetItem"),
        "StateTable.Arn": dynamodb("PutItem", "Query", "GetItem"),
        "IndexTable.Arn": dynamodb("Query"),
        "ConnectionsTable.Arn": dynamodb("PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "BatchWriteItem"),
        "TokenSecret.Id": READ_SECRET,
        "StreamSecret.Id": READ_SECRET,
        "POST @connections": TALK,
        "DELETE @connections": TALK,
        "DeadlineQueue.Arn": RECEIVE | SEND,
        "SnapshotQueue.Arn": RECEIVE | SEND,
    },
    "FanOutFunction": {
        "FanOutLogs.Arn": WRITE_LOGS,
        "WakeQueue.Arn": RECEIVE | SEND,
        "LogTable.Arn": dynamodb("Query"),
        "WaitingTable.Arn": dynamodb("UpdateItem"),
        "StateTable.Arn": dynamodb("Query", "UpdateItem"),
        "ConnectionsTable.Arn": dynamodb("Query", "GetItem", "UpdateItem", "DeleteItem", "BatchWriteItem"),
        "POST @connections": TALK,
        "DELETE @connections": TALK,
        "LogTable.StreamArn": dynamodb("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
        "DeliveryTable.Arn": dynamodb("Query", "PutItem", "UpdateItem", "GetItem"),
        "IndexQueue.Arn": SEND,
        "DeliverQueue.Arn": SEND,
        "FanOutDeadLetters.Arn": SEND,
        "function crowd": CALL,
    },
    "CrowdFunction": {
        "CrowdLogs.Arn": WRITE_LOGS,
        "LogTable.Arn": dynamodb("Query"),
        "WaitingTable.Arn": dynamodb("UpdateItem"),
        "StateTable.Arn": dynamodb("Query", "UpdateItem"),
        "ConnectionsTable.Arn": dynamodb("Query", "GetItem", "UpdateItem", "DeleteItem", "BatchWriteItem"),
        "POST @connections": TALK,
        "DELETE @connections": TALK,
        "CrowdDeadLetters.Arn": SEND,
        "IndexQueue.Arn": SEND,
        "function crowd": CALL,
    },
    "ArchiveFunction": {
        "ArchiveLogs.Arn": WRITE_LOGS,
        "ArchiveQueue.Arn": RECEIVE | SEND,
        "LogTable.Arn": dynamodb("Query"),
        "WaitingTable.Arn": dynamodb("UpdateItem"),
        "StateTable.Arn": dynamodb("Query", "UpdateItem", "GetItem", "PutItem"),
        "LogTable.StreamArn": dynamodb("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
        "ArchiveBucket ledger/": {"s3:PutObject"},
        "ArchiveDeadLetters.Arn": SEND,
    },
    "IndexFunction": {
        "IndexLogs.Arn": WRITE_LOGS,
        "IndexQueue.Arn": RECEIVE | SEND,
        "LogTable.Arn": dynamodb("Query"),
        "WaitingTable.Arn": dynamodb("UpdateItem"),
        "StateTable.Arn": dynamodb("Query", "UpdateItem"),
        "IndexTable.Arn": dynamodb("BatchWriteItem", "Query"),
    },
    "DeliverFunction": {
        "DeliverLogs.Arn": WRITE_LOGS,
        "DeliverQueue.Arn": RECEIVE | SEND | {"sqs:ChangeMessageVisibility"},
        "SlowQueue.Arn": RECEIVE | SEND | {"sqs:ChangeMessageVisibility"},
        "LogTable.Arn": dynamodb("Query"),
        "StateTable.Arn": dynamodb("Query"),
        "DeliveryTable.Arn": dynamodb("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        "DeliverySecret.Id": READ_SECRET,
    },
    "RemindFunction": {
        "RemindLogs.Arn": WRITE_LOGS,
        "DeliveryTable.Arn": dynamodb("Query"),
        "DeliverQueue.Arn": SEND,
        "RemindDeadLetters.Arn": SEND,
    },
    "SweepFunction": {
        "SweepLogs.Arn": WRITE_LOGS,
        "LogTable.Arn": dynamodb("Query"),
        "WaitingTable.Arn": dynamodb("UpdateItem", "Query"),
        "StateTable.Arn": dynamodb("Query"),
        "DeliveryTable.Arn": dynamodb("Query", "BatchGetItem", "PutItem", "UpdateItem", "GetItem"),
        "DeliverQueue.Arn": SEND,
        "IndexQueue.Arn": SEND,
        "WakeQueue.Arn": SEND,
        "ArchiveQueue.Arn": SEND,
        "SweepDeadLetters.Arn": SEND,
    },
    "SettleFunction": {
        "SettleLogs.Arn": WRITE_LOGS,
        "ClaimsTable.Arn": CLAIM,
        "WaitingTable.Arn": WAIT,
        "LogTable.Arn": dynamodb("PutItem", "Query"),
        "StateTable.Arn": dynamodb("PutItem", "Query", "GetItem", "UpdateItem", "DeleteItem"),
        "SettleDeadLetters.Arn": SEND,
    },
}

MAY_LOSE_ITEMS = {"ConnectionsTable", "StateTable", "DeliveryTable", "WaitingTable"}
"""Whose items end: connections, intents, and of delivery targets, pointers, visits, leases and who waits."""
WRITERS = {
    f"{name}Function"
    for name in (
        "Submit",
        "Publish",
        "Emit",
        "Markers",
        "Ingest",
        "Catalog",
        "Diagnostics",
        "Socket",
        "Settle",
        "Targets",
        "Retention",
        "Lake",
    )
}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def role_of(function: str) -> str:
    return attribute(template()["Resources"][function]["Properties"]["Role"]).removesuffix(".Arn")


def statements(role: str) -> Iterator[Mapping[str, Any]]:
    for policy in of_type("AWS::IAM::Role")[role]["Properties"]["Policies"]:
        yield from policy["PolicyDocument"]["Statement"]


def target(resource: Any) -> str:
    match resource:
        case {"Fn::Sub": str(text)} if connections := CONNECTIONS.fullmatch(text):
            return f"{connections['method']} @connections"
        case {"Fn::Sub": str(text)} if called := CALLED.fullmatch(text):
            return f"function {called['name']}"
        case {"Fn::Sub": str(text)} if objects := BUCKET_FOLDER.fullmatch(text):
            return f"ArchiveBucket {objects['folder'] or '*'}"
        case {"Fn::Sub": "${ArchiveBucket.Arn}/lake_$folder$"}:
            return "ArchiveBucket lake_$folder$"
        case {"Fn::Sub": str(text)} if catalog := CATALOG.fullmatch(text):
            return f"glue {catalog['kind']}" + (" *" if catalog["all"] else "")
        case _:
            return attribute(resource)


def rights(function: str) -> Mapping[str, set[str]]:
    """Resource → actions. Resources are references, so a wildcard or a made-up ARN fails here already. That requests
    are counted is the same for all who take tokens, and has a test of its own."""
    granted: dict[str, set[str]] = defaultdict(set)
    for statement in statements(role_of(function)):
        if statement["Sid"] == COUNT_REQUESTS["Sid"]:
            continue
        assert statement["Effect"] == "Allow"
        assert statement.keys() <= {"Sid", "Effect", "Action", "Resource", "Condition"}
        for resource in listed(statement["Resource"]):
            granted[target(resource)].update(listed(statement["Action"]))
    return granted


def granted_on(resource: str) -> set[tuple[str, str]]:
    return {(function, action) for function in functions() for action in rights(function).get(resource, ())}


def references(value: Any) -> Iterator[str]:
    """The resources an environment variable points at."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "Ref":
                yield inner
            elif key == "Fn::GetAtt":
                yield inner[0]
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_function_has_a_role_of_its_own() -> None:
    roles = [role_of(function) for function in [*functions(), *JOBS]]
    assert len(set(roles)) == len(roles)
    assert set(roles) == set(of_type("AWS::IAM::Role")) - {"CanaryRole"}


def test_this_file_lists_every_function() -> None:
    assert set(RIGHTS) == set(functions())


@pytest.mark.parametrize("function", RIGHTS)
def test_a_function_may_do_exactly_what_it_needs(function: str) -> None:
    assert rights(function) == RIGHTS[function]


def test_roles_are_the_only_source_of_rights() -> None:
    """But for the account's own key, which every role may use through the services that keep the hub's data, and for
    traces, if they are asked for."""
    assert not of_type("AWS::IAM::Policy")
    assert of_type("AWS::IAM::ManagedPolicy").keys() == {"KeyPolicy", "TracingPolicy"}
    for name, role in of_type("AWS::IAM::Role").items():
        own = set() if name == "CanaryRole" else {"Policies"}
        known = {"PermissionsBoundary", "AssumeRolePolicyDocument", "ManagedPolicyArns", *own}
        assert role["Properties"].keys() == known
        if own:
            shared = [one["Fn::If"][1]["Ref"] for one in role["Properties"]["ManagedPolicyArns"]]
            assert set(shared) <= {"KeyPolicy", "TracingPolicy"}


def test_only_lambda_may_take_a_functions_role_and_only_glue_a_jobs() -> None:
    of_jobs = {role_of(job) for job in JOBS}
    for name, role in of_type("AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        service = "glue" if name in of_jobs else "codedeploy" if name == "CanaryRole" else "lambda"
        assert statement["Principal"] == {"Service": f"{service}.amazonaws.com"}
        assert statement["Action"] == "sts:AssumeRole"


def test_a_job_may_do_exactly_what_it_needs() -> None:
    """C8: compaction reads the archive and writes tables; only retention removes from it, and empties pages."""
    everything = {"ArchiveBucket.Arn": {"s3:ListBucket", "s3:GetBucketLocation"}, "ArchiveBucket *": {"s3:GetObject"}}
    write = {"s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
    metrics = {"*": {"cloudwatch:PutMetricData"}}
    catalog = {"glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable"}
    register = {f"glue {part}": catalog for part in ("catalog", "database/", "table/ *")}
    tables = {"ArchiveBucket lake/": write, "ArchiveBucket lake_$folder$": write, "ArchiveBucket temporary/": write}
    compact = {**everything, **metrics, **register, **tables}
    assert job_rights("CompactJob") == {**compact, "CompactOutput.Arn": WRITE_LOGS, "CompactErrors.Arn": WRITE_LOGS}
    assert job_rights("RetainJob") == {
        **compact,
        "RetainOutput.Arn": WRITE_LOGS,
        "RetainErrors.Arn": WRITE_LOGS,
        "ArchiveBucket ledger/": write,
        "ArchiveBucket retention/": write,
        "LogTable.Arn": dynamodb("Query", "PutItem"),
        "StateTable.Arn": dynamodb("Query", "GetItem", "UpdateItem", "PutItem", "DeleteItem"),
        "DeliveryTable.Arn": dynamodb("Query", "GetItem", "BatchGetItem"),
    }


def job_rights(job: str) -> Mapping[str, set[str]]:
    """The metrics of a job have no address; they are bound to Glue's own namespace instead."""
    granted: dict[str, set[str]] = defaultdict(set)
    for statement in statements(role_of(job)):
        if statement["Resource"] == "*":
            assert statement["Condition"] == {"StringEquals": {"cloudwatch:namespace": "Glue"}}
        for resource in listed(statement["Resource"]):
            granted["*" if resource == "*" else target(resource)].update(listed(statement["Action"]))
    return granted


@pytest.mark.parametrize(
    ("role", "sid", "keys"),
    [
        ("Archive", "Reserve", "archive#*"),
        ("Retention", "KeepRules", "retention#*"),
        ("Retention", "KeepProfiles", "profiles#*"),
        ("Replay", "ReplaceTranscripts", "transcript#*"),
        ("Poll", "ReplaceStatus", "status#*"),
        ("Retain", "KeepTranscripts", "transcript#*"),
    ],
)
def test_a_row_of_the_state_is_written_by_those_it_belongs_to(role: str, sid: str, keys: str) -> None:
    (statement,) = (one for one in statements(f"{role}Role") if one["Sid"] == sid)
    assert statement["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [keys]}}


def test_exactly_those_who_take_tokens_count_requests_and_touch_nothing_else_by_that() -> None:
    counting = {
        function: [one for one in statements(role_of(function)) if one["Sid"] == COUNT_REQUESTS["Sid"]]
        for function in functions()
    }
    assert {function for function, found in counting.items() if found} == {
        function for function, _ in granted_on("TokenSecret.Id")
    }
    for found in filter(None, counting.values()):
        (statement,) = found
        assert {name: value for name, value in statement.items() if name != "Resource"} == COUNT_REQUESTS
        assert attribute(statement["Resource"]) == "StateTable.Arn"
    for function in filter(counting.get, counting):
        assert {"TENANT_REQUESTS", "TENANT_REQUEST_BURST"} <= environment(function).keys()


def test_no_function_may_remove_anything_from_the_archive() -> None:
    assert granted_on("ArchiveBucket ledger/") == {
        ("ArchiveFunction", "s3:PutObject"),
        ("LakeFunction", "s3:PutObject"),
        ("LakeFunction", "s3:GetObject"),
    }
    assert not granted_on("ArchiveBucket *")


def test_no_action_holds_a_wildcard() -> None:
    assert not [action for f in functions() for actions in rights(f).values() for action in actions if "*" in action]


def test_only_those_who_commit_write_to_the_log_and_only_by_putting() -> None:
    reading = dynamodb("Query", "BatchGetItem")
    writing = {(function, action) for function, action in granted_on("LogTable.Arn") if action not in reading}
    assert writing == {(function, "dynamodb:PutItem") for function in WRITERS}


def test_only_those_who_write_to_the_log_touch_claims_and_with_the_same_rights() -> None:
    looking = ("TargetsFunction", "dynamodb:GetItem")
    alone = ("OperateFunction", "dynamodb:GetItem")
    assert {function for function, _ in granted_on("ClaimsTable.Arn") - {looking, alone}} == WRITERS
    assert "dynamodb:PartiQLInsert" in rights("SubmitFunction")["ClaimsTable.Arn"]
    for function in WRITERS:
        granted = rights(function)["ClaimsTable.Arn"] - ({looking[1]} if function == looking[0] else set())
        assert granted == rights("SubmitFunction")["ClaimsTable.Arn"]


def test_exactly_those_who_commit_wait_in_line() -> None:
    noting = {f"{name}Function" for name in ("FanOut", "Crowd", "Index", "Archive", "Sweep")}
    waiting = {function for function, action in granted_on("WaitingTable.Arn") if action == "dynamodb:BatchWriteItem"}
    assert waiting == WRITERS == {function for function, _ in granted_on("WaitingTable.Arn")} - noting
    for function in WRITERS | noting:
        assert environment(function)["WAITING_TABLE"] == {"Ref": "WaitingTable"}


@pytest.mark.parametrize("table", sorted(of_type("AWS::DynamoDB::Table").keys() - MAY_LOSE_ITEMS))
def test_nobody_may_delete_from_a_table_of_facts_or_of_raw_values(table: str) -> None:
    assert not [action for _, action in granted_on(f"{table}.Arn") if "Delete" in action]


def test_whoever_deletes_from_the_state_deletes_only_what_is_its_own() -> None:
    """M5: what is still to be done for a marker is noted there, and struck out once it is done.

    R8, T11: the pieces of a projection are removed when another one is stored.
    """
    rows = {"Markers": "intents#*", "Settle": "intents#*", "Replay": "transcript#*", "Poll": "status#*"}
    deleting = {(function, action) for function, action in granted_on("StateTable.Arn") if "Delete" in action}
    assert deleting == {(f"{name}Function", "dynamodb:DeleteItem") for name in rows}
    for name, keys in rows.items():
        (statement,) = (one for one in statements(f"{name}Role") if "dynamodb:DeleteItem" in one["Action"])
        assert statement["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [keys]}}


def test_who_keeps_raw_values_cannot_read_them_and_who_reads_them_cannot_keep_any() -> None:
    """P4: emit puts, diagnostics reads, and no one else reaches them."""
    reaching = granted_on("DiagnosticsTable.Arn")
    assert reaching == {("EmitFunction", "dynamodb:PutItem"), ("DiagnosticsFunction", "dynamodb:Query")}


def test_only_the_streams_contract_reads_its_secret() -> None:
    readers = {f"{name}Function" for name in ("Emit", "Markers", "Poll", "Diagnostics", "Socket")}
    assert {function for function, _ in granted_on("StreamSecret.Id")} == readers


def test_only_those_who_keep_and_serve_targets_read_their_secrets_and_change_their_deliveries() -> None:
    """D6"""
    keepers = {"TargetsFunction", "DeliverFunction"}
    assert {function for function, _ in granted_on("DeliverySecret.Id")} == keepers
    reading = dynamodb("Query", "BatchGetItem")
    changing = {function for function, action in granted_on("DeliveryTable.Arn") if action not in reading}
    askers = {"FanOutFunction", "SweepFunction"}
    assert changing == keepers | askers
    for function in askers:
        (asking,) = (one for one in statements(role_of(function)) if one["Sid"] == "AskForDrains")
        assert asking["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["drains#*", "agenda#*"]}}, (
            "it asks for drains, and changes nothing else of a target"
        )


@pytest.mark.parametrize(
    ("function", "sid", "keys"),
    [(f"{name}Function", "NoteGrowth", ["grown#*"]) for name in ("FanOut", "Crowd", "Index", "Archive")]
    + [("SweepFunction", "NoteGrowthAndPlaces", ["grown#*", "places"])],
)
def test_consumers_and_the_sweep_touch_no_request_that_waits(function: str, sid: str, keys: list[str]) -> None:
    (noting,) = (
        one for one in statements(role_of(function)) if one["Resource"] == {"Fn::GetAtt": ["WaitingTable", "Arn"]}
    )
    assert noting["Sid"] == sid
    assert noting["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": keys}}


@pytest.mark.parametrize("role", ["TargetsRole", "DeliverRole"])
def test_what_became_of_a_delivery_is_deleted_by_nobody(role: str) -> None:
    """D4"""
    (statement,) = (one for one in statements(role) if "dynamodb:DeleteItem" in one["Action"])
    (forgettable,) = statement["Condition"].values()
    assert not [key for key in forgettable["dynamodb:LeadingKeys"] if key.startswith(("rows", "cursors", "*"))]


def test_only_those_who_talk_to_sockets_forget_them() -> None:
    deleting = {function for function, action in granted_on("ConnectionsTable.Arn") if "Delete" in action}
    assert deleting == {"SocketFunction", "FanOutFunction", "CrowdFunction"}
    assert deleting == {function for function, _ in granted_on("POST @connections")}


def test_batch_writes_which_can_delete_reach_only_the_index_the_connections_and_who_waits() -> None:
    for table in of_type("AWS::DynamoDB::Table").keys() - {"IndexTable", "ConnectionsTable", "WaitingTable"}:
        assert "dynamodb:BatchWriteItem" not in {action for _, action in granted_on(f"{table}.Arn")}


@pytest.mark.parametrize("function", RIGHTS)
def test_a_function_writes_only_its_own_log_group(function: str) -> None:
    (group,) = (
        resource for resource in rights(function) if resource.removesuffix(".Arn") in of_type("AWS::Logs::LogGroup")
    )
    assert functions()[function]["Properties"]["LoggingConfig"]["LogGroup"] == {"Ref": group.removesuffix(".Arn")}


@pytest.mark.parametrize("function", RIGHTS)
def test_a_function_is_told_of_the_tables_and_secrets_it_may_use_and_no_others(function: str) -> None:
    kinds = {**of_type("AWS::DynamoDB::Table"), **of_type("AWS::SecretsManager::Secret")}
    told = {name for name in references(list(environment(function).values())) if name in kinds}
    allowed = {right.partition(".")[0] for right in rights(function) if not right.endswith(".StreamArn")}
    assert told == allowed & kinds.keys()


def test_only_the_apis_and_the_schedules_may_call_functions() -> None:
    callers = defaultdict(set)
    for permission in of_type("AWS::Lambda::Permission").values():
        assert permission["Properties"]["Action"] == "lambda:InvokeFunction"
        source = str(permission["Properties"]["SourceArn"])
        callers[permission["Properties"]["Principal"]].add(source)
        if permission["Properties"]["FunctionName"] == {"Ref": "SocketFunctionAliaslive"}:
            assert "${SocketApi}/" in source
        else:
            assert "${SocketApi}" not in source
    assert callers.keys() == {"apigateway.amazonaws.com", "events.amazonaws.com"}
    apis = ("${HttpApi}/", "${BatchApi}/", "${SocketApi}/")
    assert all(any(api in source for api in apis) for source in callers["apigateway.amazonaws.com"])
    ticks = ("SweepFunctionTick", "SettleFunctionTick", "RemindFunctionTick")
    assert all(any(tick in source for tick in ticks) for source in callers["events.amazonaws.com"])


def test_queues_grant_nothing_to_strangers() -> None:
    """But for EventBridge, which tells of the hub's own jobs, and is known by its rules."""
    (policy,) = of_type("AWS::SQS::QueuePolicy").values()
    assert policy["Properties"]["Queues"] == [{"Ref": "JobFailures"}]
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Principal"], statement["Action"]) == ({"Service": "events.amazonaws.com"}, "sqs:SendMessage")
    rules = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert {attribute(rule) for rule in rules} == {"JobFailed.Arn", "JobLate.Arn"}


def test_names_start_with_the_stacks_so_that_two_hubs_fit_in_one_account() -> None:
    names = [
        named(resource["Properties"][key])
        for resource in template()["Resources"].values()
        for key in ("FunctionName", "TableName", "QueueName", "LayerName")
        if key in resource.get("Properties", {}) and "Fn::Sub" in resource["Properties"][key]
    ]
    assert names
    assert all(name.startswith("hub-") for name in names)
