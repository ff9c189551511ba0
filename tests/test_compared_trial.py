"""Recall: which of the last trials is compared with, what older ones count, saving."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from sfihilo import (
    Feasible,
    Query,
    Response,
    Settings,
    State,
    ask,
    begin,
    load,
    question,
    save,
    tell,
)
from sfihilo.compared_trial import answer_information
from sfihilo.forward import sample
from sfihilo.history import Choice, FloatArray, generator
from sfihilo.inverse.grading import answer_clarity
from sfihilo.inverse.likelihood import Answers, likelihood_terms
from tests.small import small

FIVE = small(Settings(policy_dim=2, outcome_dim=3, recall=5))


def outcome_of(query: Query) -> FloatArray:
    noise = 0.03 * generator(3, query.round, "person").standard_normal(3)
    first, second = query.policy
    clean = np.array([first, second, (first + second) / 2])
    return np.asarray(np.clip(0.1 + 0.8 * clean + noise, 0, 1))


def answered(query: Query, outcome: FloatArray) -> Choice | None:
    if query.anchor is None:
        return None
    return "new" if (outcome - query.anchor) @ [1.0, -0.7, 0.2] > 0 else "previous"


def played(settings: Settings, rounds: int, *, patchy: bool = False) -> State:
    """A session that asks for the trial to compare with; every fourth trial may be incomplete."""
    state = begin(settings, 4)
    for round in range(rounds):
        query = ask(state)
        outcome: FloatArray | None = outcome_of(query)
        assert outcome is not None
        if patchy and round % 4 == 3:
            outcome = None if round % 8 == 3 else np.array([outcome[0], np.nan, outcome[2]])
        query = question(state, query, outcome)
        choice = answered(query, outcome_of(query))
        state = tell(state, query, Response(outcome, choice))
    return state


def plain_information(
    state: State, outcome: FloatArray, rounds: list[int], feasible: Feasible
) -> list[float]:
    """Pair by pair in double precision, from the belief's own numbers."""
    settings, belief = state.settings, state.inverse
    rng = generator(state.seed, state.round, "pairs")
    policies = feasible.sample(2 * settings.pairs.pairs, settings.policy_dim, rng, None)
    at = state.forward.at(policies.astype(state.forward.working_dtype))
    epistemic = state.forward.variances(at.leverages)[0]
    drawn = sample(at.mean, epistemic, rng.standard_normal(at.mean.shape))
    root = np.exp(belief.log_sharpness) * belief.covariance_root[:-1]
    covariance = root @ root.T
    weights = np.exp(belief.log_sharpness) * belief.weights
    half = len(policies) // 2
    cuts = belief.grading.cuts(settings.grades)
    edges = np.concatenate([[-np.inf], -cuts[::-1], cuts, [np.inf]]) if cuts.size else None

    def margin(first: FloatArray, second: FloatArray) -> tuple[FloatArray, float, float]:
        row = (belief.features(first[None]) - belief.features(second[None]))[0]
        return row, float(row @ weights), float(row @ covariance @ row)

    def psi_squared(mean: float, variance: float, answer: bool) -> float:
        deviation = np.sqrt(variance)
        ends = np.array([-np.inf, 0.0, np.inf]) if edges is None or not answer else edges
        densities = norm.pdf((ends - mean) / deviation)
        masses = np.diff(norm.cdf((ends - mean) / deviation))
        return float(np.sum(np.diff(densities) ** 2 / masses) / variance)

    found = []
    for recalled in rounds:
        row, mean, variance = margin(state.history.filled[recalled], outcome)
        age = state.round - recalled
        noise = 1.7**2 * (1 + settings.recall_noise * (age - 1))
        total = 0.0
        for first, second in zip(drawn[:half], drawn[half:], strict=True):
            target, gap, spread = margin(first, second)
            shared = float(row @ covariance @ target)
            total += psi_squared(gap, spread, False) * shared**2
        found.append(0.5 * psi_squared(mean, variance + noise, True) * total / half)
    return found


