"""pytest-snapaudit: prove differential-privacy claims in CI."""
