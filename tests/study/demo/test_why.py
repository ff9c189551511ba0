"""The why of one person: slices are relative to the advice, drives find what matters."""

from __future__ import annotations

import numpy as np
import pytest

from sfihilo.settings import Settings
from sfihilo.study.demo.why import drives, explain_person
from sfihilo.study.people.users import sample_user
from sfihilo.study.run.simulate import interaction
from tests.study.tiny import PEOPLE


def test_drives_of_a_linear_reward_are_its_weights_times_the_spread() -> None:
    rng = np.random.default_rng(0)
    outcomes = rng.uniform(size=(20_000, 3)) * [1.0, 1.0, 0.5]
    order = rng.permutation(len(outcomes))
    found = drives(lambda points: points @ np.array([3.0, 0.0, -2.0]), outcomes, order)
    np.testing.assert_allclose(found, [0.75, 0, 0.25], atol=0.01)


def test_slices_are_zero_at_the_centre_and_show_the_true_reward() -> None:
    user = sample_user(2, 2, 5, settings=PEOPLE)
    *_, (_, state) = interaction(Settings(2, 2, rule="random"), 0, user, 8)
    policies = np.random.default_rng(1).uniform(size=(300, 2))
    why = explain_person(state, user, policies, np.array([0.5, 0.25]))
    assert len(why.slices) == 2
    assert why.learned.sum() == pytest.approx(1)
    for cut, here in zip(why.slices, (0.5, 0.25), strict=True):
        assert cut.here == here
        for curve in (cut.truth, cut.learned):
            assert np.interp(here, cut.grid, curve) == pytest.approx(0, abs=1e-6)
        assert (cut.low <= cut.high).all()
        assert 0 <= cut.common[0] < cut.common[1] <= 1
    top = user.rewards(np.array([[1.0, 0.25]]))[0] - user.rewards(np.array([[0.5, 0.25]]))[0]
    assert why.slices[0].truth[-1] == pytest.approx(top, abs=1e-6)