@pytest.mark.parametrize("grades", [2, 7])
@pytest.mark.parametrize("recall_noise", [0.0, 0.8])
@pytest.mark.parametrize("feasible", [Feasible(), Feasible(lower=0.2, upper=0.6)])
def test_question_names_the_most_informative_trial_of_a_plain_loop(
    grades: int, recall_noise: float, feasible: Feasible
) -> None:
    settings = replace(FIVE, grades=grades, recall_noise=recall_noise)
    state = played(settings, 13)
    query = ask(state)
    outcome = outcome_of(query)
    rounds = [12, 11, 10, 9, 8]
    expected = plain_information(state, outcome, rounds, feasible)
    found = answer_information(state, outcome, np.array(rounds), feasible)
    assert found == pytest.approx(expected, rel=2e-3)
    named = question(state, query, outcome, feasible)
    assert named.compared_with == rounds[int(np.argmax(expected))]
    assert named.anchor is not None
    assert named.anchor.tolist() == state.history.outcomes[named.compared_with].tolist()
    assert (named.round, named.policy.tolist()) == (query.round, query.policy.tolist())


def test_question_without_recall_returns_the_query_itself() -> None:
    state = played(replace(FIVE, recall=1), 6)
    query = ask(state)
    assert question(state, query, outcome_of(query)) is query
    assert query.compared_with == 5


def test_recall_five_compares_with_several_ages() -> None:
    state = played(FIVE, 25)
    ages = set((np.arange(25) - state.history.compared_with)[1:].tolist())
    assert len(ages) > 1
    assert ages <= {1, 2, 3, 4, 5}


def test_noisy_recall_compares_with_newer_trials() -> None:
    forgetful = played(replace(FIVE, recall_noise=50.0), 25)
    sure = played(FIVE, 25)
    ages = [np.arange(25) - state.history.compared_with for state in (forgetful, sure)]
    assert ages[0][1:].mean() < ages[1][1:].mean()


def test_first_round_and_unmeasured_outcome_keep_the_query() -> None:
    state = begin(FIVE, 0)
    query = ask(state)
    assert query.compared_with is None
    assert question(state, query, outcome_of(query)) is query
    later = played(FIVE, 6)
    query = ask(later)
    assert question(later, query, None) is query
    assert question(later, query, np.full(3, np.nan)) is query


def test_unmeasured_trials_are_never_compared_with() -> None:
    history = played(FIVE, 24, patchy=True).history
    named = history.compared_with[history.compared_with >= 0]
    assert history.measured[named].all()
    for round in np.flatnonzero(history.compared):
        last = np.flatnonzero(history.measured[:round])[-5:]
        assert history.compared_with[round] in last


def test_partly_measured_anchor_follows_the_newest_prediction() -> None:
    state = played(FIVE, 24, patchy=True)
    history = state.history
    partial = np.isnan(history.outcomes).any(axis=1) & history.measured
    rows = [
        row for row in range(24) if history.compared_with[row] >= 0
        and partial[history.compared_with[row]]
    ]  # fmt: skip
    assert rows
    for row in rows:
        recalled = history.compared_with[row]
        at = state.processes().at(history.policies[recalled][None], np.float64)
        predicted = np.clip(at.mean[0, 1], 0, 1)
        assert history.anchors[row, 1] == pytest.approx(predicted, abs=1e-12)


def test_state_with_recall_loads_before_the_first_trial() -> None:
    state = begin(FIVE, 0)
    assert save(load(save(state))) == save(state)


@pytest.mark.parametrize("patchy", [False, True])
@pytest.mark.parametrize("recall_noise", [0.0, 0.5])
def test_state_with_recall_saves_and_loads_to_the_last_bit(
    patchy: bool, recall_noise: float
) -> None:
    state = played(replace(FIVE, recall_noise=recall_noise), 14, patchy=patchy)
    again = load(save(state))
    assert save(again) == save(state)
    assert again.history.compared_with.tolist() == state.history.compared_with.tolist()
    assert (again.inverse.clarity == state.inverse.clarity).all()
    query = ask(state)
    assert (ask(again).policy == query.policy).all()
    outcome = outcome_of(query)
    assert question(again, query, outcome).compared_with == (
        question(state, query, outcome).compared_with
    )


def test_saved_state_without_recall_has_no_new_field() -> None:
    text = save(played(replace(FIVE, recall=1), 5))
    assert "compared_with" not in text
    assert "recall" not in text


def test_saved_state_with_another_anchor_is_refused() -> None:
    state = played(FIVE, 5)
    text = save(state)
    listed = state.history.compared_with.tolist()
    moved = text.replace(f'"compared_with": {listed}', '"compared_with": [-1, 0, 0, 0, 0]')
    assert moved != text
    with pytest.raises(ValueError, match="expected anchors that are outcomes of earlier rounds"):
        load(moved)
    late = text.replace(f'"compared_with": {listed}', '"compared_with": [-1, 0, 1, 2, 4]')
    with pytest.raises(ValueError, match="expected rounds before their own"):
        load(late)


