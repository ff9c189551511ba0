"""The words of the device name the axes of the unit cube."""

from __future__ import annotations

import pytest

from sfihilo.study.demo import exoskeleton


def test_policy_is_described_in_the_units_of_the_device() -> None:
    ends = exoskeleton.describe([0, 1, 0.5, 0])
    assert ends == (
        "peak torque 10 Nm, peak time 60 % of stride, rise time 25 % of stride, "
        "fall time 10 % of stride"
    )


def test_policy_of_another_device_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        exoskeleton.describe([0.5, 0.5])
