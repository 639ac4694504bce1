"""The template can adopt restored tables: what CloudFormation imports is what it then finds in the whole template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.adopt import IDENTIFIERS, TABLES, CannotAdopt, adoption, main
from local.after_deploy import KEPT_TABLES
from tests.support.translated import named, of_type, read, template, translate

ARN = "arn:aws:secretsmanager:eu-central-1:1:secret:x"
OTHERS = {"ArchiveBucket": "hub-archivebucket-1", "TokenSecret": ARN, "StreamSecret": ARN, "DeliverySecret": ARN}


def adopted() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return adoption(read("template.yaml"), "hub", KEPT_TABLES, OTHERS)


def test_a_deployment_of_the_whole_template_changes_nothing_of_what_was_adopted() -> None:
    made, _ = adopted()
    whole = template()["Resources"]
    assert made["Resources"] == {name: whole[name] for name in made["Resources"]}
    assert set(made["Resources"]) == {*KEPT_TABLES, *OTHERS}


def test_an_import_is_given_nothing_that_it_cannot_take() -> None:
    """It needs no transform, and refuses outputs, resources without a policy of deletion, and dangling references."""
    made, _ = adopted()
    assert not {"Transform", "Globals", "Outputs"} & made.keys()
    assert all(one["DeletionPolicy"].startswith("Retain") for one in made["Resources"].values())
    assert set(made["Parameters"]) == {"KmsKeyArn"}
    assert set(made["Conditions"]) == {"HasKey"}
    assert all("Default" in parameter for parameter in made["Parameters"].values())
    text = json.dumps(made)
    assert "Fn::GetAtt" not in text
    assert "AWS::Serverless" not in text
    translated = translate({**made, "Transform": "AWS::Serverless-2016-10-31"})
    assert translated["Resources"] == made["Resources"]


def test_every_resource_is_named_as_an_import_names_it() -> None:
    made, imports = adopted()
    told = {one["LogicalResourceId"]: one for one in imports}
    assert told.keys() == made["Resources"].keys()
    for name, one in told.items():
        assert one["ResourceType"] == made["Resources"][name]["Type"]
        [(identifier, physical)] = one["ResourceIdentifier"].items()
        assert identifier == IDENTIFIERS[one["ResourceType"]]
        if identifier == "TableName":
            assert physical == named(made["Resources"][name]["Properties"]["TableName"])
    assert told["ArchiveBucket"]["ResourceIdentifier"] == {"BucketName": "hub-archivebucket-1"}


def test_state_and_index_are_not_adopted_unless_asked_for() -> None:
    """They are rebuilt; a State that is newer than its log would be worse than none."""
    made, _ = adoption(read("template.yaml"), "hub")
    assert tuple(made["Resources"]) == TABLES == ("ClaimsTable", "LogTable", "DeliveryTable")


def test_every_lasting_table_is_restorable() -> None:
    tables = of_type("AWS::DynamoDB::Table")
    for name in KEPT_TABLES:
        assert tables[name]["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


@pytest.mark.parametrize("name", ["ConnectionsTable", "LogTabel", "SyncFunction"])
def test_what_cannot_be_adopted_is_refused_by_name(name: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(CannotAdopt, match=name):
        adoption(read("template.yaml"), "hub", [name])
    assert main(["--stack", "hub", "--also", f"{name}=x", "--to", str(tmp_path / "out")]) == 2
    assert name in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command_writes_both_files(tmp_path: Path) -> None:
    assert main(["--stack", "hub2", "--also", "ArchiveBucket=old", "--to", str(tmp_path)]) == 0
    imports = json.loads((tmp_path / "resources.json").read_text())
    assert {"TableName": "hub2-log"} in [one["ResourceIdentifier"] for one in imports]
    assert json.loads((tmp_path / "template.json").read_text())["Resources"].keys() == {*TABLES, "ArchiveBucket"}