def test_older_trials_divide_rows_and_bounds_by_their_noise() -> None:
    state = played(replace(FIVE, grades=7, recall_noise=0.5), 20)
    belief, history = state.inverse, state.history
    ages = np.arange(20)[history.compared] - history.compared_with[history.compared]
    factor = np.sqrt(1 + 0.5 * (ages - 1))
    assert len(set(ages.tolist())) > 1
    assert belief.rows == pytest.approx(belief.differences / factor[:, None])
    edges = belief.grading.scale * belief.bounds / factor[:, None]
    finite = np.isfinite(edges)
    assert belief.answers.bounds[finite] == pytest.approx(edges[finite])


def test_likelihood_of_an_older_trial_is_that_of_a_noisier_answer() -> None:
    margin, age, kappa = 2.3, 4, 0.7
    clarity = float(answer_clarity(np.array([age]), kappa)[0])
    factor = np.sqrt(1 + kappa * (age - 1))
    answers = Answers(np.array([1.0]), np.array([[1.2, 4.8]]) * clarity, 1.0)
    terms = likelihood_terms(np.array([margin * clarity]), answers)
    # The felt margin is the margin plus logistic noise, factor times as large.
    rng = np.random.default_rng(0)
    felt = margin + factor * rng.logistic(size=400_000)
    share = np.mean((felt > 1.2) & (felt < 4.8))
    assert np.exp(-terms.value[0]) == pytest.approx(share, abs=0.004)


def test_noisier_recall_gives_weaker_preferences() -> None:
    settings = replace(FIVE, recall_noise=0.0)
    states = []
    for kappa in (0.0, 4.0):
        state = begin(replace(settings, recall_noise=kappa), 4)
        for round in range(12):
            outcome = generator(1, round, "outcome").uniform(size=3)
            oldest = int(state.history.recent(5)[-1]) if round else None
            anchor = None if oldest is None else state.history.filled[oldest]
            query = Query(round, outcome[:2], anchor, oldest)
            state = tell(state, query, Response(outcome, answered(query, outcome)))
        states.append(state)
    good, bad = np.array([[0.9, 0.1, 0.5]]), np.array([[0.1, 0.9, 0.5]])
    sure, unsure = (float(state.posterior().preference(good, bad)[0]) for state in states)
    assert sure > unsure > 0.5


def test_tell_accepts_only_the_last_trials() -> None:
    state = played(replace(FIVE, recall=3), 8)
    query = ask(state)
    response = Response(outcome_of(query), "new")
    for row in (7, 6, 5):
        named = replace(query, anchor=state.history.filled[row], compared_with=row)
        assert tell(state, named, response).history.compared_with[-1] == row
    wrong = replace(query, anchor=state.history.filled[4], compared_with=4)
    with pytest.raises(ValueError, match=r"one of the rounds \[7, 6, 5\], got 4"):
        tell(state, wrong, response)
    with pytest.raises(ValueError, match="query: expected the anchor"):
        tell(state, replace(query, compared_with=6), response)


@pytest.mark.parametrize("recall", [0, 6, True, 2.5, "3"])
def test_wrong_recall_is_refused(recall: object) -> None:
    with pytest.raises(ValueError, match="recall: expected a whole number from 1 to 5, got"):
        Settings(recall=recall)  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", [-0.1, np.inf, np.nan])
def test_wrong_recall_noise_is_refused(noise: float) -> None:
    with pytest.raises(ValueError, match="recall_noise: expected a number from 0, got"):
        Settings(recall_noise=noise)


def test_stored_settings_leave_out_recall_by_default() -> None:
    assert not {"recall", "recall_noise"} & set(Settings().to_dict())
    assert Settings.from_dict(FIVE.to_dict()) == FIVE


@pytest.mark.parametrize("rule", ["random", "mutual_information", "boundary_lookahead"])
def test_recall_works_with_every_rule_of_the_paper_preset(rule: str) -> None:
    settings = small(Settings.paper(policy_dim=2, outcome_dim=3, rule=rule, recall=4))
    history = played(settings, 8).history
    assert (history.compared_with[1:] >= 0).all()
