"""``st.from_type`` knows the types, and nothing is imported for that before it is asked."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import textwrap

import pytest
from hypothesis import strategies as st
from strategy_draws import draws, share

import dp_icl
import dp_icl.flawed
from pytest_snapaudit import GaussianNoise, LaplaceNoise, PrivacyClaim
from pytest_snapaudit import strategies as snap


def python(source: str, **environment: str) -> str:
    """Standard output of ``source`` in a fresh interpreter."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_entry_point_is_declared():
    (entry,) = importlib.metadata.entry_points(group="hypothesis", name="snapaudit")
    assert entry.value == "pytest_snapaudit._hypothesis_entry:register"


def test_importing_hypothesis_loads_neither_types_nor_strategies_nor_numpy():
    loaded = python(
        """
        import sys
        import hypothesis
        late = ("pytest_snapaudit.engine", "pytest_snapaudit.strategies", "dp_icl", "numpy", "scipy", "pytest",
                "hypothesis.strategies._internal.types")
        print("pytest_snapaudit._hypothesis_entry" in sys.modules, [name for name in late if name in sys.modules])
        """
    )
    assert loaded == "True []"


def test_the_import_hook_is_gone_once_it_has_served():
    printed = python(
        """
        import sys
        before = list(sys.meta_path)
        import hypothesis
        hook, *rest = sys.meta_path
        assert rest == before
        from hypothesis import strategies as st
        st.register_type_strategy(complex, st.just(1j))
        assert sys.meta_path == before
        types = sys.modules["hypothesis.strategies._internal.types"]
        assert types.__spec__.loader.exec_module.__name__ == "exec_module"
        print(sorted(types._global_extra_lookup))
        """
    )
    assert printed == "['dp_icl', 'numpy', 'pytest_snapaudit']"


def test_registering_twice_changes_nothing():
    printed = python(
        """
        import sys
        import hypothesis
        from pytest_snapaudit._hypothesis_entry import register
        hooks = list(sys.meta_path)
        register()
        assert sys.meta_path == hooks
        from hypothesis.strategies._internal import types
        resolvers = dict(types._global_extra_lookup)
        register()
        print(types._global_extra_lookup == resolvers)
        """
    )
    assert printed == "True"


def test_a_claim_can_be_imported_without_numpy_and_is_then_resolved():
    printed = python(
        """
        import sys
        from hypothesis import find, strategies as st
        from pytest_snapaudit.engine.claim import PrivacyClaim
        assert "numpy" not in sys.modules
        assert "pytest_snapaudit.strategies" not in sys.modules
        print(find(st.from_type(PrivacyClaim), lambda claim: claim.epsilon > 40 and claim.delta > 0))
        """
    )
    assert printed == "(50, 1e-05)"


def test_reference_mechanisms_are_resolved_in_a_process_that_never_names_the_plugin():
    printed = python(
        """
        from dp_icl import EmbeddingSpaceAggregation, PrivateVoting
        from hypothesis import find, strategies as st
        for mechanism in (PrivateVoting, EmbeddingSpaceAggregation):
            print(find(st.from_type(mechanism), lambda drawn: drawn.partitions > 2))
        """
    )
    assert printed.splitlines() == [
        "PrivateVoting(labels=('A', 'B'), partitions=3, epsilon=1.0, delta=1e-05, calibration='analytic', seed=0)",
        "EmbeddingSpaceAggregation(partitions=3, epsilon=1.0, delta=1e-05)",
    ]


def test_the_reference_mechanisms_do_not_import_the_plugin():
    loaded = python(
        """
        import sys
        import dp_icl
        print([name for name in sys.modules if name.startswith(("pytest_snapaudit", "hypothesis"))])
        """
    )
    assert loaded == "[]"


def test_without_plugins_the_types_are_known_once_the_strategies_are_imported():
    printed = python(
        """
        from hypothesis import find, strategies as st
        from hypothesis.strategies._internal import types
        assert "dp_icl" not in types._global_extra_lookup
        import pytest_snapaudit.strategies
        import dp_icl
        print(find(st.from_type(dp_icl.PrivateVoting), lambda _: True).partitions)
        """,
        HYPOTHESIS_NO_PLUGINS="1",
    )
    assert printed == "1"


def test_without_a_table_of_resolvers_the_types_are_registered_in_the_public_way():
    printed = python(
        """
        from hypothesis import find, strategies as st
        from pytest_snapaudit import _hypothesis_entry
        _hypothesis_entry.resolver_table = lambda: None
        _hypothesis_entry.register()
        import pytest_snapaudit.strategies as snap
        import dp_icl
        from pytest_snapaudit import PrivacyClaim
        print(find(st.from_type(PrivacyClaim), lambda _: True), end=" ")
        print(find(st.from_type(dp_icl.EmbeddingSpaceAggregation), lambda _: True).partitions, end=" ")
        print(tuple(find(st.from_type(snap.NeighbouringPair), lambda _: True)))
        """,
        HYPOTHESIS_NO_PLUGINS="1",
    )
    assert printed == "(1, 0) 1 ([], [0.0])"


def test_a_strategy_registered_by_the_user_takes_precedence():
    printed = python(
        """
        import dp_icl
        from hypothesis import find, strategies as st
        mine = dp_icl.PrivateVoting(("yes", "no"), 7, 0.5, 1e-6)
        st.register_type_strategy(dp_icl.PrivateVoting, st.just(mine))
        import pytest_snapaudit.strategies
        print(find(st.from_type(dp_icl.PrivateVoting), lambda _: True) == mine)
        """
    )
    assert printed == "True"


@pytest.mark.parametrize(
    "mechanism",
    [
        dp_icl.PrivateVoting,
        dp_icl.EmbeddingSpaceAggregation,
        dp_icl.flawed.ClassicalPrivateVoting,
        dp_icl.flawed.UnitSensitivityEmbeddingSpaceAggregation,
    ],
)
def test_reference_configurations(mechanism):
    drawn = draws(st.from_type(mechanism), 200)
    assert all(type(value) is mechanism for value in drawn)
    assert share(drawn, lambda m: m.partitions == 1) >= 0.05
    assert share(drawn, lambda m: m.epsilon >= 8.0) >= 0.05
    assert share(drawn, lambda m: m.delta < 1e-9) >= 0.05


def test_other_classes_of_the_reference_package_are_left_to_hypothesis():
    noise = st.from_type(dp_icl.GaussianNoise)
    assert "registered" not in repr(noise)
    assert "builds" in repr(noise)


@pytest.mark.parametrize(
    "drawn_type",
    [
        PrivacyClaim,
        GaussianNoise,
        LaplaceNoise,
        snap.NeighbouringPair,
        snap.AdditiveNoiseConfiguration,
        snap.PrivateVotingConfiguration,
        snap.EmbeddingSpaceConfiguration,
        snap.SelectionConfiguration,
        snap.HistogramConfiguration,
        snap.QuantileConfiguration,
    ],
)
def test_the_plugins_own_types(drawn_type):
    drawn = draws(st.from_type(drawn_type), 30)
    assert drawn
    assert all(type(value) is drawn_type for value in drawn)


def test_types_of_other_packages_are_not_touched():
    import dataclasses

    @dataclasses.dataclass
    class PrivacyClaim:
        epsilon: int

    assert all(isinstance(value.epsilon, int) for value in draws(st.from_type(PrivacyClaim), 20))


def test_functions_annotated_with_a_claim_can_be_built():
    def audited(claim: PrivacyClaim) -> float:
        return claim.epsilon

    assert set(draws(st.builds(audited), 100)) >= {1.0}
