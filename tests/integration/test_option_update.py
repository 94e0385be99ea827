"""``--snapaudit-update`` and its ini twin, and unused snapshots."""

import json

SUITE = """
import os

CALLS = []

@pytest.fixture(scope="module")
def votes(privacy_auditor):
    def record(dataset, size, rng):
        CALLS.append((dataset, size, rng.integers(2**40)))
        return np.tile(np.asarray(dataset, float), (size, 1))

    return privacy_auditor.snapshot(
        "votes", record, ([1.0, 2.0], [0.0, 3.0]), inputs={"model": os.environ.get("MODEL", "a"), "T": 3}, size=50
    )

@privacy_audit(epsilon=1.0)
def test_votes(privacy_auditor, votes):
    print("CALLS", len(CALLS), "SIZE", votes.reference.size, "ROWS", votes.canary.rows.tolist())
    @dataclass(frozen=True)
    class Voting:
        scale: float = 3.0
        deterministic = True
        def privatize(self, clean, rng):
            return clean + rng.laplace(0, self.scale, clean.shape)
        def clean(self, dataset, rng):
            raise AssertionError("not called on a snapshot pair")
    privacy_auditor.check(Voting(), votes)
"""


def _stored(pytester):
    return sorted(path.relative_to(pytester.path).as_posix() for path in pytester.path.rglob("*.json"))


def test_by_default_nothing_is_recorded_and_the_failure_says_how(audits, pytester):
    run = audits(SUITE)
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines(["*SnapshotMissing: snapshot 'votes': *--snapaudit-update=*"])
    assert _stored(pytester) == []


def test_new_records_what_is_missing_and_says_so(audits, pytester):
    run = audits(SUITE, "-s", "--snapaudit-update=new")
    run.result.assert_outcomes(passed=1)
    (stored,) = _stored(pytester)
    assert stored.startswith("privacy_snapshots/votes/")
    run.result.stdout.fnmatch_lines(
        [
            "snapaudit: recording snapshots, --snapaudit-update=new",
            "*CALLS 2 SIZE 50 ROWS [[][[]0.0, 3.0]]",
            "*= privacy snapshots =*",
            f"CREATE {stored}",
        ]
    )
    again = audits(SUITE, "-s", "--snapaudit-update=new")
    again.result.assert_outcomes(passed=1)
    again.result.stdout.fnmatch_lines(["*CALLS 0 SIZE 50*"])
    again.result.stdout.no_fnmatch_line("CREATE*")
    replayed = audits(SUITE, "-s")
    replayed.result.assert_outcomes(passed=1)
    replayed.result.stdout.fnmatch_lines(["*CALLS 0 SIZE 50*"])
    assert replayed.verdicts() == run.verdicts() == {"test_it.py::test_votes": "CONSISTENT"}


def test_the_two_sides_get_different_streams_and_the_same_ones_every_time(audits, pytester, monkeypatch):
    suite = SUITE.replace('print("CALLS"', 'print("STREAMS", [call[2] for call in CALLS]); print("CALLS"')

    def streams(*args):
        run = audits(suite, "-s", *args)
        line = next(line for line in run.result.outlines if "STREAMS" in line)
        return json.loads(line.split("STREAMS ")[1].replace("np.int64(", "").replace(")", ""))

    first = streams("--snapaudit-update=all")
    assert len(set(first)) == 2
    assert streams("--snapaudit-update=all") == first
    assert not set(streams("--snapaudit-update=all", "--snapaudit-seed=5")) & set(first)


def test_other_inputs_are_stale_and_name_the_field(audits, monkeypatch):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    monkeypatch.setenv("MODEL", "b")
    run = audits(SUITE)
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines(["*SnapshotStale: snapshot 'votes': stale, *", "*model*a*b*"])
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)


def test_all_records_again_and_reports_only_what_changed(audits, pytester):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    same = audits(SUITE, "-s", "--snapaudit-update=all")
    same.result.stdout.fnmatch_lines(["*CALLS 2*"])
    same.result.stdout.no_fnmatch_line("UPDATE*")
    changed = audits(SUITE.replace("[0.0, 3.0]", "[0.5, 2.5]"), "--snapaudit-update=all")
    changed.result.assert_outcomes(passed=1)
    changed.result.stdout.fnmatch_lines([f"UPDATE {_stored(pytester)[0]}"])


