"""ini ``snapaudit_dir``."""

SUITE = """
def test_it(privacy_auditor):
    privacy_auditor.snapshot("votes", lambda d, n, rng: np.full((n, 2), d), (0, 1), inputs={"T": 3}, size=10)
"""


def test_it_is_relative_to_the_root_directory(audits, pytester, monkeypatch):
    pytester.makeini("[pytest]\nsnapaudit_dir = data/recorded\n")
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    (manifest,) = pytester.path.glob("data/recorded/votes/*.json")
    elsewhere = pytester.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    audits(None, "--rootdir", str(pytester.path), "-c", "../tox.ini", "..").result.assert_outcomes(passed=1)
    assert manifest.is_file()


def test_the_default_directory(audits, pytester):
    audits(SUITE, "--snapaudit-update=new").result.assert_outcomes(passed=1)
    assert len(list(pytester.path.glob("privacy_snapshots/votes/*.json"))) == 1
