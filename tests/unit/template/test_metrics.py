from __future__ import annotations

import re

import pytest

from infra.metric_docs import files
from millrace.ledger.domain.metrics import MEANINGS, Metric
from tests.support.translated import ROOT, monitoring, template


def test_the_page_of_metrics_is_not_stale() -> None:
    for path, text in files().items():
        assert path.read_text() == text, "run: make generated"


def test_every_metric_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Metric)


@pytest.mark.parametrize("metric", Metric)
def test_every_metric_is_counted_somewhere(metric: Metric) -> None:
    code = [*(ROOT / "layers").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    places = [path.name for path in code if path.name != "metrics.py" and f"Metric.{metric.name}" in path.read_text()]
    assert places


def test_alarms_and_graphs_of_the_hub_name_metrics_that_exist() -> None:
    text = str(monitoring())
    searched = {name for names in re.findall(r"MetricName=\(([^)]*)\)", text) for name in names.split(" OR ")}
    alarmed = {
        resource["Properties"]["MetricName"]
        for resource in monitoring()["Resources"].values()
        if resource.get("Properties", {}).get("Namespace") == {"Fn::Sub": "Millrace/${Hub}"}
    }
    assert searched | alarmed <= set(Metric)
    assert set(re.findall(r'Namespace="([^"]*)" MetricName', text.replace("\\", ""))) == {"Millrace/${Hub}"}
    own = template()["Resources"]["SubmitFunction"]["Properties"]["Environment"]["Variables"]
    assert own["POWERTOOLS_METRICS_NAMESPACE"] == {"Fn::Sub": "Millrace/${AWS::StackName}"}, "two hubs count apart"
    assert searched
    assert alarmed