def test_unused_entries_are_listed_and_removed_under_all(audits, pytester, monkeypatch):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    (old,) = _stored(pytester)
    monkeypatch.setenv("MODEL", "b")
    listed = audits(SUITE, "--snapaudit-update=new")
    listed.result.stdout.fnmatch_lines(
        [
            "CREATE privacy_snapshots/votes/*.json",
            "1 unused, remove with pytest --snapaudit-update=all:",
            f"  {old.removeprefix('privacy_snapshots/').removesuffix('.json')}",
        ]
    )
    assert old in _stored(pytester)
    removed = audits(SUITE, "--snapaudit-update=all")
    removed.result.stdout.fnmatch_lines([f"REMOVE {old}"])
    assert old not in _stored(pytester)
    assert len(_stored(pytester)) == 1


def test_entries_of_tests_that_did_not_run_are_not_called_unused(audits, monkeypatch):
    suite = SUITE + "\ndef test_other():\n    pass\n"
    audits(suite, "--snapaudit-update=new").result.assert_outcomes(passed=2)
    monkeypatch.setenv("MODEL", "b")
    audits(suite, "--snapaudit-update=new").result.stdout.fnmatch_lines(["1 unused*"])
    for args in (["-k", "test_other"], ["test_it.py::test_other"], ["--deselect", "test_it.py::test_votes"]):
        run = audits(suite, *args)
        run.result.assert_outcomes(passed=1, deselected=0 if "::" in args[0] else 1)
        run.result.stdout.no_fnmatch_line("* unused*")
    skipped = suite.replace("def test_other():\n    pass", "def test_other():\n    pytest.skip('not here')")
    audits(skipped).result.stdout.no_fnmatch_line("* unused*")


def test_the_ini_twin_and_other_values(audits, pytester):
    pytester.makeini("[pytest]\nsnapaudit_update = new\n")
    audits(SUITE).result.assert_outcomes(passed=1)
    refused = audits(SUITE, "--snapaudit-update=some")
    refused.result.stderr.fnmatch_lines(
        ["*--snapaudit-update: the update mode must be one of none, new, all, got 'some'."]
    )


def test_recording_is_refused_under_xdist(audits, pytester):
    run = audits(SUITE, "-n1", "--snapaudit-update=new")
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines(
        [
            "*SnapshotError: snapshot 'votes': recording is refused under xdist*pytest -n0 --snapaudit-update=new"
        ]
    )
    assert _stored(pytester) == []


def test_workers_load_snapshots_and_the_controller_knows_what_they_used(audits, monkeypatch):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    monkeypatch.setenv("MODEL", "b")
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    run = audits(SUITE, "-n1")
    run.result.assert_outcomes(passed=1)
    run.result.stdout.fnmatch_lines(["1 unused, remove with pytest --snapaudit-update=all:"])


def test_recording_is_refused_inside_given_and_loading_is_not(audits, pytester):
    suite = """
    from hypothesis import given, settings, strategies as st

    @settings(max_examples=3, database=None)
    @given(st.integers(0, 3))
    def test_it(privacy_auditor, unused):
        privacy_auditor.snapshot("votes", lambda d, n, rng: np.zeros((n, 2)), (0, 1), inputs={"T": 3}, size=10)

    def test_outside(privacy_auditor):
        privacy_auditor.snapshot("votes", lambda d, n, rng: np.zeros((n, 2)), (0, 1), inputs={"T": 3}, size=10)
    """
    run = audits(suite, "--snapaudit-update=new")
    run.result.assert_outcomes(failed=1, passed=1)
    run.result.stdout.fnmatch_lines(["*SnapshotError: snapshot 'votes': recording is refused inside @given*"])
    audits(suite).result.assert_outcomes(passed=2)


def test_drawing_outside_the_recorded_table_says_what_to_do(audits):
    suite = """
    from hypothesis import example, given, settings, strategies as st

    ROWS = 0

    def record(dataset, size, rng):
        global ROWS
        ROWS += size
        return np.full((size, 1), float(dataset))

    def entry(privacy_auditor, partitions):
        return privacy_auditor.snapshot("votes", record, (0, 1), inputs={"T": partitions}, size=10)

    def test_table(privacy_auditor):
        entry(privacy_auditor, 2)

    @settings(max_examples=3, database=None)
    @example(2)
    @given(st.just(3))
    def test_it(privacy_auditor, partitions):
        entry(privacy_auditor, partitions)

    def test_nothing_was_recorded_in_the_example():
        assert ROWS in (0, 20)
    """
    audits(suite, "--snapaudit-update=new", "-k", "table").result.assert_outcomes(passed=1, deselected=2)
    run = audits(suite)
    run.result.assert_outcomes(passed=2, failed=1)
    run.result.stdout.fnmatch_lines(
        [
            "*SnapshotStale: snapshot 'votes': a Hypothesis example asks for clean outputs that are not recorded, and "
            "none are recorded per example. Declare a table of neighbours, record all of it in a fixture "
            "(pytest --snapaudit-update=new), and draw from the table: st.sampled_from(table).",
            "*T: 2 -> 3*",
        ]
    )


