"""The feasible set: every kind of restriction, alone and together."""

import numpy as np
import pytest

from sfihilo.feasible import Feasible
from sfihilo.history import BoolArray, FloatArray

LIST = np.random.default_rng(0).uniform(size=(50, 2))
PREVIOUS = np.array([0.5, 0.5])


def lower_triangle(policies: FloatArray) -> BoolArray:
    return np.asarray(policies.sum(axis=1) < 1)


SETS = {
    "everything": Feasible(),
    "box": Feasible(lower=[0.2, 0.3], upper=0.9),
    "step": Feasible(max_step=[0.1, 0.02]),
    "callable": Feasible(accepts=lower_triangle),
    "list": Feasible(choices=LIST),
    "all": Feasible(lower=0.1, upper=0.9, max_step=0.4, accepts=lower_triangle, choices=LIST),
}


def allowed_by_hand(name: str, policy: FloatArray) -> bool:
    box = name in ("box", "all")
    verdicts: list[object] = [(policy >= 0).all() and (policy <= 1).all()]
    if box:
        low = [0.2, 0.3] if name == "box" else [0.1, 0.1]
        verdicts += [(policy >= low).all(), (policy <= 0.9).all()]
    if name in ("step", "all"):
        step = np.array([0.1, 0.02]) if name == "step" else 0.4
        verdicts.append((np.abs(policy - PREVIOUS) <= step + 1e-12).all())
    if name in ("callable", "all"):
        verdicts.append(policy.sum() < 1)
    if name in ("list", "all"):
        verdicts.append(any(np.array_equal(policy, listed) for listed in LIST))
    return all(bool(verdict) for verdict in verdicts)


@pytest.mark.parametrize("name", SETS)
def test_samples_lie_inside(name: str) -> None:
    samples = SETS[name].sample(300, 2, np.random.default_rng(1), PREVIOUS)
    assert len(samples) > 0
    assert all(allowed_by_hand(name, policy) for policy in samples)
    assert SETS[name].contains(samples, PREVIOUS).all()
    for policy in samples[:20]:
        SETS[name].check(policy, PREVIOUS)


@pytest.mark.parametrize("name", SETS)
def test_membership_by_hand(name: str) -> None:
    rng = np.random.default_rng(2)
    near = PREVIOUS + rng.uniform(-0.15, 0.15, (100, 2))
    policies = np.concatenate([rng.uniform(-0.1, 1.1, (400, 2)), near, LIST])
    expected = [allowed_by_hand(name, policy) for policy in policies]
    assert SETS[name].contains(policies, PREVIOUS).tolist() == expected
    assert any(expected)
    assert not all(expected)
    outsider = policies[expected.index(False)]
    with pytest.raises(ValueError, match="expected one in the feasible set"):
        SETS[name].check(outsider, PREVIOUS)


def test_samples_fill_the_set() -> None:
    samples = SETS["box"].sample(4000, 2, np.random.default_rng(0), None)
    assert samples.shape == (4000, 2)
    assert samples.min(axis=0) == pytest.approx([0.2, 0.3], abs=0.01)
    assert samples.max(axis=0) == pytest.approx([0.9, 0.9], abs=0.01)
    assert SETS["callable"].sample(4000, 2, np.random.default_rng(0), None).shape == (4000, 2)


def test_sample_of_listed_policies_has_no_duplicates() -> None:
    whole = SETS["list"].sample(4000, 2, np.random.default_rng(0), None)
    assert np.array_equal(whole, LIST)
    some = SETS["list"].sample(20, 2, np.random.default_rng(0), None)
    assert len({tuple(policy) for policy in some}) == 20


def test_a_step_needs_a_previous_policy() -> None:
    far = np.array([[0.99, 0.01]])
    assert SETS["step"].contains(far, None).all()
    assert not SETS["step"].contains(far, PREVIOUS).any()


def test_policy_that_is_not_finite_is_not_feasible() -> None:
    assert not Feasible().contains(np.array([[np.nan, 0.5], [np.inf, 0.5]])).any()


@pytest.mark.parametrize("seed", range(10))
def test_small_callables_are_found(seed: int) -> None:
    corner = Feasible(accepts=lambda policies: policies.max(axis=1) < 0.03)
    found = corner.sample(1, 2, np.random.default_rng(seed), None)
    assert found.shape == (1, 2)
    assert (found < 0.03).all()


def test_a_step_that_just_reaches_the_bound() -> None:
    reaching = Feasible(lower=0.8, max_step=0.1)
    previous = np.array([0.7, 0.7])  # 0.7 + 0.1 rounds to just below 0.8
    assert reaching.contains(np.array([[0.8, 0.8]]), previous).all()
    sample = reaching.sample(3, 2, np.random.default_rng(0), previous)
    assert reaching.contains(sample, previous).all()


def test_long_lists() -> None:
    """Memory and time grow with the list, not with its square (that would be 40 GB)."""
    listed = np.random.default_rng(0).uniform(size=(50_000, 2))
    some = Feasible(choices=listed, upper=0.5).sample(4000, 2, np.random.default_rng(1), None)
    assert len(some) == 4000
    assert (some <= 0.5).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Feasible(lower=0.6, upper=0.5), "it is empty"),
        (Feasible(lower=[0.1, 0.2, 0.3]), "lower: expected one number or 2"),
        (Feasible(upper=np.nan), "upper: expected one number or 2 finite"),
        (Feasible(upper=1.5), r"upper: expected numbers in \[0, 1\]"),
        (Feasible(lower=-0.5), r"lower: expected numbers in \[0, 1\]"),
        (Feasible(max_step=-0.1), r"max_step: expected numbers in \[0, 1\]"),
        (Feasible(lower=0.9, max_step=0.1), "it is empty"),
        (Feasible(choices=[[0.1, 0.2, 0.3]]), "choices: expected"),
        (Feasible(choices=[[0.1, np.nan]]), "choices: expected"),
        (Feasible(choices=np.empty((0, 2))), "none of the 0 choices"),
        (Feasible(choices=[[0.1, 0.2]], lower=0.5), "none of the 1 choices"),
        (Feasible(accepts=lambda policies: policies[:, 0] > 2), "the callable accepted none"),
        (Feasible(accepts=lambda policies: policies > 2), "feasible callable: expected"),
    ],
)
def test_sample_of_an_impossible_set_is_refused(wrong: Feasible, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong.sample(10, 2, np.random.default_rng(0), PREVIOUS)
