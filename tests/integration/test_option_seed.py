"""``--snapaudit-seed`` and its ini twin."""

import re

SUITE = """
@privacy_audit(epsilon=1.0)
def test_it(privacy_auditor):
    result = privacy_auditor.check(LaplaceSum(1.0), PAIR)
    print("SEED", result.seed)
    print("FOUND", result.epsilon_lower, result.attack, result.views)
"""


def _printed(run, word):
    return re.search(rf"{word} (.*)", run.result.stdout.str()).group(1)


def test_the_default_seed_is_printed_and_gives_the_same_numbers_every_time(audits):
    first, second = audits(SUITE, "-s"), audits(SUITE, "-s")
    first.result.stdout.fnmatch_lines(["snapaudit: seed 0, 99.9% confidence, 2,000 trials per side"])
    assert _printed(first, "SEED") == _printed(second, "SEED")
    assert _printed(first, "FOUND") == _printed(second, "FOUND")


def test_the_seed_reaches_the_audit_and_changes_its_numbers(audits):
    zero, seven = audits(SUITE, "-s"), audits(SUITE, "-s", "--snapaudit-seed=7")
    seven.result.stdout.fnmatch_lines(["snapaudit: seed 7, *"])
    assert _printed(zero, "SEED").startswith("(0, ")
    assert _printed(seven, "SEED").startswith("(7, ")
    assert _printed(zero, "FOUND") != _printed(seven, "FOUND")


def test_the_ini_twin_is_used_and_the_command_line_wins(audits, pytester):
    pytester.makeini("[pytest]\nsnapaudit_seed = 3\n")
    assert _printed(audits(SUITE, "-s"), "SEED").startswith("(3, ")
    assert _printed(audits(SUITE, "-s", "--snapaudit-seed=4"), "SEED").startswith("(4, ")


def test_a_random_seed_is_drawn_printed_and_reproducible(audits):
    drawn = audits(SUITE, "-s", "--snapaudit-seed=random")
    line = next(line for line in drawn.result.outlines if line.startswith("snapaudit: seed"))
    seed = re.search(r"; seed drawn: reproduce with --snapaudit-seed=(\d+)$", line).group(1)
    assert _printed(drawn, "SEED").startswith(f"({seed}, ")
    again = audits(SUITE, "-s", f"--snapaudit-seed={seed}")
    assert _printed(again, "FOUND") == _printed(drawn, "FOUND")
    other = audits(SUITE, "-s", "--snapaudit-seed=random")
    assert _printed(other, "SEED") != _printed(drawn, "SEED")


def test_a_random_seed_reaches_xdist_workers(audits, pytester):
    pytester.makeconftest("""
        def pytest_snapaudit_result(item, result):
            with open(item.config.rootpath / "seeds.txt", "a") as seeds:
                seeds.write(f"{result.seed[0]}\\n")
    """)
    suite = """
    @pytest.mark.parametrize("case", range(4))
    @privacy_audit(epsilon=1.0)
    def test_it(privacy_auditor, case):
        privacy_auditor.check(LaplaceSum(1.0), PAIR)
    """
    run = audits(suite, "-n2", "--snapaudit-seed=random")
    run.result.assert_outcomes(passed=4)
    seeds = (pytester.path / "seeds.txt").read_text().split()
    table = next(line for line in run.result.outlines if "privacy audits (seed " in line)
    assert len(seeds) == 4
    assert set(seeds) == {re.search(r"seed (\d+)", table).group(1)}


def test_other_values_are_refused(audits, pytester):
    refused = audits(SUITE, "--snapaudit-seed=-1")
    refused.result.stderr.fnmatch_lines(
        ["*--snapaudit-seed: the run seed must be a non-negative integer or 'random', got '-1'."]
    )
    pytester.makeini("[pytest]\nsnapaudit_seed = often\n")
    audits(SUITE).result.stderr.fnmatch_lines(
        ["*ini key snapaudit_seed: the run seed must be a non-negative integer or 'random', got 'often'."]
    )