def test_recording_in_ci_is_announced(audits, monkeypatch, pytester):
    pytester.makepyfile(test_it="def test_nothing(): pass")
    audits(None).result.stdout.no_fnmatch_line("snapaudit: recording*")
    monkeypatch.setenv("CI", "true")
    run = pytester.runpytest_inprocess("--snapaudit-update=new")
    run.stdout.fnmatch_lines(
        ["snapaudit: recording snapshots in CI (the variable CI is set), --snapaudit-update=new"]
    )


def test_what_record_returns_is_checked(audits):
    suite = """
    def test_rows(privacy_auditor):
        privacy_auditor.snapshot("votes", lambda d, n, rng: np.zeros((3, 2)), (0, 1), inputs={}, size=10)

    def test_objects(privacy_auditor):
        privacy_auditor.snapshot("votes", lambda d, n, rng: [object()] * n, (0, 1), inputs={}, size=10)
    """
    run = audits(suite, "--snapaudit-update=new")
    run.result.assert_outcomes(failed=2)
    run.result.stdout.fnmatch_lines(
        [
            "*ValueError: snapshot 'votes': record(dataset, size, rng) must return an array of 10 rows of numbers "
            "or text, got shape (3, 2) of dtype float64 for the reference dataset.",
            "*must return an array of 10 rows of numbers or text, got shape (10,) of dtype object *",
        ]
    )


RECORDER = """
class Answers:
    model = None

    def __call__(self, dataset, size, rng):
        self.model = "loaded on the first call"
        return np.tile(np.asarray(dataset, float), (size, 1))

    @property
    def provenance(self):
        return PROVENANCE

def test_it(privacy_auditor):
    pair = privacy_auditor.snapshot("votes", Answers(), ([1.0], [2.0]), inputs={"T": 3}, size=5)
    print("PROVENANCE", sorted(pair.canary.provenance.items()))
"""


