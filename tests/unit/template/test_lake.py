"""The template's part of the lake: a bucket that keeps what it has, and jobs that wait to be started."""

from __future__ import annotations

from typing import Any

import pytest

from local.jobs import WHEELS
from millrace.lake.domain.edition import DATABASE
from tests.support.translated import named, of_type, template

JOBS = of_type("AWS::Glue::Job")


def bucket() -> Any:
    (found,) = of_type("AWS::S3::Bucket").values()
    return found


def test_the_archive_outlives_its_stack_and_mistakes() -> None:
    assert (bucket()["DeletionPolicy"], bucket()["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert bucket()["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}


def test_nothing_current_in_the_archive_expires() -> None:
    (rule,) = bucket()["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rule.keys() == {"Id", "Status", "NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"}


def test_the_archive_is_encrypted_and_nobody_elses() -> None:
    properties = bucket()["Properties"]
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    condition, with_key, without = rule["Fn::If"]
    assert condition == "HasKey"
    assert with_key["ServerSideEncryptionByDefault"] == {
        "SSEAlgorithm": "aws:kms",
        "KMSMasterKeyID": {"Ref": "KmsKeyArn"},
    }
    assert without["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(properties["PublicAccessBlockConfiguration"]) == 4
    assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    (policy,) = of_type("AWS::S3::BucketPolicy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_archives_name_is_cloudformations_so_that_any_stack_name_will_do() -> None:
    assert "BucketName" not in bucket()["Properties"]


@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_runs_on_glue_5_1_from_the_bucket_without_bookmarks(job: str) -> None:
    """C6: the jobs keep their own checkpoint."""
    properties = JOBS[job]["Properties"]
    name = named(properties["Name"]).removeprefix("hub-")
    assert properties["GlueVersion"] == "5.1"
    assert properties["Command"]["Name"] == "glueetl"
    assert properties["Command"]["PythonVersion"] == "3"
    assert named(properties["Command"]["ScriptLocation"]) == f"s3://${{ArchiveBucket}}/jobs/{name}.py"
    arguments = properties["DefaultArguments"]
    assert named(arguments["--extra-py-files"]) == "s3://${ArchiveBucket}/jobs/millrace.zip"
    assert named(arguments["--additional-python-modules"]) == f"s3://${{ArchiveBucket}}/jobs/{WHEELS}"
    assert arguments["--python-modules-installer-option"] == "--no-index"
    prefix = named(arguments["--custom-logGroup-prefix"])
    groups = {named(group["Properties"]["LogGroupName"]) for group in of_type("AWS::Logs::LogGroup").values()}
    assert {f"{prefix}/output", f"{prefix}/error"} <= groups
    assert arguments["--job-bookmark-option"] == "job-bookmark-disable"
    assert named(arguments["--store"]) == "s3://${ArchiveBucket}"
    (catalog,) = of_type("AWS::Glue::Database").values()
    assert arguments["--database"] == catalog["Properties"]["DatabaseInput"]["Name"] == {"Ref": "TablesDatabase"}
    assert properties["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    assert properties["MaxRetries"] == 0


def test_the_tables_are_where_tools_look_unless_a_deployment_names_another_database() -> None:
    assert template()["Parameters"]["TablesDatabase"]["Default"] == DATABASE


def test_no_job_starts_by_itself_unless_a_deployment_says_so() -> None:
    assert template()["Parameters"]["RunJobs"]["Default"] == "false"
    asked = {"Fn::Equals": [{"Ref": "RunJobs"}, "true"]}
    assert template()["Conditions"]["RunsJobs"] == {"Fn::And": [{"Condition": "HasJobs"}, asked]}
    triggers = of_type("AWS::Glue::Trigger")
    assert len(triggers) == len(JOBS)
    assert {trigger["Condition"] for trigger in triggers.values()} == {"RunsJobs"}
    started = {action["JobName"]["Ref"] for one in triggers.values() for action in one["Properties"]["Actions"]}
    assert started == JOBS.keys()