def test_what_record_says_about_its_origin_is_stored(audits, pytester):
    suite = RECORDER.replace(
        "PROVENANCE\n", '{"model": self.model, "versions": {"torch": "2.13.0"}, "seed": "own"}\n', 1
    )
    audits(suite, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    (stored,) = _stored(pytester)
    provenance = json.loads((pytester.path / stored).read_text(encoding="utf-8"))["provenance"]
    assert provenance["model"] == "loaded on the first call"
    assert provenance["versions"] == {"torch": "2.13.0"}
    assert provenance["seed"] == 0
    assert provenance["recorded_by"] == "test_it.py"
    replayed = audits(suite, "-s")
    replayed.result.stdout.fnmatch_lines(["*PROVENANCE *('model', 'loaded on the first call')*"])


def test_an_origin_that_is_no_json_is_refused(audits, pytester):
    suite = RECORDER.replace("PROVENANCE\n", '{"model": object}\n', 1)
    run = audits(suite, "--snapaudit-update=new")
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(["*TypeError: record.provenance[[]'model'[]] must be JSON*"])
    assert _stored(pytester) == []


def test_another_number_of_evaluations_is_stale_if_it_is_asked_for(audits):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    more = SUITE.replace("size=50", "size=80")
    run = audits(more)
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines(
        [
            "*SnapshotStale: snapshot 'votes': stale, recorded with other numbers of evaluations*",
            "*  size: 50 (reference) and 50 (canary) -> 80",
            "*record it again with: pytest --snapaudit-update=new",
        ]
    )
    audits(SUITE.replace(", size=50", ""), "-s").result.stdout.fnmatch_lines(["*CALLS 0 SIZE 50*"])
    updated = audits(more, "-s", "--snapaudit-update=new")
    updated.result.stdout.fnmatch_lines(["*CALLS 2 SIZE 80*", "UPDATE privacy_snapshots/votes/*.json"])


def test_two_tests_that_ask_for_different_sizes_are_told(audits):
    suite = (
        SUITE
        + """
def test_more(privacy_auditor, votes):
    privacy_auditor.snapshot(
        "votes", lambda d, n, rng: np.zeros((n, 2)), (0, 1), inputs={"model": "a", "T": 3}, size=60
    )
"""
    )
    run = audits(suite, "--snapaudit-update=all")
    run.result.assert_outcomes(passed=1, failed=1)
    run.result.stdout.fnmatch_lines(["*  size: 50 (reference) and 50 (canary) -> 60"])


def test_a_damaged_entry_fails_and_only_all_replaces_it(audits, pytester):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    (data,) = pytester.path.glob("privacy_snapshots/votes/*.npz")
    damaged = data.read_bytes()[:-1]
    data.write_bytes(damaged)
    for mode in ("none", "new"):
        run = audits(SUITE, f"--snapaudit-update={mode}")
        run.result.assert_outcomes(errors=1)
        run.result.stdout.fnmatch_lines(
            ["*SnapshotCorrupt: snapshot 'votes': corrupt, *pytest --snapaudit-update=all"]
        )
        assert data.read_bytes() == damaged
    audits(SUITE, "--snapaudit-update=all").result.assert_outcomes(passed=1)
    audits(SUITE).result.assert_outcomes(passed=1)


def test_a_foreign_file_is_told_apart_and_not_overwritten_by_new(audits, pytester):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    manifest = pytester.path / _stored(pytester)[0]
    foreign = json.dumps({"belongs": "to another tool"})
    manifest.write_text(foreign, encoding="utf-8")
    for mode in ("none", "new"):
        run = audits(SUITE, f"--snapaudit-update={mode}")
        run.result.assert_outcomes(errors=1)
        run.result.stdout.fnmatch_lines(
            ["E *SnapshotForeign: snapshot 'votes': foreign, *no 'pytest-snapaudit snapshot' mark; *=all"]
        )
        run.result.stdout.no_fnmatch_line("*def load*")  # no frames of the plugin
        run.result.stdout.fnmatch_lines(["ERROR test_it.py::test_votes - SnapshotForeign: snapshot 'votes'*"])
        assert manifest.read_text(encoding="utf-8") == foreign


def test_a_directory_in_the_way_is_never_removed(audits, pytester):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    manifest = pytester.path / _stored(pytester)[0]
    manifest.unlink()
    (manifest / "kept").mkdir(parents=True)
    for mode in ("none", "new", "all"):
        run = audits(SUITE, f"--snapaudit-update={mode}")
        run.result.assert_outcomes(errors=1)
        run.result.stdout.fnmatch_lines(
            ["*is a directory, not a plain file; remove it, then record again with*"]
        )
        assert (manifest / "kept").is_dir()


def test_rows_that_drift_by_less_than_the_tolerance_stay_as_recorded(audits, pytester, monkeypatch):
    suite = """
    import os

    def test_it(privacy_auditor):
        drift = float(os.environ["DRIFT"])
        pair = privacy_auditor.snapshot(
            "rows", lambda d, n, rng: np.tile(np.array([d, 1.0]) + drift, (n, 1)), (0.0, 1.0),
            inputs={"T": 3}, size=10, tolerance=1e-5,
        )
        print("ROW", pair.canary.rows.tolist())
    """
    monkeypatch.setenv("DRIFT", "0")
    audits(suite, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    (stored,) = _stored(pytester)
    assert json.loads((pytester.path / stored).read_text(encoding="utf-8"))["rounded_to"] == 1e-5
    monkeypatch.setenv("DRIFT", "9e-6")
    same = audits(suite, "-s", "--snapaudit-update=all")
    same.result.stdout.fnmatch_lines(["*ROW [[][[]1.0, 1.0]]*"])
    same.result.stdout.no_fnmatch_line("UPDATE*")
    monkeypatch.setenv("DRIFT", "2e-5")
    moved = audits(suite, "-s", "--snapaudit-update=all")
    moved.result.stdout.fnmatch_lines(["*ROW [[][[]1.00002, 1.00002]]*", f"UPDATE {stored}"])


def test_a_part_of_the_tests_removes_nothing(audits, pytester, monkeypatch):
    suite = SUITE + "\ndef test_other():\n    pass\n"
    audits(suite, "--snapaudit-update=new").result.assert_outcomes(passed=2)
    monkeypatch.setenv("MODEL", "b")
    before = _stored(pytester)
    audits(suite, "--snapaudit-update=all", "-k", "test_other").result.assert_outcomes(passed=1, deselected=1)
    assert _stored(pytester) == before
